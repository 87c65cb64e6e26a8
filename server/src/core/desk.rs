//! The core's end of the gateway: what HTTP asks of this core, and where the answers go.
//!
//! ```text
//!   gateway: Ask ----flume----> Desk -> shard
//!   gateway: Reply <--oneshot--  Desk <- events      Line <--mpsc-- Desk <- events of readers
//! ```
//! An ask goes to the shard as what comes on a lane does, and wakes the turn, which runs behind it.
//!
//! # Invariants
//! - The core never waits for the gateway. A line has room for all that one credit can bring:
//!   opened, batches, caught up, end; heartbeats are left out where they would take that room.
//! - Readers of the gateway and of lanes never have the same key.
//!
//! # Not here
//! - Following a stream to its leader, deadlines, HTTP: `gateway`.

use super::turn::Core;
use nova_core::{Caller, Event, ReaderKey};
use nova_model::limits::GATEWAY_ASKS_MAX;
use nova_model::request::{Ack, Answer, OneShotAppend, ReadOpen, ReadOpened, Request};
use nova_model::{Code, EncodedBatch, Facts, Position, Refusal, StoredBatch};
use std::cell::RefCell;
use std::collections::HashMap;
use tokio::sync::{mpsc, oneshot};

/// Items that a line holds.
const LINE_ITEMS_MAX: usize = 8;
/// Room that is kept in a line for what is no heartbeat.
const LINE_ITEMS_KEPT: usize = 4;
/// When to come back to a core whose appends wait for the disk.
const INGRESS_AFTER_US: u64 = 10_000;
/// Marks the readers of the gateway; lanes count from 1.
const GATEWAY_READERS: u64 = 1 << 63;

/// Whoever waits for an ack.
pub(crate) type AckReply = oneshot::Sender<Result<Ack, Refusal>>;
/// Whoever waits for an answer.
pub(crate) type AnswerReply = oneshot::Sender<Result<Answer, Refusal>>;

/// Names a reader of the gateway.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct LineNumber(pub(crate) u64);

/// One thing that the gateway wants of a core.
#[derive(Debug)]
pub(crate) enum Ask {
    /// Append a batch.
    Append(Box<OneShotAppend>, EncodedBatch, AckReply),
    /// Any other request.
    Request(Box<Request>, AnswerReply),
    /// Open a reader.
    Open(LineNumber, Box<ReadOpen>, mpsc::Sender<ReaderItem>),
    /// The reader's last batches are out: it takes more.
    Credit(LineNumber),
    /// The reader has had enough.
    Close(LineNumber),
}

/// What a reader is told.
#[derive(Debug)]
pub(crate) enum ReaderItem {
    /// It is open.
    Opened(ReadOpened),
    /// All that its last credit brought.
    Batches(Vec<StoredBatch>),
    /// It has all that is durable.
    CaughtUp(Position),
    /// Nothing new for a while.
    Heartbeat(Position),
    /// The read is at its end.
    Ended(Position),
    /// It was not opened, or cannot go on.
    Failed(Refusal),
}

/// The way from the gateway to a core.
pub(crate) type AskSender = flume::Sender<Ask>;

/// Makes it.
pub(crate) fn asks() -> (AskSender, flume::Receiver<Ask>) {
    flume::bounded(GATEWAY_ASKS_MAX)
}

/// Who waits for what.
#[derive(Default)]
pub(crate) struct Desk {
    acks: RefCell<HashMap<Caller, AckReply>>,
    answers: RefCell<HashMap<Caller, AnswerReply>>,
    lines: RefCell<HashMap<ReaderKey, Line>>,
}

/// A reader of the gateway.
struct Line {
    items: mpsc::Sender<ReaderItem>,
    /// What came for its credit so far.
    batches: Vec<StoredBatch>,
}

impl Line {
    fn tell(&self, item: ReaderItem) {
        // It fails only for a reader that is gone; its room is proven above.
        let _gone = self.items.try_send(item);
    }

    fn hand_over(&mut self) {
        if !self.batches.is_empty() {
            let batches = std::mem::take(&mut self.batches);
            self.tell(ReaderItem::Batches(batches));
        }
    }
}

impl Core {
    /// Takes what the gateway wants.
    pub(crate) fn take_ask(&self, ask: Ask) {
        let now = self.clock.now();
        let mut shard = self.shard.borrow_mut();
        let mut lines = self.desk.lines.borrow_mut();
        match ask {
            Ask::Append(append, batch, reply) => {
                if let Some(refusal) = self.refuse_append(shard.accepts_appends()) {
                    return tell(reply, Err(refusal));
                }
                self.figures.note_batch(&batch);
                let caller = self.fresh_caller();
                self.desk.acks.borrow_mut().insert(caller, reply);
                shard.append_once(now, caller, *append, batch, self.fresh_id());
            }
            Ask::Request(request, reply) => {
                let caller = self.fresh_caller();
                self.desk.answers.borrow_mut().insert(caller, reply);
                shard.request(now, caller, *request, self.fresh_id());
            }
            Ask::Open(number, open, items) => {
                let batches = Vec::new();
                lines.insert(key(number), Line { items, batches });
                shard.open_reader(now, key(number), *open, self.fresh_id());
            }
            Ask::Credit(number) => {
                if lines.contains_key(&key(number)) {
                    shard.credit_reader(key(number));
                }
            }
            Ask::Close(number) => {
                if lines.remove(&key(number)).is_some() {
                    shard.close_reader(now, key(number));
                }
            }
        }
        self.wake.set();
    }

    fn refuse_append(&self, has_room: bool) -> Option<Refusal> {
        if self.is_stopping() {
            return Some(Refusal::new(Code::Draining, "the star is stopping"));
        }
        if !has_room {
            let refusal = Refusal::new(Code::RateLimited, "the disk is behind the appends");
            return Some(refusal.with(Facts::After(INGRESS_AFTER_US)));
        }
        None
    }

    /// Hands an event to the gateway if it is the gateway's; gives it back if not.
    pub(crate) fn to_gateway(&self, event: Event) -> Option<Event> {
        match event {
            Event::AppendedOnce(caller, result) => {
                match self.desk.acks.borrow_mut().remove(&caller) {
                    Some(reply) => tell(reply, result),
                    None => return Some(Event::AppendedOnce(caller, result)),
                }
                None
            }
            Event::Answered(caller, result) => {
                match self.desk.answers.borrow_mut().remove(&caller) {
                    Some(reply) => tell(reply, result),
                    None => return Some(Event::Answered(caller, result)),
                }
                None
            }
            event => match reader_of(&event) {
                Some(key) if key.0 >= GATEWAY_READERS => {
                    self.to_line(key, event);
                    None
                }
                _ => Some(event),
            },
        }
    }

    fn to_line(&self, key: ReaderKey, event: Event) {
        let mut lines = self.desk.lines.borrow_mut();
        // One that was closed wants nothing any more.
        let Some(line) = lines.get_mut(&key) else {
            return;
        };
        let is_over = match event {
            Event::ReaderBatch(_, batch) => {
                line.batches.push(batch);
                false
            }
            Event::ReaderCredited(_) => {
                line.hand_over();
                false
            }
            Event::ReaderOpened(_, opened) => {
                line.tell(ReaderItem::Opened(opened));
                false
            }
            Event::ReaderCaughtUp(_, tail) => {
                line.hand_over();
                line.tell(ReaderItem::CaughtUp(tail));
                false
            }
            Event::ReaderHeartbeat(_, tail) => {
                if line.items.capacity() > LINE_ITEMS_KEPT {
                    line.tell(ReaderItem::Heartbeat(tail));
                }
                false
            }
            Event::ReaderEnded { tail, .. } => {
                line.hand_over();
                line.tell(ReaderItem::Ended(tail));
                true
            }
            Event::ReaderRefused(_, refusal) | Event::ReaderFailed(_, refusal) => {
                line.hand_over();
                line.tell(ReaderItem::Failed(refusal));
                true
            }
            _ => false,
        };
        if is_over {
            lines.remove(&key);
        }
    }
}

/// Makes the way back to a reader.
pub(crate) fn line() -> (mpsc::Sender<ReaderItem>, mpsc::Receiver<ReaderItem>) {
    mpsc::channel(LINE_ITEMS_MAX)
}

fn key(number: LineNumber) -> ReaderKey {
    ReaderKey(GATEWAY_READERS | number.0)
}

fn tell<T>(reply: oneshot::Sender<T>, result: T) {
    // Whoever gave up waiting needs no answer.
    let _gone = reply.send(result);
}

fn reader_of(event: &Event) -> Option<ReaderKey> {
    match event {
        Event::ReaderOpened(key, _)
        | Event::ReaderRefused(key, _)
        | Event::ReaderBatch(key, _)
        | Event::ReaderCredited(key)
        | Event::ReaderCaughtUp(key, _)
        | Event::ReaderHeartbeat(key, _)
        | Event::ReaderFailed(key, _)
        | Event::ReaderEnded { reader: key, .. } => Some(*key),
        _ => None,
    }
}
