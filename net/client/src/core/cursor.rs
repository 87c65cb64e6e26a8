//! How far a read has come, what of a batch it asked for, and how it goes on after a break.
//!
//! ```text
//!   asked:            [ start ............ limits )
//!   batches:     [ a b c | d e f | g h i | j k l ]
//!   given:           [ c | d e f | g h ]              and then it is done
//! ```
//! # Invariants
//! - Records are given in order, each once, none left out: a batch that starts behind the next
//!   record is refused with [`SkippedRecords`].
//! - A resumed read is of the same incarnation of the stream, and begins at the next record.
//! - A resumed read does not ask to be clamped: a tail before what was read is told.
//!
//! # Not here
//! - Which records the limits allow: `nova_model::cursor`, the star's rule too.
//! - When to try again: the driver, without an end.

use nova_model::cursor::ReadCursor as Limits;
use nova_model::limits::READER_HEARTBEAT_US;
use nova_model::record::RecordView;
use nova_model::request::{ReadLimits, ReadOpen, ReadOpened, ReadStart};
use nova_model::{Position, Record, SequenceNumber, StoredBatch, StreamId};

/// The star left records out without a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the star left out records: it gave {found} where {expected} was next")]
pub struct SkippedRecords {
    /// The record that is next.
    pub expected: SequenceNumber,
    /// The first record of the batch that came.
    pub found: SequenceNumber,
}

/// What a star said of a read that goes on does not fit it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum UnfitOpening {
    /// Records were left out.
    #[error(transparent)]
    Skipped(SkippedRecords),
    /// It is another incarnation of the stream.
    #[error("the stream that was read was deleted and made again")]
    MadeAnew,
}

/// What the star owes a read at the moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Owed {
    /// The answer to the open frame.
    Opening,
    /// Batches, when they are found.
    Batches,
    /// A heartbeat, as nothing is new.
    Heartbeat,
}

/// Those records of a stored batch that a read asked for. Cloning shares the bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadBatch {
    stored: StoredBatch,
    skip: u32,
    records: u32,
}

impl ReadBatch {
    /// Sequence number of the first record given.
    pub fn first(&self) -> SequenceNumber {
        self.stored.first.plus(u64::from(self.skip))
    }

    /// One past the last record given.
    pub fn end(&self) -> SequenceNumber {
        self.first().plus(u64::from(self.records))
    }

    /// How many records are given, at least one.
    pub fn records(&self) -> u32 {
        self.records
    }

    /// The whole batch as the star keeps it, also with records that were not asked for.
    pub fn stored(&self) -> &StoredBatch {
        &self.stored
    }

    /// Calls `visit` with each record and its position, without a copy.
    pub fn for_each(&self, mut visit: impl FnMut(Position, RecordView<'_>)) {
        let (first, end) = (self.first(), self.end());
        self.stored.for_each(|position, record| {
            if position.sequence >= first && position.sequence < end {
                visit(position, record);
            }
        });
    }

    /// The records with their positions; bodies share the batch's bytes.
    pub fn to_records(&self) -> Vec<(Position, Record)> {
        let mut all = self.stored.to_records();
        all.truncate((self.skip + self.records) as usize);
        all.drain(..self.skip as usize);
        all
    }
}

/// One read, across as many sessions as it takes.
#[derive(Debug, Clone)]
pub struct ReadCursor {
    open: ReadOpen,
    next: Option<SequenceNumber>,
    tail: Position,
    begun: bool,
    done: bool,
    owed: Owed,
}

impl ReadCursor {
    /// A read that has not begun.
    pub fn new(open: ReadOpen) -> ReadCursor {
        let nothing = open.limits.count == Some(0) || open.limits.bytes == Some(0);
        ReadCursor {
            open,
            next: None,
            tail: Position::default(),
            begun: false,
            done: nothing,
            owed: Owed::Opening,
        }
    }

    /// The frame that opens the read, or opens it again where it stands.
    pub fn open_frame(&self) -> ReadOpen {
        self.open.clone()
    }

    /// The record that is next, once a session was open.
    pub fn next(&self) -> Option<SequenceNumber> {
        self.next
    }

    /// The incarnation that is read, once a session was open or if it was asked for.
    pub fn stream_id(&self) -> Option<StreamId> {
        self.open.stream_id
    }

    /// The committed tail as last told.
    pub fn tail(&self) -> Position {
        self.tail
    }

    /// Whether all that was asked for has been given.
    pub fn is_done(&self) -> bool {
        self.done
    }

    /// The open frame is on its way.
    pub fn handle_asked(&mut self) {
        self.owed = Owed::Opening;
    }

    /// How long the star may be silent from now on, in microseconds, if `silence_us_max` is the
    /// most that an answer may take: not longer, if it owes an answer or a heartbeat. How long
    /// batches are looked for on a disk, or a start by its time, has no bound.
    pub fn silence_us(&self, silence_us_max: u64) -> Option<u64> {
        match self.owed {
            Owed::Opening if matches!(self.open.start, ReadStart::Timestamp(_)) => None,
            Owed::Opening => Some(silence_us_max),
            Owed::Batches => None,
            Owed::Heartbeat => Some(silence_us_max.max(2 * READER_HEARTBEAT_US)),
        }
    }

    /// Whether the answer to the open frame fits a read that has begun before.
    pub fn check_opened(&self, opened: &ReadOpened) -> Result<(), UnfitOpening> {
        if self.open.stream_id.is_some_and(|id| id != opened.stream_id) {
            return Err(UnfitOpening::MadeAnew);
        }
        match self.next {
            Some(expected) if opened.start > expected => {
                Err(UnfitOpening::Skipped(SkippedRecords {
                    expected,
                    found: opened.start,
                }))
            }
            _ => Ok(()),
        }
    }

    /// The star says that the read is complete and `next` was not part of it.
    pub fn check_ended(&self, next: SequenceNumber) -> Result<(), SkippedRecords> {
        match self.next {
            Some(expected) if !self.done && next > expected => Err(SkippedRecords {
                expected,
                found: next,
            }),
            _ => Ok(()),
        }
    }

    /// A session is open.
    pub fn handle_opened(&mut self, opened: &ReadOpened) {
        self.owed = Owed::Batches;
        self.open.clamp = false;
        self.open.stream_id = Some(opened.stream_id);
        self.advance(opened.start.max(self.next.unwrap_or_default()));
        self.handle_tail(opened.tail);
    }

    /// The star told its tail.
    pub fn handle_tail(&mut self, tail: Position) {
        self.tail = self.tail.max(tail);
    }

    /// The star has sent all that is durable, up to this tail; or it tells so again. Whether all of
    /// it was given.
    pub fn handle_caught_up(&mut self, tail: Position) -> bool {
        self.handle_tail(tail);
        self.owed = Owed::Heartbeat;
        self.next.is_some_and(|next| next >= tail.sequence)
    }

    /// A batch came: what of it is to be given, if anything.
    pub fn handle_batch(
        &mut self,
        stored: StoredBatch,
    ) -> Result<Option<ReadBatch>, SkippedRecords> {
        self.owed = Owed::Batches;
        let next = self.next.unwrap_or(stored.first);
        if self.done || stored.end() <= next {
            return Ok(None);
        }
        if stored.first > next {
            return Err(SkippedRecords {
                expected: next,
                found: stored.first,
            });
        }
        let skip = (next.0 - stored.first.0) as u32;
        let records = self.admit(&stored, next);
        if records == 0 {
            return Ok(None);
        }
        self.begun = true;
        self.advance(next.plus(u64::from(records)));
        Ok(Some(ReadBatch {
            stored,
            skip,
            records,
        }))
    }

    /// How many records from `next` on the limits allow; they are taken off the limits.
    fn admit(&mut self, stored: &StoredBatch, next: SequenceNumber) -> u32 {
        let limits = self.open.limits;
        if limits == ReadLimits::default() {
            return (stored.end().0 - next.0) as u32;
        }
        let mut cursor = match self.begun {
            true => Limits::going_on(next, limits),
            false => Limits::new(next, limits),
        };
        let taken = cursor.take(stored);
        self.done |= taken.ended;
        self.open.limits = cursor.remaining();
        taken.records.len() as u32
    }

    fn advance(&mut self, next: SequenceNumber) {
        self.next = Some(next);
        self.open.start = ReadStart::Sequence(next);
        let limits = &self.open.limits;
        self.done |= limits.count == Some(0)
            || limits.bytes == Some(0)
            || limits.until_sequence.is_some_and(|until| until <= next);
    }
}

#[cfg(test)]
#[path = "cursor_tests.rs"]
mod tests;
