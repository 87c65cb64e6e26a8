//! From what the system says to the boundary's [`DiskError`].
//!
//! # Not here
//! - What follows from a failure: `nova-core` decides by its kind.

use glommio::GlommioError;
use nova_core::disk::{DiskError, DiskFailure};
use rustix::io::Errno;
use std::io;
use std::path::{Path, PathBuf};

/// An operation on a stretch of a file, named in case that it fails.
#[derive(Debug, Clone)]
pub(crate) struct Attempt {
    operation: &'static str,
    path: PathBuf,
    offset: u64,
    length: u64,
}

impl Attempt {
    pub(crate) fn new(operation: &'static str, path: &Path, offset: u64, length: u64) -> Attempt {
        let path = path.to_owned();
        Attempt {
            operation,
            path,
            offset,
            length,
        }
    }

    /// The error for what a call of the system said.
    pub(crate) fn failed(&self, error: &io::Error) -> DiskError {
        self.because(failure_of(error.raw_os_error()), error.to_string())
    }

    /// The error for what glommio said. Where the system said it, that alone is told: glommio adds
    /// the name that the file was opened by, which may be another by now.
    pub(crate) fn failed_in_ring(&self, error: &GlommioError<()>) -> DiskError {
        match error.raw_os_error() {
            Some(number) => self.failed(&io::Error::from_raw_os_error(number)),
            None => self.because(DiskFailure::Io, error.to_string()),
        }
    }

    /// The error when only `done` bytes came through.
    pub(crate) fn short(&self, done: usize) -> DiskError {
        self.because(
            DiskFailure::Short,
            format!("only {done} bytes came through"),
        )
    }

    /// An error of a known kind.
    pub(crate) fn because(&self, failure: DiskFailure, message: impl Into<String>) -> DiskError {
        DiskError {
            operation: self.operation,
            path: self.path.display().to_string(),
            offset: self.offset,
            length: self.length,
            failure,
            message: message.into(),
        }
    }
}

/// The kind of failure that an error number of the system stands for.
pub(crate) fn failure_of(number: Option<i32>) -> DiskFailure {
    match number.map(Errno::from_raw_os_error) {
        Some(Errno::NOSPC | Errno::DQUOT) => DiskFailure::NoSpace,
        Some(Errno::MFILE | Errno::NFILE) => DiskFailure::NoDescriptor,
        Some(Errno::NOENT) => DiskFailure::NotFound,
        Some(Errno::WOULDBLOCK) => DiskFailure::Locked,
        _ => DiskFailure::Io,
    }
}

#[cfg(test)]
#[path = "failure_tests.rs"]
mod tests;
