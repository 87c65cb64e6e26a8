//! Writes of one size without anything around them: O_DIRECT and O_DSYNC, one after the other.
//!
//! # Invariants
//! - The space is written through once before anything is timed, so that no write has to find
//!   blocks: a star fills its segments ahead, too.

use crate::cpus::apart;
use crate::error::BenchError;
use crate::series::Times;
use nova_disk::HugePages;
use nova_model::limits::BLOCK_BYTES;
use rustix::fs::OFlags;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::time::{Duration, Instant};

/// Bytes of one write that fills the space.
const FILL_BYTES: usize = 1024 * 1024;
/// A slow or busy disk gets fewer writes.
const TIME_MAX: Duration = Duration::from_secs(3);
/// Bytes that the writes go round in, if they are small.
const SPACE_BYTES: usize = 16 * 1024 * 1024;

/// Times of at most `count` writes of `bytes`, rounded up to whole blocks, on a CPU.
pub fn bare_writes(
    folder: &Path,
    bytes: usize,
    count: usize,
    cpu: usize,
) -> Result<Times, BenchError> {
    let path = folder.join("bare-writes");
    let failed = |error: io::Error| BenchError::io("writing without a star")(error);
    let times = apart(|| {
        // Where the system refuses, the scheduler decides: slower, not wrong.
        let _held = core_affinity::set_for_current(core_affinity::CoreId { id: cpu });
        write_round(&path, whole_blocks(bytes), count)
    });
    let removed = fs::remove_file(&path);
    let times = times.map_err(failed)?;
    removed.map_err(failed)?;
    Ok(times)
}

/// Bytes in whole blocks, one at least.
pub fn whole_blocks(bytes: usize) -> usize {
    bytes.max(1).next_multiple_of(BLOCK_BYTES)
}

fn write_round(path: &Path, bytes: usize, count: usize) -> io::Result<Times> {
    let flags = OFlags::DIRECT | OFlags::DSYNC;
    let file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .custom_flags(flags.bits().cast_signed())
        .open(path)?;
    // The star's buffers are in such pages as well. They are aligned as O_DIRECT wants it.
    let mut pages = HugePages::map(bytes)?;
    let buffer = &mut pages[..bytes];
    buffer.fill(7);
    let places = (SPACE_BYTES / bytes).max(4);
    let at = |number: usize| (number % places * bytes) as u64;
    fill(&file, places * bytes)?;
    let mut times = Times::default();
    let until = Instant::now() + TIME_MAX;
    for number in 0..count {
        let begun = Instant::now();
        if begun > until {
            break;
        }
        file.write_all_at(buffer, at(number))?;
        times.record(begun.elapsed());
    }
    Ok(times)
}

fn fill(file: &File, bytes: usize) -> io::Result<()> {
    let pages = HugePages::map(FILL_BYTES)?;
    for offset in (0..bytes).step_by(FILL_BYTES) {
        file.write_all_at(&pages[..FILL_BYTES], offset as u64)?;
    }
    Ok(())
}

#[cfg(test)]
#[path = "bare_writes_tests.rs"]
mod tests;
