//! A segment file on its way from creation to its last group.
//!
//! ```text
//!   Creating --created--> Created --header durable--> Open
//!   | header | groups ... | next group | zeros | fallocated |
//!                         offset       zeroed               length
//! ```
//! A write into space that was written before costs one disk write; into space that was only
//! allocated it costs about twice that. So zeros run ahead of the groups, in the background, and
//! never in a range where a group is being written.

use crate::disk::{DiskOp, SegmentFile};
use nova_model::SegmentId;
use nova_model::limits::{BLOCK_BYTES, ZERO_AHEAD_BYTES, ZERO_CHUNK_BYTES};
use std::ops::Range;

/// Groups above this size are bandwidth-bound: zeros ahead of them would only take their share.
pub(crate) const BULK_BYTES: usize = 128 * 1024;

/// How far a segment's file has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    /// The file is being made.
    Creating,
    /// The file is there, without a header.
    Created,
    /// Its header, which seals the segment before it, is on its way to the disk.
    WritingHeader,
    /// Groups may be written.
    Open,
}

/// One segment file that is or will be written.
#[derive(Debug, Clone)]
pub(crate) struct Slot {
    pub(crate) file: SegmentFile,
    pub(crate) id: SegmentId,
    pub(crate) phase: Phase,
    /// Where the next group goes.
    pub(crate) offset: u64,
    /// Size of the file.
    pub(crate) length: u64,
    /// Space before this was written before.
    zeroed: u64,
    /// The range that zeros are being written to.
    zeroing: Option<Range<u64>>,
    /// Whether groups may soon have to go to a segment behind this one, however empty it is.
    is_left_soon: bool,
}

impl Slot {
    pub(crate) fn creating(file: SegmentFile, id: SegmentId, length: u64) -> Slot {
        let offset = BLOCK_BYTES as u64;
        Slot {
            file,
            id,
            phase: Phase::Creating,
            offset,
            length,
            zeroed: offset,
            zeroing: None,
            is_left_soon: false,
        }
    }

    /// The file for the next segment is to be there before it is asked for.
    pub(crate) fn leave_soon(&mut self) {
        self.is_left_soon = true;
    }

    /// Whether the file for the next segment is to be made by now.
    pub(crate) fn wants_next(&self) -> bool {
        self.is_left_soon || self.offset > self.length / 2
    }

    pub(crate) fn created(&mut self, written_before: bool) {
        assert_eq!(self.phase, Phase::Creating, "a file is created once");
        self.phase = Phase::Created;
        if written_before {
            self.zeroed = self.length;
        }
    }

    /// Whether the file for the next segment may be put off: a quarter of this one is left.
    pub(crate) fn can_wait(&self) -> bool {
        !self.is_left_soon && self.has_room(self.length / 4)
    }

    /// Whether a group of `length` bytes fits behind the last one.
    pub(crate) fn has_room(&self, length: u64) -> bool {
        self.offset + length <= self.length
    }

    /// Whether zeros are on their way into the place of the next group.
    pub(crate) fn is_blocked(&self, length: u64) -> bool {
        let end = self.offset + length;
        self.zeroing
            .as_ref()
            .is_some_and(|range| range.start < end && self.offset < range.end)
    }

    /// Whether zeros are on their way anywhere in the file.
    pub(crate) fn is_zeroing(&self) -> bool {
        self.zeroing.is_some()
    }

    /// A group of `length` bytes goes at the returned offset.
    pub(crate) fn take(&mut self, length: u64) -> u64 {
        assert!(
            self.phase == Phase::Open && self.has_room(length),
            "a group has its place"
        );
        assert!(
            !self.is_blocked(length),
            "a group never crosses zeros in flight"
        );
        let at = self.offset;
        self.offset += length;
        self.zeroed = self.zeroed.max(self.offset);
        at
    }

    /// The next zeros to write, if they are wanted now.
    pub(crate) fn zero_ahead(&mut self) -> Option<DiskOp> {
        let end = (self.offset + ZERO_AHEAD_BYTES).min(self.length);
        let is_there = self.phase != Phase::Creating;
        if !is_there || self.zeroing.is_some() || self.zeroed >= end {
            return None;
        }
        let offset = self.zeroed;
        let length = (self.length - offset).min(ZERO_CHUNK_BYTES as u64);
        self.zeroing = Some(offset..offset + length);
        Some(DiskOp::Zero {
            file: self.file,
            offset,
            length: length as usize,
        })
    }

    /// The zeros in flight are written.
    pub(crate) fn zeros_written(&mut self) {
        let range = self.zeroing.take().expect("zeros were in flight");
        self.zeroed = self.zeroed.max(range.end);
    }
}
