//! A client that appends through the real producer core, with or without a writer id.
//!
//! # Invariants
//! - Each push is resolved once; the oracle is told with the tail that was told when its batch was
//!   sent last.

use super::Surroundings;
use super::kinds::record_of;
use super::pipe::Pipe;
use crate::bugs::ClientBug;
use crate::history::{Copies, Mark, RecordId};
use crate::network::LinkId;
use crate::node::core_of;
use crate::sessions::{Leader, Session, Taken};
use nova_client::core::{
    Action, AppendError, BatchNumber, Batcher, BatcherConfig, Producer, ProducerRules, Share,
    Target,
};
use nova_model::request::Ack;
use nova_model::{
    Code, Epoch, Facts, FencingToken, Record, Refusal, SequenceNumber, StreamId, StreamName,
    WriterId,
};
use nova_proto::client::{AppendEvent, AppendLane};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// What kind of producer it is.
#[derive(Debug, Clone)]
pub struct ProducerKind {
    /// Its stream.
    pub stream: StreamName,
    /// Whether it numbers its batches.
    pub has_writer: bool,
    /// Whether it presents a token, and takes over whichever is installed.
    pub has_token: bool,
    /// How many of 100 pushes are conditional.
    pub conditional: u64,
    /// How many pushes it makes.
    pub pushes: u64,
    /// The longest pause between two.
    pub pause_us_max: u64,
    /// How batches are cut.
    pub batching: BatcherConfig,
}

#[derive(Debug, Clone)]
struct Waiting {
    share: Share,
    records: Vec<RecordId>,
}

/// The client.
pub struct ProducerClient {
    kind: ProducerKind,
    producer: Producer,
    batcher: Batcher,
    pipe: Option<Pipe<AppendLane>>,
    asked: Mark,
    asked_floor: Option<(StreamId, u64)>,
    stream_id: Option<StreamId>,
    waiting: BTreeMap<BatchNumber, Vec<Waiting>>,
    /// For each batch the tail that was told when it was sent last, and when that was.
    floors: BTreeMap<BatchNumber, (u64, Mark)>,
    /// What was sent on the session and has no answer.
    unanswered: VecDeque<BatchNumber>,
    /// What never got an answer, by the loss of its session.
    in_doubt: BTreeSet<BatchNumber>,
    /// The session that is open.
    session: Option<Session>,
    asked_epoch: Epoch,
    /// Where the session was asked for.
    leader: Leader,
    last_acked: Option<(StreamId, SequenceNumber)>,
    /// The token that the next producer presents, and that of this one.
    token: Option<FencingToken>,
    presented: Option<FencingToken>,
    pushes_left: u64,
    next_push: u64,
    is_closing: bool,
}

impl ProducerClient {
    /// A client that begins now.
    pub fn new(around: &mut Surroundings<'_>, kind: ProducerKind) -> ProducerClient {
        let producer = producer(around, &kind, None);
        ProducerClient {
            producer,
            batcher: Batcher::new(kind.batching),
            pipe: None,
            asked: around.oracle.history.mark(),
            asked_floor: None,
            stream_id: None,
            waiting: BTreeMap::new(),
            floors: BTreeMap::new(),
            unanswered: VecDeque::new(),
            in_doubt: BTreeSet::new(),
            session: None,
            asked_epoch: Epoch(0),
            leader: Leader { life: 0, core: 0 },
            last_acked: None,
            token: None,
            presented: None,
            pushes_left: kind.pushes,
            next_push: around.agenda.now(),
            is_closing: false,
            kind,
        }
    }

    pub(super) fn is_done(&self) -> bool {
        let is_quiet = self.batcher.is_empty() && self.producer.is_quiet();
        is_quiet && self.pipe.is_none() && self.is_closing
    }

    pub(super) fn state(&self) -> String {
        format!("{:?} {:?}", self.kind, self.producer)
    }

    pub(super) fn lost(&mut self, around: &mut Surroundings<'_>, link: LinkId) {
        if self.pipe.as_ref().is_some_and(|pipe| pipe.link == link) {
            self.receive(around);
            if let Some(pipe) = self.pipe.take() {
                self.forget_session();
                pipe.leave(around);
                let at = around.moment();
                self.producer.handle_lost(at);
            }
        }
        self.step(around);
    }

    pub(super) fn step(&mut self, around: &mut Surroundings<'_>) {
        self.receive(around);
        let now = around.now();
        if self
            .producer
            .next_deadline(&self.batcher)
            .is_some_and(|at| at <= now)
        {
            let at = around.moment();
            self.producer.handle_tick(at);
        }
        self.push_some(around);
        self.act(around);
        if self.producer.broken().is_some() && self.producer.is_quiet() && self.batcher.is_empty() {
            self.begin_again(around);
        }
        self.close_when_quiet(around);
        if let Some(pipe) = &mut self.pipe {
            pipe.flush(around);
        }
        self.plan(around);
    }

    fn plan(&mut self, around: &mut Surroundings<'_>) {
        let now = around.now();
        if let Some(at) = self.producer.next_deadline(&self.batcher) {
            around.wake_after(at.since_us(now));
        }
        if self.pushes_left > 0 && !around.is_calm && self.next_push > now.0 {
            around.wake_after(self.next_push - now.0);
        }
    }

    /// A producer of a stream that is gone, or that gave up: its callers make a new one.
    fn begin_again(&mut self, around: &mut Surroundings<'_>) {
        around.say(|| "makes a new producer".to_owned());
        self.leave(around);
        self.presented = self.token.clone().filter(|_| self.kind.has_token);
        self.producer = producer(around, &self.kind, self.presented.clone());
        self.stream_id = None;
        self.last_acked = None;
    }

    fn close_when_quiet(&mut self, around: &mut Surroundings<'_>) {
        let is_over = around.is_calm || self.pushes_left == 0;
        if !is_over || !self.batcher.is_empty() || !self.producer.is_quiet() {
            return;
        }
        self.is_closing = true;
        let is_ended = self.pipe.as_ref().is_some_and(|pipe| pipe.is_ended);
        if is_ended && let Some(pipe) = self.pipe.take() {
            pipe.leave(around);
        }
        if let Some(pipe) = &mut self.pipe {
            pipe.lane.finish();
        }
    }

    fn push_some(&mut self, around: &mut Surroundings<'_>) {
        let now = around.now();
        while self.pushes_left > 0 && !around.is_calm && self.next_push <= now.0 {
            self.pushes_left -= 1;
            self.next_push = match around.rng.chance(30) {
                true => now.0,
                false => now.0 + around.rng.between(1, self.kind.pause_us_max),
            };
            if self.producer.broken().is_none() {
                self.push(around);
            }
        }
    }

    fn push(&mut self, around: &mut Surroundings<'_>) {
        let is_conditional = around.rng.chance(self.kind.conditional);
        let count = if around.rng.chance(25) {
            around.rng.between(2, 6)
        } else {
            1
        };
        let stream = self.kind.stream.clone();
        let ids: Vec<RecordId> = (0..count)
            .map(|_| around.oracle.history.send(&stream, Copies::One))
            .collect();
        let records: Vec<Record> = ids.iter().map(|id| record_of(around, *id)).collect();
        let expected = self
            .stream_id
            .map_or(0, |id| around.oracle.history.floor(id));
        let off = if around.rng.chance(15) {
            around.rng.below(3)
        } else {
            0
        };
        let matched = is_conditional.then_some(SequenceNumber(expected + off));
        let pushed = self.batcher.push_batch(around.now(), records, matched);
        match pushed {
            Ok(pushed) => {
                let waiting = Waiting {
                    share: pushed.share,
                    records: ids,
                };
                let all = self.waiting.entry(pushed.share.batch).or_default();
                all.push(waiting);
            }
            Err(_) => around.oracle.refused(&ids),
        }
    }

    fn receive(&mut self, around: &mut Surroundings<'_>) {
        if let Some(pipe) = &mut self.pipe {
            pipe.receive(around);
        }
        while let Some(pipe) = &mut self.pipe
            && let Some(event) = pipe.lane.poll_event()
        {
            let at = around.moment();
            around.say(|| format!("hears {event:?}"));
            match event {
                AppendEvent::Opened(opened) => {
                    let stream = &self.kind.stream;
                    around.oracle.alive(stream, opened.stream_id, self.asked);
                    let floor = match self.asked_floor {
                        Some((id, floor)) if id == opened.stream_id => floor,
                        _ => 0,
                    };
                    around.oracle.tail(opened.stream_id, opened.tail, floor);
                    around
                        .oracle
                        .led(opened.stream_id, opened.epoch, opened.tail);
                    let epoch = self.asked_floor.map_or(Epoch(0), |(id, _)| {
                        let is_known = id == opened.stream_id;
                        if is_known { self.asked_epoch } else { Epoch(0) }
                    });
                    self.session = Some(around.oracle.opened(
                        opened.stream_id,
                        opened.epoch,
                        self.leader,
                        epoch,
                        self.asked,
                    ));
                    if self.stream_id.is_none_or(|id| id == opened.stream_id) {
                        self.stream_id = Some(opened.stream_id);
                    }
                    self.producer.handle_opened(opened);
                }
                AppendEvent::OpenRefused(refusal) => {
                    self.hear(around, &refusal);
                    self.producer.handle_open_refused(at, refusal);
                }
                AppendEvent::Acked(ack) => {
                    self.unanswered.pop_front();
                    self.producer.handle_acked(at, ack);
                }
                AppendEvent::Rejected(refusal) => {
                    let answered = self.unanswered.pop_front();
                    self.in_doubt.extend(answered.filter(|_| !refusal.clean));
                    self.hear(around, &refusal);
                    self.producer.handle_rejected(at, refusal);
                }
                AppendEvent::Broken(refusal) => {
                    if refusal.clean {
                        self.unanswered.clear();
                    }
                    self.hear(around, &refusal);
                    self.leave(around);
                    self.producer.handle_broken(at, refusal);
                }
                AppendEvent::Ended => {
                    self.leave(around);
                    self.producer.handle_lost(at);
                }
            }
        }
    }

    fn leave(&mut self, around: &mut Surroundings<'_>) {
        self.forget_session();
        if let Some(pipe) = self.pipe.take() {
            pipe.leave(around);
        }
    }

    /// The session is lost: what has no answer may have been applied.
    fn forget_session(&mut self) {
        self.session = None;
        self.in_doubt.extend(self.unanswered.drain(..));
    }

    /// What a refusal says of the stream.
    fn hear(&mut self, around: &mut Surroundings<'_>, refusal: &Refusal) {
        if let Some(id) = self.stream_id {
            around.oracle.refusal(id, refusal, self.asked, 0);
        }
        if matches!(refusal.code, Code::StreamNotFound | Code::BucketNotFound) {
            let (stream, asked) = (self.kind.stream.clone(), self.asked);
            around.oracle.gone(&stream, asked);
        }
        if let (true, Facts::Token(token)) = (self.kind.has_token, &refusal.facts) {
            self.token = FencingToken::parse(token).ok();
        }
    }

    fn act(&mut self, around: &mut Surroundings<'_>) {
        loop {
            self.producer.pump(around.now(), &mut self.batcher);
            let mut has_acted = false;
            while let Some(action) = self.producer.poll_action() {
                has_acted = true;
                self.perform(around, action);
            }
            if !has_acted {
                return;
            }
        }
    }

    fn perform(&mut self, around: &mut Surroundings<'_>, action: Action) {
        match action {
            Action::Connect { target, open } => {
                self.leave(around);
                let core = match target {
                    Target::Star => around.rng.below(u64::from(around.cores.max(1))) as u16,
                    Target::Address(address) => core_of(&address).expect("addresses are ours"),
                };
                self.asked = around.oracle.history.mark();
                let history = &around.oracle.history;
                let id = history.current(&self.kind.stream);
                self.asked_floor = id.map(|id| (id, history.floor(id)));
                self.asked_epoch = id.map_or(Epoch(0), |id| history.epoch_floor(id));
                let life = around.life;
                self.leader = Leader { life, core };
                self.pipe = Some(Pipe::open(around, core, AppendLane::new(open)));
            }
            Action::Disconnect => self.leave(around),
            Action::Send {
                number,
                append,
                batch,
            } => {
                if let Some(id) = self.stream_id {
                    let floor = around.oracle.history.floor(id);
                    let mark = around.oracle.history.mark();
                    self.floors.insert(number, (floor, mark));
                }
                around.say(|| format!("sends {number:?} {append:?} {batch:?}"));
                self.note_sending(around, number, append.match_sequence.is_some());
                if let Some(pipe) = &mut self.pipe {
                    pipe.lane.send(append, &batch);
                }
            }
            Action::Resume => {
                if let Some(pipe) = &mut self.pipe {
                    pipe.lane.resume();
                }
            }
            Action::NeedWriter => {
                let writer = WriterId(around.rng.wide());
                let at = around.moment();
                self.producer.set_writer(at, writer);
            }
            Action::Resolve { batch, result } => self.resolve(around, batch, result),
        }
    }

    /// A plain batch without a number that is sent again, after a sending without an answer, may be
    /// there more than once.
    fn note_sending(
        &mut self,
        around: &mut Surroundings<'_>,
        number: BatchNumber,
        is_conditional: bool,
    ) {
        self.unanswered.push_back(number);
        if self.kind.has_writer || is_conditional || !self.in_doubt.contains(&number) {
            return;
        }
        for one in self.waiting.get(&number).into_iter().flatten() {
            for record in &one.records {
                around.oracle.history.allow_copies(*record);
            }
        }
    }

    fn resolve(
        &mut self,
        around: &mut Surroundings<'_>,
        batch: BatchNumber,
        result: Result<Ack, AppendError>,
    ) {
        let (floor, sent) = self.floors.remove(&batch).unwrap_or_default();
        let all = self.waiting.remove(&batch).unwrap_or_default();
        match result {
            Ok(ack) => {
                let id = self.stream_id.expect("acked on an open session");
                let records: Vec<RecordId> =
                    all.iter().flat_map(|one| one.records.clone()).collect();
                around.oracle.acked(id, &records, &ack, floor);
                if !ack.duplicate {
                    around.oracle.taken(Taken {
                        name: &self.kind.stream,
                        id,
                        token: self.presented.as_ref().map(FencingToken::as_str),
                        sent,
                        session: self.session,
                    });
                }
                self.in_doubt.remove(&batch);
                self.check_shares(around, &all, &ack);
                self.check_order(around, id, &ack);
            }
            Err(error) => {
                around.say(|| format!("{batch:?} fails: {error}"));
                if error.is_clean() {
                    all.iter()
                        .for_each(|one| around.oracle.refused(&one.records));
                }
            }
        }
    }

    /// Every caller gets its own part of the batch's range.
    fn check_shares(&self, around: &mut Surroundings<'_>, all: &[Waiting], ack: &Ack) {
        let mut next = ack.start.sequence;
        for one in all {
            let appended = one.share.appended(ack);
            let end = next.plus(one.records.len() as u64);
            let fits = appended.start.sequence == next && appended.end.sequence == end;
            around
                .oracle
                .check(fits, || format!("{appended:?} of {ack:?} begins at {next}"));
            next = end;
        }
    }

    fn check_order(&mut self, around: &mut Surroundings<'_>, id: StreamId, ack: &Ack) {
        if let Some((before, end)) = self.last_acked
            && before == id
        {
            around.oracle.check(ack.start.sequence >= end, || {
                format!("{id}: {ack:?} was pushed after what ends at {end}")
            });
        }
        self.last_acked = Some((id, ack.end.sequence));
    }
}

fn producer(
    around: &mut Surroundings<'_>,
    kind: &ProducerKind,
    fence: Option<FencingToken>,
) -> Producer {
    let rules = ProducerRules {
        stream: kind.stream.clone(),
        fence,
        retry_budget_us: nova_model::limits::CLIENT_RETRY_BUDGET_US,
        silence_us_max: nova_model::limits::CLIENT_SILENCE_US,
    };
    let has_writer = kind.has_writer && around.bug != Some(ClientBug::RetryWithoutDedup);
    let writer = has_writer.then(|| WriterId(around.rng.wide()));
    Producer::new(rules, writer)
}
