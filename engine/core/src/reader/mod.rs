//! Readers: progress of each, and what it has at hand.
//!
//! ```text
//!   Searching --found--> Open --limits or tail--> ended
//!      a start by time      |  credit: hand out up to 256 KiB, then wait for the next credit
//!                           |  behind the recent batches: one read from disk at a time
//! ```
//! A reader gets as much as its client takes: the driver gives a credit when the lane has room. So
//! a stalled reader costs at most one read's bytes, and no writer notices.
//!
//! # Invariants
//! - Never past the durable tail; never a gap; what is damaged is told.

pub(crate) mod recent;

use crate::disk::{OpToken, SegmentFile};
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
        }
    }

    /// Whether it wants batches now: for its client, or to find its start.
    pub(crate) fn is_hungry(&self) -> bool {
        (self.has_credit || self.search.is_some()) && self.op.is_none()
    }

    /// Takes the next runs that lie one behind the other, up to `bytes` but at least one.
    pub(crate) fn next_read(&mut self, bytes: u64) -> Option<(SegmentFile, u64, u64)> {
        let (file, _) = self.segment?;
        let first = self.runs.pop_front()?;
        let mut end = first.end();
        while let Some(run) = self.runs.front() {
            let fits = run.end() - u64::from(first.offset) <= bytes;
            if u64::from(run.offset) != end || !fits {
                break;
            }
            end = run.end();
            self.runs.pop_front();
        }
        Some((file, u64::from(first.offset), end - u64::from(first.offset)))
    }
}
