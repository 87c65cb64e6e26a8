//! Reads of a file from its start to its end without anything around them: O_DIRECT, in pieces of
//! the size that a core reads for a reader, one at the device for each reader.
//!
//! # Invariants
//! - The file was written before, as a star's segments were, and is of the volume that is read.
//! - Nothing comes from the page cache, on neither side: a star's reads pass it by, too.

use crate::cpus::apart;
use crate::error::BenchError;
use crate::series::megabytes_per_second;
use nova_disk::HugePages;
use nova_model::limits::READ_CHUNK_BYTES;
use rustix::fs::OFlags;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// A slow or busy disk is read for so long.
const TIME_MAX: Duration = Duration::from_secs(3);
/// Volume at most: what is larger is read no faster.
pub const VOLUME_BYTES_MAX: u64 = 1024 * 1024 * 1024;

/// What is read.
#[derive(Debug, Clone, Copy)]
pub struct Reads {
    /// Bytes of the file.
    pub volume: u64,
    /// Reads at the device at a time.
    pub at_once: usize,
}

impl Reads {
    /// In whole pieces, one for each that is at the device at least.
    fn pieces(self) -> u64 {
        let pieces = self.volume.min(VOLUME_BYTES_MAX) / READ_CHUNK_BYTES as u64;
        pieces.max(self.at_once as u64)
    }
}

/// Megabytes a second, on a CPU.
pub fn bare_reads(folder: &Path, reads: Reads, cpu: usize) -> Result<f64, BenchError> {
    let path = folder.join("bare-reads");
    let failed = |error: io::Error| BenchError::io("reading without a star")(error);
    let rate = apart(|| fill(&path, reads.pieces()).and_then(|()| read_round(&path, reads, cpu)));
    let removed = fs::remove_file(&path);
    let rate = rate.map_err(failed)?;
    removed.map_err(failed)?;
    Ok(rate)
}

fn fill(path: &Path, pieces: u64) -> io::Result<()> {
    let flags = OFlags::DIRECT | OFlags::DSYNC;
    let mut options = OpenOptions::new();
    let options = options.write(true).create(true).truncate(true);
    let file = options
        .custom_flags(flags.bits().cast_signed())
        .open(path)?;
    let mut pages = HugePages::map(READ_CHUNK_BYTES)?;
    let buffer = &mut pages[..READ_CHUNK_BYTES];
    buffer.fill(7);
    for piece in 0..pieces {
        file.write_all_at(buffer, piece * READ_CHUNK_BYTES as u64)?;
    }
    Ok(())
}

fn read_round(path: &Path, reads: Reads, cpu: usize) -> io::Result<f64> {
    let mut options = OpenOptions::new();
    let flags = OFlags::DIRECT.bits().cast_signed();
    let file = options.read(true).custom_flags(flags).open(path)?;
    let next = AtomicU64::new(0);
    let begun = Instant::now();
    let read = thread::scope(|scope| {
        let reader = || read_pieces(&file, &next, reads.pieces(), (cpu, begun + TIME_MAX));
        let running: Vec<_> = (0..reads.at_once.max(1))
            .map(|_| scope.spawn(reader))
            .collect();
        let mut all = 0;
        for reader in running {
            match reader.join() {
                Ok(read) => all += read?,
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        Ok::<u64, io::Error>(all)
    })?;
    let bytes = read * READ_CHUNK_BYTES as u64;
    Ok(megabytes_per_second(bytes, begun.elapsed()))
}

/// Reads pieces until all are taken or the time is over, and gives how many it has read.
fn read_pieces(
    file: &File,
    next: &AtomicU64,
    pieces: u64,
    (cpu, until): (usize, Instant),
) -> io::Result<u64> {
    // Where the system refuses, the scheduler decides: slower, not wrong.
    let _held = core_affinity::set_for_current(core_affinity::CoreId { id: cpu });
    // The star's buffers are in such pages as well. They are aligned as O_DIRECT wants it.
    let mut pages = HugePages::map(READ_CHUNK_BYTES)?;
    let buffer = &mut pages[..READ_CHUNK_BYTES];
    let mut read = 0;
    while Instant::now() < until {
        let piece = next.fetch_add(1, Ordering::Relaxed);
        if piece >= pieces {
            break;
        }
        file.read_exact_at(buffer, piece * READ_CHUNK_BYTES as u64)?;
        read += 1;
    }
    Ok(read)
}

#[cfg(test)]
#[path = "bare_reads_tests.rs"]
mod tests;
