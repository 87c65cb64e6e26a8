//! The result of one batch, shared by the tickets of all its callers.
//!
//! # Invariants
//! - Set once; all that wait are woken once.

use crate::core::AppendError;
use nova_model::request::Ack;
use std::sync::{Mutex, OnceLock, PoisonError};
use std::task::{Context, Poll, Waker};

/// One batch's result and those that wait for it.
#[derive(Debug, Default)]
pub(crate) struct OutcomeCell {
    result: OnceLock<Result<Ack, AppendError>>,
    waiting: Mutex<Waiting>,
}

/// The first of them has its place here, so that a batch of one caller needs no list.
#[derive(Debug, Default)]
struct Waiting {
    first: Option<Waker>,
    others: Vec<Waker>,
}

impl OutcomeCell {
    pub(crate) fn get(&self) -> Option<&Result<Ack, AppendError>> {
        self.result.get()
    }

    pub(crate) fn set(&self, result: Result<Ack, AppendError>) {
        if self.result.set(result).is_err() {
            return;
        }
        let waiting = {
            let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
            std::mem::take(&mut *waiting)
        };
        let Waiting { first, others } = waiting;
        first.into_iter().chain(others).for_each(Waker::wake);
    }

    /// The result, or a place among those that wait; `place` is the caller's from poll to poll.
    pub(crate) fn poll(
        &self,
        context: &mut Context<'_>,
        place: &mut Option<usize>,
    ) -> Poll<&Result<Ack, AppendError>> {
        if let Some(result) = self.result.get() {
            return Poll::Ready(result);
        }
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(result) = self.result.get() {
            return Poll::Ready(result);
        }
        waiting.put(context.waker(), place);
        Poll::Pending
    }
}

impl Waiting {
    fn put(&mut self, waker: &Waker, place: &mut Option<usize>) {
        let Some(first) = &mut self.first else {
            *place = Some(0);
            self.first = Some(waker.clone());
            return;
        };
        let there = match *place {
            Some(0) => Some(first),
            Some(place) => self.others.get_mut(place - 1),
            None => None,
        };
        match there {
            Some(there) => there.clone_from(waker),
            None => {
                self.others.push(waker.clone());
                *place = Some(self.others.len());
            }
        }
    }
}
