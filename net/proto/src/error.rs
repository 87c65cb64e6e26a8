//! What a peer can do wrong, and how much ends because of it.
//!
//! # Invariants
//! - Each variant has a close code of its own, listed in docs/PROTOCOL.md.
//!
//! # Not here
//! - Refusals: a well-formed request that is not granted is no protocol error.

use crate::frame::{Kind, RequestId};
use nova_model::batch::BatchError;
use nova_model::checksum::Checksum;

/// How much a protocol error ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Closes {
    /// The lane alone: both directions of its stream are reset with the code.
    Lane,
    /// The whole connection, with the code: no lane of it can do better.
    Connection,
}

/// The peer broke the protocol.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProtocolError {
    /// The frame is of another version. Closes the connection: its ALPN promised this one.
    #[error("a frame has version {0}, this end speaks version 1")]
    Version(u8),
    /// No frame has this kind.
    #[error("no frame has kind {0:#04x}")]
    Kind(u8),
    /// Flags are set that mean nothing in this version.
    #[error("a frame of kind {kind} has flags {flags:#06x}, none are known")]
    Flags {
        /// The frame.
        kind: Kind,
        /// Its flags.
        flags: u16,
    },
    /// A declared length is outside what the kind can have.
    #[error("a frame of kind {kind} declares {declared} bytes, {min} to {max} are possible")]
    Length {
        /// The frame.
        kind: Kind,
        /// What it declares, for its head or its batch.
        declared: u32,
        /// The least that a part of this kind has.
        min: u32,
        /// The most that a part of this kind has.
        max: u32,
    },
    /// Header and head were damaged on the way.
    #[error("a frame of kind {kind} has checksum {found}, its sender says {declared}")]
    Checksum {
        /// The frame.
        kind: Kind,
        /// What the sender says.
        declared: Checksum,
        /// What the bytes have.
        found: Checksum,
    },
    /// The head of the frame is not a valid value of its kind.
    #[error("the head of a frame of kind {0} is not valid")]
    Head(Kind),
    /// The batch in the frame is damaged or is none.
    #[error("the batch in a frame of kind {kind} cannot be used: {error}")]
    Batch {
        /// The frame.
        kind: Kind,
        /// What is wrong with it.
        error: BatchError,
    },
    /// The peer sent more than it may have unanswered.
    #[error("a frame of kind {kind} goes beyond the window of {window} unanswered")]
    Window {
        /// The frame.
        kind: Kind,
        /// How many may be unanswered.
        window: u32,
    },
    /// The frame means nothing on this lane at this moment.
    #[error("a frame of kind {kind} is out of place on a lane that is {lane}")]
    OutOfPlace {
        /// The frame.
        kind: Kind,
        /// What the lane is at the moment.
        lane: &'static str,
    },
    /// A request has the id of one that is unanswered, or an answer the id of none that is.
    #[error("a frame of kind {kind} has request id {id}, which does not fit")]
    RequestId {
        /// The frame.
        kind: Kind,
        /// Its request id.
        id: RequestId,
    },
    /// The star said something well-formed that cannot be true.
    #[error("a frame of kind {kind} is not believable: {what}")]
    Content {
        /// The frame.
        kind: Kind,
        /// What is wrong with it.
        what: &'static str,
    },
    /// The peer ended its direction inside a frame, or before its last word.
    #[error("the peer ended a lane that is {lane} too early")]
    Truncated {
        /// What the lane is at the moment.
        lane: &'static str,
    },
}

impl ProtocolError {
    /// The application error code for resetting the stream or closing the connection.
    pub fn close_code(&self) -> u32 {
        match self {
            ProtocolError::Version(_) => 0x01,
            ProtocolError::Kind(_) => 0x02,
            ProtocolError::Flags { .. } => 0x03,
            ProtocolError::Length { .. } => 0x04,
            ProtocolError::Checksum { .. } => 0x05,
            ProtocolError::Head(_) => 0x06,
            ProtocolError::Batch { .. } => 0x07,
            ProtocolError::Window { .. } => 0x08,
            ProtocolError::OutOfPlace { .. } => 0x09,
            ProtocolError::RequestId { .. } => 0x0a,
            ProtocolError::Content { .. } => 0x0b,
            ProtocolError::Truncated { .. } => 0x0c,
        }
    }

    /// How much has to end.
    pub fn closes(&self) -> Closes {
        match self {
            ProtocolError::Version(_) => Closes::Connection,
            ProtocolError::Kind(_)
            | ProtocolError::Flags { .. }
            | ProtocolError::Length { .. }
            | ProtocolError::Checksum { .. }
            | ProtocolError::Head(_)
            | ProtocolError::Batch { .. }
            | ProtocolError::Window { .. }
            | ProtocolError::OutOfPlace { .. }
            | ProtocolError::RequestId { .. }
            | ProtocolError::Content { .. }
            | ProtocolError::Truncated { .. } => Closes::Lane,
        }
    }
}
