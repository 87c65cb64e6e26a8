//! What the kernel counts of a process: CPU time and memory, from `/proc`.
//!
//! # Invariants
//! - CPU time is that of the threads that are there; the star's live as long as it does.
//!
//! # Not here
//! - Facts about the machine: [`crate::machine`].

use crate::error::BenchError;
use std::fs;
use std::io;
use std::time::Duration;

const KIB: u64 = 1024;

/// Memory of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Memory {
    /// Bytes in memory at this moment (`VmRSS`).
    pub resident: u64,
    /// The most that ever were (`VmHWM`).
    pub peak: u64,
}

/// Memory of the process `pid`.
pub fn memory(pid: u32) -> Result<Memory, BenchError> {
    let path = format!("/proc/{pid}/status");
    let text = fs::read_to_string(&path).map_err(BenchError::io(path.as_str()))?;
    parse_memory(&text).ok_or_else(|| malformed(path))
}

fn parse_memory(text: &str) -> Option<Memory> {
    let field = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name))?;
        let kib = line.strip_prefix(':')?.trim().strip_suffix(" kB")?;
        Some(kib.parse::<u64>().ok()? * KIB)
    };
    Some(Memory {
        resident: field("VmRSS")?,
        peak: field("VmHWM")?,
    })
}

/// CPU time that the threads of the process `pid` have used, to the nanosecond. The counters of
/// `/proc/PID/stat` go in steps of 10 ms, which is as much as an idle star may use in a second.
pub fn cpu_time(pid: u32) -> Result<Duration, BenchError> {
    let path = format!("/proc/{pid}/task");
    let mut sum = Duration::ZERO;
    for thread in fs::read_dir(&path).map_err(BenchError::io(path.as_str()))? {
        let file = thread.map_err(BenchError::io(path.as_str()))?.path();
        let file = file.join("schedstat");
        match fs::read_to_string(&file) {
            Ok(text) => sum += parse_run_time(&text).ok_or_else(|| malformed(path.clone()))?,
            // The thread has just ended.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(BenchError::io(file.display().to_string())(error)),
        }
    }
    Ok(sum)
}

/// The first of three numbers: nanoseconds on a CPU.
fn parse_run_time(text: &str) -> Option<Duration> {
    let ns = text.split_whitespace().next()?.parse().ok()?;
    Some(Duration::from_nanos(ns))
}

fn malformed(operation: String) -> BenchError {
    let source = io::Error::from(io::ErrorKind::InvalidData);
    BenchError::Io { operation, source }
}

/// CPU time within some time, in hundredths of one CPU.
pub fn cpu_percent(used: Duration, within: Duration) -> f64 {
    100.0 * used.as_secs_f64() / within.as_secs_f64().max(f64::MIN_POSITIVE)
}

#[cfg(test)]
#[path = "process_tests.rs"]
mod tests;
