//! What becomes of an append: its positions, or why not and what is certain about it.
//!
//! The kinds are those of what a caller can do (contract, sections 5 and 8): change something
//! (`Refused`), find out (`Ambiguous`), wait for better times (`Unavailable`), repair the
//! addresses (`HolderUnresolvable`) or the trust (`Handshake`).
//!
//! # Invariants
//! - An error whose `is_clean` is true stands for records that are in no stream.

use crate::core::handshake::HandshakeFailure;
use nova_model::request::ServerTimes;
use nova_model::{Position, Refusal, SequenceNumber, StreamId};

/// The durable result of one caller's append (contract, section 2.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Appended {
    /// The caller's first record.
    pub start: Position,
    /// One past the caller's last record, with the last record's timestamp.
    pub end: Position,
    /// The committed tail as of the ack.
    pub tail: Position,
    /// Whether the records had been applied by an earlier attempt; the positions are the original.
    pub duplicate: bool,
    /// The star's own times for the batch.
    pub times: ServerTimes,
}

/// What is needed to find out about an append whose outcome is not known: if it was applied, its
/// records are in the stream with this id, at `since` or later.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ambiguity {
    /// The incarnation of the stream that it was sent to, if that is known.
    pub stream_id: Option<StreamId>,
    /// The records are not before this position.
    pub since: SequenceNumber,
    /// The refusal that ended the attempts, if one did.
    pub refusal: Option<Refusal>,
}

/// Why an append has no positions.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AppendError {
    /// The star said no, and nothing was applied.
    #[error(transparent)]
    Refused(Refusal),
    /// It was sent, and whether it was applied is not known.
    #[error("the outcome of the append is not known; look for it at {} or later", .0.since)]
    Ambiguous(Box<Ambiguity>),
    /// The retry budget is spent. The producer is broken for good.
    #[error("no session with the star within the retry budget{}", last_words(.last))]
    Unavailable {
        /// What is needed to find out, if it was sent; `None` if nothing of it ever left.
        sent: Option<Box<Ambiguity>>,
        /// The last refusal, if the star spoke at all.
        last: Option<Box<Refusal>>,
    },
    /// The address of the leader does not resolve. Nothing of this append ever left.
    #[error("the address of the stream's leader, '{address}', does not resolve")]
    HolderUnresolvable {
        /// The address as the star gave it.
        address: String,
    },
    /// A star answered, and its certificate or protocol does not fit. The producer is broken for
    /// good; nothing of this append ever left.
    #[error("{0}")]
    Handshake(Box<HandshakeFailure>),
    /// The producer was dropped or closed before this append left.
    #[error("the producer is closed")]
    Closed,
}

fn last_words(last: &Option<Box<Refusal>>) -> String {
    last.as_ref()
        .map_or_else(String::new, |refusal| format!("; at last: {refusal}"))
}

impl AppendError {
    /// Whether the same append may succeed later, as far as the star's own bit says.
    pub fn is_retryable(&self) -> bool {
        match self {
            AppendError::Refused(refusal) => refusal.retry,
            AppendError::Ambiguous(_) | AppendError::Unavailable { .. } => true,
            AppendError::HolderUnresolvable { .. }
            | AppendError::Handshake(_)
            | AppendError::Closed => false,
        }
    }

    /// Whether it is certain that nothing was applied.
    pub fn is_clean(&self) -> bool {
        match self {
            AppendError::Refused(refusal) => refusal.clean,
            AppendError::Unavailable { sent, .. } => sent.is_none(),
            AppendError::Ambiguous(_) => false,
            AppendError::HolderUnresolvable { .. }
            | AppendError::Handshake(_)
            | AppendError::Closed => true,
        }
    }

    /// What is needed to find out, where the outcome is not known.
    pub fn ambiguity(&self) -> Option<&Ambiguity> {
        match self {
            AppendError::Ambiguous(ambiguity) => Some(ambiguity),
            AppendError::Unavailable { sent, .. } => sent.as_deref(),
            AppendError::Refused(_)
            | AppendError::HolderUnresolvable { .. }
            | AppendError::Handshake(_)
            | AppendError::Closed => None,
        }
    }
}
