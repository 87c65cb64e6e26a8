//! Copies what is left of a segment, piece by piece.
//!
//! ```text
//!   header -> pieces with live records -> final states -> header of the new generation -> its name
//!     read       read, write ...            write ...        write                        place
//! ```
//! The new generation's groups are a chain of their own, with numbers from 1. For a stream with
//! live records it has a statement as of just before them, then its batches as they are; at the end
//! come the states of all streams that stay, as the segment leaves them, where that does not follow
//! from the batches. Its header is written last and says where all of it ends.
//!
//! # Invariants
//! - One operation at a time; memory for one group and the index.
//! - A batch is copied only if the records before it were, or are dead; and if one that the
//!   index promises is not met, the copy is given up.
//!
//! # Not here
//! - The pause between two operations, and what happens with the result: the shard.

use super::{Kept, Plan};
use crate::entry::{BatchEntry, Entry};
use crate::index::{ActiveIndex, IndexDamage, NameHash, SealedIndex};
use crate::segment::{
    GroupBuilder, GroupContext, GroupDamage, Rewritten, SealedGroup, SegmentHeader, decode_group,
};
use crate::state::StreamState;
use bytes::Bytes;
use nova_model::limits::{
    BLOCK_BYTES, GROUP_ENTRIES_MAX, REWRITE_GROUP_BYTES, REWRITE_PIECE_BYTES, REWRITE_STATES_MAX,
};
use nova_model::{Checksum, Generation, GroupNumber, Position, SegmentId};
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

const BLOCK: u64 = BLOCK_BYTES as u64;

/// What is to be done next; nothing of it is done at once.
#[derive(Debug)]
pub(crate) enum Step {
    /// Read bytes of the segment and give them to [`Copy::read`].
    Read { offset: u64, length: usize },
    /// Write bytes of the draft.
    Write {
        offset: u64,
        parts: Vec<Bytes>,
        length: usize,
    },
    /// All is written: the draft gets its index and its name.
    Place { length: u64, index: Bytes },
    /// A bounded piece of work is done; ask again.
    Again,
}

/// Why a copy is given up; the segment stays as it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Abandoned {
    /// The first block is not the header that the index speaks of.
    #[error("its header is damaged")]
    Header,
    /// A group that is needed cannot be read.
    #[error("the group at {offset} is damaged: {damage}")]
    Group { offset: u64, damage: GroupDamage },
    /// Records that its index promises are not there.
    #[error("records of {0} are not where its index says")]
    Records(nova_model::StreamId),
    /// Its index is damaged.
    #[error("{0}")]
    Index(IndexDamage),
    /// What was copied does not fit together.
    #[error("what is left does not fit together")]
    Misfit,
    /// It does not become smaller.
    #[error("it does not become smaller")]
    NoGain,
}

impl From<IndexDamage> for Abandoned {
    fn from(damage: IndexDamage) -> Abandoned {
        Abandoned::Index(damage)
    }
}

/// How far a copy has come.
enum Stage {
    Header,
    Records,
    /// States of the streams that stay, from number `next` on: first of those that their names do
    /// not lead to, then of the others.
    States {
        leading: bool,
        next: usize,
    },
    Seal,
    Place,
}

/// A segment on its way to its next generation.
pub(crate) struct Copy {
    plan: Plan,
    id: SegmentId,
    header: Option<SegmentHeader>,
    stage: Stage,
    /// What is to be read before the next gap.
    range: Range<u64>,
    /// How much of it at least, for a group that is longer than a piece.
    wanted: usize,
    built: ActiveIndex,
    builder: GroupBuilder,
    entries: Vec<Entry>,
    out: VecDeque<(u64, SealedGroup)>,
    length: u64,
    last_group: GroupNumber,
    last_checksum: Checksum,
    is_miscut: bool,
}

impl Copy {
    /// A copy by a plan; none if the segment has had its last generation.
    pub(crate) fn new(plan: Plan, is_miscut: bool) -> Option<Copy> {
        let old = plan.index.id();
        let generation = old.generation.next()?;
        let id = SegmentId { generation, ..old };
        Some(Copy {
            built: ActiveIndex::new(plan.file(), id),
            plan,
            id,
            header: None,
            stage: Stage::Header,
            range: BLOCK..BLOCK,
            wanted: 0,
            builder: GroupBuilder::new(),
            entries: Vec::new(),
            out: VecDeque::new(),
            length: BLOCK,
            last_group: GroupNumber(0),
            last_checksum: Checksum(0),
            is_miscut,
        })
    }

    /// The index of the segment as it is.
    pub(crate) fn source(&self) -> &Arc<SealedIndex> {
        &self.plan.index
    }

    /// The generation that it becomes.
    pub(crate) fn generation(&self) -> Generation {
        self.id.generation
    }

    /// What to do now; the step before is done.
    pub(crate) fn next(&mut self) -> Result<Step, Abandoned> {
        if let Some((offset, group)) = self.out.pop_front() {
            return Ok(Step::Write {
                offset,
                parts: group.parts,
                length: group.length,
            });
        }
        match self.stage {
            Stage::Header => Ok(Step::Read {
                offset: 0,
                length: BLOCK_BYTES,
            }),
            Stage::Records => {
                if self.range.is_empty() {
                    match self.plan.blocks.range_from(self.range.end) {
                        Some(range) => self.range = range,
                        None => return self.end_records(),
                    }
                }
                let left = (self.range.end - self.range.start) as usize;
                Ok(Step::Read {
                    offset: self.range.start,
                    length: left.min(self.wanted.max(REWRITE_PIECE_BYTES)),
                })
            }
            Stage::States { leading, next } => self.lay_states(leading, next),
            Stage::Seal => {
                self.stage = Stage::Place;
                self.seal()
            }
            Stage::Place => Ok(Step::Place {
                length: self.length,
                index: self
                    .built
                    .seal_rewritten(&self.plan.index.end(), self.length),
            }),
        }
    }

    /// The bytes that the last step asked for.
    pub(crate) fn read(&mut self, bytes: &Bytes) -> Result<(), Abandoned> {
        match self.stage {
            Stage::Header => self.take_header(bytes),
            _ => self.take_groups(bytes),
        }
    }

    fn take_header(&mut self, block: &[u8]) -> Result<(), Abandoned> {
        let header = SegmentHeader::decode(block).ok().flatten();
        let header = header.filter(|header| header.id == self.plan.index.id());
        self.header = Some(header.ok_or(Abandoned::Header)?);
        self.stage = Stage::Records;
        for info in self.plan.index.buckets()?.into_values() {
            self.lay(Entry::BucketPut(info))?;
        }
        for (log, numbers) in self.plan.index.released()? {
            self.lay(Entry::Released { log, numbers })?;
        }
        Ok(())
    }

    fn take_groups(&mut self, bytes: &Bytes) -> Result<(), Abandoned> {
        let id = self.plan.index.id();
        let mut rest = bytes.clone();
        while !rest.is_empty() {
            let offset = self.range.start;
            let damaged = |damage| Abandoned::Group { offset, damage };
            match decode_group(&rest, &id) {
                Ok(group) => {
                    for entry in group.entries {
                        if let Entry::Batch(batch) = entry {
                            self.take_batch(batch)?;
                        }
                    }
                    self.wanted = 0;
                    self.range.start += group.length as u64;
                    rest = rest.slice(group.length.min(rest.len())..);
                }
                Err(damage @ GroupDamage::Incomplete { needed }) => {
                    let is_there = offset + needed as u64 <= self.range.end;
                    if !is_there || needed <= self.wanted {
                        return Err(damaged(damage));
                    }
                    self.wanted = needed;
                    return Ok(());
                }
                Err(damage) => return Err(damaged(damage)),
            }
        }
        Ok(())
    }

    fn take_batch(&mut self, batch: BatchEntry) -> Result<(), Abandoned> {
        let id = batch.stream;
        let Some(live) = self.plan.live.get_mut(&id) else {
            return Ok(());
        };
        // A group before the one where looking for it began.
        if batch.stored.first < live.tail {
            return Ok(());
        }
        if batch.stored.first > live.tail {
            return Err(Abandoned::Records(id));
        }
        live.tail = batch.stored.end();
        if self.is_miscut && !live.is_cut && live.tail > live.from {
            (live.is_cut, live.from) = (true, live.tail);
        }
        if live.tail <= live.from {
            live.before += u64::from(batch.stored.batch.metered_bytes());
            return Ok(());
        }
        let before = live.before;
        if !std::mem::replace(&mut live.is_led, true) {
            let last = self.plan.index.stream(id)?;
            let last = last.ok_or(Abandoned::Records(id))?;
            self.lay(Entry::Led(Box::new(state_before(last, &batch, before))))?;
        }
        self.lay(Entry::Batch(batch))
    }

    fn end_records(&mut self) -> Result<Step, Abandoned> {
        self.flush()?;
        self.stage = Stage::States {
            leading: false,
            next: 0,
        };
        Ok(Step::Again)
    }

    fn lay_states(&mut self, leading: bool, mut next: usize) -> Result<Step, Abandoned> {
        let end = self.plan.kept.len().min(next + REWRITE_STATES_MAX);
        while next < end && self.out.is_empty() {
            self.lay_state(leading, self.plan.kept[next])?;
            next += 1;
        }
        self.stage = match (next == self.plan.kept.len(), leading) {
            (false, _) => Stage::States { leading, next },
            (true, false) => {
                self.flush()?;
                Stage::States {
                    leading: true,
                    next: 0,
                }
            }
            (true, true) => {
                self.flush()?;
                Stage::Seal
            }
        };
        Ok(Step::Again)
    }

    fn lay_state(&mut self, leading: bool, kept: Kept) -> Result<(), Abandoned> {
        let index = &self.plan.index;
        let mut state = index.nth(kept.row)?.ok_or(Abandoned::Misfit)?;
        let named = index.find_name(&state.name, NameHash::of(&state.name))?;
        if named.is_some_and(|named| named.id == state.id) != leading {
            return Ok(());
        }
        if let Some(live) = self.plan.live.get(&state.id)
            && (live.tail != state.tail.sequence || !(live.is_led || live.is_cut))
        {
            return Err(Abandoned::Records(state.id));
        }
        if kept.is_emptied {
            state.previous = None;
        }
        let built = self.built.find_name(&state.name).map(|built| built.id);
        let is_named = !leading || built == Some(state.id);
        match self.built.stream(state.id) == Some(&state) && is_named {
            true => Ok(()),
            false => self.lay(Entry::Led(Box::new(state))),
        }
    }

    fn lay(&mut self, entry: Entry) -> Result<(), Abandoned> {
        self.builder.push(&entry);
        self.entries.push(entry);
        let is_full = self.builder.bytes() >= REWRITE_GROUP_BYTES
            || self.builder.entries() >= GROUP_ENTRIES_MAX / 2;
        match is_full {
            true => self.flush(),
            false => Ok(()),
        }
    }

    /// Ends the group at hand.
    fn flush(&mut self) -> Result<(), Abandoned> {
        if self.builder.is_empty() {
            return Ok(());
        }
        let context = GroupContext {
            segment: self.id,
            number: self.last_group.next(),
            previous: self.last_checksum,
            durable_through: self.last_group,
        };
        let group = std::mem::take(&mut self.builder).seal(&context);
        let (offset, length) = (self.length, group.length as u64);
        if offset + length >= self.plan.index.length() {
            return Err(Abandoned::NoGain);
        }
        let entries = std::mem::take(&mut self.entries);
        let applied = self.built.try_apply_group(offset, group.length, &entries);
        applied.map_err(|_| Abandoned::Misfit)?;
        self.length += length;
        (self.last_group, self.last_checksum) = (context.number, group.checksum);
        self.out.push_back((offset, group));
        Ok(())
    }

    fn seal(&mut self) -> Result<Step, Abandoned> {
        let old = self.header.ok_or(Abandoned::Header)?;
        let stands_for = self.plan.index.end().predecessor();
        let header = SegmentHeader {
            id: self.id,
            file_length: self.length,
            closed: false,
            predecessor: old.predecessor,
            rewritten: Some(Rewritten {
                stands_for: stands_for.ok_or(Abandoned::Header)?,
                length: self.length,
                last_group: self.last_group,
                last_checksum: self.last_checksum,
            }),
        };
        if self.last_group == GroupNumber(0) {
            return Err(Abandoned::NoGain);
        }
        Ok(Step::Write {
            offset: 0,
            parts: vec![header.encode()],
            length: BLOCK_BYTES,
        })
    }
}

/// The state of a stream just before a batch, as far as the batches behind it do not say it anew.
fn state_before(last: StreamState, batch: &BatchEntry, bytes: u64) -> StreamState {
    let tail = Position {
        sequence: batch.stored.first,
        timestamp: batch.stored.stamping.floor,
    };
    StreamState {
        trimmed: last.trimmed.min(tail.sequence),
        tail,
        arrived: batch.stored.stamping.arrival,
        bytes,
        writers: Default::default(),
        ..last
    }
}
