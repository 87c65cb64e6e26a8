//! A thread beside the core that writes where the core should not wait for the device.
//!
//! ```text
//!   core    write(file, buffer) ...goes on with other work... the buffer is free again
//!   thread       `--> write and flush, one blocking call ----^
//! ```
//! Where a flush takes long, a durable write by the ring waits three times for its turn on a CPU: a
//! worker of the kernel ends a write into space that was only allocated, the core sees the end and
//! asks for the flush, and a worker of the process, held to the core's CPU, flushes. A thread that
//! blocks waits once, and is held to the same CPU (docs/decisions/0016).
//!
//! # Invariants
//! - What a write reads from, and the descriptor that it writes to, live until the thread is done
//!   with them, also when nobody waits for the answer any more.
//!
//! # Not here
//! - Which writes come here: [`crate::writable`].

use crate::driver::SyncMode;
use flume::{Receiver, Sender};
use glommio::io::{DmaBuffer, DmaFile};
use rustix::io::{Errno, ReadWriteFlags};
use std::io::{self, IoSlice};
use std::os::fd::{AsRawFd, BorrowedFd, RawFd};
use std::rc::Rc;
use std::thread;

/// Writes that wait for the thread. One log has a group and a header at most on their way.
const JOBS_MAX: usize = 8;

/// The thread of one core. It ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Writer {
    jobs: Sender<Job>,
}

/// One write, and where its answer goes.
#[derive(Debug)]
struct Job {
    descriptor: RawFd,
    bytes: Stretch,
    offset: u64,
    sync: SyncMode,
    answer: Sender<io::Result<usize>>,
}

/// Memory that [`Pending`] keeps.
#[derive(Debug)]
struct Stretch {
    start: *const u8,
    length: usize,
}

// SAFETY: it is only read, and stays as it is until the thread has answered.
unsafe impl Send for Stretch {}

/// What a write needs until the thread is done with it.
struct Pending {
    buffer: DmaBuffer,
    file: Rc<DmaFile>,
    answer: Receiver<io::Result<usize>>,
    is_answered: bool,
}

impl Drop for Pending {
    fn drop(&mut self) {
        if !self.is_answered {
            // Nobody waits for the answer any more, but the memory must outlast the write. A job
            // that has not reached the thread lets go of its end of the channel.
            let _ = self.answer.recv();
        }
    }
}

impl Writer {
    /// Starts the thread, which is held to the same CPUs as the one that calls.
    pub(crate) fn start() -> io::Result<Writer> {
        let (jobs, queue) = flume::bounded(JOBS_MAX);
        let builder = thread::Builder::new().name("disk-writer".to_owned());
        builder.spawn(move || work(&queue))?;
        Ok(Writer { jobs })
    }

    /// Writes the buffer at `offset`, durably. Returns how many bytes the system took; if that is
    /// less than all, they may not be durable.
    pub(crate) async fn write(
        &self,
        file: &Rc<DmaFile>,
        buffer: DmaBuffer,
        offset: u64,
        sync: SyncMode,
    ) -> io::Result<usize> {
        let (answer, answered) = flume::bounded(1);
        let mut pending = Pending {
            buffer,
            file: Rc::clone(file),
            answer: answered,
            is_answered: false,
        };
        let bytes = Stretch {
            start: pending.buffer.as_ptr(),
            length: pending.buffer.len(),
        };
        let job = Job {
            descriptor: pending.file.as_raw_fd(),
            bytes,
            offset,
            sync,
            answer,
        };
        let ended = || io::Error::other("the thread that writes has ended");
        self.jobs.send_async(job).await.map_err(|_| ended())?;
        let answer = pending.answer.recv_async().await;
        pending.is_answered = true;
        answer.map_err(|_| ended())?
    }
}

/// Does one job after the other.
fn work(queue: &Receiver<Job>) {
    for job in queue {
        // SAFETY: whoever sent the job keeps the file open until it is answered.
        let file = unsafe { BorrowedFd::borrow_raw(job.descriptor) };
        // SAFETY: and its memory.
        let bytes = unsafe { std::slice::from_raw_parts(job.bytes.start, job.bytes.length) };
        let written = write_durably(file, bytes, job.offset, job.sync);
        // Nobody may wait for it any more.
        let _ = job.answer.send(written);
    }
}

/// Writes `bytes` at `offset` and makes them durable, by blocking calls. Returns how many bytes the
/// system took; if that is less than all, they may not be durable.
pub(crate) fn write_durably(
    file: BorrowedFd<'_>,
    bytes: &[u8],
    offset: u64,
    sync: SyncMode,
) -> io::Result<usize> {
    let flags = match sync {
        SyncMode::Dsync => ReadWriteFlags::DSYNC,
        SyncMode::Fdatasync => ReadWriteFlags::empty(),
    };
    let written = loop {
        match rustix::io::pwritev2(file, &[IoSlice::new(bytes)], offset, flags) {
            Err(Errno::INTR) => {}
            written => break written?,
        }
    };
    if written == bytes.len() && sync == SyncMode::Fdatasync {
        rustix::fs::fdatasync(file)?;
    }
    Ok(written)
}

#[cfg(test)]
#[path = "writer_tests.rs"]
mod tests;
