//! Figures of the process and of the disk below the data directory, as the kernel tells them.
//!
//! # Invariants
//! - What the kernel does not tell is left out.

use super::text::{Kind, Text};
use std::path::Path;

/// Adds what the kernel tells at the moment.
pub(super) fn add(text: &mut Text, data: &Path) {
    let space = rustix::fs::statvfs(data).ok();
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    let gauges = [
        (
            "nova_disk_free_bytes",
            "Bytes of the data directory's file system that the star may still fill",
            space.as_ref().map(|space| space.f_bavail * space.f_frsize),
        ),
        (
            "nova_disk_size_bytes",
            "Size of the data directory's file system",
            space.as_ref().map(|space| space.f_blocks * space.f_frsize),
        ),
        (
            "process_open_fds",
            "Open descriptors",
            std::fs::read_dir("/proc/self/fd")
                .ok()
                .map(|all| all.count() as u64),
        ),
        (
            "process_max_fds",
            "Most descriptors that may be open",
            limit.current,
        ),
        (
            "process_resident_memory_bytes",
            "Memory of the process that is not swapped out",
            status_kib("VmRSS:").map(|kib| kib * 1024),
        ),
        ("process_threads", "Threads", status_kib("Threads:")),
    ];
    for (name, help, value) in gauges {
        if let Some(value) = value {
            text.head(name, help, Kind::Gauge);
            text.line(name, &[], value as f64);
        }
    }
}

/// The number behind a name in the process's status.
fn status_kib(name: &str) -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let rest = status.lines().find_map(|line| line.strip_prefix(name))?;
    rest.split_whitespace().next()?.parse().ok()
}
