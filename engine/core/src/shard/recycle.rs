//! Space is given back: a segment that nobody needs any more is released, and its file recycled.
//!
//! ```text
//!   look at each stream of the segment     its records are not all trimmed: next segment
//!     v nothing of it is read any more
//!   state anew what is stated here last    in the active segment, a few a turn
//!     v durable
//!   Released                               in the log: recovery accepts that gap
//!     v durable
//!   every core lets go of it               index forgotten, handle closed
//!     v
//!   Recycle                                the file is a spare one, or removed
//! ```
//! A stop at any place leaves a segment that is looked at again, or a released one of which the
//! next start removes what is left.
//!
//! # Invariants
//! - A stream at rest is stated anew by its home alone, under its next epoch if another core's
//!   segment stated it.
//! - A segment with a record at or behind its stream's durable trim point is not released, nor one
//!   with the newest statement of a stream.
//! - A statement of a deletion goes only when no older statement is left that it hides.
//! - A file is recycled only after its release is durable and no core uses it.
//! - A log's last segment with groups is never released: the release itself is in a later one.
//! - What is stated anew is durable before the segment is looked at again, and takes its place
//!   among what was admitted: a log that waits for space gathers no statements.
//!
//! # Not here
//! - What is trimmed: requests, and [`super::retain`].

use super::{OpOwner, Shard};
use crate::catalog::indexes::Found;
use crate::commit::gate::Ticket;
use crate::disk::{DiskOp, DiskResult, SegmentFile};
use crate::entry::Entry;
use crate::event::{Event, PeerMessage};
use crate::index::SealedIndex;
use crate::planted::PlantedBug;
use crate::released::{NumberRange, Released};
use crate::state::StreamState;
use nova_model::ids::LogId;
use nova_model::limits::{
    FORGET_PAUSE_SHORT_US, FORGET_PAUSE_US, FORGET_STEPS_MAX, RESTATED_BYTES_MAX, RESTATED_MAX,
    WRITER_BATCHES_MAX,
};
use nova_model::{CoreId, Generation, Instant, Now};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// Segments on their way out.
pub(super) struct Recycling {
    due: Instant,
    /// What was released of each log, as it is durable.
    released: BTreeMap<LogId, Released>,
    /// Segments to look at in the look at hand, oldest first.
    queue: VecDeque<Arc<SealedIndex>>,
    check: Option<Check>,
    is_looking: bool,
    /// The row that kept a segment when it was looked at last: it is looked at first.
    keepers: BTreeMap<SegmentFile, usize>,
    /// Whether something was trimmed or deleted since the queue was made.
    is_stale: bool,
    /// Cores that may still use a segment that was released, or a generation that was replaced.
    going: BTreeMap<(SegmentFile, Generation), u16>,
}

/// A segment that is looked at, row by row.
struct Check {
    index: Arc<SealedIndex>,
    begin: usize,
    looked: usize,
    /// Whether other cores were asked to state what it is the last to state.
    is_asked: bool,
    pass: Pass,
}

/// What is done with a segment.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Pass {
    /// Nothing was found so far that keeps it; so many statements must be written anew.
    Look { to_state: usize },
    /// Nothing keeps it but statements, which are written anew.
    State(Ticket),
    /// What was written is on its way to the disk.
    Wait(Ticket),
    /// Its release is on its way to the disk.
    Release(Ticket),
}

/// What a stream asks of a segment.
pub(super) enum Verdict {
    /// Nothing.
    Free,
    /// To stay, at least for the moment.
    Keep,
    /// To stay until what is on its way to the disk is there.
    Wait,
    /// To be stated elsewhere first.
    State(Box<StreamState>),
    /// The same, by its home.
    Ask(CoreId),
}

/// How a step ended.
enum Step {
    More,
    /// Enough for this turn.
    Pause,
    /// Nothing more in this look.
    Done,
}

impl Recycling {
    pub(super) fn new(released: BTreeMap<LogId, Released>) -> Recycling {
        Recycling {
            due: Instant::default(),
            released,
            queue: VecDeque::new(),
            check: None,
            is_looking: false,
            keepers: BTreeMap::new(),
            is_stale: false,
            going: BTreeMap::new(),
        }
    }

    pub(super) fn deadline(&self) -> Instant {
        self.due
    }

    /// Something was trimmed or deleted: a segment may be free.
    pub(super) fn hurry(&mut self) {
        self.is_stale = true;
        self.due = Instant::default();
    }

    /// What was written waits no longer.
    pub(super) fn note_durable(&mut self, durable: Ticket) {
        let pass = self.check.as_ref().map(|check| check.pass);
        if let Some(Pass::Wait(ticket) | Pass::Release(ticket)) = pass
            && ticket <= durable
        {
            self.due = Instant::default();
        }
    }

    /// Whether a segment is being looked at, or given up.
    pub(super) fn is_at(&self, file: SegmentFile) -> bool {
        let is_looked_at = |check: &Check| check.index.file() == file;
        self.check.as_ref().is_some_and(is_looked_at)
    }

    /// A generation of a segment goes once that many cores have let go of it.
    pub(super) fn replaced(&mut self, file: SegmentFile, generation: Generation, cores: u16) {
        self.keepers.remove(&file);
        self.queue.retain(|index| index.file() != file);
        self.going.insert((file, generation), cores);
    }

    /// Whether a segment may be free that was not looked at since, or one is on its way out.
    fn is_behind(&self) -> bool {
        self.is_stale || self.is_looking || !self.going.is_empty()
    }

    /// What the first group of a segment states.
    pub(super) fn preamble(&self) -> Vec<Entry> {
        let stated = self.released.iter();
        let stated = stated.map(|(log, numbers)| Entry::Released {
            log: *log,
            numbers: numbers.clone(),
        });
        stated.collect()
    }
}

impl Shard {
    /// Does a bounded piece of looking for segments that can go, if it is time.
    pub(super) fn look_for_dead_segments(&mut self, now: Now) {
        if !self.is_ready || self.recycling.due > now.instant {
            return;
        }
        if self.is_stopping || self.places.change.is_some() {
            // What rests and gets another home is being sealed: no statement may follow it.
            self.recycling.due = now.instant.plus_us(FORGET_PAUSE_US);
            return;
        }
        let is_looking = std::mem::replace(&mut self.recycling.is_looking, true);
        if self.recycling.check.is_none() && (self.recycling.is_stale || !is_looking) {
            self.queue_segments();
        }
        let (mut steps, mut stated) = (FORGET_STEPS_MAX, (0, 0));
        while steps > 0 {
            match self.recycle_step(&mut steps, &mut stated) {
                Step::More => {}
                Step::Pause => break,
                Step::Done => {
                    self.recycling.is_looking = false;
                    let wait = match self.recycling.is_stale {
                        true => self.forget_pause_us(),
                        false => self.config.forget_us,
                    };
                    self.recycling.due = now.instant.plus_us(wait);
                    return;
                }
            }
        }
        self.recycling.due = now.instant.plus_us(self.forget_pause_us());
    }

    /// Whether what was written since has not been looked at: the next segment is rather made of a
    /// file that is given back than of a new one.
    pub(super) fn is_forgetting_behind(&self) -> bool {
        !self.indexes.is_all_stored()
            || self.retention.is_behind(self.durable)
            || self.recycling.is_behind()
    }

    /// The pause between two turns of forgetting; short while the log waits for a file.
    pub(super) fn forget_pause_us(&self) -> u64 {
        match self.log.wants_file() {
            true => FORGET_PAUSE_SHORT_US,
            false => FORGET_PAUSE_US,
        }
    }

    /// The segments that may go: of this core's log, and of logs that no core writes any more. A
    /// segment that was just sealed is cut first; then it is looked at.
    fn queue_segments(&mut self) {
        self.recycling.is_stale = false;
        let mut queue = self.sealed_of_mine();
        queue.retain(|index| !self.is_finishing(index.file()));
        self.recycling.queue = queue.into();
    }

    fn recycle_step(&mut self, steps: &mut usize, stated: &mut (usize, usize)) -> Step {
        let Some(check) = self.recycling.check.take() else {
            let Some(index) = self.recycling.queue.pop_front() else {
                return Step::Done;
            };
            *steps = steps.saturating_sub(1);
            if self.rewriting.is_at(index.file()) {
                return Step::More;
            }
            let begin = self.recycling.keepers.get(&index.file()).copied();
            self.recycling.check = Some(Check {
                index,
                begin: begin.unwrap_or(0),
                looked: 0,
                is_asked: false,
                pass: Pass::Look { to_state: 0 },
            });
            return Step::More;
        };
        match check.pass {
            Pass::Wait(ticket) | Pass::Release(ticket) if ticket > self.durable => {
                self.recycling.check = Some(check);
                Step::Pause
            }
            Pass::Release(_) => Step::More,
            // It stays until the others have sealed what they were asked for.
            Pass::Wait(_) if check.is_asked => Step::More,
            Pass::Wait(_) => {
                self.recycling.check = Some(check.again(Pass::Look { to_state: 0 }));
                Step::More
            }
            Pass::State(_)
                if stated.0 >= RESTATED_MAX
                    || stated.1 >= RESTATED_BYTES_MAX
                    || !self.accepts_appends() =>
            {
                self.recycling.check = Some(check);
                Step::Pause
            }
            Pass::Look { .. } | Pass::State(_) => {
                *steps = steps.saturating_sub(self.indexes.depth());
                self.look_at_row(check, stated);
                Step::More
            }
        }
    }

    /// Looks at the next row; a segment that stays is not gone on with.
    fn look_at_row(&mut self, mut check: Check, stated: &mut (usize, usize)) {
        let rows = check.index.streams();
        if check.looked == rows {
            return self.looked_at_all(check);
        }
        let row = (check.begin + check.looked) % rows;
        check.looked += 1;
        let Ok(Some(state)) = check.index.nth(row) else {
            return;
        };
        match (self.judge_row(&check.index, &state), &mut check.pass) {
            (Verdict::Free, _) => {}
            (Verdict::Keep, _) => {
                self.recycling.keepers.insert(check.index.file(), row);
                return;
            }
            (Verdict::Wait, _) => {
                self.recycling.is_stale = true;
                return;
            }
            (Verdict::State(_) | Verdict::Ask(_), Pass::Look { to_state }) => *to_state += 1,
            (Verdict::State(state), Pass::State(ticket)) => {
                stated.0 += 1;
                stated.1 += 512 + state.writers.len() * WRITER_BATCHES_MAX * 64;
                *ticket = self.log.push(Entry::Led(state));
            }
            (Verdict::Ask(home), Pass::State(_)) => {
                stated.0 += 1;
                check.is_asked = true;
                let StreamState { name, id, .. } = state;
                self.tell(home, PeerMessage::Restate { name, id });
            }
            (Verdict::State(_) | Verdict::Ask(_), Pass::Wait(_) | Pass::Release(_)) => {}
        }
        self.recycling.check = Some(check);
    }

    fn looked_at_all(&mut self, check: Check) {
        let next = match check.pass {
            Pass::Look { to_state: 0 } => {
                let Some(ticket) = self.release_segment(check.index.file()) else {
                    return;
                };
                Pass::Release(ticket)
            }
            Pass::Look { .. } => Pass::State(Ticket(0)),
            Pass::State(ticket) => Pass::Wait(ticket),
            Pass::Wait(_) | Pass::Release(_) => return,
        };
        self.recycling.check = Some(check.again(next));
    }

    pub(super) fn judge_row(&self, index: &SealedIndex, state: &StreamState) -> Verdict {
        let name = &state.name;
        let there = self.streams.find(name);
        if there.is_some_and(|id| self.check_moving(id).is_err()) {
            return Verdict::Keep;
        }
        let (Ok(Some(found)), Ok(has_records)) =
            (self.indexes.find(name), index.has_records(state.id))
        else {
            return Verdict::Keep;
        };
        let Found {
            state: newest,
            stated_in,
            ..
        } = found;
        if newest.id != state.id {
            return Verdict::Free;
        }
        let is_read = has_records && !newest.deleted && newest.trimmed < state.tail.sequence;
        if is_read {
            return Verdict::Keep;
        }
        if stated_in != index.file() || self.config.planted.has(PlantedBug::NotStatedAnew) {
            return Verdict::Free;
        }
        if there.is_some_and(|id| self.stream(id).last_ticket > self.durable) {
            // What is on its way states it anew.
            return Verdict::Wait;
        }
        if newest.deleted && self.hides_nothing(index, &newest) {
            return Verdict::Free;
        }
        if self.config.cores() > 1 && !self.is_here(name) {
            let home = self.places.current.home(name);
            return match there.is_none() && home != self.config.core && !newest.deleted {
                true => Verdict::Ask(home),
                false => Verdict::Keep,
            };
        }
        let mut statement = newest;
        if has_records || statement.trimmed == statement.tail.sequence {
            statement.previous = None;
        }
        Verdict::State(Box::new(statement))
    }

    /// Whether nothing older is stated under the name of a deleted stream. Another core may have
    /// stated it in this start, which shows only when that segment is sealed; in an earlier start
    /// all of it is known.
    fn hides_nothing(&self, index: &SealedIndex, deleted: &StreamState) -> bool {
        let is_all_known =
            self.config.cores() == 1 || index.id().incarnation != self.config.incarnation;
        is_all_known
            && !self
                .indexes
                .is_stated_elsewhere(&deleted.name, index.file())
    }

    /// Writes down that a segment is given up.
    fn release_segment(&mut self, file: SegmentFile) -> Option<Ticket> {
        let mut numbers = self.recycling.released.get(&file.log).cloned();
        let mut numbers = numbers.take().unwrap_or_default();
        if numbers.is_full() {
            return None;
        }
        let number = file.number.0;
        let below = self.indexes.number_below(file).map(|number| number.0);
        let below = below.max(numbers.last_below(number)).unwrap_or(0);
        numbers.add(NumberRange {
            first: below + 1,
            last: number,
        });
        let log = file.log;
        if self.config.planted.has(PlantedBug::RecycledEarly) {
            self.released_durable(log, &numbers);
        }
        Some(self.log.push(Entry::Released { log, numbers }))
    }

    /// Segments are released: all cores let go of them, then they are recycled.
    pub(super) fn released_durable(&mut self, log: LogId, numbers: &Released) {
        let known = self.recycling.released.entry(log).or_default();
        known.add_all(numbers);
        let known = known.clone();
        let gone = self.indexes.let_go(log, |number| known.contains(number.0));
        for (file, generation) in gone {
            self.streams.forget_segment(file, |_| true);
            let cores = self.config.cores();
            self.recycling.replaced(file, generation, cores);
            self.tell_peers(&PeerMessage::Released { file, generation });
            self.segment_let_go(file, generation);
        }
    }

    /// Another core has released a segment.
    pub(super) fn let_segment_go(&mut self, to: CoreId, file: SegmentFile, generation: Generation) {
        self.indexes
            .let_go(file.log, |number| number == file.number);
        self.streams.forget_segment(file, |_| true);
        let owner = OpOwner::LetGo {
            to,
            file,
            generation,
        };
        self.ask(owner, DiskOp::LetGo { file, generation });
    }

    /// No handle is open here any more on a segment that another core has released.
    pub(super) fn tell_let_go(
        &mut self,
        to: CoreId,
        file: SegmentFile,
        generation: Generation,
        result: DiskResult,
    ) {
        if let DiskResult::Failed(error) = result {
            self.events.push_back(Event::NotRecycled(file, error));
        }
        let message = PeerMessage::LetGo { file, generation };
        self.events.push_back(Event::Peer(to, message));
    }

    /// One core less uses a segment that was released, or a generation that was replaced.
    pub(super) fn segment_let_go(&mut self, file: SegmentFile, generation: Generation) {
        let Some(users) = self.recycling.going.get_mut(&(file, generation)) else {
            return;
        };
        *users -= 1;
        if *users == 0 {
            let owner = OpOwner::Recycle(file, generation);
            self.ask(owner, DiskOp::Recycle { file, generation });
        }
    }

    /// The file of a segment is a spare one, or gone.
    pub(super) fn recycled(
        &mut self,
        file: SegmentFile,
        generation: Generation,
        result: DiskResult,
    ) {
        match result {
            DiskResult::Failed(error) => {
                if self.recycle_failed((file, generation), error) {
                    return;
                }
            }
            _ => self.again.done(file),
        }
        self.recycling.going.remove(&(file, generation));
        self.ask_for_space();
    }
}

impl Check {
    fn again(self, pass: Pass) -> Check {
        Check {
            looked: 0,
            pass,
            ..self
        }
    }
}
