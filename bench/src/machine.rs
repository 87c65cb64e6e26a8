//! Facts about the machine, printed with every result, and whether it was busy with other work.
//!
//! # Invariants
//! - A fact that cannot be found out is "unknown"; no benchmark fails for it.

use serde::Serialize;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

/// A load average above this share of the CPUs says that others work here too.
const BUSY_SHARE: f64 = 0.5;

/// What the machine is.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Machine {
    /// Release of the kernel.
    pub kernel: String,
    /// Model of the first CPU.
    pub cpu: String,
    /// CPUs that this process may use.
    pub cpus: usize,
    /// CPU of the star's core and of the baselines' servers.
    pub star_cpu: usize,
    /// CPU of the client.
    pub client_cpu: usize,
    /// File system of the data: its type, device and options.
    pub file_system: String,
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
            cpus,
            star_cpu,
            client_cpu,
            file_system: file_system(data),
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

fn commit() -> String {
    let described = Command::new("git")
        .args(["describe", "--always", "--dirty", "--abbrev=12"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .stderr(Stdio::null())
        .output();
    let text = described.ok().filter(|output| output.status.success());
    let text = text.and_then(|output| String::from_utf8(output.stdout).ok());
    text.map_or_else(|| "unknown".to_owned(), |text| text.trim().to_owned())
}

#[cfg(test)]
#[path = "machine_tests.rs"]
mod tests;
