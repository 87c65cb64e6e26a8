//! What the kernel counts of a process: CPU time and memory, from `/proc`.
//!
//! # Invariants
//! - CPU time is that of the threads that are there; the star's live as long as it does.
//!
//! # Not here
//! - Facts about the machine: [`crate::machine`].

use crate::error::BenchError;
use crate::folder::MIB;
use serde::Serialize;
use std::fs;
use std::io;
use std::time::{Duration, Instant};

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

/// CPU time that a process has used, with that of threads that have ended, in steps of 10 ms.
pub fn cpu_time_of_all(pid: u32) -> Result<Duration, BenchError> {
    let [user, system, ..] = cpu_times(pid)?;
    Ok(user + system)
}

/// The same with that of children which have ended and were waited for.
pub fn cpu_time_with_children(pid: u32) -> Result<Duration, BenchError> {
    Ok(cpu_times(pid)?.iter().sum())
}

fn cpu_times(pid: u32) -> Result<[Duration; 4], BenchError> {
    let path = format!("/proc/{pid}/stat");
    let text = fs::read_to_string(&path).map_err(BenchError::io(path.as_str()))?;
    let ticks = parse_ticks(&text).ok_or_else(|| malformed(path))?;
    Ok(ticks.map(|ticks| Duration::from_millis(10 * ticks)))
}

/// User and system time of a process, and of its children: the 14th field to the 17th. The second
/// is a name in parentheses.
fn parse_ticks(text: &str) -> Option<[u64; 4]> {
    let (_, behind) = text.rsplit_once(')')?;
    let fields = behind.split_whitespace().skip(11).take(4);
    let fields: Vec<u64> = fields.map_while(|field| field.parse().ok()).collect();
    fields.try_into().ok()
}

/// What star and client use.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Usage {
    /// CPU time of the star in hundredths of a CPU, if it is on this machine.
    pub star_cpu_percent: Option<f64>,
    /// Its memory at the end, in MiB.
    pub star_mib: Option<f64>,
    /// The most that it ever was.
    pub star_mib_peak: Option<f64>,
    /// CPU time of this process.
    pub client_cpu_percent: f64,
}

/// Looks at star and client from time to time.
#[derive(Debug)]
pub struct Watched {
    star: Option<u32>,
    first: Sample,
    last: Sample,
}

#[derive(Debug, Clone, Copy)]
struct Sample {
    at: Instant,
    star: Duration,
    client: Duration,
}

impl Sample {
    fn take(star: Option<u32>) -> Result<Sample, BenchError> {
        Ok(Sample {
            at: Instant::now(),
            star: star.map(cpu_time_of_all).transpose()?.unwrap_or_default(),
            client: cpu_time_of_all(std::process::id())?,
        })
    }
}

impl Watched {
    /// Begins to look at this process and at a star's.
    pub fn begin(star: Option<u32>) -> Result<Watched, BenchError> {
        let first = Sample::take(star)?;
        let last = first;
        Ok(Watched { star, first, last })
    }

    /// What was used since the last time.
    pub fn since_last(&mut self) -> Result<Usage, BenchError> {
        let now = Sample::take(self.star)?;
        let before = std::mem::replace(&mut self.last, now);
        self.between(before, now)
    }

    /// What was used since the beginning.
    pub fn whole(&self) -> Result<Usage, BenchError> {
        self.between(self.first, Sample::take(self.star)?)
    }

    fn between(&self, before: Sample, after: Sample) -> Result<Usage, BenchError> {
        let within = after.at - before.at;
        let memory = self.star.map(memory).transpose()?;
        let mib = |bytes: u64| bytes as f64 / MIB as f64;
        Ok(Usage {
            star_cpu_percent: self
                .star
                .map(|_| cpu_percent(after.star.saturating_sub(before.star), within)),
            star_mib: memory.map(|memory| mib(memory.resident)),
            star_mib_peak: memory.map(|memory| mib(memory.peak)),
            client_cpu_percent: cpu_percent(after.client.saturating_sub(before.client), within),
        })
    }
}

#[cfg(test)]
#[path = "process_tests.rs"]
mod tests;
