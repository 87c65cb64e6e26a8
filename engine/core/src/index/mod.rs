//! From a stream, a name, a sequence number or a time to a place in a segment.
//!
//! [`ActiveIndex`] grows with the segment being written; recovery builds the same by reading the
//! segment again. When the segment is sealed it becomes the bytes of a [`SealedIndex`], which is
//! read where the file is mapped and never loaded as a whole.
//!
//! A place is a [`Run`]: consecutive groups that hold the stream. A busy stream has a run for each
//! 64 KiB of its own; a rare one has a run for each group it is in.
//!
//! ```text
//!   groups   | A B | A | B | C ........ C | A | A |
//!   runs of A  <------>      (gap > 64 KiB) <----->
//! ```
//! # Invariants
//! - A run is whole groups. All records of a stream that a segment holds lie in its runs, in order.
//! - Both indexes give the same answers for the same groups.
//! - Damage that an operator accepted stays in the index: a stream whose records it may have hit
//!   has a run over it, so that a read there meets the damage and says so.
//!
//! # Not here
//! - Which segment holds a record: the chain in [`crate::state::StreamState::previous`].

mod active;
mod archive;
mod damage;
mod names;
mod sealed;

pub use active::{ActiveIndex, Misfit};
pub use damage::IndexDamage;
pub use names::NameHash;
pub use sealed::SealedIndex;

use nova_model::Timestamp;
use nova_model::position::{Position, SequenceNumber};
use rkyv::{Archive, Serialize};

/// Consecutive groups of one segment that hold records of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Run {
    /// The stream's first record in it.
    pub first: Position,
    /// When that record arrived, by the star's clock; or the latest arrival in the run before, if
    /// that clock was set back since.
    pub arrival: Timestamp,
    /// Metered bytes of the stream before that record.
    pub before: u64,
    /// Where its first group begins in the segment.
    pub offset: u32,
    /// Bytes of all its groups, with their padding and what lies between them.
    pub length: u32,
}

impl Run {
    /// Where the segment goes on behind it.
    pub fn end(&self) -> u64 {
        u64::from(self.offset) + u64::from(self.length)
    }
}

/// Which records of a stream may be forgotten: those before a record that arrived early enough, or
/// that has enough bytes behind it, unless one of them is known to be younger.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Expiry {
    /// The time at which it is asked.
    pub now: Timestamp,
    /// What arrived before this time has had its time.
    pub arrived_by: Option<Timestamp>,
    /// What lies before this many bytes from the stream's beginning has had its room.
    pub before: Option<u64>,
}

impl Expiry {
    /// Whether everything before the run's first record may be forgotten.
    fn passes(&self, run: &Run) -> bool {
        self.arrived_by.is_some_and(|time| run.arrival <= time)
            || self.before.is_some_and(|bytes| run.before <= bytes)
    }

    /// Whether the run's first record, or one before it, is known to have had neither its time nor
    /// its room, so that nothing goes beyond it, whatever the arrivals behind it say: the star's
    /// clock was behind then. An arrival later than now is of a clock that was ahead, and tells
    /// nothing.
    pub(crate) fn keeps(&self, run: &Run) -> bool {
        !self.passes(run) && run.arrival <= self.now
    }

    /// The first record of the last run that passes. The star's clock may have gone back, so runs
    /// are not quite in the order of their arrivals; the search then ends at one of the places
    /// where that happened, and goes beyond it once a newer segment passes.
    fn first_kept(&self, runs: &[Run]) -> Option<SequenceNumber> {
        let passed = runs.partition_point(|run| self.passes(run));
        let last = passed.checked_sub(1)?;
        Some(runs[last].first.sequence)
    }
}

/// Bytes of a segment that are damaged, as whole blocks.
#[derive(Archive, Serialize, Debug, Clone, Copy, PartialEq, Eq)]
pub struct DamagedSpan {
    /// Where they begin.
    pub offset: u32,
    /// How many there are.
    pub length: u32,
}

#[cfg(test)]
#[path = "index_tests.rs"]
mod tests;
