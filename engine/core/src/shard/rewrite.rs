//! Segments that are mostly dead are rewritten, and all cores go from one generation to the next.
//!
//! ```text
//!   look at each stream of a segment     most of it is alive: next segment
//!     v mostly dead
//!   copy what is left to a draft         a piece, a pause, a piece ...
//!     v written, durable
//!   its index, its name                  from here on a start takes this generation
//!     v durable
//!   every core uses it                   index replaced, readers look their places up again,
//!     v                                  handle on the old file closed
//!   Recycle                              the old file is a spare one, or removed
//! ```
//! A stop at any place leaves the old generation with a draft that goes at the next start, or both
//! generations, of which the newest counts.
//!
//! # Invariants
//! - One segment at a time, with one operation on its way, and none while it is judged for release.
//! - What is needed of a stream is judged by what is durable: nothing becomes needed again later.
//! - The old file goes when no core leads anybody to it any more.
//! - A segment that does not read as it was written stays as it is, and that is told.
//!
//! # Not here
//! - What is copied, and how: [`crate::rewrite`]. Segments that go as a whole: [`super::recycle`].

use super::recycle::Verdict;
use super::{OpOwner, Shard};
use crate::disk::{DiskError, DiskFailure, DiskOp, DiskResult, SegmentFile};
use crate::event::{Event, PeerMessage};
use crate::handover::SharedIndex;
use crate::index::SealedIndex;
use crate::planted::PlantedBug;
use crate::rewrite::{Copy, Needed, Plan, Step};
use crate::state::StreamState;
use nova_model::ids::LogId;
use nova_model::limits::{
    BLOCK_BYTES, FORGET_STEPS_MAX, REWRITE_FEW, REWRITE_PAUSE_SHORT_US, REWRITE_PAUSE_US,
    REWRITE_ROUND_LOOKS, REWRITE_SAVED_BYTES_MIN,
};
use nova_model::{CoreId, Generation, Instant, Now};
use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

/// How far rewriting has come.
#[derive(Default)]
pub(super) struct Rewriting {
    due: Instant,
    /// When the next round over the segments begins.
    round_due: Instant,
    /// What is left of the round at hand, oldest first.
    queue: VecDeque<Arc<SealedIndex>>,
    work: Work,
    /// Segments rewritten in the round at hand.
    streak: u32,
    /// Segments that cannot be rewritten in this start.
    given_up: BTreeSet<SegmentFile>,
}

/// What is in hand.
#[derive(Default)]
enum Work {
    #[default]
    Nothing,
    /// A segment is looked at, from row `next` on.
    Look { plan: Box<Plan>, next: usize },
    /// It is copied; `is_asked` while an operation is on its way.
    Copy { copy: Box<Copy>, is_asked: bool },
    /// Its draft is given up.
    Drop(SegmentFile),
}

impl Rewriting {
    /// When there is something to do.
    pub(super) fn deadline(&self) -> Instant {
        match self.work {
            Work::Copy { is_asked: true, .. } | Work::Drop(_) => Instant(u64::MAX),
            _ => self.due,
        }
    }

    /// The next round begins at once, unless one is under way.
    fn hurry(&mut self) {
        self.round_due = Instant::default();
        if self.queue.is_empty() && matches!(self.work, Work::Nothing) {
            self.due = Instant::default();
        }
    }

    /// Whether a segment is being copied: it must not go meanwhile.
    pub(super) fn is_at(&self, file: SegmentFile) -> bool {
        match &self.work {
            Work::Copy { copy, .. } => copy.source().file() == file,
            Work::Drop(dropped) => *dropped == file,
            Work::Nothing | Work::Look { .. } => false,
        }
    }
}

impl Shard {
    /// Does a bounded piece of looking for segments that are mostly dead, or of rewriting one.
    pub(super) fn rewrite(&mut self, now: Now) {
        if !self.is_ready || self.rewriting.deadline() > now.instant {
            return;
        }
        self.rewriting.due = now.instant.plus_us(self.forget_pause_us());
        if self.is_stopping {
            return;
        }
        match std::mem::take(&mut self.rewriting.work) {
            Work::Nothing => self.look_for_mostly_dead(now),
            Work::Look { plan, next } => self.look_on(plan, next),
            Work::Copy { copy, .. } => {
                self.rewriting.due = now.instant.plus_us(self.rewrite_pause_us());
                self.copy_on(copy);
            }
            Work::Drop(file) => self.rewriting.work = Work::Drop(file),
        }
    }

    /// It is known how much space there is. Where it is little, what is dead is not left alone for
    /// as long as usual: appends are refused soon, or wait for nothing else.
    pub(super) fn rewrite_for_space(&mut self) {
        if self.space.is_tight() {
            self.rewriting.hurry();
        }
    }

    fn rewrite_pause_us(&self) -> u64 {
        let is_much = self.rewriting.streak > REWRITE_FEW || self.space.is_tight();
        let usual = match is_much {
            true => REWRITE_PAUSE_SHORT_US,
            false => REWRITE_PAUSE_US,
        };
        usual.min(self.config.forget_us)
    }

    fn look_for_mostly_dead(&mut self, now: Now) {
        if let Some(index) = self.rewriting.queue.pop_front() {
            if self.may_rewrite(&index) {
                let plan = Box::new(Plan::new(index));
                self.rewriting.work = Work::Look { plan, next: 0 };
            }
            return;
        }
        if self.rewriting.round_due <= now.instant {
            let round_us = self.config.forget_us.saturating_mul(REWRITE_ROUND_LOOKS);
            self.rewriting.round_due = now.instant.plus_us(round_us);
            self.rewriting.streak = 0;
            self.rewriting.queue = self.sealed_of_mine().into();
        } else {
            self.rewriting.due = self.rewriting.round_due;
        }
    }

    /// Sealed segments that this core looks after, oldest first, but for the last one of a log that
    /// nobody writes.
    pub(super) fn sealed_of_mine(&self) -> Vec<Arc<SealedIndex>> {
        let (core, cores) = (self.config.core.0, self.config.cores());
        let is_mine = |log: LogId| log.0 == core || (log.0 >= cores && log.0 % cores == core);
        self.indexes.recyclable(is_mine).collect()
    }

    /// Whether a segment's file has yet to be cut to its length.
    pub(super) fn is_finishing(&self, file: SegmentFile) -> bool {
        let mut owners = self.owners.values();
        owners.any(|owner| *owner == OpOwner::Finish(file))
    }

    /// Whether a segment may be looked at: it is not known to stay as it is, nor on its way out,
    /// and it is the generation that counts.
    fn may_rewrite(&self, index: &SealedIndex) -> bool {
        let file = index.file();
        let least = REWRITE_SAVED_BYTES_MIN + BLOCK_BYTES as u64;
        !self.rewriting.given_up.contains(&file)
            && !self.recycling.is_at(file)
            && !self.is_finishing(file)
            && !index.has_damage()
            && index.length() >= least
            && self.indexes.is_current(index)
    }

    fn look_on(&mut self, mut plan: Box<Plan>, mut next: usize) {
        let index = Arc::clone(plan.index());
        let mut steps = FORGET_STEPS_MAX;
        while steps > 0 && next < index.streams() {
            steps = steps.saturating_sub(self.indexes.depth());
            let needed = index.nth(next).ok().flatten();
            let needed = needed.and_then(|state| Some((self.needed(&index, &state)?, state)));
            let Some((needed, state)) = needed else {
                return;
            };
            match plan.add(next, &state, needed) {
                Ok(runs) => steps = steps.saturating_sub(runs / 16),
                Err(_) => return,
            }
            next += 1;
            if plan.is_alive() {
                return;
            }
        }
        if next < index.streams() {
            self.rewriting.work = Work::Look { plan, next };
        } else if plan.is_worth_it() && self.has_room_for(&plan) && self.may_rewrite(&index) {
            let is_miscut = self.config.planted.has(PlantedBug::RewriteMiscut);
            if let Some(copy) = Copy::new(*plan, is_miscut) {
                self.rewriting.streak += 1;
                self.rewriting.work = Work::Copy {
                    copy: Box::new(copy),
                    is_asked: false,
                };
            }
        }
    }

    /// Whether there is room for the draft, also below the floor, and a segment for commands.
    fn has_room_for(&self, plan: &Plan) -> bool {
        let draft = plan.estimate().saturating_mul(2);
        self.space.has_room(draft + self.config.segment_bytes)
    }

    /// What is needed of a stream of a segment; none if that cannot be told.
    fn needed(&self, index: &SealedIndex, state: &StreamState) -> Option<Needed> {
        if matches!(self.judge_row(index, state), Verdict::Free) {
            return Some(Needed::Nothing);
        }
        let newest = self.indexes.find(&state.name).ok()??.state;
        Some(Needed::From(match newest.id == state.id {
            // It moves, perhaps: all of it counts.
            false => state.trimmed,
            true if newest.deleted => state.tail.sequence,
            true => newest.trimmed,
        }))
    }

    fn copy_on(&mut self, mut copy: Box<Copy>) {
        let (file, generation) = (copy.source().file(), copy.generation());
        let of = copy.source().id().generation;
        let waits_for_nothing = self.config.planted.has(PlantedBug::DraftPlacedEarly);
        let op = match copy.next() {
            Ok(Step::Read { offset, length }) => DiskOp::Read {
                file,
                generation: of,
                offset,
                length,
            },
            Ok(Step::Write {
                offset,
                parts,
                length,
            }) => DiskOp::WriteDraft {
                file,
                generation,
                offset,
                parts,
                length,
            },
            Ok(Step::Place { length, index }) => DiskOp::PlaceDraft {
                file,
                generation,
                length,
                index,
            },
            Ok(Step::Again) if waits_for_nothing => return self.copy_on(copy),
            Ok(Step::Again) => {
                let is_asked = false;
                self.rewriting.work = Work::Copy { copy, is_asked };
                return;
            }
            Err(why) => return self.give_copy_up(file, generation, Some(why.to_string())),
        };
        let is_write = matches!(op, DiskOp::WriteDraft { .. });
        self.ask(OpOwner::Rewrite, op);
        if is_write && waits_for_nothing {
            return self.copy_on(copy);
        }
        let is_asked = true;
        self.rewriting.work = Work::Copy { copy, is_asked };
    }

    /// An operation of the rewriting is done.
    pub(super) fn rewrite_went_on(&mut self, result: DiskResult) {
        let mut copy = match std::mem::take(&mut self.rewriting.work) {
            Work::Copy { copy, .. } => copy,
            // What was given up is gone, or goes at the next start.
            _ => return,
        };
        let (file, generation) = (copy.source().file(), copy.generation());
        match result {
            DiskResult::Read(bytes) => match copy.read(&bytes) {
                Ok(()) => {}
                Err(why) => return self.give_copy_up(file, generation, Some(why.to_string())),
            },
            DiskResult::Mapped(mapped) => {
                let placed = SealedIndex::open(file, mapped);
                let placed = placed.expect("an index that was just stored is whole");
                return self.rewritten(copy.source(), Arc::new(placed));
            }
            DiskResult::Failed(error) => return self.copy_failed(file, generation, &error),
            DiskResult::Written | DiskResult::Finished => {}
            DiskResult::Created { .. } | DiskResult::Space { .. } => {
                unreachable!("nothing of that kind was asked for")
            }
        }
        let is_asked = self.config.planted.has(PlantedBug::DraftPlacedEarly)
            && self.owners.values().any(|owner| *owner == OpOwner::Rewrite);
        self.rewriting.work = Work::Copy { copy, is_asked };
    }

    /// Without space or descriptors it is tried again some time.
    fn copy_failed(&mut self, file: SegmentFile, generation: Generation, error: &DiskError) {
        let is_passing = matches!(
            error.failure,
            DiskFailure::NoSpace | DiskFailure::NoDescriptor
        );
        let why = (!is_passing).then(|| error.to_string());
        self.give_copy_up(file, generation, why);
    }

    /// The segment stays as it is; in this start for good, if it is said why.
    fn give_copy_up(&mut self, file: SegmentFile, generation: Generation, why: Option<String>) {
        if let Some(why) = why {
            self.rewriting.given_up.insert(file);
            self.events.push_back(Event::NotRewritten(file, why));
        }
        self.ask(OpOwner::Rewrite, DiskOp::DropDraft { file, generation });
        self.rewriting.work = Work::Drop(file);
    }

    /// The new generation is what a start would find: all cores go over to it.
    fn rewritten(&mut self, old: &SealedIndex, new: Arc<SealedIndex>) {
        let (file, replaced) = (new.file(), old.id().generation);
        let event = Event::Rewritten {
            file,
            before: old.length(),
            after: new.length(),
        };
        self.use_generation(&new);
        self.recycling.replaced(file, replaced, self.config.cores());
        let index = SharedIndex(new);
        self.tell_peers(&PeerMessage::Rewritten { index, replaced });
        self.segment_let_go(file, replaced);
        self.events.push_back(event);
        self.recycling.hurry();
    }

    /// Another core has rewritten a segment.
    pub(super) fn use_rewritten(
        &mut self,
        from: CoreId,
        index: &Arc<SealedIndex>,
        generation: Generation,
    ) {
        let (to, file) = (from, index.file());
        self.use_generation(index);
        let owner = OpOwner::LetGo {
            to,
            file,
            generation,
        };
        self.ask(owner, DiskOp::LetGo { file, generation });
    }

    /// From now on nothing in memory leads to an older generation of the segment.
    fn use_generation(&mut self, index: &Arc<SealedIndex>) {
        let file = index.file();
        self.indexes.replace(index);
        let has_records = |id| index.has_records(id).unwrap_or(true);
        self.streams.forget_segment(file, |id| !has_records(id));
        for reader in self.readers.values_mut() {
            if reader.segment.is_some_and(|(at, _)| at == file) {
                reader.runs.clear();
            }
        }
    }
}
