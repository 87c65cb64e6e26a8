//! Bytes of a read in the buffer that the device filled, without a copy.
//!
//! A buffer of glommio belongs to the ring of the thread that made it: it counts its owners without
//! atomics and goes back to a store of that thread. Bytes travel, though, and the last of them may
//! be dropped by the gateway's thread. Such a buffer waits until its own thread comes by.
//!
//! ```text
//!   read --> Bytes --+--> dropped at home:     the buffer is free at once
//!                    +--> dropped elsewhere:   it is astray until the next operation of its home
//! ```
//!
//! # Invariants
//! - What is not atomic in a buffer is touched by its home's thread alone.
//!
//! # Not here
//! - How much may be held: readers are bound by what they may read ahead, lanes by their windows.

use bytes::Bytes;
use glommio::io::ReadResult;
use std::mem::ManuallyDrop;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};

/// The thread whose ring made the buffers, and those that were dropped elsewhere.
pub(crate) struct Home {
    thread: ThreadId,
    astray: Mutex<Vec<Buffer>>,
}

impl Home {
    /// This thread.
    pub(crate) fn here() -> Arc<Home> {
        Arc::new(Home {
            thread: thread::current().id(),
            astray: Mutex::default(),
        })
    }

    /// The bytes of a read of this thread.
    pub(crate) fn lend(self: &Arc<Home>, read: ReadResult) -> Bytes {
        assert!(self.is_here(), "a read is lent by the thread that made it");
        Bytes::from_owner(Lent {
            buffer: ManuallyDrop::new(Buffer(read)),
            home: Arc::clone(self),
        })
    }

    /// Frees what was dropped elsewhere.
    pub(crate) fn sweep(&self) {
        assert!(self.is_here(), "only a buffer's own thread may free it");
        let astray = std::mem::take(&mut *self.lock());
        drop(astray);
    }

    /// How many buffers were dropped elsewhere and are not freed yet.
    #[cfg(test)]
    pub(crate) fn astray(&self) -> usize {
        self.lock().len()
    }

    fn is_here(&self) -> bool {
        thread::current().id() == self.thread
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Buffer>> {
        // Nothing panics while it is held, and a list of buffers is never half done.
        self.astray.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        if !self.is_here() {
            // The thread may have ended, with the store that they go back to: they are lost, which
            // costs memory of a star that stops anyway.
            std::mem::forget(std::mem::take(&mut *self.lock()));
        }
    }
}

/// A buffer that may be sent to another thread, which only reads its bytes.
struct Buffer(ReadResult);

// SAFETY: another thread gets at a buffer through `Lent` alone, which gives out the bytes, written
// by the device before and never changed after. Counts and stores are touched by cloning and
// dropping: nothing here clones, and `Lent` and `Home` drop on the home's thread only.
unsafe impl Send for Buffer {}
// SAFETY: a shared reference gives the bytes only: `ReadResult` derefs to a pointer and a length
// that it holds itself, without a look at its counts.
unsafe impl Sync for Buffer {}

/// The owner behind the bytes of one read.
struct Lent {
    buffer: ManuallyDrop<Buffer>,
    home: Arc<Home>,
}

impl AsRef<[u8]> for Lent {
    fn as_ref(&self) -> &[u8] {
        &self.buffer.0
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        // SAFETY: it is taken once, here, and the value is gone afterwards.
        let buffer = unsafe { ManuallyDrop::take(&mut self.buffer) };
        if self.home.is_here() {
            drop(buffer);
        } else {
            self.home.lock().push(buffer);
        }
    }
}

#[cfg(test)]
#[path = "read_buffer_tests.rs"]
mod tests;
