//! What a commit group is made of: the entries of the log.
//!
//! Batches are one kind; everything else that changes a stream or a bucket is an entry too, so
//! that nothing durable lives beside the log. How they look as bytes is in docs/FORMAT.md.
//!
//! # Invariants
//! - In each segment the first entry of a stream is [`Entry::Led`] with its whole state, so a
//!   segment is understood without any other, and its index can be rebuilt from it alone.
//! - In each segment of the buckets' home log the first group names every bucket.
//! - In each segment the first group names every released segment that was known to be one.

use crate::released::Released;
use crate::state::StreamState;
use nova_model::condition::FencingToken;
use nova_model::ids::{Epoch, LogId, StreamId};
use nova_model::names::BucketName;
use nova_model::position::SequenceNumber;
use nova_model::request::BucketInfo;
use nova_model::settings::StreamSettings;
use nova_model::{Position, StoredBatch};

/// One entry of the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Entry {
    /// Records of a stream.
    Batch(BatchEntry),
    /// The stream is created, or led under a new epoch, or appears first in a segment: its whole
    /// state before any later entry of the group.
    Led(Box<StreamState>),
    /// A fencing token is installed.
    Fence {
        /// The stream.
        stream: StreamId,
        /// Epoch of the leadership.
        epoch: Epoch,
        /// The new token.
        token: FencingToken,
    },
    /// Records before `first` are forgotten.
    Trim {
        /// The stream.
        stream: StreamId,
        /// Epoch of the leadership.
        epoch: Epoch,
        /// First record that stays.
        first: SequenceNumber,
        /// When it was decided, by the star's clock.
        at: nova_model::Timestamp,
    },
    /// The stream's own settings are these now.
    Settings {
        /// The stream.
        stream: StreamId,
        /// Epoch of the leadership.
        epoch: Epoch,
        /// All that it says itself.
        settings: StreamSettings,
    },
    /// The stream is deleted.
    Deleted {
        /// The stream.
        stream: StreamId,
        /// Epoch of the leadership.
        epoch: Epoch,
    },
    /// A bucket is made or changed.
    BucketPut(BucketInfo),
    /// A bucket is deleted.
    BucketDeleted(BucketName),
    /// Segments of a log were given up: nothing in them is needed any more. All such numbers.
    Released {
        /// The log.
        log: LogId,
        /// The numbers.
        numbers: Released,
    },
}

/// A batch with what the star added.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BatchEntry {
    /// The stream.
    pub stream: StreamId,
    /// The batch with its place.
    pub stored: StoredBatch,
    /// Timestamp of its last record, as [`nova_model::stored::Stamping::last`] gives it.
    pub last_timestamp: nova_model::Timestamp,
}

impl BatchEntry {
    /// Position of the first record.
    pub fn start(&self) -> Position {
        let timestamp = self.stored.stamping.first(&self.stored.batch);
        Position {
            sequence: self.stored.first,
            timestamp,
        }
    }

    /// One past the last record, with the last record's timestamp.
    pub fn end(&self) -> Position {
        Position {
            sequence: self.stored.end(),
            timestamp: self.last_timestamp,
        }
    }
}

impl Entry {
    /// The stream that the entry belongs to; none for buckets and segments.
    pub fn stream(&self) -> Option<StreamId> {
        match self {
            Entry::Batch(batch) => Some(batch.stream),
            Entry::Led(state) => Some(state.id),
            Entry::Fence { stream, .. }
            | Entry::Trim { stream, .. }
            | Entry::Settings { stream, .. }
            | Entry::Deleted { stream, .. } => Some(*stream),
            Entry::BucketPut(_) | Entry::BucketDeleted(_) | Entry::Released { .. } => None,
        }
    }
}
