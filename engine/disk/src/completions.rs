//! A queue between the driver and a core's loop, on one thread.
//!
//! The driver pushes; the loop pops what is there and, when there is nothing, waits to be woken. A
//! loop with several sources gives [`Completions::poll_ready`] its own context and is woken by
//! whichever source comes first.
//!
//! # Invariants
//! - Bounded by the operations in flight: each pushes exactly one completion.

use nova_core::disk::{DiskResult, OpToken};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

/// Completions that the core's loop has not taken yet. Clones share one queue.
#[derive(Clone, Default)]
pub struct Completions {
    shared: Rc<RefCell<Shared>>,
}

#[derive(Default)]
struct Shared {
    queue: VecDeque<(OpToken, DiskResult)>,
    waker: Option<Waker>,
}

impl Completions {
    /// An empty queue.
    pub fn new() -> Completions {
        Completions::default()
    }

    /// Adds a completion and wakes the loop; the driver's side.
    pub fn push(&self, token: OpToken, result: DiskResult) {
        let waker = {
            let mut shared = self.shared.borrow_mut();
            shared.queue.push_back((token, result));
            shared.waker.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Takes the oldest completion.
    pub fn pop(&self) -> Option<(OpToken, DiskResult)> {
        self.shared.borrow_mut().queue.pop_front()
    }

    /// Ready when there is a completion; otherwise the context is woken by the next one.
    pub fn poll_ready(&self, context: &mut Context<'_>) -> Poll<()> {
        let mut shared = self.shared.borrow_mut();
        if shared.queue.is_empty() {
            shared.waker = Some(context.waker().clone());
            return Poll::Pending;
        }
        Poll::Ready(())
    }

    /// Waits for the oldest completion and takes it.
    pub async fn next(&self) -> (OpToken, DiskResult) {
        loop {
            if let Some(completion) = self.pop() {
                return completion;
            }
            poll_fn(|context| self.poll_ready(context)).await;
        }
    }
}

#[cfg(test)]
#[path = "completions_tests.rs"]
mod tests;
