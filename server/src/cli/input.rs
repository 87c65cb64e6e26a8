//! Reads a file or a pipe in big chunks, on a thread of its own.
//!
//! ```text
//!   thread: read(256 KiB) --> channel of 4 chunks --> the command, which cuts them
//! ```
//!
//! # Invariants
//! - At most 6 chunks are in memory: those in the channel, one on each side of it.
//! - A small read costs memory of its own size, not of a chunk's, however long it is kept.
//!
//! # Not here
//! - Lines: [`crate::cli::line_splitter`].

use crate::cli::failure::Failure;
use bytes::Bytes;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::Errno;
use std::io;
use tokio::sync::mpsc;

/// Bytes asked for in one read.
const CHUNK_BYTES: usize = 256 * 1024;
/// Chunks between the thread and the command.
const CHUNKS_MAX: usize = 4;
/// A read below this is copied, so that many small ones do not hold a chunk each.
const KEPT_BYTES_MIN: usize = CHUNK_BYTES / 2;

/// The chunks of an input, in order; it ends with the input, or after the first error.
pub(crate) type Chunks = mpsc::Receiver<io::Result<Bytes>>;

/// The chunks of standard input.
pub(crate) fn stdin_chunks() -> Result<Chunks, Failure> {
    let stdin = io::stdin().as_fd().try_clone_to_owned();
    let stdin = stdin.map_err(|error| Failure::local("stdin can't be read", &error))?;
    chunks(stdin)
}

/// The chunks of an open file or pipe. The thread ends with the input, when nobody takes the
/// chunks any more, or with the process.
pub(crate) fn chunks(input: OwnedFd) -> Result<Chunks, Failure> {
    let (sender, receiver) = mpsc::channel(CHUNKS_MAX);
    std::thread::Builder::new()
        .name("input".to_owned())
        .spawn(move || read_all(&input, &sender))
        .map_err(|error| Failure::local("a thread for the input can't be started", &error))?;
    Ok(receiver)
}

/// Whether something can be read, or the end is reached, within this time.
pub(crate) fn is_readable_within(input: impl AsFd, wait_s: u32) -> io::Result<bool> {
    let mut waiting = [PollFd::new(&input, PollFlags::IN)];
    let wait = Timespec {
        tv_sec: wait_s.into(),
        tv_nsec: 0,
    };
    loop {
        match poll(&mut waiting, Some(&wait)) {
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
            Ok(ready) => return Ok(ready > 0),
        }
    }
}

fn read_all(input: &OwnedFd, sender: &mpsc::Sender<io::Result<Bytes>>) {
    let mut buffer = Vec::new();
    loop {
        let chunk = match read_chunk(input, &mut buffer) {
            Ok(None) => return,
            Ok(Some(chunk)) => Ok(chunk),
            Err(error) => Err(error),
        };
        let is_last = chunk.is_err();
        if sender.blocking_send(chunk).is_err() || is_last {
            return;
        }
    }
}

fn read_chunk(input: &OwnedFd, buffer: &mut Vec<u8>) -> io::Result<Option<Bytes>> {
    buffer.clear();
    buffer.reserve(CHUNK_BYTES);
    loop {
        match rustix::io::read(input, rustix::buffer::spare_capacity(buffer)) {
            Ok(0) => return Ok(None),
            Ok(count) if count < KEPT_BYTES_MIN => return Ok(Some(Bytes::copy_from_slice(buffer))),
            Ok(_) => return Ok(Some(Bytes::from(std::mem::take(buffer)))),
            Err(Errno::INTR) => {}
            Err(Errno::WOULDBLOCK) => {
                // Somebody made the pipe non-blocking; a minute or an hour makes no difference.
                is_readable_within(input, 60)?;
            }
            Err(error) => return Err(error.into()),
        }
    }
}

#[cfg(test)]
#[path = "input_tests.rs"]
mod tests;
