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
use std::sync::atomic::{AtomicUsize, Ordering};
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
        write_round(&path, bytes, count)
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

/// A file that is written again and again, a write of whole blocks at a time, each of them durable.
pub struct DurableFile {
    file: File,
    /// The star's buffers are in such pages as well. They are aligned as O_DIRECT wants it.
    pages: HugePages,
    write_bytes: usize,
    writes: AtomicUsize,
}

impl DurableFile {
    /// Makes one whose space was written through once. It has to be removed by who names it.
    pub fn create(path: &Path, bytes: usize) -> io::Result<DurableFile> {
        let flags = OFlags::DIRECT | OFlags::DSYNC;
        let file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .custom_flags(flags.bits().cast_signed())
            .open(path)?;
        let write_bytes = whole_blocks(bytes);
        let mut pages = HugePages::map(write_bytes)?;
        pages[..write_bytes].fill(7);
        fill(&file, places(write_bytes) * write_bytes)?;
        Ok(DurableFile {
            file,
            pages,
            write_bytes,
            writes: AtomicUsize::new(0),
        })
    }

    /// Writes behind the last write, and from the start again where the space ends.
    pub fn write(&self) -> io::Result<()> {
        let number = self.writes.fetch_add(1, Ordering::Relaxed);
        let at = number % places(self.write_bytes) * self.write_bytes;
        self.file
            .write_all_at(&self.pages[..self.write_bytes], at as u64)
    }
}

/// Writes that the space of a file has room for.
fn places(write_bytes: usize) -> usize {
    (SPACE_BYTES / write_bytes).max(4)
}

fn write_round(path: &Path, bytes: usize, count: usize) -> io::Result<Times> {
    let file = DurableFile::create(path, bytes)?;
    let mut times = Times::default();
    let until = Instant::now() + TIME_MAX;
    for _ in 0..count {
        let begun = Instant::now();
        if begun > until {
            break;
        }
        file.write()?;
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
