//! The turn of a core: facts in, disk operations and answers out.
//!
//! ```text
//!   completions, mail, time --> shard --> disk operations --> driver
//!                                    \--> events --> lanes, other cores
//! ```
//! Lanes feed the shard as their bytes come and wake the turn, which runs after them: what arrived
//! together is one commit group. Nothing is done in direct reaction to a packet.
//!
//! # Invariants
//! - The shard is never borrowed across an await.
//! - The turn waits only when shard, completions and mail are dry.

use super::clock::Clock;
use super::desk::Desk;
use super::lane::{LaneCell, Role};
use super::mailbox::{Mail, Sender};
use super::signal::Signal;
use crate::metrics::figures::CoreFigures;
use glommio::timer::Timer;
use nova_core::disk::DiskError;
use nova_core::{Caller, Event, ReaderKey, SessionKey, Shard};
use nova_disk::{Completions, Driver};
use nova_model::{CoreId, Instant, StreamId};
use nova_proto::RequestId;
use nova_quic::server::Spin;
use std::cell::{Cell, RefCell};
use std::collections::{HashMap, VecDeque};
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};

/// How often the figures are noted that take a look at every stream.
const FIGURES_EVERY_US: u64 = 1_000_000;

/// Everything that lives on one core.
pub(crate) struct Core {
    pub(crate) clock: Clock,
    pub(crate) shard: RefCell<Shard>,
    /// Wakes the turn.
    pub(crate) wake: Signal,
    /// Set once the shard answers.
    pub(crate) ready: Signal,
    /// Set when a lane has ended.
    left: Signal,
    /// Where answers to the gateway go.
    pub(crate) desk: Desk,
    pub(crate) figures: Arc<CoreFigures>,
    figures_due: Cell<Instant>,
    id: CoreId,
    driver: Driver,
    completions: Completions,
    spin: Rc<Spin>,
    /// Batches that each of the last two turns with acks has acked.
    acked: Cell<[u32; 2]>,
    peers: Vec<Sender>,
    /// Mail that waits for a full mailbox, for each peer.
    outboxes: RefCell<Vec<VecDeque<Mail>>>,
    mail: RefCell<VecDeque<Mail>>,
    lanes: RefCell<HashMap<u64, Rc<LaneCell>>>,
    last_lane: Cell<u64>,
    callers: RefCell<HashMap<Caller, (u64, RequestId)>>,
    last_caller: Cell<u64>,
    waiting_for_ingress: RefCell<Vec<std::task::Waker>>,
    /// Bytes of frames that have come in part, of all lanes.
    arriving: Cell<usize>,
    is_stopping: Cell<bool>,
}

/// How a core's turn ended.
pub(crate) enum TurnEnd {
    /// It was told to stop and has answered what was admitted.
    Stopped,
    /// The disk can't be trusted any more.
    Fatal(DiskError),
}

impl Core {
    pub(crate) fn new(
        id: CoreId,
        shard: Shard,
        driver: Driver,
        completions: Completions,
        spin: Rc<Spin>,
        peers: Vec<Sender>,
        figures: Arc<CoreFigures>,
    ) -> Core {
        Core {
            clock: Clock::new(),
            shard: RefCell::new(shard),
            wake: Signal::default(),
            ready: Signal::default(),
            left: Signal::default(),
            desk: Desk::default(),
            figures,
            figures_due: Cell::new(Instant(0)),
            id,
            driver,
            completions,
            spin,
            acked: Cell::new([0; 2]),
            outboxes: RefCell::new(vec![VecDeque::new(); peers.len()]),
            peers,
            mail: RefCell::default(),
            lanes: RefCell::default(),
            last_lane: Cell::new(0),
            callers: RefCell::default(),
            last_caller: Cell::new(0),
            waiting_for_ingress: RefCell::default(),
            arriving: Cell::default(),
            is_stopping: Cell::new(false),
        }
    }

    /// The disk, once the turn has ended.
    pub(crate) fn into_driver(self) -> Driver {
        self.driver
    }

    /// Whether the core takes no new work.
    pub(crate) fn is_stopping(&self) -> bool {
        self.is_stopping.get()
    }

    /// A fresh 128-bit id for a stream.
    pub(crate) fn fresh_id(&self) -> StreamId {
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes).expect("the system has randomness");
        StreamId(u128::from_le_bytes(bytes))
    }

    /// Mail has come.
    pub(crate) fn deliver(&self, mail: Mail) {
        self.mail.borrow_mut().push_back(mail);
        self.wake.set();
    }

    pub(crate) fn add_lane(&self) -> Rc<LaneCell> {
        let number = self.last_lane.get() + 1;
        self.last_lane.set(number);
        let cell = Rc::new(LaneCell::new(number));
        self.lanes.borrow_mut().insert(number, Rc::clone(&cell));
        cell
    }

    pub(crate) fn remove_lane(&self, cell: &LaneCell) {
        self.lanes.borrow_mut().remove(&cell.number);
        self.note_arriving(cell, 0);
        self.left.set();
        let now = self.clock.now();
        match cell.role.get() {
            Role::None => {}
            Role::Session => self.shard.borrow_mut().close_session(now, cell.session()),
            Role::OpeningReader | Role::Reader => {
                self.shard.borrow_mut().close_reader(now, cell.reader());
            }
        }
        self.wake.set();
    }

    pub(crate) fn add_caller(&self, lane: u64, request: RequestId) -> Caller {
        let caller = self.fresh_caller();
        self.callers.borrow_mut().insert(caller, (lane, request));
        caller
    }

    pub(crate) fn fresh_caller(&self) -> Caller {
        let caller = Caller(self.last_caller.get() + 1);
        self.last_caller.set(caller.0);
        caller
    }

    /// Waits until every lane has told its peer what was left to say.
    pub(crate) async fn last_words(&self) {
        while self.lanes.borrow().values().any(|cell| cell.owes_words()) {
            self.left.wait().await;
        }
    }

    /// A lane holds so many bytes of a frame that has come in part.
    pub(crate) fn note_arriving(&self, cell: &LaneCell, bytes: usize) {
        let before = cell.arriving.replace(bytes);
        self.arriving.set(self.arriving.get() - before + bytes);
    }

    fn has_ingress_room(&self) -> bool {
        let arriving = self.arriving.get();
        self.shard.borrow().accepts_appends_beside(arriving)
    }

    /// Waits until the core takes more appends; for ever once it stops.
    pub(crate) async fn ingress_room(&self) {
        poll_fn(|context| {
            if self.has_ingress_room() && !self.is_stopping.get() {
                return Poll::Ready(());
            }
            self.waiting_for_ingress
                .borrow_mut()
                .push(context.waker().clone());
            Poll::Pending
        })
        .await;
    }

    /// Runs turns until the core stops.
    pub(crate) async fn run(self: &Rc<Core>) -> TurnEnd {
        let mut alarm = Alarm::default();
        loop {
            if let Some(fatal) = self.turn() {
                return TurnEnd::Fatal(fatal);
            }
            if self.is_stopping.get() && self.shard.borrow().is_settled() {
                return TurnEnd::Stopped;
            }
            let deadline = self.shard.borrow().poll_timeout();
            alarm.set(&self.clock, deadline);
            poll_fn(|context| self.poll_turn(context, &mut alarm)).await;
        }
    }

    fn poll_turn(&self, context: &mut Context<'_>, alarm: &mut Alarm) -> Poll<()> {
        let woken = self.wake.poll(context).is_ready();
        let completed = self.completions.poll_ready(context).is_ready();
        let timed_out = alarm.poll(context).is_ready();
        if woken || completed || timed_out {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    }

    fn turn(self: &Rc<Core>) -> Option<DiskError> {
        let begun = self.clock.instant();
        while let Some((token, result)) = self.completions.pop() {
            self.shard
                .borrow_mut()
                .handle_disk(self.clock.now(), token, result);
        }
        while let Some(mail) = self.next_mail() {
            match mail {
                Mail::Peer(from, message) => self.shard.borrow_mut().handle_peer(from, message),
                Mail::Stop => {
                    self.is_stopping.set(true);
                    self.shard.borrow_mut().stop();
                }
            }
        }
        let now = self.clock.now();
        if self
            .shard
            .borrow()
            .poll_timeout()
            .is_some_and(|at| at <= now.instant)
        {
            self.shard.borrow_mut().handle_timeout(now);
        }
        let (mut acked, mut has_answers) = (0, false);
        loop {
            let op = self.shard.borrow_mut().poll_disk(now.instant);
            let has_op = op.is_some();
            if let Some((token, op)) = op {
                self.figures.note_op(&op);
                self.driver.submit(token, op);
            }
            let event = self.shard.borrow_mut().poll_event();
            let has_event = event.is_some();
            acked += u32::from(matches!(event, Some(Event::Acked(..))));
            has_answers |= has_event;
            if let Some(event) = event
                && let Some(fatal) = self.pass_on(event)
            {
                return Some(fatal);
            }
            if !has_op && !has_event {
                break;
            }
        }
        if has_answers {
            self.driver.note_answers();
        }
        if self.has_ingress_room() {
            self.waiting_for_ingress
                .borrow_mut()
                .drain(..)
                .for_each(std::task::Waker::wake);
        }
        self.note_spin(acked);
        self.note_turn(begun);
        None
    }

    /// A core spins for the next batch of one producer that waits for each ack. Where several are
    /// acked together more come meanwhile: a core that sleeps gathers them into larger groups.
    fn note_spin(&self, acked: u32) {
        if acked > 0 {
            self.acked.set([self.acked.get()[1], acked]);
        }
        let is_alone = self.acked.get().iter().all(|acked| *acked <= 1);
        self.spin.hold(!is_alone || self.driver.in_flight() > 0);
    }

    fn note_turn(&self, begun: Instant) {
        let (now, shard) = (self.clock.instant(), self.shard.borrow());
        self.figures.note_turn(now.since_us(begun), &shard);
        if now >= self.figures_due.get() {
            self.figures_due.set(now.plus_us(FIGURES_EVERY_US));
            self.figures.note_streams(&shard);
        }
    }

    fn next_mail(&self) -> Option<Mail> {
        self.mail.borrow_mut().pop_front()
    }

    /// Hands an event to its lane; a lane that is gone wants nothing any more.
    fn pass_on(self: &Rc<Core>, event: Event) -> Option<DiskError> {
        self.figures.note_event(&event);
        match self.to_gateway(event)? {
            Event::Ready => self.ready.set(),
            Event::SessionOpened(key, opened) => self.to_session(key, |l| l.opened(opened)),
            Event::SessionRefused(key, refusal) => {
                self.to_session(key, |l| l.open_refused(&refusal));
            }
            Event::Acked(key, ack) => self.to_session(key, |l| l.acked(&ack)),
            Event::Rejected(key, refusal) => self.to_session(key, |l| l.rejected(&refusal)),
            Event::SessionBroken(key, refusal) => self.to_session(key, |l| l.broken(&refusal)),
            Event::AppendedOnce(caller, result) => {
                self.to_caller(caller, |l, id| l.appended_once(id, &result));
            }
            Event::Answered(caller, result) => {
                self.to_caller(caller, |l, id| l.answered(id, &result));
            }
            Event::ReaderOpened(key, opened) => {
                self.to_reader(key, Some(Role::Reader), |l| l.read_opened(opened));
            }
            Event::ReaderRefused(key, refusal) => {
                self.to_reader(key, Some(Role::None), |l| l.open_refused(&refusal));
            }
            Event::ReaderBatch(key, batch) => self.to_reader(key, None, |l| l.batch(&batch)),
            Event::ReaderCredited(key) => self.credited(key),
            Event::ReaderCaughtUp(key, tail) => self.to_reader(key, None, |l| l.caught_up(tail)),
            Event::ReaderHeartbeat(key, tail) => self.to_reader(key, None, |l| l.heartbeat(tail)),
            Event::ReaderEnded { reader, next, tail } => {
                self.to_reader(reader, Some(Role::None), |l| l.read_ended(next, tail));
            }
            Event::ReaderFailed(key, refusal) => {
                self.to_reader(key, Some(Role::None), |l| l.read_failed(&refusal));
            }
            Event::Peer(to, message) => self.post(to, Mail::Peer(self.id, message)),
            Event::Fatal(error) => return Some(error),
            Event::IndexNotStored(file, error) => {
                tracing::error!(%file, %error, "an index was not stored; it is tried again");
            }
            Event::NotRecycled(file, error) => {
                tracing::error!(%file, %error, "a released segment stays a while");
            }
            Event::Rewritten {
                file,
                before,
                after,
            } => tracing::info!(%file, before, after, "a mostly dead segment is rewritten"),
            Event::NotRewritten(file, why) => {
                tracing::error!(%file, %why, "a mostly dead segment stays as it is");
            }
        }
        None
    }

    fn lane(&self, number: u64) -> Option<Rc<LaneCell>> {
        self.lanes.borrow().get(&number).cloned()
    }

    fn to_session(&self, key: SessionKey, act: impl FnOnce(&mut nova_proto::server::Lane)) {
        if let Some(cell) = self.lane(key.0) {
            act(&mut cell.lane.borrow_mut());
            cell.output.set();
        }
    }

    fn to_reader(
        &self,
        key: ReaderKey,
        role: Option<Role>,
        act: impl FnOnce(&mut nova_proto::server::Lane),
    ) {
        if let Some(cell) = self.lane(key.0) {
            act(&mut cell.lane.borrow_mut());
            if let Some(role) = role {
                cell.role.set(role);
            }
            cell.output.set();
        }
    }

    fn credited(&self, key: ReaderKey) {
        if let Some(cell) = self.lane(key.0) {
            cell.has_credit.set(false);
            cell.output.set();
        }
    }

    fn to_caller(
        &self,
        caller: Caller,
        act: impl FnOnce(&mut nova_proto::server::Lane, RequestId),
    ) {
        let known = self.callers.borrow_mut().remove(&caller);
        let Some((number, request)) = known else {
            return;
        };
        if let Some(cell) = self.lane(number) {
            act(&mut cell.lane.borrow_mut(), request);
            cell.output.set();
        }
    }

    /// Sends mail, in order. While a mailbox is full its mail waits here, and a task of its own
    /// carries it over: a core never waits for another one.
    fn post(self: &Rc<Core>, to: CoreId, mail: Mail) {
        let at = usize::from(to.0);
        let mut outboxes = self.outboxes.borrow_mut();
        if !outboxes[at].is_empty() {
            return outboxes[at].push_back(mail);
        }
        if let Err(flume::TrySendError::Full(mail)) = self.peers[at].try_send(mail) {
            outboxes[at].push_back(mail);
            let core = Rc::clone(self);
            glommio::spawn_local(async move { core.carry(at).await }).detach();
        }
    }

    /// Carries what waits for a full mailbox. A piece stays in front until it is over, so that
    /// nothing overtakes it.
    async fn carry(&self, at: usize) {
        loop {
            let front = self.outboxes.borrow()[at].front().cloned();
            let Some(mail) = front else { return };
            // The other end is gone only when the whole star stops.
            let _stopping = self.peers[at].send_async(mail).await;
            self.outboxes.borrow_mut()[at].pop_front();
        }
    }
}

/// A timer that is armed anew only when the deadline comes nearer.
#[derive(Default)]
struct Alarm {
    armed: Option<(Instant, Timer)>,
}

impl Alarm {
    fn set(&mut self, clock: &Clock, deadline: Option<Instant>) {
        let Some(deadline) = deadline else { return };
        if self.armed.as_ref().is_none_or(|(at, _)| *at > deadline) {
            self.armed = Some((deadline, Timer::new(clock.until(deadline))));
        }
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let Some((_, timer)) = &mut self.armed else {
            return Poll::Pending;
        };
        match Pin::new(timer).poll(context) {
            Poll::Ready(_) => {
                self.armed = None;
                Poll::Ready(())
            }
            Poll::Pending => Poll::Pending,
        }
    }
}
