//! What becomes of an update: where it is stored, or why not and what is certain about it.
//!
//! # Invariants
//! - An error whose `is_clean` is true stands for an update that is not stored and never will be,
//!   unless somebody writes it again.
//! - Whatever the error, writing the same update again is safe: it is found if it is stored.

use crate::core::handshake::HandshakeFailure;
use nova_model::{Code, Refusal, SequenceNumber};

/// An update is durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Applied {
    /// Where it is stored.
    pub at: SequenceNumber,
    /// Whether it had been there before this call's batch was written.
    pub duplicate: bool,
}

/// Why an update has no position.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UpdateError {
    /// The id is stored with other content: choose another id, or drop the update.
    #[error("an update with this id and other content is stored at {at}")]
    Conflict {
        /// Where the other one is.
        at: SequenceNumber,
    },
    /// The star said no, and trying again does not help: `FENCED` above all, which says that
    /// another process has taken over.
    #[error("{refusal}")]
    Refused {
        /// What it said.
        refusal: Box<Refusal>,
        /// Whether it is certain that the update is not stored.
        is_clean: bool,
    },
    /// The retry budget is spent: write it again later.
    #[error("not written within the retry budget{}", last_words(.last))]
    Unavailable {
        /// The last refusal, if the star spoke at all.
        last: Option<Box<Refusal>>,
        /// Whether it is certain that the update is not stored.
        is_clean: bool,
    },
    /// An address that the star gave does not resolve.
    #[error("the address '{address}' does not resolve")]
    HolderUnresolvable {
        /// The address.
        address: String,
        /// Whether it is certain that the update is not stored.
        is_clean: bool,
    },
    /// A star answered, and its certificate or protocol does not fit: correct the configuration.
    #[error("{failure}")]
    Handshake {
        /// What does not fit.
        failure: Box<HandshakeFailure>,
        /// Whether it is certain that the update is not stored.
        is_clean: bool,
    },
    /// Too many updates wait already: write it again later, and fewer at once.
    #[error("too many updates wait already")]
    Rejected,
    /// The writer is closed.
    #[error("the writer is closed")]
    Closed {
        /// Whether it is certain that the update is not stored.
        is_clean: bool,
    },
}

fn last_words(last: &Option<Box<Refusal>>) -> String {
    last.as_ref()
        .map_or_else(String::new, |refusal| format!("; at last: {refusal}"))
}

impl UpdateError {
    /// Whether another process has taken the entity over.
    pub fn is_fenced(&self) -> bool {
        matches!(self, UpdateError::Refused { refusal, .. } if refusal.code == Code::Fenced)
    }

    /// Whether writing the same update again may succeed.
    pub fn is_retryable(&self) -> bool {
        match self {
            UpdateError::Refused { refusal, .. } => refusal.retry,
            UpdateError::Unavailable { .. } | UpdateError::Rejected => true,
            UpdateError::Conflict { .. }
            | UpdateError::HolderUnresolvable { .. }
            | UpdateError::Handshake { .. }
            | UpdateError::Closed { .. } => false,
        }
    }

    /// Whether it is certain that this call's content is not stored.
    pub fn is_clean(&self) -> bool {
        match self {
            UpdateError::Conflict { .. } | UpdateError::Rejected => true,
            UpdateError::Refused { is_clean, .. }
            | UpdateError::Unavailable { is_clean, .. }
            | UpdateError::HolderUnresolvable { is_clean, .. }
            | UpdateError::Handshake { is_clean, .. }
            | UpdateError::Closed { is_clean } => *is_clean,
        }
    }
}
