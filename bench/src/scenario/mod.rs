//! The scenarios: each starts its own star, measures in turns and gives a section of the report.
//!
//! # Invariants
//! - A scenario has a folder of its own, which is gone when it has ended, also in failure.

pub mod idle;
pub mod latency;
pub mod memory;
pub mod pipelined;
pub mod start;

use crate::cpus::Cpus;
use crate::error::BenchError;
use crate::options::Options;
use crate::star::Star;
use nova_client::Client;
use std::fs;
use std::path::{Path, PathBuf};

/// Bytes of a record, as the goals have it.
pub const RECORD_BYTES: usize = 1024;
/// Bytes in a MiB.
pub const MIB: u64 = 1024 * 1024;

/// What every scenario works with.
#[derive(Debug)]
pub struct Bench {
    /// What was asked for.
    pub options: Options,
    /// Who has which CPU.
    pub cpus: Cpus,
}

/// The folder of a scenario.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
}

impl Folder {
    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A data directory in it.
    pub fn data(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.path) {
            eprintln!("{} stays: {error}", self.path.display());
        }
    }
}

impl Bench {
    /// Makes the folder of a scenario that will write at most `needed` bytes.
    pub fn folder(&self, what: &'static str, needed: u64) -> Result<Folder, BenchError> {
        let name = format!("{what}-{}", std::process::id());
        let path = self.options.data.join(name);
        fs::create_dir_all(&path).map_err(BenchError::io("making the folder of a scenario"))?;
        let folder = Folder { path };
        let free = free_bytes(folder.path())?;
        if free < needed {
            return Err(BenchError::Space {
                what,
                needed_mib: needed / MIB,
                free_mib: free / MIB,
                directory: self.options.data.clone(),
            });
        }
        Ok(folder)
    }

    /// Starts a star.
    pub fn star(&self, data: &Path) -> Result<Star, BenchError> {
        Star::start(data, self.options.spin_us)
    }

    /// Says on the error stream what goes on: a full run takes minutes.
    pub fn progress(&self, text: &str) {
        eprintln!("nova-bench: {text}");
    }
}

/// A client of a star, from within the client's runtime.
pub fn connect(star: &Star) -> Result<Client, BenchError> {
    Client::connect(star.client_config()).map_err(BenchError::client("connecting"))
}

/// Bytes that may still be written on the file system of a directory.
pub fn free_bytes(directory: &Path) -> Result<u64, BenchError> {
    let stats = rustix::fs::statvfs(directory).map_err(std::io::Error::from);
    let stats = stats.map_err(BenchError::io("looking for free space"))?;
    Ok(stats.f_bavail.saturating_mul(stats.f_frsize))
}

/// Millions of bytes per second.
pub fn megabytes_per_second(bytes: u64, time: std::time::Duration) -> f64 {
    bytes as f64 / time.as_secs_f64().max(f64::MIN_POSITIVE) / 1e6
}
