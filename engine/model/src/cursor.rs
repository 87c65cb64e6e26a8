//! Progress of a read through batches, the same at the star and at the client.
//!
//! Batches travel whole, byte for byte. What a read's start and limits cut off a batch is decided
//! by this one pure rule at both ends: the star to know where the read ends, the client to hand
//! out the records that were asked for.

use crate::position::SequenceNumber;
use crate::request::ReadLimits;
use crate::stored::StoredBatch;
use std::ops::Range;

/// Where a read is and what is left of its limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadCursor {
    next: SequenceNumber,
    limits: ReadLimits,
    taken_any: bool,
}

/// What a batch gives to a read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Taken {
    /// The records that belong to the read, as indexes into the batch.
    pub records: Range<usize>,
    /// Whether the read ends with them.
    pub ended: bool,
}

impl ReadCursor {
    /// A read that starts at `next`.
    pub fn new(next: SequenceNumber, limits: ReadLimits) -> ReadCursor {
        ReadCursor {
            next,
            limits,
            taken_any: false,
        }
    }

    /// A read that had records before and goes on at `next` with what is left of its limits.
    pub fn going_on(next: SequenceNumber, limits: ReadLimits) -> ReadCursor {
        ReadCursor {
            next,
            limits,
            taken_any: true,
        }
    }

    /// The sequence number that comes next.
    pub fn next(&self) -> SequenceNumber {
        self.next
    }

    /// What is left of the limits; a read resumed at [`ReadCursor::next`] with them brings the
    /// rest.
    pub fn remaining(&self) -> ReadLimits {
        self.limits
    }

    /// Whether the limits end the read before the next record, whatever it is.
    pub fn is_ended(&self) -> bool {
        self.limits.count == Some(0)
            || self
                .limits
                .until_sequence
                .is_some_and(|until| self.next >= until)
            || (self.taken_any && self.limits.bytes == Some(0))
    }

    /// Takes what belongs to the read from the next batch of the stream. Records before
    /// [`ReadCursor::next`] are left out; a batch behind it would be a gap.
    ///
    /// # Panics
    /// If the batch begins after the next record: records would be skipped in silence.
    pub fn take(&mut self, batch: &StoredBatch) -> Taken {
        assert!(batch.first <= self.next, "a read never skips records");
        if batch.end() <= self.next {
            return Taken {
                records: 0..0,
                ended: self.is_ended(),
            };
        }
        let from = (self.next.0 - batch.first.0) as usize;
        let mut to = from;
        let mut ended = false;
        batch.for_each(|position, record| {
            if ended || position.sequence < self.next {
                return;
            }
            let metered = record.metered_bytes() as u64;
            if self.is_ended() || !self.admits(metered, position.timestamp) {
                ended = true;
                return;
            }
            self.advance(metered);
            to += 1;
        });
        Taken {
            records: from..to,
            ended: ended || self.is_ended(),
        }
    }

    fn admits(&self, metered: u64, timestamp: crate::Timestamp) -> bool {
        let too_late = self
            .limits
            .until_timestamp
            .is_some_and(|until| timestamp >= until);
        let too_many = self
            .limits
            .bytes
            .is_some_and(|left| self.taken_any && metered > left);
        !too_late && !too_many
    }

    fn advance(&mut self, metered: u64) {
        self.next = self.next.plus(1);
        self.taken_any = true;
        self.limits.count = self.limits.count.map(|left| left - 1);
        self.limits.bytes = self.limits.bytes.map(|left| left.saturating_sub(metered));
    }
}

#[cfg(test)]
#[path = "cursor_tests.rs"]
mod tests;
