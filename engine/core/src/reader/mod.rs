//! Readers: progress of each, and what it has at hand.
//!
//! ```text
//!   Searching --found--> Open --limits or tail--> ended
//!      a start by time      |  credit: hand out up to 256 KiB, then wait for the next credit
//!                           |  behind the recent batches: reads from disk
//! ```
//! A reader gets as much as its client takes: the driver gives a credit when the lane has room. So
//! a stalled reader costs at most what it may have ahead, and no writer notices. While one read is
//! waited for or handed out, the next ones are on their way: for a client that set no limit from
//! the beginning, for others no more than they have read, as long as all readers of the core
//! together stay within what may be read ahead.
//!
//! # Invariants
//! - Never past the durable tail; never a gap; what is damaged is told.

pub(crate) mod recent;
pub(crate) mod shared;

use crate::disk::{DiskResult, OpToken, SegmentFile};
use crate::index::Run;
use nova_model::cursor::ReadCursor;
use nova_model::ids::StreamId;
use nova_model::limits::{READ_CHUNK_BYTES, READER_AHEAD_BYTES_MAX};
use nova_model::request::ReadLimits;
use nova_model::{SegmentId, SequenceNumber, StoredBatch, Timestamp};
use shared::Place;
use std::collections::VecDeque;

/// One open reader.
pub(crate) struct Reader {
    pub(crate) stream: StreamId,
    pub(crate) cursor: ReadCursor,
    pub(crate) follow: bool,
    /// The time that its start is searched by, and the limits that hold from there.
    pub(crate) search: Option<(Timestamp, ReadLimits)>,
    /// Whether the client takes more.
    pub(crate) has_credit: bool,
    /// Whether it was told that it has all that is durable.
    pub(crate) is_caught_up: bool,
    /// Batches read ahead of the credit, from the one that holds the cursor on.
    pub(crate) ready: VecDeque<StoredBatch>,
    /// Runs still to be read in the segment at hand.
    pub(crate) runs: VecDeque<Run>,
    /// The segment at hand.
    pub(crate) segment: Option<(SegmentFile, SegmentId)>,
    /// Reads in order, come or on their way, until all before them is handed out.
    pub(crate) reads: VecDeque<Read>,
    /// Bytes of all reads that were taken so far.
    pub(crate) read_bytes: u64,
}

/// One read of a reader, maybe of others as well.
pub(crate) struct Read {
    pub(crate) token: OpToken,
    /// The segment that it is of.
    pub(crate) segment: (SegmentFile, SegmentId),
    /// The stream's first record in it.
    pub(crate) first: SequenceNumber,
    pub(crate) place: Place,
    /// Whether it was begun while there still were batches or reads before it.
    pub(crate) is_ahead: bool,
    /// What it brought, once it has come.
    pub(crate) result: Option<DiskResult>,
}

impl Reader {
    pub(crate) fn new(stream: StreamId, cursor: ReadCursor, follow: bool) -> Reader {
        Reader {
            stream,
            cursor,
            follow,
            search: None,
            has_credit: false,
            is_caught_up: false,
            ready: VecDeque::new(),
            runs: VecDeque::new(),
            segment: None,
            reads: VecDeque::new(),
            read_bytes: 0,
        }
    }

    /// Whether it wants batches now, for its client or to find its start, and some may be had
    /// without waiting for a read.
    pub(crate) fn is_hungry(&self) -> bool {
        let has_come = |read: &Read| read.result.is_some();
        let may_be_had = !self.ready.is_empty() || self.reads.front().is_none_or(has_come);
        (self.has_credit || self.search.is_some()) && may_be_had
    }

    /// The next read, if it may begin before what is at hand has been handed out.
    pub(crate) fn next_ahead(&self) -> Option<NextRead> {
        let next = self.next_read(READ_CHUNK_BYTES as u64)?;
        let ahead = self.ahead_bytes() + next.place.length;
        let bound = match self.wants_all() {
            true => READER_AHEAD_BYTES_MAX as u64,
            false => self.read_bytes.min(READER_AHEAD_BYTES_MAX as u64),
        };
        (self.reads.is_empty() || ahead as u64 <= bound).then_some(next)
    }

    /// Whether its client set no limit: what comes next will be needed.
    fn wants_all(&self) -> bool {
        let limits = self.search.map(|(_, limits)| limits);
        limits.unwrap_or(self.cursor.remaining()) == ReadLimits::default()
    }

    /// The first record of the next read, begun or not, as far as it is known.
    pub(crate) fn next_first(&self) -> Option<SequenceNumber> {
        let begun = self.reads.front().map(|read| read.first);
        begun.or_else(|| self.runs.front().map(|run| run.first.sequence))
    }

    /// Bytes that it has read, or reads, ahead of its need.
    pub(crate) fn ahead_bytes(&self) -> usize {
        let ahead = self.reads.iter().filter(|read| read.is_ahead);
        ahead.map(|read| read.place.length).sum()
    }

    /// The next runs that lie one behind the other, up to `bytes` but at least one.
    pub(crate) fn next_read(&self, bytes: u64) -> Option<NextRead> {
        let (file, id) = self.segment?;
        let first = self.runs.front()?;
        let offset = u64::from(first.offset);
        let (mut end, mut runs) = (first.end(), 1);
        for run in self.runs.range(1..) {
            if u64::from(run.offset) != end || run.end() - offset > bytes {
                break;
            }
            end = run.end();
            runs += 1;
        }
        Some(NextRead {
            first: first.first.sequence,
            place: Place {
                file,
                generation: id.generation,
                offset,
                length: (end - offset) as usize,
            },
            runs,
        })
    }
}

/// A read that a reader would begin next.
pub(crate) struct NextRead {
    pub(crate) place: Place,
    /// The stream's first record in it.
    pub(crate) first: SequenceNumber,
    /// How many runs it takes.
    pub(crate) runs: usize,
}

#[cfg(test)]
#[path = "reader_tests.rs"]
mod tests;
