//! Counts operations in flight and wakes who waits for their end.
//!
//! One thread only; the waiting side is a future that is woken, never polled in a loop.
//!
//! # Invariants
//! - Each [`Guard`] is counted exactly once, from [`InFlight::enter`] until it is dropped.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Poll, Waker};

/// A count of operations in flight.
#[derive(Debug, Default)]
pub(crate) struct InFlight {
    count: Cell<usize>,
    waiting: RefCell<Vec<Waker>>,
}

/// One operation in flight, until it is dropped.
#[derive(Debug)]
pub(crate) struct Guard(Rc<InFlight>);

impl InFlight {
    /// Counts one more operation.
    pub(crate) fn enter(self: &Rc<Self>) -> Guard {
        self.count.set(self.count.get() + 1);
        Guard(Rc::clone(self))
    }

    /// How many operations are in flight.
    pub(crate) fn count(&self) -> usize {
        self.count.get()
    }

    /// Waits until no operation is in flight.
    pub(crate) async fn idle(&self) {
        poll_fn(|context| {
            if self.count.get() == 0 {
                return Poll::Ready(());
            }
            self.waiting.borrow_mut().push(context.waker().clone());
            Poll::Pending
        })
        .await;
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        let left = self.0.count.get() - 1;
        self.0.count.set(left);
        if left == 0 {
            let waiting = std::mem::take(&mut *self.0.waiting.borrow_mut());
            waiting.into_iter().for_each(Waker::wake);
        }
    }
}
