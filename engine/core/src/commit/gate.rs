//! The durability gate: every kind of answer waits here for the group it depends on.
//!
//! An ack depends on the group that holds its batch. A refusal that names a tail or a token, and a
//! repeat that names old positions, depend on the last group of their stream: were they to leave
//! earlier, a power cut could take back the very state that they told of.
//!
//! # Invariants
//! - Answers leave in the order of their tickets, and in the order they were held within one.
//! - What is held for a ticket that is durable already leaves at once.

use std::collections::BTreeMap;

/// Names a group from the moment it is opened, before it has a number in the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Ticket(pub u64);

/// Answers that wait, each for its ticket.
#[derive(Debug)]
pub(crate) struct Gate<T> {
    durable: Ticket,
    waiting: BTreeMap<Ticket, Vec<T>>,
    held: usize,
}

impl<T> Gate<T> {
    /// A gate before the first group.
    pub(crate) fn new() -> Gate<T> {
        Gate {
            durable: Ticket(0),
            waiting: BTreeMap::new(),
            held: 0,
        }
    }

    /// Holds `answer` until `ticket` is durable; gives it back if it is.
    pub(crate) fn hold(&mut self, ticket: Ticket, answer: T) -> Option<T> {
        if ticket <= self.durable {
            return Some(answer);
        }
        self.waiting.entry(ticket).or_default().push(answer);
        self.held += 1;
        None
    }

    /// All groups up to `ticket` are durable: what may leave now, in order.
    pub(crate) fn release(&mut self, ticket: Ticket) -> Vec<T> {
        assert!(ticket > self.durable, "groups become durable in order");
        self.durable = ticket;
        let later = self.waiting.split_off(&Ticket(ticket.0 + 1));
        let now = std::mem::replace(&mut self.waiting, later);
        let free: Vec<T> = now.into_values().flatten().collect();
        self.held -= free.len();
        free
    }

    /// How many answers wait.
    pub(crate) fn held(&self) -> usize {
        self.held
    }
}

#[cfg(test)]
#[path = "gate_tests.rs"]
mod tests;
