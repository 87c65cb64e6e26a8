//! Facts about the machine, printed with every result, and whether it was busy with other work.
//!
//! # Invariants
//! - A fact that cannot be found out is "unknown"; no benchmark fails for it.

use crate::error::BenchError;
use crate::process::{cpu_percent, cpu_time_with_children};
use serde::Serialize;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Hundredths of a CPU that a host may take away before tails say nothing.
const STOLEN_PERCENT_MAX: f64 = 2.0;
/// Hundredths of a CPU that other processes and the kernel may use.
const OTHERS_PERCENT_MAX: f64 = 15.0;
/// A load average above this share of the CPUs says that others work here too.
const BUSY_SHARE: f64 = 0.5;

/// What the machine is.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Machine {
    /// Release of the kernel.
    pub kernel: String,
    /// Model of the first CPU.
    pub cpu: String,
    /// What sets the CPU's frequency.
    pub governor: String,
    /// CPUs that this process may use.
    pub cpus: usize,
    /// CPU of the star's core and of the baselines' servers.
    pub star_cpu: usize,
    /// CPU of the client.
    pub client_cpu: usize,
    /// File system of the data: its type, device and options.
    pub file_system: String,
    /// The device below it: model, queue, cache.
    pub device: String,
    /// Load averages before the first measurement.
    pub load_before: String,
    /// Load averages after the last one.
    pub load_after: String,
    /// The commit that was built, if it is known.
    pub commit: String,
}

impl Machine {
    /// Looks around; the load after is filled in at the end.
    pub fn look(data: &Path, cpus: usize, star_cpu: usize, client_cpu: usize) -> Machine {
        Machine {
            kernel: line_of("/proc/sys/kernel/osrelease"),
            cpu: cpu_model(&fs::read_to_string("/proc/cpuinfo").unwrap_or_default()),
            governor: line_of("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
            cpus,
            star_cpu,
            client_cpu,
            file_system: file_system(data),
            device: device(data),
            load_before: line_of("/proc/loadavg"),
            load_after: String::new(),
            commit: commit(),
        }
    }

    /// The load at the end.
    pub fn look_again(&mut self) {
        self.load_after = line_of("/proc/loadavg");
    }

    /// What says that the numbers are not this program's alone. The load after is not judged: by
    /// then the benchmark itself is in it.
    pub fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        let busy = BUSY_SHARE * self.cpus as f64;
        if load(&self.load_before).is_some_and(|load| load > busy) {
            let load = &self.load_before;
            warnings.push(format!(
                "others work on this machine too (load averages {load} at the start)"
            ));
        }
        if self.star_cpu == self.client_cpu {
            let cpu = self.star_cpu;
            warnings.push(format!(
                "star and client share CPU {cpu}: there is no other"
            ));
        }
        if cfg!(debug_assertions) {
            warnings.push("this is a debug build: use --release".to_owned());
        }
        warnings
    }
}

fn line_of(path: &str) -> String {
    let text = fs::read_to_string(path).unwrap_or_default();
    match text.trim() {
        "" => "unknown".to_owned(),
        line => line.to_owned(),
    }
}

/// The average over the last minute.
fn load(line: &str) -> Option<f64> {
    line.split_whitespace().next()?.parse().ok()
}

fn cpu_model(cpuinfo: &str) -> String {
    let model = cpuinfo
        .lines()
        .find_map(|line| line.strip_prefix("model name"))
        .and_then(|rest| rest.split_once(':'));
    model.map_or_else(|| "unknown".to_owned(), |(_, name)| name.trim().to_owned())
}

fn file_system(data: &Path) -> String {
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let data = data.canonicalize().unwrap_or_else(|_| data.to_owned());
    mount_of(&mounts, &data).unwrap_or_else(|| "unknown".to_owned())
}

/// Type, device and options of the mount that holds `data`: of those whose mount point is a part of
/// the path, the longest, and of equal ones the last.
fn mount_of(mounts: &str, data: &Path) -> Option<String> {
    let fields = |line: &str| {
        let (mount, device) = line.split_once(" - ")?;
        let point = mount.split(' ').nth(4)?.to_owned();
        let options = mount.split(' ').nth(5)?;
        let mut device = device.split(' ');
        let text = format!("{} on {} ({options})", device.next()?, device.next()?);
        data.starts_with(&point).then_some((point.len(), text))
    };
    let found = mounts.lines().filter_map(fields);
    found
        .max_by_key(|(length, _)| *length)
        .map(|(_, text)| text)
}

/// What the kernel says about the device below a directory.
fn device(data: &Path) -> String {
    let Ok(metadata) = fs::metadata(data) else {
        return "unknown".to_owned();
    };
    let (major, minor) = (
        rustix::fs::major(metadata.dev()),
        rustix::fs::minor(metadata.dev()),
    );
    let link = format!("/sys/dev/block/{major}:{minor}");
    let Ok(folder) = fs::canonicalize(link) else {
        return "unknown".to_owned();
    };
    // A partition has no queue of its own: its disk has.
    let disk = match folder.join("queue").is_dir() {
        true => folder.as_path(),
        false => folder.parent().unwrap_or(&folder),
    };
    let name = disk
        .file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned();
    let fact = |path: &str| line_of(&disk.join(path).to_string_lossy());
    let mut text = name;
    for (what, path) in [
        ("model", "device/model"),
        ("rotational", "queue/rotational"),
        ("scheduler", "queue/scheduler"),
        ("write cache", "queue/write_cache"),
        ("FUA", "queue/fua"),
        ("block", "queue/logical_block_size"),
    ] {
        let fact = fact(path);
        if fact != "unknown" {
            text += &format!(", {what} {fact}");
        }
    }
    text
}

/// CPU time of the whole machine, to tell what others used meanwhile.
#[derive(Debug, Clone, Copy)]
pub struct Noise {
    at: Instant,
    before: Ticks,
}

/// Ticks of all CPUs since the start of the machine, a hundred a second.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Ticks {
    busy: u64,
    stolen: u64,
}

/// What others did within some time.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Others {
    /// Taken by other machines of the same host, in hundredths of a CPU.
    pub stolen_percent: f64,
    /// Used by other processes and the kernel, in hundredths of a CPU.
    pub others_percent: f64,
}

impl Noise {
    /// Begins to look.
    pub fn begin() -> Result<Noise, BenchError> {
        Ok(Noise {
            at: Instant::now(),
            before: ticks()?,
        })
    }

    /// What this process and the children that it waited for did not do.
    pub fn end(self) -> Result<Others, BenchError> {
        let after = ticks()?;
        let time = self.at.elapsed();
        let own = cpu_time_with_children(std::process::id())?;
        let busy = Duration::from_millis(10 * after.busy.saturating_sub(self.before.busy));
        let stolen = Duration::from_millis(10 * after.stolen.saturating_sub(self.before.stolen));
        Ok(Others {
            stolen_percent: cpu_percent(stolen, time),
            others_percent: cpu_percent(busy.saturating_sub(own), time),
        })
    }
}

impl Others {
    /// What says that the numbers are not this program's alone.
    pub fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        if self.stolen_percent > STOLEN_PERCENT_MAX {
            warnings.push(format!(
                "the host took {:.1} % of a CPU away: conclude nothing from tails",
                self.stolen_percent
            ));
        }
        if self.others_percent > OTHERS_PERCENT_MAX {
            warnings.push(format!(
                "others used {:.0} % of a CPU meanwhile: conclude nothing",
                self.others_percent
            ));
        }
        warnings
    }
}

fn ticks() -> Result<Ticks, BenchError> {
    let path = "/proc/stat";
    let text = fs::read_to_string(path).map_err(BenchError::io(path))?;
    parse_ticks(&text)
        .ok_or_else(|| BenchError::io(path)(std::io::Error::from(std::io::ErrorKind::InvalidData)))
}

/// The first line: user, nice, system, idle, waiting, interrupts, soft interrupts, stolen.
fn parse_ticks(text: &str) -> Option<Ticks> {
    let line = text.lines().next()?.strip_prefix("cpu ")?;
    let fields: Vec<u64> = line
        .split_whitespace()
        .map_while(|field| field.parse().ok())
        .collect();
    let [user, nice, system, _idle, _waiting, hard, soft, stolen, ..] = fields[..] else {
        return None;
    };
    Some(Ticks {
        busy: user + nice + system + hard + soft,
        stolen,
    })
}

/// The commit that is checked out where the program was built, and whether it can be of that one.
fn commit() -> String {
    let described = git(&["describe", "--always", "--dirty", "--abbrev=12"]);
    let committed = git(&["log", "-1", "--format=%ct"]).and_then(|text| text.parse().ok());
    let program = std::env::current_exe().and_then(fs::metadata);
    let built = program.ok().map(|found| found.mtime());
    commit_of(described, committed, built)
}

/// `committed` and `built` are seconds since 1970.
fn commit_of(described: Option<String>, committed: Option<i64>, built: Option<i64>) -> String {
    match (described, committed, built) {
        (Some(commit), Some(committed), Some(built)) if built < committed => {
            format!("older than {commit}")
        }
        (Some(commit), ..) => commit,
        (None, ..) => "unknown".to_owned(),
    }
}

fn git(words: &[&str]) -> Option<String> {
    let mut command = Command::new("git");
    command
        .args(words)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .stderr(Stdio::null());
    let output = command.output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}

#[cfg(test)]
#[path = "machine_tests.rs"]
mod tests;
