//! The streams that are led or read at the moment, in memory.
//!
//! Each has its state twice: `assigned`, with all admitted entries applied, by which appends are
//! judged; and `durable`, which readers and statements in the log go by.
//!
//! # Invariants
//! - `assigned` and `durable` are the same when no entry of the stream is pending.
//! - A stream with sessions, readers or pending entries is not let go.

use crate::commit::gate::Ticket;
use crate::disk::SegmentFile;
use crate::event::{ReaderKey, SessionKey};
use crate::load::Load;
use crate::state::StreamState;
use nova_model::ids::StreamId;
use nova_model::names::StreamName;
use nova_model::position::Watermarks;
use nova_model::settings::{EffectiveSettings, StreamSettings};
use nova_model::{Instant, SequenceNumber, StoredBatch};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Bound;

/// A stream in memory.
pub(crate) struct Stream {
    /// With all admitted entries applied.
    pub(crate) assigned: StreamState,
    /// With all durable entries applied.
    pub(crate) durable: StreamState,
    /// How far it has come.
    pub(crate) marks: Watermarks,
    /// Whether this shard took its leadership in this start.
    pub(crate) is_led: bool,
    /// The group that holds its creation, if that was in this start.
    pub(crate) created_in: Ticket,
    /// The last group that holds an entry of it.
    pub(crate) last_ticket: Ticket,
    /// The newest segment that holds durable records of it.
    pub(crate) records_in: Option<SegmentFile>,
    /// Open append sessions.
    pub(crate) sessions: BTreeSet<SessionKey>,
    /// Open readers.
    pub(crate) readers: BTreeSet<ReaderKey>,
    /// The readers among them that wait at the tail.
    pub(crate) followers: BTreeSet<ReaderKey>,
    /// Its newest durable batches that are still in memory, without a gap up to the tail.
    pub(crate) recent: VecDeque<StoredBatch>,
    /// When it may be let go.
    pub(crate) idle_deadline: Option<Instant>,
    /// How busy it is.
    pub(crate) load: Load,
}

impl Stream {
    /// A stream at rest, as an index has it.
    pub(crate) fn at_rest(state: StreamState, records_in: Option<SegmentFile>) -> Stream {
        Stream {
            marks: Watermarks::at_rest(state.trimmed, state.tail),
            durable: state.clone(),
            assigned: state,
            is_led: false,
            created_in: Ticket(0),
            last_ticket: Ticket(0),
            records_in,
            sessions: BTreeSet::new(),
            readers: BTreeSet::new(),
            followers: BTreeSet::new(),
            recent: VecDeque::new(),
            idle_deadline: None,
            load: Load::default(),
        }
    }

    /// The settings in force.
    pub(crate) fn settings(&self, bucket: &StreamSettings) -> EffectiveSettings {
        EffectiveSettings::resolve(&self.assigned.settings, bucket)
    }

    /// Whether nothing holds it in memory.
    pub(crate) fn is_idle(&self, durable: Ticket) -> bool {
        self.sessions.is_empty() && self.readers.is_empty() && self.last_ticket <= durable
    }

    /// First sequence number that the recent batches hold.
    pub(crate) fn recent_first(&self) -> Option<SequenceNumber> {
        self.recent.front().map(|batch| batch.first)
    }
}

/// The streams in memory, by id and by name.
#[derive(Default)]
pub(crate) struct Streams {
    by_id: BTreeMap<StreamId, Stream>,
    by_name: BTreeMap<StreamName, StreamId>,
    deadlines: BTreeSet<(Instant, StreamId)>,
}

impl Streams {
    pub(crate) fn get(&self, id: StreamId) -> Option<&Stream> {
        self.by_id.get(&id)
    }

    pub(crate) fn get_mut(&mut self, id: StreamId) -> Option<&mut Stream> {
        self.by_id.get_mut(&id)
    }

    /// The newest incarnation under a name that is in memory.
    pub(crate) fn find(&self, name: &StreamName) -> Option<StreamId> {
        self.by_name.get(name).copied()
    }

    /// Everything in memory, also deleted incarnations whose name another one has.
    pub(crate) fn ids(&self) -> Vec<StreamId> {
        self.by_id.keys().copied().collect()
    }

    /// Whether nothing holds any of them in memory.
    pub(crate) fn are_idle(&self, durable: Ticket) -> bool {
        self.by_id.values().all(|stream| stream.is_idle(durable))
    }

    /// Streams that a name leads to, in the order of names.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Stream> {
        self.by_name.values().filter_map(|id| self.by_id.get(id))
    }

    /// The first stream behind `after` in the order of ids, or the very first.
    pub(crate) fn behind(&self, after: Option<StreamId>) -> Option<&Stream> {
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let mut behind = self.by_id.range((from, Bound::Unbounded));
        behind.next().map(|(_, stream)| stream)
    }

    pub(crate) fn len(&self) -> usize {
        self.by_id.len()
    }

    pub(crate) fn insert(&mut self, stream: Stream) {
        let id = stream.assigned.id;
        self.by_name.insert(stream.assigned.name.clone(), id);
        let replaced = self.by_id.insert(id, stream);
        assert!(replaced.is_none(), "a stream is loaded once");
    }

    /// A segment is gone: no stream has its newest records there any more.
    pub(crate) fn forget_segment(&mut self, file: SegmentFile, goes: impl Fn(StreamId) -> bool) {
        for (id, stream) in &mut self.by_id {
            let records_in = &mut stream.records_in;
            records_in.take_if(|records_in| *records_in == file && goes(*id));
        }
    }

    /// Sets when the stream may be let go, or that it may not.
    pub(crate) fn set_deadline(&mut self, id: StreamId, deadline: Option<Instant>) {
        let Some(stream) = self.by_id.get_mut(&id) else {
            return;
        };
        if let Some(old) = std::mem::replace(&mut stream.idle_deadline, deadline) {
            self.deadlines.remove(&(old, id));
        }
        if let Some(at) = deadline {
            self.deadlines.insert((at, id));
        }
    }

    /// The earliest deadline.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.deadlines.first().map(|(at, _)| *at)
    }

    /// Takes a stream whose deadline has come.
    pub(crate) fn pop_due(&mut self, now: Instant) -> Option<StreamId> {
        let (at, id) = *self.deadlines.first()?;
        if at > now {
            return None;
        }
        self.set_deadline(id, None);
        Some(id)
    }

    /// Lets a stream go; its recent batches come back.
    pub(crate) fn remove(&mut self, id: StreamId) -> Option<Stream> {
        self.set_deadline(id, None);
        let stream = self.by_id.remove(&id)?;
        if self.by_name.get(&stream.assigned.name) == Some(&id) {
            self.by_name.remove(&stream.assigned.name);
        }
        Some(stream)
    }
}
