//! Locks on open files, and who holds them.
//!
//! `flock` belongs to the open file, not to the process: a direct write that a killed process left
//! in the ring keeps the file open and thereby locked until the write has landed. So whoever gets
//! the lock knows that no earlier write can land any more.
//!
//! # Not here
//! - Which files are locked and when: [`crate::directory`], [`crate::boot`], [`crate::writable`].

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

/// How long a start waits for the writes of a process that has just died.
pub(crate) const LOCK_PATIENCE: Duration = Duration::from_secs(10);

const LOCK_POLL: Duration = Duration::from_millis(5);

/// Takes the lock, or says at once that another open file holds it.
pub(crate) fn try_lock(file: impl AsFd) -> io::Result<bool> {
    match flock(file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(true),
        Err(Errno::WOULDBLOCK) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Takes the lock within `patience`; `false` when another open file still holds it then.
pub(crate) fn lock_within(file: &File, patience: Duration) -> io::Result<bool> {
    let begin = Instant::now();
    loop {
        if try_lock(file)? {
            return Ok(true);
        }
        if begin.elapsed() >= patience {
            return Ok(false);
        }
        std::thread::sleep(LOCK_POLL);
    }
}

/// Lets the lock go before the file is closed.
pub(crate) fn unlock(file: impl AsFd) -> io::Result<()> {
    flock(file, FlockOperation::Unlock).map_err(io::Error::from)
}

/// The process that took the lock of this file, as the kernel lists it, if it does.
pub(crate) fn holder(file: &File) -> Option<u32> {
    let status = rustix::fs::fstat(file).ok()?;
    let (major, minor) = (
        rustix::fs::major(status.st_dev),
        rustix::fs::minor(status.st_dev),
    );
    let place = format!("{major:02x}:{minor:02x}:{}", status.st_ino);
    let locks = std::fs::read_to_string("/proc/locks").ok()?;
    locks.lines().find_map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let held = words.get(1) == Some(&"FLOCK") && words.get(5) == Some(&place.as_str());
        held.then(|| words.get(4)?.parse().ok()).flatten()
    })
}
