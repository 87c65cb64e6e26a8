//! A flag that a task waits for, on one thread.
//!
//! # Invariants
//! - Setting it any number of times before the task looks wakes the task once.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::task::{Context, Poll, Waker};

/// One flag with one waiter.
#[derive(Default)]
pub(crate) struct Signal {
    is_set: Cell<bool>,
    waker: RefCell<Option<Waker>>,
}

impl Signal {
    /// Sets the flag and wakes the waiter.
    pub(crate) fn set(&self) {
        if self.is_set.replace(true) {
            return;
        }
        if let Some(waker) = self.waker.borrow_mut().take() {
            waker.wake();
        }
    }

    /// Takes the flag if it is set; otherwise the context is woken when it is.
    pub(crate) fn poll(&self, context: &mut Context<'_>) -> Poll<()> {
        if self.is_set.replace(false) {
            return Poll::Ready(());
        }
        *self.waker.borrow_mut() = Some(context.waker().clone());
        Poll::Pending
    }

    /// Waits for the flag and takes it.
    pub(crate) async fn wait(&self) {
        poll_fn(|context| self.poll(context)).await;
    }
}
