//! What can go wrong for a caller, by what a caller can do about it.
//!
//! # Invariants
//! - No text has to be matched: codes, bits and facts are in the [`Refusal`], as the star sent
//!   them. This client keeps no table of codes.

use crate::core::{Ambiguity, AppendError, HandshakeFailure};
use nova_model::Refusal;
use nova_quic::error::BindError;
use nova_quic::tls::TlsError;
use std::path::PathBuf;
use std::sync::Arc;

/// Why a call has no result.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ClientError {
    /// The star said no: change the request, or try again if the refusal's bit says so.
    #[error(transparent)]
    Refused(Refusal),
    /// It was sent, and whether it was applied is not known: find out (see
    /// [`Client::settle_append`](crate::Client::settle_append)).
    #[error("the outcome is not known; if it was applied, it is at {} or later", .0.since)]
    Ambiguous(Box<Ambiguity>),
    /// Nobody could be reached within the retry budget. A producer is broken for good then.
    #[error("no answer from the star within the retry budget")]
    Unavailable {
        /// What is needed to find out, if it was sent; `None` if nothing of it ever left.
        sent: Option<Box<Ambiguity>>,
        /// The last refusal, if the star spoke at all.
        last: Option<Box<Refusal>>,
    },
    /// An address does not resolve: repair what the star advertises, or the resolver.
    #[error("the address '{address}' does not resolve")]
    HolderUnresolvable {
        /// The address as it was given.
        address: String,
    },
    /// A star answered, and its certificate or protocol does not fit: correct the configuration of
    /// one end. Told at once and never tried again by itself; a producer is broken for good then.
    #[error("{0}")]
    Handshake(Box<HandshakeFailure>),
    /// The client's own configuration can't work.
    #[error(transparent)]
    Config(ConfigError),
    /// The producer or the client is closed.
    #[error("closed")]
    Closed,
}

impl ClientError {
    /// Whether the same call may succeed later.
    pub fn is_retryable(&self) -> bool {
        match self {
            ClientError::Refused(refusal) => refusal.retry,
            ClientError::Ambiguous(_) | ClientError::Unavailable { .. } => true,
            ClientError::HolderUnresolvable { .. }
            | ClientError::Handshake(_)
            | ClientError::Config(_)
            | ClientError::Closed => false,
        }
    }

    /// Whether it is certain that nothing was applied.
    pub fn is_clean(&self) -> bool {
        match self {
            ClientError::Refused(refusal) => refusal.clean,
            ClientError::Ambiguous(_) => false,
            ClientError::Unavailable { sent, .. } => sent.is_none(),
            ClientError::HolderUnresolvable { .. }
            | ClientError::Handshake(_)
            | ClientError::Config(_)
            | ClientError::Closed => true,
        }
    }

    /// What the star said, if it said no.
    pub fn refusal(&self) -> Option<&Refusal> {
        match self {
            ClientError::Refused(refusal) => Some(refusal),
            ClientError::Ambiguous(ambiguity) => ambiguity.refusal.as_ref(),
            ClientError::Unavailable { last, .. } => last.as_deref(),
            ClientError::HolderUnresolvable { .. }
            | ClientError::Handshake(_)
            | ClientError::Config(_)
            | ClientError::Closed => None,
        }
    }

    /// What is needed to find out, where the outcome is not known.
    pub fn ambiguity(&self) -> Option<&Ambiguity> {
        match self {
            ClientError::Ambiguous(ambiguity) => Some(ambiguity),
            ClientError::Unavailable { sent, .. } => sent.as_deref(),
            ClientError::Refused(_)
            | ClientError::HolderUnresolvable { .. }
            | ClientError::Handshake(_)
            | ClientError::Config(_)
            | ClientError::Closed => None,
        }
    }
}

impl From<AppendError> for ClientError {
    fn from(error: AppendError) -> ClientError {
        match error {
            AppendError::Refused(refusal) => ClientError::Refused(refusal),
            AppendError::Ambiguous(ambiguity) => ClientError::Ambiguous(ambiguity),
            AppendError::Unavailable { sent, last } => ClientError::Unavailable { sent, last },
            AppendError::HolderUnresolvable { address } => {
                ClientError::HolderUnresolvable { address }
            }
            AppendError::Handshake(failure) => ClientError::Handshake(failure),
            AppendError::Closed => ClientError::Closed,
        }
    }
}

impl From<ClientError> for AppendError {
    fn from(error: ClientError) -> AppendError {
        match error {
            ClientError::Refused(refusal) => AppendError::Refused(refusal),
            ClientError::Ambiguous(ambiguity) => AppendError::Ambiguous(ambiguity),
            ClientError::Unavailable { sent, last } => AppendError::Unavailable { sent, last },
            ClientError::HolderUnresolvable { address } => {
                AppendError::HolderUnresolvable { address }
            }
            ClientError::Handshake(failure) => AppendError::Handshake(failure),
            // A configuration fails before the first append, if at all.
            ClientError::Config(_) | ClientError::Closed => AppendError::Closed,
        }
    }
}

impl From<Refusal> for ClientError {
    fn from(refusal: Refusal) -> ClientError {
        ClientError::Refused(refusal)
    }
}

impl From<ConfigError> for ClientError {
    fn from(error: ConfigError) -> ClientError {
        ClientError::Config(error)
    }
}

/// What is wrong with a client's configuration or its host.
#[derive(Debug, Clone, thiserror::Error)]
pub enum ConfigError {
    /// The file of the authorities can't be read.
    #[error("the certificates in {} can't be read: {source}", path.display())]
    CaFile {
        /// The file.
        path: PathBuf,
        /// What the operating system said.
        source: Arc<std::io::Error>,
    },
    /// The authorities can't be used.
    #[error("the certificates of the authorities can't be used: {0}")]
    Ca(Arc<TlsError>),
    /// No UDP socket can be had.
    #[error("no UDP socket can be had: {0}")]
    Socket(Arc<BindError>),
    /// The operating system gives no random numbers.
    #[error("the operating system gives no random numbers")]
    Randomness,
}

impl PartialEq for ConfigError {
    fn eq(&self, other: &ConfigError) -> bool {
        std::mem::discriminant(self) == std::mem::discriminant(other)
    }
}
