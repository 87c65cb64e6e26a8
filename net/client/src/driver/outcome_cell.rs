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
    waiting: Mutex<Vec<Waker>>,
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
        waiting.into_iter().for_each(Waker::wake);
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
        match place.and_then(|place| waiting.get_mut(place)) {
            Some(waker) => waker.clone_from(context.waker()),
            None => {
                *place = Some(waiting.len());
                waiting.push(context.waker().clone());
            }
        }
        Poll::Pending
    }
}
