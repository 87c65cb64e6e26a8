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
//! - A resumed read is of the same incarnation of the stream.
//!
//! # Not here
//! - Which records the limits allow: `nova_model::cursor`, the star's rule too.
//! - When to try again: the driver, without an end.

use nova_model::cursor::ReadCursor as Limits;
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

    /// A session is open.
    pub fn handle_opened(&mut self, opened: &ReadOpened) {
        self.open.stream_id = Some(opened.stream_id);
        self.advance(opened.start.max(self.next.unwrap_or_default()));
        self.handle_tail(opened.tail);
    }

    /// The star told its tail.
    pub fn handle_tail(&mut self, tail: Position) {
        self.tail = self.tail.max(tail);
    }

    /// A batch came: what of it is to be given, if anything.
    pub fn handle_batch(
        &mut self,
        stored: StoredBatch,
    ) -> Result<Option<ReadBatch>, SkippedRecords> {
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
