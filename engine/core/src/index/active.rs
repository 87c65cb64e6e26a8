//! The index of the segment that is being written.
//!
//! It is told of each group once the group is durable, and follows the streams with
//! [`StreamState::apply`]. Recovery feeds it the groups of a segment that it reads again; those
//! come from a disk, so there an entry that does not fit is an error and not a panic.
//!
//! # Invariants
//! - Of several incarnations under one name, the name leads to the one led last, unless that one
//!   is deleted and the other is not.
//!
//! # Not here
//! - Groups that are not durable yet: `commit`.

use super::{DamagedSpan, Expiry, Run, archive};
use crate::disk::SegmentFile;
use crate::entry::{BatchEntry, Entry};
use crate::released::Released;
use crate::segment::{LogEnd, batch_entry_bytes};
use crate::state::StreamState;
use bytes::Bytes;
use nova_model::limits::{INDEX_GAP_BYTES, INDEX_RUN_BYTES, READ_CHUNK_BYTES, SEGMENT_BYTES_MAX};
use nova_model::position::SequenceNumber;
use nova_model::request::BucketInfo;
use nova_model::{BucketName, LogId, SegmentId, StreamId, StreamName, Timestamp};
use std::collections::BTreeMap;
use std::ops::Bound;

/// Why an entry read from disk does not fit what came before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Misfit {
    /// No earlier entry of the segment gives the stream's state.
    #[error("stream {0} was not introduced in this segment")]
    Unknown(StreamId),
    /// A batch, or a new leadership, that does not begin at the tail.
    #[error("stream {stream} goes on at {found}, its tail is {tail}")]
    Tail {
        /// The stream.
        stream: StreamId,
        /// Its tail as far as known.
        tail: SequenceNumber,
        /// What the entry says.
        found: SequenceNumber,
    },
    /// A trim point behind the tail.
    #[error("stream {0} is trimmed past its tail")]
    Trim(StreamId),
}

/// One stream of the segment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ActiveStream {
    pub(super) state: StreamState,
    pub(super) runs: Vec<Run>,
    /// Bytes of the stream itself in its last run.
    run_bytes: u64,
    /// The latest arrival in its last run; before the first run, that of its last record, if any.
    latest: Timestamp,
}

/// The index of the segment being written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ActiveIndex {
    file: SegmentFile,
    id: SegmentId,
    streams: BTreeMap<StreamId, ActiveStream>,
    names: BTreeMap<BucketName, BTreeMap<String, StreamId>>,
    buckets: BTreeMap<BucketName, BucketInfo>,
    released: BTreeMap<LogId, Released>,
    damaged: Vec<DamagedSpan>,
    batch_bytes: u64,
}

/// Where a group lies.
#[derive(Clone, Copy)]
struct Place {
    offset: u64,
    length: usize,
}

impl ActiveIndex {
    /// The index of a segment without groups.
    pub fn new(file: SegmentFile, id: SegmentId) -> ActiveIndex {
        ActiveIndex {
            file,
            id,
            streams: BTreeMap::new(),
            names: BTreeMap::new(),
            buckets: BTreeMap::new(),
            released: BTreeMap::new(),
            damaged: Vec::new(),
            batch_bytes: 0,
        }
    }

    /// The part that tells of one stream.
    pub(crate) fn only(&self, id: StreamId) -> ActiveIndex {
        let mut part = ActiveIndex::new(self.file, self.id);
        if let Some(stream) = self.streams.get(&id) {
            part.streams.insert(id, stream.clone());
        }
        part
    }

    /// The segment's file.
    pub fn file(&self) -> SegmentFile {
        self.file
    }

    /// The segment.
    pub fn id(&self) -> SegmentId {
        self.id
    }

    /// A group is durable: it begins at `offset`, takes `length` bytes with its padding and holds
    /// `entries`.
    ///
    /// # Panics
    /// If an entry does not fit what came before: the shard made these entries.
    pub fn apply_group(&mut self, offset: u64, length: usize, entries: &[Entry]) {
        if let Err(misfit) = self.try_apply_group(offset, length, entries) {
            panic!("a durable group does not fit: {misfit}");
        }
    }

    /// The same for a group that was read: stops at the first entry that does not fit.
    pub(crate) fn try_apply_group(
        &mut self,
        offset: u64,
        length: usize,
        entries: &[Entry],
    ) -> Result<(), Misfit> {
        assert!(
            offset + length as u64 <= SEGMENT_BYTES_MAX,
            "a group behind the end of any segment"
        );
        let place = Place { offset, length };
        entries
            .iter()
            .try_for_each(|entry| self.apply(place, entry))
    }

    /// The same for a group behind damage: what the damage took is left out. A batch that does not
    /// begin at the tail moves it, and the stream gets a run over the damage. A stream whose
    /// introduction is lost comes from `earlier`. Returns the streams that are found nowhere.
    pub(crate) fn apply_group_behind_damage(
        &mut self,
        offset: u64,
        length: usize,
        entries: &[Entry],
        mut earlier: impl FnMut(StreamId) -> Option<StreamState>,
    ) -> Vec<StreamId> {
        let place = Place { offset, length };
        let mut lost = Vec::new();
        for entry in entries {
            let known = entry.stream().filter(|id| !self.streams.contains_key(id));
            if let (Some(id), false) = (known, matches!(entry, Entry::Led(_))) {
                match earlier(id) {
                    Some(state) => self.introduce(&state),
                    None => {
                        lost.push(id);
                        continue;
                    }
                }
            }
            if let Err(Misfit::Tail { stream, found, .. }) = self.misfit(entry) {
                self.move_tail(stream, found);
            }
            if self.misfit(entry).is_ok() {
                self.apply_fitting(place, entry);
            }
        }
        lost
    }

    /// Notes damage. It may have held records of `streams`, whose states before it are given, up to
    /// a sequence number each.
    pub(crate) fn note_damage(
        &mut self,
        span: DamagedSpan,
        streams: impl IntoIterator<Item = (StreamState, SequenceNumber)>,
    ) {
        self.damaged.push(span);
        for (state, end) in streams {
            if end <= state.tail.sequence {
                continue;
            }
            if self.stream(state.id).is_none() {
                self.introduce(&state);
            }
            self.move_tail(state.id, end);
        }
    }

    /// State of a stream.
    pub fn stream(&self, id: StreamId) -> Option<&StreamState> {
        self.streams.get(&id).map(|stream| &stream.state)
    }

    /// How many streams this segment introduces.
    pub fn stream_count(&self) -> usize {
        self.streams.len()
    }

    /// The streams that this segment introduces, ascending.
    pub fn stream_ids(&self) -> impl Iterator<Item = StreamId> + '_ {
        self.streams.keys().copied()
    }

    /// State of the stream of that name, also if it is deleted.
    pub fn find_name(&self, name: &StreamName) -> Option<&StreamState> {
        let id = self.names.get(&name.bucket)?.get(name.key.as_str())?;
        self.stream(*id)
    }

    /// Names of the streams that this segment introduces.
    pub(crate) fn names(&self) -> impl Iterator<Item = &StreamName> {
        self.streams.values().map(|stream| &stream.state.name)
    }

    /// Whether the segment holds records of the stream.
    pub fn has_records(&self, id: StreamId) -> bool {
        !self.runs(id).is_empty()
    }

    /// First record of the stream that the segment holds.
    pub fn first_sequence(&self, id: StreamId) -> Option<SequenceNumber> {
        self.runs(id).first().map(|run| run.first.sequence)
    }

    /// The runs in which to look for the record and all later ones, in order.
    pub fn runs_from(
        &self,
        id: StreamId,
        sequence: SequenceNumber,
    ) -> impl Iterator<Item = Run> + '_ {
        let runs = self.runs(id);
        let behind = runs.partition_point(|run| run.first.sequence <= sequence);
        runs[behind.saturating_sub(1)..].iter().copied()
    }

    /// The run in which to begin looking for the first record at or after a time; none if all
    /// records are before it.
    pub fn run_at_time(&self, id: StreamId, time: Timestamp) -> Option<Run> {
        let stream = self.streams.get(&id)?;
        if stream.state.tail.timestamp < time {
            return None;
        }
        let before = stream
            .runs
            .partition_point(|run| run.first.timestamp < time);
        stream.runs.get(before.saturating_sub(1)).copied()
    }

    /// The first record that stays when what has expired goes; none if nothing here has.
    pub(crate) fn first_kept(&self, id: StreamId, expiry: &Expiry) -> Option<SequenceNumber> {
        expiry.first_kept(self.runs(id))
    }

    /// The state of the first stream behind `after` in the order of ids, or of the very first.
    pub(crate) fn stream_behind(&self, after: Option<StreamId>) -> Option<&StreamState> {
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let mut behind = self.streams.range((from, Bound::Unbounded));
        behind.next().map(|(_, stream)| &stream.state)
    }

    /// Whether no group was applied yet that names anything.
    pub fn is_empty(&self) -> bool {
        self.streams.is_empty() && self.buckets.is_empty() && self.released.is_empty()
    }

    /// States of a bucket's streams whose keys begin with `prefix` and are greater than
    /// `start_after`, in the order of their keys; deleted ones too.
    pub fn names_after<'a>(
        &'a self,
        bucket: &BucketName,
        prefix: &'a str,
        start_after: &str,
    ) -> impl Iterator<Item = &'a StreamState> {
        let from = if start_after < prefix {
            Bound::Included(prefix)
        } else {
            Bound::Excluded(start_after)
        };
        let names = self.names.get(bucket);
        let keys = names.map(|names| names.range::<str, _>((from, Bound::Unbounded)));
        let keys = keys.into_iter().flatten();
        keys.take_while(move |(key, _)| key.starts_with(prefix))
            .filter_map(|(_, id)| self.stream(*id))
    }

    /// The buckets as this segment leaves them; empty outside the buckets' home log.
    pub fn buckets(&self) -> &BTreeMap<BucketName, BucketInfo> {
        &self.buckets
    }

    /// Released segments of each log, as this segment states them.
    pub fn released(&self) -> &BTreeMap<LogId, Released> {
        &self.released
    }

    /// Damage that was accepted.
    pub fn damaged(&self) -> &[DamagedSpan] {
        &self.damaged
    }

    /// Bytes of the batches, as they lie in groups.
    pub(crate) fn batch_bytes(&self) -> u64 {
        self.batch_bytes
    }

    /// The bytes of the sealed index of a segment that ends at `end`.
    ///
    /// # Panics
    /// If `end` is that of another segment.
    pub fn seal(&self, end: &LogEnd) -> Bytes {
        self.seal_rewritten(end, end.length)
    }

    /// The same for a segment that was rewritten: it stands for what ended at `end`, and `length`
    /// bytes of it count now.
    ///
    /// # Panics
    /// If `end` is that of another segment.
    pub(crate) fn seal_rewritten(&self, end: &LogEnd, length: u64) -> Bytes {
        let original = Some(self.id.original());
        assert_eq!(end.segment, original, "the end of another segment");
        archive::encode(self, end, length)
    }

    pub(super) fn all_streams(&self) -> impl Iterator<Item = (&StreamId, &ActiveStream)> {
        self.streams.iter()
    }

    pub(super) fn all_names(&self) -> impl Iterator<Item = StreamId> + '_ {
        self.names.values().flat_map(|keys| keys.values().copied())
    }

    fn runs(&self, id: StreamId) -> &[Run] {
        self.streams.get(&id).map_or(&[], |stream| &stream.runs)
    }

    fn apply(&mut self, place: Place, entry: &Entry) -> Result<(), Misfit> {
        self.misfit(entry)?;
        self.apply_fitting(place, entry);
        Ok(())
    }

    fn misfit(&self, entry: &Entry) -> Result<(), Misfit> {
        let Some(id) = entry.stream() else {
            return Ok(());
        };
        let state = match (self.stream(id), entry) {
            (Some(state), _) => state,
            (None, Entry::Led(_)) => return Ok(()),
            (None, _) => return Err(Misfit::Unknown(id)),
        };
        let begins = match entry {
            Entry::Batch(batch) => batch.stored.first,
            // Without records here, it may have been led elsewhere since the statement before.
            Entry::Led(led) if self.has_records(id) => led.tail.sequence,
            _ => state.tail.sequence,
        };
        if begins != state.tail.sequence {
            return Err(Misfit::Tail {
                stream: id,
                tail: state.tail.sequence,
                found: begins,
            });
        }
        match entry {
            Entry::Trim { first, .. } if *first > state.tail.sequence => Err(Misfit::Trim(id)),
            _ => Ok(()),
        }
    }

    fn apply_fitting(&mut self, place: Place, entry: &Entry) {
        match entry {
            Entry::Led(state) => self.introduce(state),
            Entry::BucketPut(info) => {
                self.buckets.insert(info.name.clone(), info.clone());
            }
            Entry::BucketDeleted(name) => {
                self.buckets.remove(name);
            }
            Entry::Released { log, numbers } => {
                self.released.entry(*log).or_default().add_all(numbers);
            }
            Entry::Batch(_)
            | Entry::Fence { .. }
            | Entry::Trim { .. }
            | Entry::Settings { .. }
            | Entry::Deleted { .. } => {
                let id = entry.stream().expect("each of these belongs to a stream");
                let stream = self.streams.get_mut(&id).expect("it fits, so it is known");
                if let Entry::Batch(batch) = entry {
                    self.batch_bytes += stream.add_to_runs(place, batch);
                }
                stream.state.apply(entry);
            }
        }
    }

    fn introduce(&mut self, state: &StreamState) {
        let keys = self.names.entry(state.name.bucket.clone()).or_default();
        let known = keys.get(state.name.key.as_str()).copied();
        let known_lives = known
            .filter(|id| *id != state.id)
            .and_then(|id| self.streams.get(&id))
            .is_some_and(|stream| !stream.state.deleted);
        if !(state.deleted && known_lives) {
            keys.insert(state.name.key.as_str().to_owned(), state.id);
        }
        match self.streams.get_mut(&state.id) {
            Some(stream) => stream.state = state.clone(),
            None => {
                let latest = match state.tail.sequence {
                    SequenceNumber(0) => Timestamp(0),
                    _ => state.arrived,
                };
                let stream = ActiveStream {
                    state: state.clone(),
                    runs: Vec::new(),
                    run_bytes: 0,
                    latest,
                };
                self.streams.insert(state.id, stream);
            }
        }
    }

    /// Moves the tail of a stream over the damage noted last, and lays a run over it.
    fn move_tail(&mut self, id: StreamId, to: SequenceNumber) {
        let (Some(span), Some(stream)) = (self.damaged.last(), self.streams.get_mut(&id)) else {
            return;
        };
        let run = Run {
            first: stream.state.tail,
            arrival: stream.state.arrived,
            before: stream.state.bytes,
            offset: span.offset,
            length: span.length,
        };
        if stream.runs.last() != Some(&run) && to >= stream.state.tail.sequence {
            stream.runs.push(run);
            stream.run_bytes = INDEX_RUN_BYTES;
        }
        stream.state.tail.sequence = to;
        stream.state.trimmed = stream.state.trimmed.min(to);
    }
}

impl ActiveStream {
    /// Notes where a batch lies; how many bytes it takes. A run ends where the star's clock was set
    /// back, and the next one says how late it had been: so nothing within a run arrived later than
    /// the next run says.
    fn add_to_runs(&mut self, place: Place, batch: &BatchEntry) -> u64 {
        let bytes = batch_entry_bytes(&batch.stored.batch) as u64;
        let end = place.offset + place.length as u64;
        let arrival = batch.stored.stamping.arrival;
        if let Some(last) = self.runs.last_mut() {
            let same_group = last.end() == end;
            let gap = place.offset.saturating_sub(last.end());
            let near = arrival >= self.latest
                && gap <= INDEX_GAP_BYTES
                && self.run_bytes < INDEX_RUN_BYTES
                && end - u64::from(last.offset) <= READ_CHUNK_BYTES as u64;
            if same_group || near {
                last.length = (end - u64::from(last.offset)) as u32;
                self.run_bytes += bytes;
                self.latest = self.latest.max(arrival);
                return bytes;
            }
        }
        self.runs.push(Run {
            first: batch.start(),
            arrival: arrival.max(self.latest),
            before: self.state.bytes,
            offset: place.offset as u32,
            length: place.length as u32,
        });
        self.run_bytes = bytes;
        self.latest = arrival;
        bytes
    }
}

impl Misfit {
    /// The stream.
    pub fn stream(&self) -> StreamId {
        match self {
            Misfit::Unknown(stream) | Misfit::Tail { stream, .. } | Misfit::Trim(stream) => *stream,
        }
    }
}
