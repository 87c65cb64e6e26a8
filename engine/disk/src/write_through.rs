//! Whether a device makes a write durable by itself, or needs a flush behind it.
//!
//! A write with `O_DSYNC` goes down with FUA where the device has it, and is done when the device
//! says so. Without FUA the kernel sends a flush after it. A blocking call waits for both; but for
//! a write in the ring a worker of the kernel has to send the flush, which is bound to the CPU of
//! the disk's interrupt and waits there for its turn behind whatever computes: 4 ms and more for
//! each write, while the write takes 26 us and the flush 22 us. So there the ring's write is sent
//! without `O_DSYNC`, and the flush by whoever waits for it.
//!
//! # Not here
//! - Who sends the flush: [`crate::writable`].

use rustix::fs::{AtFlags, CWD, StatxFlags, statx};
use std::fs;
use std::path::{Path, PathBuf};

/// Whether the device below `directory` needs no flush behind a write with `O_DSYNC`. Where that is
/// not known, as on a file system without a device of its own, the answer is no.
pub(crate) fn writes_through(directory: &Path) -> bool {
    let Ok(status) = statx(CWD, directory, AtFlags::empty(), StatxFlags::BASIC_STATS) else {
        return false;
    };
    let (major, minor) = (status.stx_dev_major, status.stx_dev_minor);
    let device = PathBuf::from(format!("/sys/dev/block/{major}:{minor}"));
    // A partition's own entry has no queue; that of its disk is above it.
    let queue = [device.join("queue"), device.join("../queue")];
    queue.iter().any(|queue| is_through(queue))
}

fn is_through(queue: &Path) -> bool {
    let says = |name: &str, word: &str| {
        fs::read_to_string(queue.join(name)).is_ok_and(|text| text.trim() == word)
    };
    says("fua", "1") || says("write_cache", "write through")
}

#[cfg(test)]
#[path = "write_through_tests.rs"]
mod tests;
