//! Lets a value of one thread be given to an interface that asks for `Send`.
//!
//! quinn wants its runtime, sockets and timers to be `Send`, since most executors move tasks.
//! glommio's tasks stay on their thread, and so does everything here; this checks it.
//!
//! # Invariants
//! - The value is only touched on the thread that made it: elsewhere the access panics.
//! - Dropped elsewhere, the value is leaked and nothing panics: a panic while dropping would abort
//!   the process, and the value's own drop would touch another thread's reactor.

use std::fmt;

use send_wrapper::SendWrapper;

/// A value that stays on the thread it was made on.
pub(super) struct Local<T>(Option<SendWrapper<T>>);

impl<T> Local<T> {
    pub(super) fn new(value: T) -> Self {
        Self(Some(SendWrapper::new(value)))
    }

    fn wrapper(&self) -> &SendWrapper<T> {
        self.0.as_ref().expect("only drop takes the value out")
    }

    pub(super) fn get(&self) -> &T {
        self.wrapper()
    }

    pub(super) fn get_mut(&mut self) -> &mut T {
        self.0.as_mut().expect("only drop takes the value out")
    }
}

impl<T> Drop for Local<T> {
    fn drop(&mut self) {
        if let Some(wrapper) = self.0.take()
            && !wrapper.valid()
        {
            std::mem::forget(wrapper);
        }
    }
}

impl<T> fmt::Debug for Local<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Local")
    }
}

#[cfg(test)]
#[path = "local_tests.rs"]
mod tests;
