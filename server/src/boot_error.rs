//! Why a star does not start, or does not go on.

use crate::core::CoreError;
use crate::gateway::HttpTlsError;
use nova_core::disk::DiskFailure;
use nova_core::recovery::RecoveryError;
use nova_disk::{DirectoryError, ProbeError, RegistryError};
use nova_model::CoreId;
use nova_quic::certificates::CertificateError;
use std::io;
use std::net::SocketAddr;

/// Why a star did not start, or stopped. Each says what to change.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The machine cannot run a star.
    #[error(transparent)]
    Probe(#[from] ProbeError),
    /// The data directory.
    #[error(transparent)]
    Directory(#[from] DirectoryError),
    /// The registry in it.
    #[error(transparent)]
    Registry(#[from] RegistryError),
    /// The certificates in it.
    #[error(transparent)]
    Certificate(#[from] CertificateError),
    /// A log in it.
    #[error(transparent)]
    Recovery(#[from] RecoveryError),
    /// More cores than there are CPUs, or none.
    #[error("{wanted} cores are wanted and this process may use {there} CPUs; set --cores")]
    Cores {
        /// What is wanted.
        wanted: usize,
        /// CPUs that may be used.
        there: usize,
    },
    /// The ports of all cores do not fit.
    #[error("port {port} and {cores} cores reach past port 65535; set a lower --port")]
    Ports {
        /// The base port.
        port: u16,
        /// The cores.
        cores: usize,
    },
    /// A port is taken.
    #[error("UDP port {address} cannot be taken: {source}; stop who has it or set --port")]
    PortInUse {
        /// The address.
        address: SocketAddr,
        /// What the system said.
        source: io::Error,
    },
    /// The TCP port of HTTP is taken.
    #[error("TCP port {address} cannot be taken: {source}; stop who has it or set --http")]
    HttpPort {
        /// The address.
        address: SocketAddr,
        /// What the system said.
        source: io::Error,
    },
    /// The certificate cannot be used for HTTP.
    #[error(transparent)]
    HttpTls(#[from] HttpTlsError),
    /// A core could not start or go on.
    #[error("{core}: {source}")]
    Core {
        /// Which.
        core: CoreId,
        /// Why.
        source: CoreError,
    },
    /// A thread could not be made.
    #[error("a thread for {core} could not be started: {reason}")]
    Thread {
        /// Whose.
        core: CoreId,
        /// What the system said.
        reason: String,
    },
    /// The address file could not be written, or a signal handler not be set.
    #[error("{operation} failed: {source}")]
    Io {
        /// What was tried.
        operation: &'static str,
        /// What the system said.
        source: io::Error,
    },
}

impl ServeError {
    /// Whether there was no space for what a start has to write.
    pub fn is_full(&self) -> bool {
        let is_full = |source: &io::Error| source.kind() == io::ErrorKind::StorageFull;
        match self {
            ServeError::Probe(ProbeError::Io { source, .. })
            | ServeError::Directory(DirectoryError::Io { source, .. })
            | ServeError::Registry(RegistryError::Io { source, .. })
            | ServeError::Io { source, .. } => is_full(source),
            ServeError::Recovery(RecoveryError::Disk(error)) => {
                error.failure == DiskFailure::NoSpace
            }
            _ => false,
        }
    }

    /// Whether the star stopped because its disk can't be trusted any more.
    pub fn is_disk_failure(&self) -> bool {
        matches!(
            self,
            ServeError::Core {
                source: CoreError::Disk(_),
                ..
            }
        )
    }
}
