//! A batch as the log holds it and readers get it: the producer's bytes and what the star added.
//!
//! The timestamps that a reader sees are not stored. They follow from the batch and the header
//! next to it by one pure function, [`StoredBatch::timestamps`], so nothing is ever rewritten:
//!
//! ```text
//!   chosen = the client's time, or the arrival time (by the stream's mode; capped at arrival)
//!   t[i]   = max(t[i-1], chosen[i]),  t[-1] = floor = the stream's last timestamp before it
//! ```

use crate::batch::EncodedBatch;
use crate::condition::WriterStamp;
use crate::ids::Epoch;
use crate::position::{Position, SequenceNumber};
use crate::record::{Record, RecordView};
use crate::settings::TimestampMode;
use crate::time::Timestamp;

/// How the timestamps of a batch follow from its records and its arrival.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Stamping {
    /// Which time is chosen.
    pub mode: TimestampMode,
    /// Whether a client's time may be later than the arrival.
    pub uncapped: bool,
    /// When the star took the batch.
    pub arrival: Timestamp,
    /// The stream's last timestamp before this batch.
    pub floor: Timestamp,
}

impl Stamping {
    fn next(&self, previous: Timestamp, client: Option<Timestamp>) -> Timestamp {
        let chosen = match (self.mode, client) {
            (TimestampMode::Arrival, _) | (_, None) => self.arrival,
            (_, Some(time)) if self.uncapped => time,
            (_, Some(time)) => time.min(self.arrival),
        };
        chosen.max(previous)
    }

    /// The timestamp of the batch's first record.
    pub fn first(&self, batch: &EncodedBatch) -> Timestamp {
        self.next(self.floor, batch.client_times().first)
    }

    /// The timestamp of the batch's last record: the latest that any of them chose.
    pub fn last(&self, batch: &EncodedBatch) -> Timestamp {
        let times = batch.client_times();
        let latest = self.next(self.floor, times.latest);
        if times.is_any_missing {
            self.next(latest, None)
        } else {
            latest
        }
    }
}

/// A batch with its place in its stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredBatch {
    /// Sequence number of its first record.
    pub first: SequenceNumber,
    /// Epoch of the leadership that took it.
    pub epoch: Epoch,
    /// How its timestamps follow.
    pub stamping: Stamping,
    /// The writer's own number, if it has one.
    pub writer: Option<WriterStamp>,
    /// The producer's bytes.
    pub batch: EncodedBatch,
}

impl StoredBatch {
    /// One past its last record.
    pub fn end(&self) -> SequenceNumber {
        self.first.plus(u64::from(self.batch.records()))
    }

    /// Calls `visit` with each record and its position.
    pub fn for_each(&self, mut visit: impl FnMut(Position, RecordView<'_>)) {
        let mut sequence = self.first;
        let mut timestamp = self.stamping.floor;
        self.batch.for_each(|record| {
            timestamp = self.stamping.next(timestamp, record.timestamp());
            visit(
                Position {
                    sequence,
                    timestamp,
                },
                record,
            );
            sequence = sequence.plus(1);
        });
    }

    /// The timestamps of its records, in order.
    pub fn timestamps(&self) -> Vec<Timestamp> {
        let mut all = Vec::with_capacity(self.batch.records() as usize);
        self.for_each(|position, _| all.push(position.timestamp));
        all
    }

    /// The records with their positions; bodies share the batch's bytes.
    pub fn to_records(&self) -> Vec<(Position, Record)> {
        let times = self.timestamps();
        let records = self.batch.to_records();
        let numbers = (self.first.0..).map(SequenceNumber);
        let positions = numbers.zip(times);
        let positions = positions.map(|(sequence, timestamp)| Position {
            sequence,
            timestamp,
        });
        positions.zip(records).collect()
    }
}

#[cfg(test)]
#[path = "stored_tests.rs"]
mod tests;
