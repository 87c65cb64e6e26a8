//! Natural batching: records of many callers gather into wire batches and leave when a slot of
//! the window frees.
//!
//! ```text
//!   push a  push b  push c (conditional)  push d ...
//!   [ a b ] [ c ] [ d ... ]      one batch number each; a condition stands alone
//!     ^ cut() takes the first one that is due
//! ```
//! A batch is due when it is closed to more records (full, or another one was begun behind it,
//! or a flush asked for it) or when its first record has waited for the linger, which by default
//! is no time at all: so an idle append leaves at once, and what comes while the window is full
//! rides together. A caller's records are never split: a batch of the wire is atomic.
//!
//! # Invariants
//! - Batch numbers are dense and in the order of the pushes; only the last batch is open.
//! - Staged metered bytes never exceed the bound.
//! - A share's records are at `offset .. offset + records` of its batch, in the order given.
//!
//! # Not here
//! - Who waits when there is no room: the driver. When a slot frees: [`crate::core::producer`].

use crate::core::outcome::Appended;
use nova_model::limits::{BATCH_METERED_BYTES_MAX, CLIENT_LINGER_US_MAX, CLIENT_STAGED_BYTES_MAX};
use nova_model::request::Ack;
use nova_model::{Instant, Position, Record, Refusal, SequenceNumber, Timestamp};
use std::collections::VecDeque;

/// Emptied record lists kept for the next batches.
const SPARE_LISTS_MAX: usize = 4;

/// How batches are cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BatcherConfig {
    /// Metered bytes that a merged batch aims at, at most 1 MiB.
    pub batch_bytes: usize,
    /// How long a batch waits for more records, in microseconds, at most one second.
    pub linger_us: u64,
}

impl Default for BatcherConfig {
    fn default() -> BatcherConfig {
        BatcherConfig {
            batch_bytes: BATCH_METERED_BYTES_MAX,
            linger_us: 0,
        }
    }
}

impl BatcherConfig {
    /// Refuses values that are out of range.
    pub fn check(&self) -> Result<(), Refusal> {
        let bytes = BATCH_METERED_BYTES_MAX as u64;
        if self.batch_bytes == 0 || self.batch_bytes > BATCH_METERED_BYTES_MAX {
            let message = format!("batch_size is 1 to {bytes} bytes, not {}", self.batch_bytes);
            return Err(Refusal::invalid("batch_size", Some(bytes), message));
        }
        if self.linger_us > CLIENT_LINGER_US_MAX {
            let message = format!("linger is at most {CLIENT_LINGER_US_MAX} microseconds");
            return Err(Refusal::invalid(
                "linger",
                Some(CLIENT_LINGER_US_MAX),
                message,
            ));
        }
        Ok(())
    }
}

/// Number of a batch of one producer, from 0, dense.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BatchNumber(pub u64);

/// Which part of a batch is a caller's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Share {
    /// The batch.
    pub batch: BatchNumber,
    /// The caller's first record in it.
    pub offset: u32,
    /// How many records are the caller's.
    pub records: u32,
    clock_first: u64,
    clock_last: u64,
}

impl Share {
    /// The caller's own range, from the acknowledgement of its batch.
    ///
    /// The ack tells the timestamps of the batch's first and last record, `s` and `e`. Those in
    /// between follow from the stream's rule (`nova_model::stored`): with `m` the latest client
    /// time up to a record, or infinite from the first record without one, it is
    /// `max(s, min(m, e))`. Example: s = 5, e = 9, times 3, 7, 20 give 5, 7, 9. (An uncapped
    /// stream fed with and without times in one batch is the exception; there it is a bound.)
    pub fn appended(&self, ack: &Ack) -> Appended {
        let inside =
            |clock: u64| Timestamp(clock.min(ack.end.timestamp.0).max(ack.start.timestamp.0));
        let first = ack.start.sequence.plus(u64::from(self.offset));
        let start = Position {
            sequence: first,
            timestamp: inside(self.clock_first),
        };
        let end = Position {
            sequence: first.plus(u64::from(self.records)),
            timestamp: inside(self.clock_last),
        };
        Appended {
            start: if self.offset == 0 { ack.start } else { start },
            end: if end.sequence == ack.end.sequence {
                ack.end
            } else {
                end
            },
            tail: ack.tail,
            duplicate: ack.duplicate,
            times: ack.times,
        }
    }
}

/// What a push brought.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pushed {
    /// The caller's part.
    pub share: Share,
    /// The push began a batch or filled one: the producer should be pumped.
    pub wake: bool,
}

/// Why a push did not happen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PushError {
    /// There is no room; the records were not taken. Ask [`Batcher::has_room`] first.
    Full,
    /// They can never be appended.
    Refused(Refusal),
}

/// A batch that is cut: its records in order, not yet encoded.
#[derive(Debug)]
pub struct Cut {
    /// Its number.
    pub number: BatchNumber,
    /// Its records, at least one.
    pub records: Vec<Record>,
    /// Their metered bytes.
    pub metered: usize,
    /// Its condition.
    pub match_sequence: Option<SequenceNumber>,
}

#[derive(Debug)]
struct Staged {
    records: Vec<Record>,
    metered: usize,
    match_sequence: Option<SequenceNumber>,
    since: Instant,
    clock: u64,
    closed: bool,
}

/// Records on their way to becoming wire batches.
#[derive(Debug)]
pub struct Batcher {
    config: BatcherConfig,
    staged: VecDeque<Staged>,
    staged_bytes: usize,
    first_number: u64,
    spare: Vec<Vec<Record>>,
}

impl Batcher {
    /// An empty batcher.
    pub fn new(config: BatcherConfig) -> Batcher {
        Batcher {
            config,
            staged: VecDeque::new(),
            staged_bytes: 0,
            first_number: 0,
            spare: Vec::new(),
        }
    }

    /// Whether nothing is staged.
    pub fn is_empty(&self) -> bool {
        self.staged.is_empty()
    }

    /// Metered bytes staged.
    pub fn staged_bytes(&self) -> usize {
        self.staged_bytes
    }

    /// The number that the next new batch gets: all batches so far are below it.
    pub fn next_number(&self) -> BatchNumber {
        BatchNumber(self.first_number + self.staged.len() as u64)
    }

    /// Whether this many metered bytes more may be staged.
    pub fn has_room(&self, metered: usize) -> bool {
        self.staged_bytes + metered <= CLIENT_STAGED_BYTES_MAX
    }

    /// Stages one record.
    pub fn push(&mut self, now: Instant, record: Record) -> Result<Pushed, PushError> {
        let metered = record.metered_bytes();
        record.check().map_err(PushError::Refused)?;
        if !self.has_room(metered) {
            return Err(PushError::Full);
        }
        let target = self.config.batch_bytes;
        let (staged, number, begun) = self.open(now, metered, None);
        let offset = staged.records.len() as u32;
        let clock = staged.clock.max(client_clock(&record));
        staged.clock = clock;
        staged.records.push(record);
        staged.metered += metered;
        staged.closed |= staged.metered >= target;
        let wake = begun || staged.closed;
        self.staged_bytes += metered;
        let share = Share {
            batch: number,
            offset,
            records: 1,
            clock_first: clock,
            clock_last: clock,
        };
        Ok(Pushed { share, wake })
    }

    /// Stages records that are to be applied together or not at all, on a condition if one is
    /// given: the sequence number that the first must get.
    pub fn push_batch(
        &mut self,
        now: Instant,
        records: Vec<Record>,
        match_sequence: Option<SequenceNumber>,
    ) -> Result<Pushed, PushError> {
        let metered = batch_metered(&records).map_err(PushError::Refused)?;
        if !self.has_room(metered) {
            return Err(PushError::Full);
        }
        let target = self.config.batch_bytes;
        let (staged, number, begun) = self.open(now, metered, match_sequence);
        let offset = staged.records.len() as u32;
        let count = records.len() as u32;
        let clock_first = staged.clock.max(records.first().map_or(0, client_clock));
        let clock_last = records
            .iter()
            .map(client_clock)
            .fold(staged.clock, u64::max);
        staged.clock = clock_last;
        staged.records.extend(records);
        staged.metered += metered;
        staged.closed |= staged.metered >= target || match_sequence.is_some();
        let wake = begun || staged.closed;
        self.staged_bytes += metered;
        let share = Share {
            batch: number,
            offset,
            records: count,
            clock_first,
            clock_last,
        };
        Ok(Pushed { share, wake })
    }

    /// Makes all that is staged due, whatever the linger says.
    pub fn flush(&mut self) {
        if let Some(last) = self.staged.back_mut() {
            last.closed = true;
        }
    }

    /// Takes the first batch if it is due.
    pub fn cut(&mut self, now: Instant) -> Option<Cut> {
        let first = self.staged.front()?;
        if !first.closed && now.since_us(first.since) < self.config.linger_us {
            return None;
        }
        self.take()
    }

    /// Takes the first batch, due or not.
    pub fn take(&mut self) -> Option<Cut> {
        let first = self.staged.pop_front()?;
        let number = BatchNumber(self.first_number);
        self.first_number += 1;
        self.staged_bytes -= first.metered;
        Some(Cut {
            number,
            records: first.records,
            metered: first.metered,
            match_sequence: first.match_sequence,
        })
    }

    /// When the first batch becomes due, if it is not yet.
    pub fn next_deadline(&self) -> Option<Instant> {
        let first = self.staged.front()?;
        (!first.closed).then(|| first.since.plus_us(self.config.linger_us))
    }

    /// Gives the emptied list of a batch back for reuse.
    pub fn recycle(&mut self, mut records: Vec<Record>) {
        if self.spare.len() < SPARE_LISTS_MAX {
            records.clear();
            self.spare.push(records);
        }
    }

    /// The batch that takes `metered` bytes more, its number, and whether it is new.
    fn open(
        &mut self,
        now: Instant,
        metered: usize,
        match_sequence: Option<SequenceNumber>,
    ) -> (&mut Staged, BatchNumber, bool) {
        let target = self.config.batch_bytes;
        let fits = self.staged.back().is_some_and(|last| {
            !last.closed && match_sequence.is_none() && last.metered + metered <= target
        });
        if !fits {
            self.flush();
            let records = self.spare.pop().unwrap_or_default();
            self.staged.push_back(Staged {
                records,
                metered: 0,
                match_sequence,
                since: now,
                clock: 0,
                closed: false,
            });
        }
        let number = BatchNumber(self.next_number().0 - 1);
        let last = self
            .staged
            .back_mut()
            .expect("one was pushed if there was none");
        (last, number, !fits)
    }
}

/// A client's time as [`Share::appended`] uses it: none counts as later than all.
fn client_clock(record: &Record) -> u64 {
    record.timestamp().map_or(u64::MAX, |time| time.0)
}

/// The metered bytes of records that are to be one batch; refused if they can't be.
pub fn batch_metered(records: &[Record]) -> Result<usize, Refusal> {
    if records.is_empty() {
        return Err(Refusal::invalid(
            "batch",
            None,
            "a batch has at least one record",
        ));
    }
    let mut metered = 0;
    for record in records {
        record.check()?;
        metered += record.metered_bytes();
    }
    if metered > BATCH_METERED_BYTES_MAX {
        let limit = BATCH_METERED_BYTES_MAX as u64;
        return Err(Refusal::too_large("batch", limit, metered as u64));
    }
    Ok(metered)
}

#[cfg(test)]
#[path = "batcher_tests.rs"]
mod tests;
