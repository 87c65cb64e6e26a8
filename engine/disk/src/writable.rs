//! A segment's file while it is written: one descriptor, its lock, and whether it can be trusted.
//!
//! # Invariants
//! - The descriptor that writes is the one that is locked. A write in flight keeps it open, also
//!   when the process is killed, so the lock is free only when no write can land any more.
//! - After the first failed write or sync nothing is written to the file any more: what the device
//!   holds then is not known, and a later success would hide that.
//!
//! # Not here
//! - Making and naming the file: [`crate::segments`].
//! - Whether a flush is needed: [`crate::write_through`]. Whether the core blocks for it:
//!   [`crate::in_place`]. Who else does: [`crate::writer`].

use crate::driver::SyncMode;
use crate::failure::Attempt;
use crate::in_flight::InFlight;
use crate::in_place::InPlace;
use crate::lock;
use crate::writer::{Writer, write_durably};
use bytes::Bytes;
use glommio::GlommioError;
use glommio::io::{DmaBuffer, DmaFile, OpenOptions};
use nova_core::disk::{DiskError, DiskFailure};
use nova_model::limits::BLOCK_BYTES;
use rustix::fs::OFlags;
use std::cell::Cell;
use std::future::poll_fn;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::path::Path;
use std::rc::Rc;
use std::task::Poll;
use std::time::Instant;

/// How a file's writes become durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Durable {
    /// What was asked for.
    pub(crate) sync: SyncMode,
    /// A write with `O_DSYNC` needs no flush: the file is opened with it.
    pub(crate) is_through: bool,
}

/// How a core writes by blocking calls.
#[derive(Debug)]
pub(crate) struct Calls {
    /// Whether it makes them itself.
    pub(crate) in_place: InPlace,
    /// Who else makes them.
    pub(crate) writer: Writer,
}

/// A file that is open for writing and locked.
#[derive(Debug)]
pub(crate) struct Writable {
    file: Rc<DmaFile>,
    durable: Durable,
    poisoned: Cell<bool>,
    in_flight: Rc<InFlight>,
    calls: Rc<Calls>,
}

impl Writable {
    /// Opens and locks the file at `path`, which nobody else writes.
    pub(crate) async fn open(
        path: &Path,
        durable: Durable,
        calls: Rc<Calls>,
        attempt: &Attempt,
    ) -> Result<Writable, DiskError> {
        let flags = match durable.is_through {
            true => OFlags::DSYNC,
            false => OFlags::empty(),
        };
        let opened = OpenOptions::new()
            .read(true)
            .write(true)
            .custom_flags(flags.bits() as i32)
            .dma_open(path)
            .await;
        let file = Rc::new(opened.map_err(|error| attempt.failed_in_ring(&error))?);
        let poisoned = Cell::new(false);
        let writable = Writable {
            file,
            durable,
            poisoned,
            in_flight: Rc::default(),
            calls,
        };
        let error = match lock::try_lock(writable.descriptor()) {
            Ok(true) => return Ok(writable),
            Ok(false) => {
                let message = "another process holds the lock of a file that is not in use";
                attempt.because(DiskFailure::Locked, message)
            }
            Err(error) => attempt.failed(&error),
        };
        writable.close(attempt).await?;
        Err(error)
    }

    /// The file, for reading.
    pub(crate) fn file(&self) -> &Rc<DmaFile> {
        &self.file
    }

    /// Its writes in flight.
    pub(crate) fn in_flight(&self) -> &Rc<InFlight> {
        &self.in_flight
    }

    /// Writes `parts` and zeros up to `length` at `offset`, durably.
    pub(crate) async fn write(
        &self,
        parts: Vec<Bytes>,
        offset: u64,
        length: usize,
        attempt: &Attempt,
    ) -> Result<(), DiskError> {
        self.check(attempt)?;
        let mut buffer = self.file.alloc_dma_buffer(length);
        assert!(buffer.as_ptr().addr().is_multiple_of(BLOCK_BYTES));
        copy_padded(&parts, buffer.as_bytes_mut());
        drop(parts);
        let mut begun = Instant::now();
        let in_place = &self.calls.in_place;
        if in_place.permits_write(length, begun) {
            if in_place.has_answers(begun) {
                // The answers to the group before go first: nothing leaves the core while it is
                // blocked. Two rounds let a lane's answer reach its connection and the connection
                // its socket.
                let_others_run().await;
                let_others_run().await;
                self.check(attempt)?;
                begun = Instant::now();
            }
            let sync = self.durable.sync;
            let written = write_durably(self.descriptor(), buffer.as_bytes(), offset, sync);
            in_place.note_write(begun, begun.elapsed());
            return self.settle_call(written, length, attempt);
        }
        if !self.durable.is_through && !in_place.permits_flush(begun) {
            let (writer, sync) = (&self.calls.writer, self.durable.sync);
            let written = writer.write(&self.file, buffer, offset, sync).await;
            return self.settle_call(written, length, attempt);
        }
        let written = self.file.write_at(buffer, offset).await;
        self.settle(written, length, attempt)?;
        self.flush(attempt)
    }

    /// Writes a buffer of zeros at `offset`; durable after [`Writable::flush_zeros`].
    pub(crate) async fn zero(
        &self,
        zeros: Rc<DmaBuffer>,
        offset: u64,
        attempt: &Attempt,
    ) -> Result<(), DiskError> {
        self.check(attempt)?;
        let length = zeros.len();
        let written = self.file.write_rc_at(zeros, offset).await;
        self.settle(written, length, attempt)
    }

    /// Makes zeros durable, in the background: a flush behind much data takes long.
    pub(crate) async fn flush_zeros(&self, attempt: &Attempt) -> Result<(), DiskError> {
        if self.durable.is_through {
            return Ok(());
        }
        self.check(attempt)?;
        let synced = self.file.fdatasync().await;
        self.or_poison(synced.map_err(|error| attempt.failed_in_ring(&error)))
    }

    /// Cuts the file to `length`, durably. It takes no other descriptor: there may be none.
    pub(crate) async fn cut(&self, length: u64, attempt: &Attempt) -> Result<(), DiskError> {
        let failed = |error| attempt.failed_in_ring(&error);
        self.file.truncate(length).await.map_err(failed)?;
        self.file.fdatasync().await.map_err(failed)
    }

    /// Lets the lock go and closes the file; if it is still being read, the last read closes it.
    /// glommio closes a file that is only dropped some time later, or never when its executor ends.
    pub(crate) async fn close(self, attempt: &Attempt) -> Result<(), DiskError> {
        lock::unlock(self.descriptor()).map_err(|error| attempt.failed(&error))?;
        let closed = self.file.close_rc().await;
        closed
            .map(drop)
            .map_err(|error| attempt.failed_in_ring(&error))
    }

    fn check(&self, attempt: &Attempt) -> Result<(), DiskError> {
        if self.poisoned.get() {
            let message = "an earlier write to this file failed, so nothing more is written to it";
            return Err(attempt.because(DiskFailure::Io, message));
        }
        Ok(())
    }

    /// What a write in the ring brought.
    fn settle(
        &self,
        written: Result<usize, GlommioError<()>>,
        length: usize,
        attempt: &Attempt,
    ) -> Result<(), DiskError> {
        let written = written.map_err(|error| attempt.failed_in_ring(&error));
        self.or_poison(written.and_then(|done| whole(done, length, attempt)))
    }

    /// What a blocking call brought.
    fn settle_call(
        &self,
        written: io::Result<usize>,
        length: usize,
        attempt: &Attempt,
    ) -> Result<(), DiskError> {
        let written = written.map_err(|error| attempt.failed(&error));
        self.or_poison(written.and_then(|done| whole(done, length, attempt)))
    }

    /// Makes what the ring wrote durable, unless each write is by itself.
    fn flush(&self, attempt: &Attempt) -> Result<(), DiskError> {
        if self.durable.is_through {
            return Ok(());
        }
        let begun = Instant::now();
        let synced = rustix::fs::fdatasync(self.descriptor());
        self.calls.in_place.note_flush(begun, begun.elapsed());
        self.or_poison(synced.map_err(|error| attempt.failed(&error.into())))
    }

    fn or_poison(&self, outcome: Result<(), DiskError>) -> Result<(), DiskError> {
        if outcome.is_err() {
            self.poisoned.set(true);
        }
        outcome
    }

    fn descriptor(&self) -> BorrowedFd<'_> {
        // SAFETY: the descriptor is open as long as `self.file`, which the result borrows; nothing
        // closes it but dropping the last reference to that file.
        unsafe { BorrowedFd::borrow_raw(self.file.as_raw_fd()) }
    }
}

/// A write that came through in part has failed.
fn whole(done: usize, length: usize, attempt: &Attempt) -> Result<(), DiskError> {
    match done == length {
        true => Ok(()),
        false => Err(attempt.short(done)),
    }
}

/// Goes on when every task that is ready to run has run once.
async fn let_others_run() {
    let mut has_waited = false;
    poll_fn(|context| {
        if std::mem::replace(&mut has_waited, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

/// Copies the parts one after the other and fills the rest with zeros.
fn copy_padded(parts: &[Bytes], target: &mut [u8]) {
    let mut rest = target;
    for part in parts {
        let (head, tail) = rest.split_at_mut(part.len());
        head.copy_from_slice(part);
        rest = tail;
    }
    rest.fill(0);
}

#[cfg(test)]
#[path = "writable_tests.rs"]
mod tests;
