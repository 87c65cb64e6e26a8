//! A folder for the files of one measurement, on the file system that is measured.
//!
//! # Invariants
//! - It is gone when the measurement has ended, also in failure.

use crate::error::BenchError;
use std::fs;
use std::path::{Path, PathBuf};

/// Bytes in a MiB.
pub const MIB: u64 = 1024 * 1024;

/// The folder of a measurement.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
}

impl Folder {
    /// Makes one below `data` for what will write at most `needed` bytes.
    pub fn make(data: &Path, what: &'static str, needed: u64) -> Result<Folder, BenchError> {
        let path = data.join(format!("{what}-{}", std::process::id()));
        fs::create_dir_all(&path).map_err(BenchError::io("making a folder for the data"))?;
        let folder = Folder { path };
        let free = free_bytes(folder.path())?;
        if free < needed {
            return Err(BenchError::Space {
                what,
                needed_mib: needed / MIB,
                free_mib: free / MIB,
                directory: data.to_owned(),
            });
        }
        Ok(folder)
    }

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

/// Bytes that may still be written on the file system of a directory.
fn free_bytes(directory: &Path) -> Result<u64, BenchError> {
    let stats = rustix::fs::statvfs(directory).map_err(std::io::Error::from);
    let stats = stats.map_err(BenchError::io("looking for free space"))?;
    Ok(stats.f_bavail.saturating_mul(stats.f_frsize))
}
