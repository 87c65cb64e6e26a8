//! A sealed segment that is mostly dead is written anew with what is left of it.
//!
//! ```text
//!   generation 0   | A  . | A B  . | C . | A  . | B  . |     A, B: trimmed up to their last batch
//!   generation 1   | buckets, released | B led, B | C, A: statements |
//! ```
//! Number, predecessor and what the segment stands for in its log stay as they are, so no pointer
//! to it changes its meaning: a stream names segments by their numbers and records by theirs. Dead
//! is what nobody can read any more, what newer segments state anew, and padding.
//!
//! # Invariants
//! - What is left of a stream in a segment is its last records, since trims take the first ones.
//! - The index of a generation tells of each stream that stays what the one before told, and of
//!   records that stay the same numbers, times and sums.
//! - Nothing that does not read as it was written is left out: the segment stays as it is then.
//! - A segment that was rewritten is a candidate again only when two thirds of what was left then
//!   are dead; so it is never rewritten without gain.
//!
//! # Not here
//! - What is needed of a stream, when it is looked at, and the change of all cores from one
//!   generation to the next: the shard. Which generation counts at a start: recovery.

mod blocks;
mod copy;

#[cfg(test)]
pub(crate) use copy::Abandoned;
pub(crate) use copy::{Copy, Step};

use crate::disk::SegmentFile;
use crate::index::{IndexDamage, SealedIndex};
use crate::state::StreamState;
use blocks::Blocks;
use nova_model::limits::{BLOCK_BYTES, REWRITE_LIVE_PART, REWRITE_SAVED_BYTES_MIN};
use nova_model::{SequenceNumber, StreamId};
use std::collections::BTreeMap;
use std::sync::Arc;

/// What a statement takes beside its archive, and what a stream with records takes besides.
const ENTRY_BYTES: u64 = 32;
const LED_BYTES: u64 = 400;

/// What is needed of a stream of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Needed {
    /// Nothing.
    Nothing,
    /// Its state as the segment leaves it, and its records from this one on, if there are any.
    From(SequenceNumber),
}

/// What is left of a segment.
pub(crate) struct Plan {
    index: Arc<SealedIndex>,
    kept: Vec<Kept>,
    live: BTreeMap<StreamId, Live>,
    /// Where groups with live records lie.
    blocks: Blocks,
    metered_all: u64,
    metered_live: u64,
    state_bytes: u64,
}

/// A stream that stays.
#[derive(Debug, Clone, Copy)]
struct Kept {
    /// Its row in the table of streams.
    row: usize,
    /// Whether the segment loses all records of it.
    is_emptied: bool,
}

/// A stream of which records stay, as far as it was copied.
#[derive(Debug, Clone, Copy)]
struct Live {
    /// The first record that stays, or one in the same batch.
    from: SequenceNumber,
    /// Where the next batch begins.
    tail: SequenceNumber,
    /// Metered bytes of the stream before that.
    before: u64,
    /// Whether it was stated.
    is_led: bool,
    /// Whether its first batch was left out, by mistake.
    is_cut: bool,
}

impl Plan {
    /// A plan for the segment of an index, of which nothing is said to be needed yet.
    pub(crate) fn new(index: Arc<SealedIndex>) -> Plan {
        Plan {
            blocks: Blocks::new(index.length()),
            index,
            kept: Vec::new(),
            live: BTreeMap::new(),
            metered_all: 0,
            metered_live: 0,
            state_bytes: 0,
        }
    }

    /// The segment's file.
    pub(crate) fn file(&self) -> SegmentFile {
        self.index.file()
    }

    /// The index of the segment as it is.
    pub(crate) fn index(&self) -> &Arc<SealedIndex> {
        &self.index
    }

    /// Takes note of what is needed of the stream in a row of the index. How many runs that takes.
    pub(crate) fn add(
        &mut self,
        row: usize,
        state: &StreamState,
        needed: Needed,
    ) -> Result<usize, IndexDamage> {
        let first = self.index.first_run(state.id)?;
        let metered_behind = |before: u64| state.bytes.saturating_sub(before);
        self.metered_all += first.map_or(0, |run| metered_behind(run.before));
        let Needed::From(from) = needed else {
            return Ok(0);
        };
        let is_live = first.is_some() && from < state.tail.sequence;
        self.state_bytes += ENTRY_BYTES + self.index.state_bytes(row)?;
        self.kept.push(Kept {
            row,
            is_emptied: first.is_some() && !is_live,
        });
        let mut runs = 0;
        if !is_live {
            return Ok(runs);
        }
        for run in self.index.runs_from(state.id, from)? {
            let run = run?;
            runs += 1;
            self.blocks.add(&run);
            self.live.entry(state.id).or_insert_with(|| {
                self.metered_live += metered_behind(run.before);
                Live {
                    from,
                    tail: run.first.sequence,
                    before: run.before,
                    is_led: false,
                    is_cut: false,
                }
            });
        }
        Ok(runs)
    }

    /// About how many bytes the segment takes without what is dead.
    pub(crate) fn estimate(&self) -> u64 {
        let batches = self.index.batch_bytes().unwrap_or(self.index.length());
        let share = u128::from(batches) * u128::from(self.metered_live);
        let batches = (share / u128::from(self.metered_all.max(1))) as u64;
        let states = self.state_bytes + self.live.len() as u64 * LED_BYTES;
        batches + states + 2 * BLOCK_BYTES as u64
    }

    /// Whether more of it is alive than may be, whatever is found yet.
    pub(crate) fn is_alive(&self) -> bool {
        (self.metered_live + self.state_bytes) * REWRITE_LIVE_PART >= self.index.length()
    }

    /// Whether it is worth it.
    pub(crate) fn is_worth_it(&self) -> bool {
        let (length, estimate) = (self.index.length(), self.estimate());
        !self.kept.is_empty()
            && estimate * REWRITE_LIVE_PART < length
            && length - estimate >= REWRITE_SAVED_BYTES_MIN
    }
}

#[cfg(test)]
#[path = "samples_tests.rs"]
pub(crate) mod samples;
