//! All indexes that one core sees, newest first, as one.
//!
//! # Invariants
//! - A segment of this log is in exactly one of: active, storing, sealed, at_start. It goes from
//!   one to the next behind all older ones.
//! - Within a log a newer segment's statement of a stream replaces all older ones.

use super::holdings::Holding;
use super::listing::{Listing, Merge};
use crate::disk::{Mapped, SegmentFile};
use crate::entry::Entry;
use crate::index::{ActiveIndex, IndexDamage, NameHash, Run, SealedIndex};
use crate::segment::LogEnd;
use crate::state::StreamState;
use nova_model::ids::{LogId, SegmentNumber, StreamId};
use nova_model::names::{BucketName, StreamName};
use nova_model::{Code, Facts, Refusal, SegmentId, SequenceNumber, Timestamp};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Sealed indexes of a star, shared by its cores; ascending in each log.
pub type StarIndexes = BTreeMap<LogId, Vec<Arc<SealedIndex>>>;

/// A stream as an index knows it, and the newest segment that holds records of it.
pub(crate) struct Found {
    pub(crate) state: StreamState,
    pub(crate) records_in: Option<SegmentFile>,
    /// The segment whose index says so.
    pub(crate) stated_in: SegmentFile,
}

/// The indexes of one core.
pub(crate) struct Indexes {
    pub(super) log: LogId,
    active: Option<ActiveIndex>,
    pub(super) storing: Vec<ActiveIndex>,
    /// Those of `storing` that are stored, while an older one is not: all that is sealed is older
    /// than all in memory, whatever order the disk stores them in.
    stored_early: BTreeMap<SegmentNumber, Arc<SealedIndex>>,
    /// Those of this start, also of other cores.
    pub(super) sealed: StarIndexes,
    pub(super) at_start: StarIndexes,
    /// What other cores' segments of this start, not known to be sealed, hold of streams that came
    /// from there.
    pub(super) adopted: BTreeMap<(StreamId, SegmentFile), Holding>,
}

impl Indexes {
    pub(crate) fn new(log: LogId, at_start: Arc<StarIndexes>) -> Indexes {
        Indexes {
            log,
            active: None,
            storing: Vec::new(),
            stored_early: BTreeMap::new(),
            sealed: StarIndexes::new(),
            // A copy of the references, since each core lets go of segments by itself.
            at_start: (*at_start).clone(),
            adopted: BTreeMap::new(),
        }
    }

    /// A new segment begins; the one before it is on its way to be stored. Its index's bytes.
    pub(crate) fn roll(
        &mut self,
        file: SegmentFile,
        id: SegmentId,
        end: Option<&LogEnd>,
    ) -> Option<(SegmentFile, bytes::Bytes)> {
        let old = self.active.replace(ActiveIndex::new(file, id))?;
        let end = end.expect("a segment with an index has an end");
        if end.segment != Some(old.id()) {
            // It never got a group: its successor seals the segment before it.
            return None;
        }
        let bytes = old.seal(end);
        let stored = (old.file(), bytes);
        self.storing.push(old);
        Some(stored)
    }

    /// The index of `file` is stored and mapped: what is sealed by that, as it is to be shared with
    /// the other cores.
    pub(crate) fn stored(
        &mut self,
        file: SegmentFile,
        mapped: Mapped,
    ) -> Result<Vec<Arc<SealedIndex>>, IndexDamage> {
        let stored = SealedIndex::open(file, mapped)?;
        self.stored_early.insert(file.number, Arc::new(stored));
        let mut sealed = Vec::new();
        while let Some(oldest) = self.storing.first()
            && let Some(index) = self.stored_early.remove(&oldest.file().number)
        {
            self.storing.remove(0);
            self.keep_sealed(Arc::clone(&index));
            sealed.push(index);
        }
        Ok(sealed)
    }

    pub(super) fn keep_sealed(&mut self, index: Arc<SealedIndex>) {
        let log = self.sealed.entry(index.file().log).or_default();
        let number = index.file().number;
        let at = log.partition_point(|known| known.file().number < number);
        log.insert(at, index);
    }

    /// A segment is rewritten: this is its index from now on.
    pub(crate) fn replace(&mut self, index: &Arc<SealedIndex>) {
        let file = index.file();
        for logs in [&mut self.at_start, &mut self.sealed] {
            let known = logs.get_mut(&file.log).into_iter().flatten();
            for known in known.filter(|known| known.file() == file) {
                *known = Arc::clone(index);
            }
        }
        self.adopted.retain(|(_, part_of), _| *part_of != file);
    }

    /// Whether this is the index of the generation that counts, of a segment that is still there.
    pub(crate) fn is_current(&self, index: &SealedIndex) -> bool {
        let logs = self.at_start.values().chain(self.sealed.values());
        logs.flatten().any(|known| known.id() == index.id())
    }

    /// The id of a segment that holds records of a stream, with the generation that counts.
    pub(crate) fn id_of(&self, stream: StreamId, file: SegmentFile) -> Option<SegmentId> {
        self.index_of(stream, file).map(|index| index.id())
    }

    /// A group of the active segment is durable.
    pub(crate) fn apply(&mut self, offset: u64, length: usize, entries: &[Entry]) {
        let active = self
            .active
            .as_mut()
            .expect("groups are written to the active segment");
        active.apply_group(offset, length, entries);
    }

    /// The index of the segment being written.
    pub(crate) fn active(&self) -> Option<&ActiveIndex> {
        self.active.as_ref()
    }

    /// Looks a stream up by name.
    pub(crate) fn find(&self, name: &StreamName) -> Result<Option<Found>, Refusal> {
        let mut best = self.find_in_memory(name);
        // What this start wrote is newer than all that the same log held before; the other logs may
        // hold a newer leadership, or an older one.
        let hash = NameHash::of(name);
        let mut restated: BTreeSet<LogId> = best.iter().map(|_| self.log).collect();
        let (this_start, earlier) = (self.sealed.iter(), self.at_start.iter());
        for (log, indexes) in this_start.chain(earlier) {
            if restated.contains(log) {
                continue;
            }
            let Some(found) = find_newest(indexes.iter(), name, hash)? else {
                continue;
            };
            restated.insert(*log);
            let is_newer = |best: &Found| best.state.epoch < found.state.epoch;
            if best.as_ref().is_none_or(is_newer) {
                best = Some(found);
            }
        }
        Ok(best)
    }

    fn find_in_memory(&self, name: &StreamName) -> Option<Found> {
        self.in_memory().find_map(|index| {
            let state = index.find_name(name)?;
            let held = index.has_records(state.id).then_some(index.file());
            Some(Found {
                records_in: held.or(state.previous),
                state: state.clone(),
                stated_in: index.file(),
            })
        })
    }

    /// Newest first.
    pub(super) fn in_memory(&self) -> impl Iterator<Item = &ActiveIndex> {
        self.active.iter().chain(self.storing.iter().rev())
    }

    /// Where the records of a stream from `next` on lie: in the newest segment that begins with
    /// `next` or before it. `newest` is the newest segment that holds any.
    pub(crate) fn locate(
        &self,
        stream: StreamId,
        newest: SegmentFile,
        next: SequenceNumber,
    ) -> Result<Located, Refusal> {
        let mut at = Some(newest);
        let mut behind = None;
        while let Some(file) = at {
            match self.look_in(file, stream, next) {
                Ok(Looked::Here(place)) => {
                    let place = Some(place);
                    return Ok(Located { place, behind });
                }
                Ok(Looked::Before { first, previous }) => {
                    behind = first.or(behind);
                    at = previous;
                }
                Err(refusal) => return self.locate_around(stream, next, refusal),
            }
        }
        let place = None;
        Ok(Located { place, behind })
    }

    /// The chain of segments is broken: every index that can be read is asked. What none of them
    /// has is refused with its range, as far as something is known behind it.
    fn locate_around(
        &self,
        stream: StreamId,
        next: SequenceNumber,
        refusal: Refusal,
    ) -> Result<Located, Refusal> {
        let files = self.in_memory().map(ActiveIndex::file);
        let sealed = self.at_start.values().chain(self.sealed.values()).flatten();
        let mut place: Option<(SequenceNumber, SegmentFile)> = None;
        let mut behind: Option<SequenceNumber> = None;
        for file in files.chain(sealed.map(|index| index.file())) {
            let index = self
                .index_of(stream, file)
                .expect("a file of a known index");
            let Ok(Some(first)) = index.first_sequence(stream) else {
                continue;
            };
            if first > next {
                behind = Some(behind.map_or(first, |known| known.min(first)));
            } else if place.is_none_or(|(known, _)| known < first) {
                place = Some((first, file));
            }
        }
        let found = place.map(|(_, file)| self.look_in(file, stream, next));
        match found {
            Some(Ok(Looked::Here(place))) => {
                let place = Some(place);
                Ok(Located { place, behind })
            }
            _ => Err(up_to(refusal, next, behind)),
        }
    }

    fn look_in(
        &self,
        file: SegmentFile,
        stream: StreamId,
        next: SequenceNumber,
    ) -> Result<Looked, Refusal> {
        let index = self
            .index_of(stream, file)
            .ok_or_else(|| missing_index(file))?;
        let unreadable = |damage| damaged(file, &damage);
        let first = index.first_sequence(stream).map_err(unreadable)?;
        if first.is_some_and(|first| first <= next) {
            let runs = index.runs_from(stream, next).map_err(unreadable)?;
            let id = index.id();
            return Ok(Looked::Here(Place { file, id, runs }));
        }
        let previous = index.previous(stream).map_err(unreadable)?;
        Ok(Looked::Before { first, previous })
    }

    /// The sequence number of a record from which on a search for `time` finds the first record
    /// whose timestamp is `time` or later, at most one run before it; none if there is no such
    /// record. Segments before the one with the record `trimmed` may be gone.
    pub(crate) fn locate_time(
        &self,
        stream: StreamId,
        newest: SegmentFile,
        time: Timestamp,
        trimmed: SequenceNumber,
    ) -> Result<Option<SequenceNumber>, Refusal> {
        let mut at = Some(newest);
        let mut candidate = None;
        while let Some(file) = at {
            let index = self
                .index_of(stream, file)
                .ok_or_else(|| missing_index(file))?;
            let run = index
                .run_at_time(stream, time)
                .map_err(|e| damaged(file, &e))?;
            let Some(run) = run else { break };
            candidate = Some(run.first.sequence);
            let first = index.first_sequence(stream);
            let first = first.map_err(|e| damaged(file, &e))?;
            if run.first.timestamp < time || first.is_some_and(|first| first <= trimmed) {
                break;
            }
            at = index.previous(stream).map_err(|e| damaged(file, &e))?;
        }
        Ok(candidate)
    }

    pub(super) fn index_of(&self, stream: StreamId, file: SegmentFile) -> Option<IndexRef<'_>> {
        match self.adopted.get(&(stream, file)) {
            Some(Holding::Part(index)) => return Some(IndexRef::Active(index)),
            Some(Holding::Sealed(index)) => return Some(IndexRef::Sealed(index)),
            None => {}
        }
        if let Some(index) = self.in_memory().find(|index| index.file() == file) {
            return Some(IndexRef::Active(index));
        }
        let by_number = |indexes: &[Arc<SealedIndex>]| {
            indexes
                .binary_search_by_key(&file.number, |index| index.file().number)
                .ok()
        };
        let logs = [self.sealed.get(&file.log), self.at_start.get(&file.log)];
        let found = logs.into_iter().flatten().find_map(|indexes| {
            let at = by_number(indexes)?;
            Some(&indexes[at])
        });
        found.map(|index| IndexRef::Sealed(index))
    }

    /// The segments of this log and the bytes of their groups, but for those of the one that is
    /// being written.
    pub(crate) fn log_extent(&self) -> (u64, u64) {
        let logs = [self.sealed.get(&self.log), self.at_start.get(&self.log)];
        let ends = logs.into_iter().flatten().flatten();
        let (mut segments, mut bytes) = (self.in_memory().count() as u64, 0);
        for index in ends {
            segments += 1;
            bytes += index.end().length;
        }
        (segments, bytes)
    }

    /// The newest statement of each stream of `bucket` in key order, deleted ones too, for keys
    /// that begin with `prefix` and come after `start_after`; at most `limit` keys.
    pub(crate) fn list(
        &self,
        bucket: &BucketName,
        prefix: &str,
        start_after: &str,
        limit: usize,
    ) -> Result<Listing, Refusal> {
        let mut merge = Merge::default();
        for index in self.in_memory() {
            let states = index.names_after(bucket, prefix, start_after);
            merge.add(states.cloned().map(Ok))?;
        }
        let logs = self.sealed.values().chain(self.at_start.values());
        for index in logs.flat_map(|log| log.iter().rev()) {
            let file = index.file();
            let unreadable = move |damage| damaged(file, &damage);
            let states = index.names_after(bucket, prefix, start_after);
            let states = states.map_err(unreadable)?;
            merge.add(states.map(move |state| state.map_err(unreadable)))?;
        }
        merge.take(limit)
    }
}

/// What one segment's index says of a record.
enum Looked {
    /// It lies in this segment, or was lost from it.
    Here(Place),
    /// It lies before what this segment holds of its stream.
    Before {
        first: Option<SequenceNumber>,
        previous: Option<SegmentFile>,
    },
}

/// A refusal with its range: from the record looked for up to what is known behind.
fn up_to(refusal: Refusal, from: SequenceNumber, behind: Option<SequenceNumber>) -> Refusal {
    match behind {
        Some(to) => refusal.with(Facts::Range { from, to }),
        None => refusal,
    }
}

/// What a look-up for a record found.
pub(crate) struct Located {
    /// Where it lies; none if no segment holds it.
    pub(crate) place: Option<Place>,
    /// The stream's first record in the segment that goes on behind that place, if there is one.
    pub(crate) behind: Option<SequenceNumber>,
}

impl Located {
    /// The first record behind `next` that does not lie in the same run as `next` does, if any.
    pub(crate) fn goes_on_at(&self, next: SequenceNumber) -> Option<SequenceNumber> {
        let runs = self.place.iter().flat_map(|place| &place.runs);
        let mut firsts = runs.map(|run| run.first.sequence);
        firsts.find(|first| *first > next).or(self.behind)
    }
}

/// A place to read from: a segment and its runs that hold what was asked for, ascending.
pub(crate) struct Place {
    pub(crate) file: SegmentFile,
    pub(crate) id: SegmentId,
    pub(crate) runs: Vec<Run>,
}

pub(super) enum IndexRef<'a> {
    Active(&'a ActiveIndex),
    Sealed(&'a SealedIndex),
}

/// Runs handed out by one look-up; a reader comes back for more.
const RUNS_MAX: usize = 64;

impl IndexRef<'_> {
    fn id(&self) -> SegmentId {
        match self {
            IndexRef::Active(index) => index.id(),
            IndexRef::Sealed(index) => index.id(),
        }
    }

    fn first_sequence(&self, stream: StreamId) -> Result<Option<SequenceNumber>, IndexDamage> {
        match self {
            IndexRef::Active(index) => Ok(index.first_sequence(stream)),
            IndexRef::Sealed(index) => index.first_sequence(stream),
        }
    }

    pub(super) fn previous(&self, stream: StreamId) -> Result<Option<SegmentFile>, IndexDamage> {
        match self {
            IndexRef::Active(index) => Ok(index.stream(stream).and_then(|state| state.previous)),
            IndexRef::Sealed(index) => Ok(index.stream(stream)?.and_then(|state| state.previous)),
        }
    }

    fn runs_from(&self, stream: StreamId, next: SequenceNumber) -> Result<Vec<Run>, IndexDamage> {
        match self {
            IndexRef::Active(index) => Ok(index.runs_from(stream, next).take(RUNS_MAX).collect()),
            IndexRef::Sealed(index) => index.runs_from(stream, next)?.take(RUNS_MAX).collect(),
        }
    }

    fn run_at_time(&self, stream: StreamId, time: Timestamp) -> Result<Option<Run>, IndexDamage> {
        match self {
            IndexRef::Active(index) => Ok(index.run_at_time(stream, time)),
            IndexRef::Sealed(index) => index.run_at_time(stream, time),
        }
    }
}

fn find_newest<'a>(
    indexes: impl DoubleEndedIterator<Item = &'a Arc<SealedIndex>>,
    name: &StreamName,
    hash: NameHash,
) -> Result<Option<Found>, Refusal> {
    for index in indexes.rev() {
        let state = index
            .find_name(name, hash)
            .map_err(|e| damaged(index.file(), &e))?;
        if let Some(state) = state {
            let held = index
                .has_records(state.id)
                .map_err(|e| damaged(index.file(), &e))?;
            let records_in = if held {
                Some(index.file())
            } else {
                state.previous
            };
            let stated_in = index.file();
            return Ok(Some(Found {
                state,
                records_in,
                stated_in,
            }));
        }
    }
    Ok(None)
}

fn damaged(file: SegmentFile, damage: &IndexDamage) -> Refusal {
    let message = format!(
        "the index of {file} is damaged ({damage}); stop the star and remove that .idx file: it is \
         rebuilt from the segment at the next start"
    );
    Refusal::new(Code::Corrupt, message)
}

fn missing_index(file: SegmentFile) -> Refusal {
    Refusal::new(
        Code::Corrupt,
        format!("{file} is named by a newer segment and is not there"),
    )
}
