//! Readers: progress of each, and what it has at hand.
//!
//! ```text
//!   Searching --found--> Open --limits or tail--> ended
//!      a start by time      |  credit: hand out up to 256 KiB, then wait for the next credit
//!                           |  behind the recent batches: one read from disk at a time
//! ```
//! A reader gets as much as its client takes: the driver gives a credit when the lane has room. So
//! a stalled reader costs at most one read's bytes, and no writer notices. While a reader hands out
//! what one read brought, the next one is on its way, as long as all readers of the core together
//! stay within what may be read ahead.
//!
//! # Invariants
//! - Never past the durable tail; never a gap; what is damaged is told.

pub(crate) mod recent;

use crate::disk::{DiskResult, OpToken, SegmentFile};
use crate::index::Run;
use nova_model::cursor::ReadCursor;
use nova_model::ids::StreamId;
use nova_model::request::ReadLimits;
use nova_model::{SegmentId, StoredBatch, Timestamp};
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
    /// The read on its way.
    pub(crate) op: Option<OpToken>,
    /// What a read brought, until all before it is handed out.
    pub(crate) arrived: Option<DiskResult>,
    /// Bytes of that read, if it was begun while there still were batches at hand.
    pub(crate) ahead_bytes: usize,
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
            op: None,
            arrived: None,
            ahead_bytes: 0,
        }
    }

    /// Whether it wants batches now, for its client or to find its start, and some may be had
    /// without waiting for a read.
    pub(crate) fn is_hungry(&self) -> bool {
        let may_be_had = self.op.is_none() || !self.ready.is_empty();
        (self.has_credit || self.search.is_some()) && may_be_had
    }

    /// Whether the next read may begin before what is at hand has been handed out.
    pub(crate) fn may_read_ahead(&self) -> bool {
        self.op.is_none() && self.arrived.is_none() && !self.runs.is_empty()
    }

    /// The next runs that lie one behind the other, up to `bytes` but at least one.
    pub(crate) fn next_read(&self, bytes: u64) -> Option<NextRead> {
        let (file, _) = self.segment?;
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
            file,
            offset,
            length: (end - offset) as usize,
            runs,
        })
    }
}

/// A read that a reader would begin next.
pub(crate) struct NextRead {
    pub(crate) file: SegmentFile,
    pub(crate) offset: u64,
    pub(crate) length: usize,
    /// How many runs it takes.
    pub(crate) runs: usize,
}

#[cfg(test)]
#[path = "reader_tests.rs"]
mod tests;
