//! The shard: the streams of one core, as a state machine without IO.
//!
//! ```text
//!   commands (open, append, request, read)      facts (disk results, time, peers)
//!        \                                        /
//!         v                                      v
//!      admission -> sequencer -> commit -> gate -> events (poll_event)
//!                                  |
//!                                  v
//!                              disk operations (poll_disk)
//! ```
//! Four kinds of methods: getters; commands; `handle_*` for facts from outside; `poll_*` for what
//! is to be done. `now` is an argument, fresh ids too. The driver calls `poll_disk` and
//! `poll_event` until both are dry after it has fed what had come in.
//!
//! # Invariants
//! - No event that names a state of a stream leaves before that state is durable.
//! - No event leaves at all before the segment of this start is durable and the one before sealed.
//! - What readers get was durable.
//!
//! # Not here
//! - Bytes on the wire: `nova-proto`. Files: `nova-disk`. Recovery: [`crate::recovery`].

mod again;
mod append;
mod balance;
mod bucket;
mod drain;
mod durable;
mod fetch;
mod figures;
mod list;
mod moves;
mod open;
mod placement;
mod read;
mod recycle;
mod request;
mod retain;
mod rewrite;
mod session;
mod space;
mod stream;

use crate::catalog::buckets::Buckets;
use crate::catalog::indexes::{Indexes, StarIndexes};
use crate::catalog::streams::{Stream, Streams};
use crate::commit::gate::{Gate, Ticket};
use crate::commit::{LogWriter, Statements};
use crate::config::ShardConfig;
use crate::disk::{DiskOp, OpToken, SegmentFile};
use crate::entry::Entry;
use crate::event::{Event, ReaderKey, SessionKey};
use crate::load::Load;
use crate::reader::Reader;
use crate::reader::recent::Recent;
use crate::reader::shared::{Place, SharedReads};
use crate::released::Released;
use crate::segment::LogEnd;
use crate::state::StreamState;
use again::Again;
use balance::Questions;
use drain::Drain;
use durable::Held;
use moves::{Away, Move};
use nova_model::ids::{LogId, SegmentNumber, StreamId};
use nova_model::limits::PENDING_ANSWERS_MAX;
use nova_model::names::{BucketName, StreamName};
use nova_model::request::BucketInfo;
use nova_model::{Code, CoreId, Epoch, Facts, Generation, Instant, Now, Refusal};
use placement::Places;
use recycle::Recycling;
use retain::Retention;
use rewrite::Rewriting;
use session::Session;
use space::Space;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

/// What recovery found, as far as the shard needs it.
pub struct ShardStart {
    /// Where the core's log ends.
    pub end: LogEnd,
    /// The number of its next segment.
    pub next_number: SegmentNumber,
    /// The sealed indexes of all logs of the star.
    pub indexes: Arc<StarIndexes>,
    /// What was released of each log.
    pub released: BTreeMap<LogId, Released>,
    /// The buckets, as the home's log has them.
    pub buckets: BTreeMap<BucketName, BucketInfo>,
}

/// The streams of one core.
pub struct Shard {
    config: ShardConfig,
    log: LogWriter,
    indexes: Indexes,
    streams: Streams,
    buckets: Buckets,
    sessions: BTreeMap<SessionKey, Session>,
    readers: BTreeMap<ReaderKey, Reader>,
    /// Readers whose opening is put off, and whether they have a credit already.
    opening: BTreeMap<ReaderKey, bool>,
    hungry: BTreeSet<ReaderKey>,
    shared_reads: SharedReads,
    heartbeats: BTreeSet<(Instant, ReaderKey)>,
    /// The latest time that the shard was told.
    seen: Instant,
    recent: Recent,
    moving: BTreeMap<StreamId, Move>,
    /// Streams that were handed to this core, until its leadership is durable.
    arriving: BTreeSet<StreamId>,
    away: BTreeMap<StreamName, Away>,
    retention: Retention,
    recycling: Recycling,
    rewriting: Rewriting,
    space: Space,
    again: Again,
    places: Places,
    /// The drain or its end that core 0 has in hand.
    drain: Option<Drain>,
    questions: Questions,
    /// The load of streams that are not in memory any more.
    past_load: Load,
    gate: Gate<Held>,
    durable: Ticket,
    events: VecDeque<Event>,
    ops: VecDeque<(OpToken, DiskOp)>,
    owners: BTreeMap<OpToken, OpOwner>,
    last_token: OpToken,
    is_ready: bool,
    is_fatal: bool,
    is_stopping: bool,
}

/// Who asked for an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OpOwner {
    Log,
    Index(SegmentFile),
    Finish(SegmentFile),
    Read(Place),
    Space,
    Recycle(SegmentFile, Generation),
    LetGo {
        to: CoreId,
        file: SegmentFile,
        generation: Generation,
    },
    Rewrite,
}

impl Shard {
    /// A shard that goes on after what recovery found.
    pub fn new(config: ShardConfig, start: ShardStart) -> Shard {
        let log = LogWriter::new(&config, start.end, start.next_number);
        let mut indexes = Indexes::new(config.log(), start.indexes);
        let is_ready = match log.active_file() {
            Some((file, id)) => {
                indexes.roll(file, id, None);
                true
            }
            None => false,
        };
        Shard {
            recent: Recent::new(config.recent_bytes),
            log,
            indexes,
            streams: Streams::default(),
            buckets: Buckets::new(start.buckets),
            sessions: BTreeMap::new(),
            readers: BTreeMap::new(),
            opening: BTreeMap::new(),
            hungry: BTreeSet::new(),
            shared_reads: SharedReads::default(),
            heartbeats: BTreeSet::new(),
            seen: Instant::default(),
            moving: BTreeMap::new(),
            arriving: BTreeSet::new(),
            away: BTreeMap::new(),
            retention: Retention::default(),
            recycling: Recycling::new(start.released),
            rewriting: Rewriting::default(),
            space: Space::new(&config),
            again: Again::default(),
            places: Places::new(config.cores()),
            drain: None,
            questions: Questions::default(),
            past_load: Load::default(),
            gate: Gate::new(),
            durable: Ticket(0),
            events: VecDeque::new(),
            ops: VecDeque::new(),
            owners: BTreeMap::new(),
            last_token: OpToken(0),
            is_ready,
            is_fatal: false,
            is_stopping: false,
            config,
        }
    }

    /// Whether answers may leave yet.
    pub fn is_ready(&self) -> bool {
        self.is_ready
    }

    /// Whether the driver should hand more appends over: within the bounds of bytes and answers.
    pub fn accepts_appends(&self) -> bool {
        self.accepts_appends_beside(0)
    }

    /// The same beside `arriving` bytes that hold appends which have come in part. They count for
    /// half of the bound at most: the other half is not for peers that stall. So who waits for room
    /// waits for what is admitted, which comes to its end by itself.
    pub fn accepts_appends_beside(&self, arriving: usize) -> bool {
        let bound = self.config.ingress_bytes;
        self.log.pending_bytes() + arriving.min(bound / 2) < bound
            && self.gate.held() < PENDING_ANSWERS_MAX
    }

    /// Whether all that was admitted is durable and answered, and every event taken. A stop does
    /// not wait for space: what then has no place on the disk is never answered.
    pub fn is_settled(&self) -> bool {
        let is_answered = self.log.pending_bytes() == 0 && self.gate.held() == 0;
        let is_given_up = self.is_stopping && self.log.is_stuck();
        (is_answered || is_given_up) && self.events.is_empty()
    }

    /// Streams in memory.
    pub fn streams_loaded(&self) -> usize {
        self.streams.len()
    }

    /// Bytes admitted and not yet durable.
    pub fn pending_bytes(&self) -> usize {
        self.log.pending_bytes()
    }

    /// Bytes of recent batches kept for followers.
    pub fn recent_bytes(&self) -> usize {
        self.recent.bytes()
    }

    /// The next thing to do with storage.
    pub fn poll_disk(&mut self, now: Instant) -> Option<(OpToken, DiskOp)> {
        self.seen = now;
        if self.is_fatal {
            return None;
        }
        let token = OpToken(self.last_token.0 + 1);
        let statements = ShardStatements {
            config: &self.config,
            indexes: &self.indexes,
            streams: &self.streams,
            buckets: &self.buckets,
            recycling: &self.recycling,
        };
        let may_make = self.space.is_tight() || !self.is_forgetting_behind();
        if let Some(op) = self.log.poll(now, token, may_make, &statements) {
            self.last_token = token;
            self.owners.insert(token, OpOwner::Log);
            return Some((token, op));
        }
        self.serve_hungry_readers();
        self.ops.pop_front()
    }

    /// The next thing to pass on. Nothing leaves before the shard is ready.
    pub fn poll_event(&mut self) -> Option<Event> {
        if !self.is_ready && !self.is_fatal {
            return None;
        }
        self.serve_hungry_readers();
        self.events.pop_front()
    }

    /// When [`Shard::handle_timeout`] is due.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let heartbeat = self.heartbeats.first().map(|(at, _)| *at);
        let forgetting = self.retention.deadline().min(self.recycling.deadline());
        let forgetting = forgetting.min(self.space.deadline());
        let forgetting = forgetting.min(self.rewriting.deadline());
        let forgetting = self.is_ready.then_some(forgetting);
        let given_up = self.drain.as_ref().and_then(Drain::deadline);
        [
            self.log.deadline(),
            self.streams.deadline(),
            heartbeat,
            forgetting,
            given_up,
            self.questions.deadline(),
        ]
        .into_iter()
        .flatten()
        .min()
    }

    /// The star is to stop: nothing more is admitted, what was is answered, sessions and readers
    /// are told. [`Shard::is_settled`] says when that is done.
    pub fn stop(&mut self) {
        if !std::mem::replace(&mut self.is_stopping, true) {
            self.break_all();
        }
    }

    /// Time has passed.
    pub fn handle_timeout(&mut self, now: Now) {
        self.seen = now.instant;
        while let Some(id) = self.streams.pop_due(now.instant) {
            self.let_go(now.instant, id);
        }
        self.bound_index();
        self.send_heartbeats(now);
        self.retain(now);
        self.look_for_dead_segments(now);
        self.rewrite(now);
        self.look_at_space(now);
        self.give_up_stuck(now.instant);
    }

    fn ask(&mut self, owner: OpOwner, op: DiskOp) -> OpToken {
        let token = OpToken(self.last_token.0 + 1);
        self.last_token = token;
        self.owners.insert(token, owner);
        self.ops.push_back((token, op));
        token
    }

    /// Refuses what belongs to another core. A stream that this core leads is its own, wherever its
    /// home is.
    fn check_owner(&self, name: &StreamName) -> Result<(), Refusal> {
        self.check_open_star()?;
        match self.check_moves(name)? {
            Some(_led_here) => Ok(()),
            None => self.check_place(name),
        }
    }

    fn check_home(&self, home: CoreId) -> Result<(), Refusal> {
        if home == self.config.core {
            return Ok(());
        }
        let address = self.config.addresses[usize::from(home.0)].clone();
        let message = format!("{home} at {address} has it");
        let facts = Facts::Holder {
            address: Some(address),
            epoch: Epoch(0),
        };
        Err(Refusal::new(Code::NotOwner, message).with(facts))
    }

    /// Adds an entry of a stream to the log and applies it to the stream's assigned state.
    fn commit(&mut self, id: StreamId, entry: Entry) -> Ticket {
        let ticket = self.log.push(entry.clone());
        let stream = self
            .streams
            .get_mut(id)
            .expect("an entry belongs to a stream in memory");
        stream.assigned.apply(&entry);
        stream.last_ticket = ticket;
        ticket
    }
}

/// The shard's view for the log when it assembles a group.
struct ShardStatements<'a> {
    config: &'a ShardConfig,
    indexes: &'a Indexes,
    streams: &'a Streams,
    buckets: &'a Buckets,
    recycling: &'a Recycling,
}

impl Statements for ShardStatements<'_> {
    fn unstated(&self, stream: StreamId, segment: SegmentFile) -> Option<StreamState> {
        let active = self
            .indexes
            .active()
            .expect("a group goes to an active segment");
        assert_eq!(
            active.file(),
            segment,
            "the active index is that of the segment"
        );
        if active.stream(stream).is_some() {
            return None;
        }
        let mut state = self.stream(stream).durable.clone();
        self.config.planted.spoil_statement(&mut state);
        Some(state)
    }

    fn previous(&self, statement: &StreamState, segment: SegmentFile) -> Option<SegmentFile> {
        let id = statement.id;
        let stated = self.indexes.active().filter(|index| index.has_records(id));
        if let Some(state) = stated.and_then(|index| index.stream(id)) {
            return state.previous;
        }
        match self.streams.get(id) {
            Some(stream) => stream.records_in.filter(|file| *file != segment),
            // Stated anew on behalf of one at rest.
            None => statement.previous,
        }
    }

    fn preamble(&self, segment: SegmentFile) -> Vec<Entry> {
        let active = self
            .indexes
            .active()
            .expect("a group goes to an active segment");
        assert_eq!(
            active.file(),
            segment,
            "the active index is that of the segment"
        );
        if !active.is_empty() {
            return Vec::new();
        }
        let mut preamble = self.recycling.preamble();
        if self.config.core == CoreId(0) {
            preamble.extend(self.buckets.preamble());
        }
        preamble
    }
}

impl ShardStatements<'_> {
    fn stream(&self, id: StreamId) -> &Stream {
        self.streams
            .get(id)
            .expect("a stream with pending entries is in memory")
    }
}
