//! The fenced idempotent write: updates of one entity, each stored once, whoever sends it.
//!
//! An entity is a stream. Any process may write any client's update to it, and a client may send
//! an update again by any route; `tests/model` has the protocol in TLA+ (`FencedWriter`).
//!
//! ```text
//!            +-------------------------- backoff: Waiting <------------------------+
//!            v                                                                     |
//!   start: Reading --all read--> leave out what is known --rest--> Writing --------+ refused,
//!            ^                   (answered: where it is)             |             | lost, late
//!            | first refusal of                     nothing left     | acked
//!            | a guess from memory                        v          v
//!            +--------------------------------------    Over: every update is resolved
//! ```
//! The rest is written as one batch, on condition that the stream still ends where the read ended
//! (`match_sequence`). So of all writers that read the same tail one succeeds, and an append that
//! arrives late, when its sender has given it up, changes nothing: either it was there to be read,
//! or the tail is another one. What was read before is remembered ([`Memory`]); a batch that finds
//! a memory begins with the write, and its condition tells whether the memory is complete.
//!
//! # What is guaranteed
//! An update is stored once if it is sent again before `known_records` further records are stored
//! in its entity, and before it is trimmed. All writers of an entity have to write like this, with
//! as many known records as their clients' lateness needs.
//!
//! # Invariants
//! - An update is resolved once, and with a position only when it is durable.
//! - A write carries the position that was read as its condition, the incarnation that was read,
//!   and the fencing token if there is one.
//! - After a write that was refused, lost or late the stream is read again before the next.
//! - `is_clean` is true only if no attempt can be stored: a doubt about a write at `m` ends when
//!   the stream is read past `m`, or when another token than it presented is installed. So a token
//!   is for one owner: it is not installed again once another one was.
//!
//! # Not here
//! - Which updates ride together, one batch of an entity at a time: [`KeyedQueue`].
//! - Requests, the clock, the random numbers: [`EntityWriter`](crate::EntityWriter).
//!
//! [`KeyedQueue`]: crate::core::keyed::KeyedQueue

mod answers;
pub mod memory;
pub mod outcome;
pub mod update;

use crate::core::Moment;
use crate::core::retry::Patience;
use bytes::Bytes;
use memory::{Memory, Stored};
use nova_model::limits::{
    CLIENT_RETRY_BUDGET_US, ENTITY_ATTEMPT_US, ENTITY_KNOWN_RECORDS_DEFAULT,
    ENTITY_KNOWN_RECORDS_MAX,
};
use nova_model::request::ReadStart;
use nova_model::{Conditions, FencingToken, Instant, Record, Refusal, SequenceNumber, StreamId};
use outcome::{Applied, UpdateError};
use std::collections::{BTreeMap, VecDeque};
use update::Update;

/// How an entity is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WriteRules {
    /// The fencing token that every write presents.
    pub fence: Option<FencingToken>,
    /// Newest records of an entity whose ids are known.
    pub known_records: u64,
    /// How long a batch is tried from its first trouble on, in microseconds.
    pub retry_budget_us: u64,
    /// How long a read or a write may be without any progress, in microseconds.
    pub attempt_us: u64,
}

impl Default for WriteRules {
    fn default() -> WriteRules {
        WriteRules {
            fence: None,
            known_records: ENTITY_KNOWN_RECORDS_DEFAULT,
            retry_budget_us: CLIENT_RETRY_BUDGET_US,
            attempt_us: ENTITY_ATTEMPT_US,
        }
    }
}

impl WriteRules {
    /// Refuses rules outside their limits: `INVALID`, with the field.
    pub fn check(&self) -> Result<(), Refusal> {
        self.fence.as_ref().map_or(Ok(()), FencingToken::check)?;
        if self.known_records == 0 || self.known_records > ENTITY_KNOWN_RECORDS_MAX {
            let limit = Some(ENTITY_KNOWN_RECORDS_MAX);
            let message = format!("known_records is 1 to {ENTITY_KNOWN_RECORDS_MAX} records");
            return Err(Refusal::invalid("known_records", limit, message));
        }
        Ok(())
    }
}

/// What a write asks of its driver. At most one read or write is under way; its end is reported,
/// unless [`Action::Cancel`] comes before.
#[derive(Debug)]
pub enum Action {
    /// Read up to the tail. Report `handle_read_begun`, then `handle_stored` for each batch, then
    /// `handle_read_all`; or `handle_failed`.
    Read {
        /// The incarnation that it must be.
        stream_id: Option<StreamId>,
        /// Where to start.
        start: ReadStart,
    },
    /// Append one batch. Report `handle_written` or `handle_failed`.
    Write {
        /// The incarnation that it must be.
        stream_id: Option<StreamId>,
        /// What must hold.
        conditions: Conditions,
        /// The records of the batch.
        records: Vec<Record>,
    },
    /// Wait for the read or write no longer.
    Cancel,
    /// Tell the caller of an update.
    Resolve {
        /// Its place among the updates that the write began with.
        update: usize,
        /// Its result.
        result: Result<Applied, UpdateError>,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Made, and not started.
    New,
    /// A read is under way; given up at the deadline.
    Reading { deadline: Instant },
    /// An append is under way; given up at the deadline.
    Writing { deadline: Instant },
    /// After a failure; the next read is at this time.
    Waiting { until: Instant },
    /// All updates are resolved.
    Over,
}

/// One batch of updates of one entity, until each has its result.
#[derive(Debug)]
pub struct FencedWrite {
    rules: WriteRules,
    updates: Vec<Update>,
    /// By id, the updates that have it, in order; they stay until they are resolved.
    open: BTreeMap<Bytes, Vec<usize>>,
    memory: Memory,
    /// The memory is of an earlier batch: nothing was read in this one.
    is_guess: bool,
    /// A write at this position may be stored still.
    doubt: Option<SequenceNumber>,
    /// What ends this once the last doubt has been looked into.
    verdict: Option<Refusal>,
    last: Option<Refusal>,
    patience: Patience,
    state: State,
    actions: VecDeque<Action>,
    /// The safeguard that this variant is without, for the tests that show that it is needed.
    #[cfg(test)]
    pub(crate) without: Option<Safeguard>,
}

/// What keeps a write safe. The tests take one away at a time, and their checker has to notice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Safeguard {
    /// Updates that are stored are left out.
    LeaveOut,
    /// A write is on condition of the tail that was read.
    Match,
    /// The stream is read again after a failure, not only its tail adopted.
    ReadAgain,
    /// A write is for the incarnation that was read.
    Incarnation,
    /// A write presents the fencing token.
    Fence,
    /// The same id with other content is an error.
    Compare,
    /// A failure is followed by a wait.
    Backoff,
    /// A caller is answered once its update is durable.
    Durable,
}

impl FencedWrite {
    /// A write of these updates, at least one, with what is remembered of their entity.
    pub fn new(rules: WriteRules, updates: Vec<Update>, memory: Memory) -> FencedWrite {
        assert!(!updates.is_empty(), "a batch has updates");
        let mut open: BTreeMap<Bytes, Vec<usize>> = BTreeMap::new();
        for (index, update) in updates.iter().enumerate() {
            open.entry(update.id().clone()).or_default().push(index);
        }
        FencedWrite {
            patience: Patience::new(rules.retry_budget_us),
            rules,
            updates,
            open,
            memory,
            is_guess: false,
            doubt: None,
            verdict: None,
            last: None,
            state: State::New,
            actions: VecDeque::new(),
            #[cfg(test)]
            without: None,
        }
    }

    /// Begins: with a write if the entity is remembered, else with a read.
    pub fn start(&mut self, now: Instant) {
        assert_eq!(self.state, State::New, "a write starts once");
        self.is_guess = self.memory.stream_id().is_some() && self.memory.next().is_some();
        if self.is_guess {
            self.decide(now);
        } else {
            self.read(now);
        }
    }

    /// What to do next, until there is nothing left.
    pub fn poll_action(&mut self) -> Option<Action> {
        self.actions.pop_front()
    }

    /// When [`FencedWrite::handle_tick`] is due.
    pub fn next_deadline(&self) -> Option<Instant> {
        match self.state {
            State::Reading { deadline } | State::Writing { deadline } => Some(deadline),
            State::Waiting { until } => Some(until),
            State::New | State::Over => None,
        }
    }

    /// Whether every update is resolved, once [`FencedWrite::poll_action`] has no more.
    pub fn is_over(&self) -> bool {
        self.state == State::Over
    }

    /// What is known of the entity now, for its next batch.
    pub fn into_memory(self) -> Memory {
        self.memory
    }

    /// The time has come that [`FencedWrite::next_deadline`] said.
    pub fn handle_tick(&mut self, at: Moment) {
        match self.state {
            State::Reading { deadline } if at.now >= deadline => {
                self.actions.push_back(Action::Cancel);
                self.again(at, None);
            }
            State::Writing { deadline } if at.now >= deadline => {
                self.actions.push_back(Action::Cancel);
                self.begin_doubt();
                self.again(at, None);
            }
            State::Waiting { until } if at.now >= until => {
                if self.patience.is_spent(at.now) {
                    self.give_up();
                } else {
                    self.read(at.now);
                }
            }
            _ => {}
        }
    }

    fn read(&mut self, now: Instant) {
        let deadline = self.attempt_deadline(now);
        self.state = State::Reading { deadline };
        self.actions.push_back(Action::Read {
            stream_id: self.memory.stream_id(),
            start: self.memory.read_start(),
        });
    }

    /// All up to the tail is known: leaves out what is stored, and writes the rest.
    fn decide(&mut self, now: Instant) {
        if self.doubt < self.memory.next() {
            self.doubt = None;
        }
        if self.has(Safeguard::LeaveOut) {
            let stored = |id: &Bytes| Some((id.clone(), self.memory.find(id)?));
            let known: Vec<_> = self.open.keys().filter_map(stored).collect();
            for (id, stored) in known {
                self.settle(&id, stored, true);
            }
        }
        if let Some(refusal) = self.verdict.take() {
            // The token that was presented is gone: what is not stored by now never will be.
            self.doubt = None;
            self.refuse(refusal);
        }
        if self.open.is_empty() {
            self.state = State::Over;
        } else {
            self.write(now);
        }
    }

    fn write(&mut self, now: Instant) {
        let deadline = self.attempt_deadline(now);
        self.state = State::Writing { deadline };
        let mut conditions = Conditions::default();
        if self.has(Safeguard::Match) {
            conditions.match_sequence = self.memory.next();
        }
        if self.has(Safeguard::Fence) {
            conditions.fence.clone_from(&self.rules.fence);
        }
        let is_bound = self.has(Safeguard::Incarnation);
        let records = self.firsts().map(|update| update.record().clone());
        let records = records.collect();
        self.actions.push_back(Action::Write {
            stream_id: self.memory.stream_id().filter(|_| is_bound),
            conditions,
            records,
        });
        if !self.has(Safeguard::Durable) {
            let next = self.memory.next().unwrap_or_default();
            let ids: Vec<Bytes> = self.firsts().map(|update| update.id().clone()).collect();
            for (at, id) in (next.0..).zip(ids) {
                for &update in &self.open[&id] {
                    let (at, duplicate) = (SequenceNumber(at), false);
                    let result = Ok(Applied { at, duplicate });
                    self.actions.push_back(Action::Resolve { update, result });
                }
            }
        }
    }

    /// The updates to write, in order: the first of each id that is open.
    fn firsts(&self) -> impl Iterator<Item = &Update> {
        let is_first = |index: usize, update: &Update| {
            let open = self.open.get(update.id());
            open.is_some_and(|same| same.first() == Some(&index))
        };
        let updates = self.updates.iter().enumerate();
        updates.filter_map(move |(index, update)| is_first(index, update).then_some(update))
    }

    /// Resolves the updates of one id by what is stored under it.
    fn settle(&mut self, id: &Bytes, stored: Stored, was_there: bool) {
        let Some(same) = self.open.remove(id) else {
            return;
        };
        let compares = self.has(Safeguard::Compare);
        let mut duplicate = was_there;
        for update in same {
            let at = stored.at;
            let result = if compares && self.updates[update].content() != stored.content {
                Err(UpdateError::Conflict { at })
            } else {
                let applied = Applied { at, duplicate };
                // A second one of the same batch finds the first.
                duplicate = true;
                Ok(applied)
            };
            self.resolve(update, result);
        }
    }

    fn resolve(&mut self, update: usize, result: Result<Applied, UpdateError>) {
        if self.has(Safeguard::Durable) {
            self.actions.push_back(Action::Resolve { update, result });
        }
    }

    /// Tells all that are left.
    fn fail(&mut self, error: UpdateError) {
        for update in std::mem::take(&mut self.open).into_values().flatten() {
            self.resolve(update, Err(error.clone()));
        }
        self.state = State::Over;
    }

    fn refuse(&mut self, refusal: Refusal) {
        self.fail(UpdateError::Refused {
            refusal: Box::new(refusal),
            is_clean: self.doubt.is_none(),
        });
    }

    fn give_up(&mut self) {
        if let Some(refusal) = self.verdict.take() {
            return self.refuse(refusal);
        }
        let last = self.last.take().map(Box::new);
        self.fail(UpdateError::Unavailable {
            last,
            is_clean: self.doubt.is_none(),
        });
    }

    /// Starts again from the read, after a wait.
    fn again(&mut self, at: Moment, after_us: Option<u64>) {
        self.patience.begin(at.now);
        let until = if self.has(Safeguard::Backoff) {
            self.patience.next_attempt(at, after_us)
        } else {
            at.now
        };
        let until = self.patience.deadline().map_or(until, |end| until.min(end));
        self.state = State::Waiting { until };
    }

    fn begin_doubt(&mut self) {
        self.doubt = self.doubt.max(self.memory.next());
    }

    fn attempt_deadline(&self, now: Instant) -> Instant {
        let deadline = now.plus_us(self.rules.attempt_us);
        let end = self.patience.deadline();
        end.map_or(deadline, |end| deadline.min(end))
    }

    #[cfg(not(test))]
    fn has(&self, _: Safeguard) -> bool {
        true
    }

    #[cfg(test)]
    fn has(&self, safeguard: Safeguard) -> bool {
        self.without != Some(safeguard)
    }
}

#[cfg(test)]
mod dice_tests;
#[cfg(test)]
mod fenced_tests;
#[cfg(test)]
mod model_tests;
#[cfg(test)]
mod random_tests;
#[cfg(test)]
mod scenario_tests;
#[cfg(test)]
mod world_tests;
