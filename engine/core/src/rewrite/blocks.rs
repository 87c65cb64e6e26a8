//! Which blocks of a segment are to be read: a bit for each, 64 KiB for the largest segment.

use crate::index::Run;
use nova_model::limits::BLOCK_BYTES;
use std::ops::Range;

const BLOCK: u64 = BLOCK_BYTES as u64;

/// A set of blocks.
pub(super) struct Blocks {
    words: Vec<u64>,
    count: usize,
}

impl Blocks {
    /// None of the blocks of a segment.
    pub(super) fn new(segment_bytes: u64) -> Blocks {
        let count = (segment_bytes / BLOCK) as usize;
        Blocks {
            words: vec![0; count.div_ceil(64)],
            count,
        }
    }

    /// Adds those of a run; what lies behind the segment's end is passed over.
    pub(super) fn add(&mut self, run: &Run) {
        let first = u64::from(run.offset) / BLOCK;
        let end = run.end().div_ceil(BLOCK).min(self.count as u64);
        for block in first..end {
            self.words[block as usize / 64] |= 1 << (block % 64);
        }
    }

    /// The first bytes at or behind `from` that are to be read, up to where a gap is.
    pub(super) fn range_from(&self, from: u64) -> Option<Range<u64>> {
        let mut blocks = (from / BLOCK) as usize..self.count;
        let first = blocks.find(|block| self.has(*block))?;
        let end = blocks.find(|block| !self.has(*block)).unwrap_or(self.count);
        Some(first as u64 * BLOCK..end as u64 * BLOCK)
    }

    fn has(&self, block: usize) -> bool {
        self.words[block / 64] & (1 << (block % 64)) != 0
    }
}
