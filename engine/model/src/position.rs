//! Where a record is in its stream, and how far a stream has come.
//!
//! ```text
//!   0 ........ trimmed ........ durable ........ assigned
//!   forgotten  | readable       | written or on its way |  not yet given out
//! ```
//! # Invariants
//! - `trimmed <= durable <= assigned` at every change ([`Watermarks`] asserts it).
//! - Sequence numbers are dense: the next batch starts at `assigned`.

use crate::time::Timestamp;
use rkyv::{Archive, Deserialize, Serialize};
use std::fmt;

/// Number of a record in its stream, from 0, dense.
#[derive(
    Archive,
    Serialize,
    Deserialize,
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    Hash,
    PartialOrd,
    Ord,
    Default,
)]
pub struct SequenceNumber(pub u64);

impl SequenceNumber {
    /// The number `count` records later.
    pub fn plus(self, count: u64) -> SequenceNumber {
        SequenceNumber(self.0 + count)
    }
}

impl fmt::Display for SequenceNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// A sequence number with its timestamp. As an end or a tail: the number one past the last record
/// and the timestamp of that last record (0 in an empty stream).
#[derive(
    Archive,
    Serialize,
    Deserialize,
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    Hash,
    Default,
    PartialOrd,
    Ord,
)]
pub struct Position {
    /// The sequence number.
    pub sequence: SequenceNumber,
    /// The timestamp.
    pub timestamp: Timestamp,
}

/// The three marks of a stream, in their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Watermarks {
    trimmed: SequenceNumber,
    durable: Position,
    assigned: Position,
}

impl Watermarks {
    /// The marks of a stream found at rest: all that was assigned is durable.
    pub fn at_rest(trimmed: SequenceNumber, tail: Position) -> Watermarks {
        assert!(trimmed <= tail.sequence, "trimmed past the tail");
        Watermarks {
            trimmed,
            durable: tail,
            assigned: tail,
        }
    }

    /// First sequence number that is still readable.
    pub fn trimmed(&self) -> SequenceNumber {
        self.trimmed
    }

    /// The committed tail: one past the last durable record.
    pub fn durable(&self) -> Position {
        self.durable
    }

    /// The tail with all admitted batches applied.
    pub fn assigned(&self) -> Position {
        self.assigned
    }

    /// A batch was given the positions up to `end`.
    pub fn advance_assigned(&mut self, end: Position) {
        assert!(end.sequence > self.assigned.sequence, "assigned must grow");
        assert!(
            end.timestamp >= self.assigned.timestamp,
            "timestamps never decrease"
        );
        self.assigned = end;
    }

    /// Everything before `end` is durable.
    pub fn advance_durable(&mut self, end: Position) {
        assert!(
            end.sequence >= self.durable.sequence,
            "durable never goes back"
        );
        assert!(
            end.sequence <= self.assigned.sequence,
            "durable past assigned"
        );
        self.durable = end;
    }

    /// A trim up to `first` is durable.
    pub fn advance_trimmed(&mut self, first: SequenceNumber) {
        assert!(first <= self.durable.sequence, "trimmed past durable");
        self.trimmed = self.trimmed.max(first);
    }
}
