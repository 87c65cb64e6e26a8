//! What the machine can do without a star: quinn alone, and writes alone.
//!
//! The transport is `nova_quic::baseline`: the same endpoint settings, cipher and executor as a
//! core's, with nothing behind. The writes are `nova_disk::baseline`: blocking calls with O_DIRECT
//! and O_DSYNC into space that was written before, one in flight.
//!
//! # Invariants
//! - The echo server and the writes have the star's CPU, the echo's client has the client's.
//! - Both are on the same file system and address family as the star.

use crate::bare_writes::DurableFile;
use crate::cpus::{Cpus, apart};
use crate::error::BenchError;
use nova_disk::SyncMode;
use nova_disk::baseline::{Baseline, Plan, measure};
use nova_quic::baseline::{EchoServer, Work};
use nova_quic::certificates;
use nova_quic::client::{ClientEndpoint, Connection};
use nova_quic::params::{ClientParams, ServerParams};
use nova_quic::tls::ClientTls;
use std::fmt::Display;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// Memory for the connections of a core, as the star has it.
pub const WINDOWS_BYTES: u64 = 64 * 1024 * 1024;
/// Bytes of one frame of the pipelined baseline.
pub const FRAME_BYTES: u32 = 64 * 1024;
/// Frames of the pipelined baseline that are unanswered at a time, as many as batches of a session.
pub const FRAMES_IN_FLIGHT: usize = nova_model::limits::SESSION_WINDOW_BATCHES;
/// Bytes of a reply that stands for an ack.
pub const REPLY_BYTES: u32 = 128;

/// An echo server and what its client must trust.
pub struct Echo {
    server: EchoServer,
    trust: ClientTls,
}

impl Echo {
    /// Starts one; its certificates are kept below `folder`.
    pub fn start(folder: &Path, cpus: &Cpus, spin_us: u64) -> Result<Echo, BenchError> {
        Echo::start_with(folder, cpus, spin_us, None)
    }

    /// Starts one that writes so many bytes below `folder`, durably, before each reply: what a star
    /// does for a record, without anything else of a star.
    pub fn writing(
        folder: &Path,
        cpus: &Cpus,
        spin_us: u64,
        bytes: usize,
    ) -> Result<Echo, BenchError> {
        let failed = || BenchError::io("making a file to write without a star");
        fs::create_dir_all(folder).map_err(failed())?;
        let file = DurableFile::create(&folder.join("written"), bytes).map_err(failed())?;
        Echo::start_with(folder, cpus, spin_us, Some(Arc::new(move || file.write())))
    }

    fn start_with(
        folder: &Path,
        cpus: &Cpus,
        spin_us: u64,
        work: Option<Work>,
    ) -> Result<Echo, BenchError> {
        let tls = certificates::prepare(folder, &[]).map_err(no_start)?;
        let authority = folder.join(certificates::CA_CERTIFICATE_FILE);
        let trust = ClientTls::from_ca_file(&authority).map_err(no_start)?;
        let server = EchoServer::start(
            ([127, 0, 0, 1], 0).into(),
            tls,
            ServerParams::new(WINDOWS_BYTES),
            Some(cpus.star),
            Duration::from_micros(spin_us),
            work,
        )?;
        Ok(Echo { server, trust })
    }

    /// Connects to it, from within the client's runtime.
    pub async fn connect(&self) -> Result<EchoLink, BenchError> {
        let endpoint = ClientEndpoint::new(&self.trust, ClientParams::default());
        let endpoint = endpoint.map_err(no_start)?;
        let connection = endpoint.connect(self.server.address(), "localhost").await;
        Ok(EchoLink {
            connection: connection.map_err(no_start)?,
            endpoint,
        })
    }

    /// Stops it.
    pub fn stop(self) -> Result<(), BenchError> {
        self.server.stop()?;
        Ok(())
    }
}

fn no_start(error: impl Display) -> BenchError {
    BenchError::EchoStart(error.to_string())
}

/// A connection to an echo server.
pub struct EchoLink {
    /// The connection.
    pub connection: Connection,
    endpoint: ClientEndpoint,
}

impl EchoLink {
    /// Closes it and waits until the server knows.
    pub async fn close(self) {
        self.endpoint.close(0, "measured");
        self.endpoint.wait_idle().await;
    }
}

/// One round of small and large writes below `folder`.
pub fn disk(
    folder: &Path,
    cpus: &Cpus,
    small: usize,
    large: usize,
) -> Result<Baseline, BenchError> {
    let plan = Plan {
        rounds: 1,
        small_writes: small,
        large_writes: large,
        sync: SyncMode::Dsync,
        cpu: Some(cpus.star),
    };
    // The measurement holds its thread to a CPU.
    Ok(apart(|| measure(folder, &plan))?)
}
