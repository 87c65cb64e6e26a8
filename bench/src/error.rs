//! Why a benchmark has no result.
//!
//! # Invariants
//! - Each says what was tried, so that a failed run can be told from a slow one.

use nova_client::ClientError;
use nova_disk::baseline::BaselineError as DiskError;
use nova_quic::baseline::BaselineError as EchoError;
use std::io;
use std::path::PathBuf;

/// Why a benchmark has no result.
#[derive(Debug, thiserror::Error)]
pub enum BenchError {
    /// What was asked for contradicts itself.
    #[error("{0}")]
    Usage(String),
    /// The star said no, or was not there.
    #[error("{operation} failed: {source}")]
    Client {
        /// What was tried.
        operation: &'static str,
        /// Why it failed.
        source: ClientError,
    },
    /// The sessions could not be opened in time.
    #[error("not all sessions and readers were open within {seconds} s")]
    Unready {
        /// How long it was waited.
        seconds: u64,
    },
    /// Appends have no result, so that times would leave out the slowest.
    #[error("{records} appends have no result: {why}")]
    Lost {
        /// How many.
        records: u64,
        /// Why the first of them has none.
        why: String,
    },
    /// The bare transport could not be measured.
    #[error("the transport's baseline has no result: {0}")]
    Echo(#[from] EchoError),
    /// The bare transport could not be set up.
    #[error("the transport's baseline can't start: {0}")]
    EchoStart(String),
    /// The bare disk could not be measured.
    #[error("the disk's baseline has no result: {0}")]
    Disk(#[from] DiskError),
    /// The star's process ended, or never said that it was ready.
    #[error("the star ended before it was ready ({status}):\n{log}")]
    Star {
        /// How it ended.
        status: String,
        /// The last lines that it wrote.
        log: String,
    },
    /// There is not enough room on the file system.
    #[error(
        "{what} needs {needed_mib} MiB in {} and {free_mib} MiB are free: name another --data \
         or use --quick",
        .directory.display()
    )]
    Space {
        /// What needs it.
        what: &'static str,
        /// How much it needs.
        needed_mib: u64,
        /// How much is there.
        free_mib: u64,
        /// Where.
        directory: PathBuf,
    },
    /// Another system than nova, in a comparison, did not do what it should.
    #[error("{system}: {why}")]
    System {
        /// Its name.
        system: &'static str,
        /// What it said.
        why: String,
    },
    /// The system refused something.
    #[error("{operation} failed: {source}")]
    Io {
        /// What was tried.
        operation: String,
        /// What the system said.
        source: io::Error,
    },
    /// A histogram can't be written.
    #[error("a histogram can't be written: {0}")]
    Histogram(String),
    /// The results can't be written as JSON.
    #[error("the results can't be written: {0}")]
    Json(#[from] serde_json::Error),
}

impl BenchError {
    /// For `map_err` on a call of the client.
    pub fn client(operation: &'static str) -> impl Fn(ClientError) -> BenchError {
        move |source| BenchError::Client { operation, source }
    }

    /// What another system said, or that it did not say what it should.
    pub fn system(system: &'static str, why: impl Into<String>) -> BenchError {
        let why = why.into();
        BenchError::System { system, why }
    }

    /// For `map_err` on a call of the system.
    pub fn io(operation: impl Into<String>) -> impl FnOnce(io::Error) -> BenchError {
        let operation = operation.into();
        move |source| BenchError::Io { operation, source }
    }
}
