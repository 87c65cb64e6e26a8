//! The producer's rules: one stream, a session that comes and goes, every batch resolved once.
//!
//! ```text
//!            pump: something staged          handle_opened
//!   Idle ------------------------> Opening ---------------> Open <---------- Resume
//!    ^  nothing to do                ^  | lost, refused      |  \ a rejection    ^
//!    +------------- Waiting <--------+--+ (backoff)     lost |   v               |
//!                      ^-------------------------------------+ Rejecting --> Paused (backoff)
//!   renewing a writer: AwaitingWriter --set_writer--> Opening        budget spent: Broken
//!   an answer is owed and nothing is heard for too long: as if lost
//! ```
//! A batch is sent with its writer's number; when a session breaks, what has no answer is sent
//! again in order with the same numbers, and the star answers what it has with the original
//! positions. A rejection stops what is behind it: those come back `BEHIND_REJECTED`, and after
//! the last of them the producer resumes and sends the plain ones again. A star that breaks a
//! session in order answers first what it has applied, so after a clean notice what has no answer
//! was not applied: it is sent again as if for the first time, and a condition is judged anew.
//!
//! What decides is on the wire: the `retry` and `clean` bits of a refusal, the holder's address
//! and the wait in its facts. Only four codes mean something by themselves here: `BEHIND_REJECTED`
//! (says nothing about the batch itself), `WRITER_GAP` and `DUPLICATE_MISMATCH` (the numbering is
//! lost: a new writer is taken, what may have been applied is ambiguous, the rest is sent again),
//! and `SEQ_MISMATCH` (judged after the search for duplicates, so an earlier attempt failed too).
//!
//! # Invariants
//! - Each batch that left the batcher is resolved exactly once.
//! - At most `window` batches are in the queue while a session is open.
//! - Nothing is sent to another incarnation of the stream than the first one opened.
//! - With a writer, no batch is applied twice; without one, none that only clean notices kept from
//!   its answer.
//!
//! # Not here
//! - Bytes: `nova_proto::client::AppendLane`. The clock and the random numbers: the driver.

mod answers;
mod queue;

use crate::core::Moment;
use crate::core::batcher::{BatchNumber, Batcher};
use crate::core::outcome::AppendError;
use crate::core::retry::Patience;
use nova_model::request::{Ack, AppendOpen, AppendOpened, SessionAppend};
use nova_model::{
    EncodedBatch, FencingToken, Instant, Record, Refusal, SequenceNumber, StreamId, StreamName,
    WriterId,
};
use queue::{Pending, Queue};
use std::collections::VecDeque;

/// What a producer is made for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProducerRules {
    /// The stream.
    pub stream: StreamName,
    /// The fencing token that all its batches present.
    pub fence: Option<FencingToken>,
    /// How long it tries without progress, in microseconds.
    pub retry_budget_us: u64,
    /// How long the star may be silent while it owes an answer, in microseconds.
    pub silence_us_max: u64,
}

/// Where a session is to be opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// Wherever the driver enters the star.
    Star,
    /// At this address, as the star gave it.
    Address(String),
}

/// What a producer asks of its driver; see [`crate::core`] for what to do with each.
#[derive(Debug)]
pub enum Action {
    /// Open a session, in place of the one that may be there.
    Connect {
        /// Where.
        target: Target,
        /// The open frame.
        open: AppendOpen,
    },
    /// Drop the session.
    Disconnect,
    /// Send a batch on the session.
    Send {
        /// The batch's number, for traces.
        number: BatchNumber,
        /// What goes with it.
        append: SessionAppend,
        /// The batch.
        batch: EncodedBatch,
    },
    /// Send `resume` on the session.
    Resume,
    /// Call [`Producer::set_writer`] with a fresh id.
    NeedWriter,
    /// Tell the callers of a batch.
    Resolve {
        /// The batch.
        batch: BatchNumber,
        /// Its result.
        result: Result<Ack, AppendError>,
    },
}

#[derive(Debug)]
enum State {
    /// No session, and nothing that needs one.
    Idle,
    /// A new writer id is asked for.
    AwaitingWriter,
    /// The next attempt is at this time.
    Waiting { until: Instant },
    /// A session is to be opened; the open frame may be on its way already.
    Opening { is_asked: bool },
    /// Batches may be sent.
    Open { window: usize },
    /// A batch was rejected; the answers of those behind it are coming.
    Rejecting { window: usize },
    /// All is answered; the session is resumed at this time.
    Paused { window: usize, until: Instant },
    /// Never again: the error of every later append.
    Broken(AppendError),
}

/// One producer of one stream.
#[derive(Debug)]
pub struct Producer {
    rules: ProducerRules,
    writer: Option<WriterId>,
    state: State,
    target: Target,
    queue: Queue,
    actions: VecDeque<Action>,
    emptied: Vec<Vec<Record>>,
    refuse_staged: Option<AppendError>,
    stream_id: Option<StreamId>,
    opened: Option<AppendOpened>,
    tail: SequenceNumber,
    patience: Patience,
    /// Something is staged in the batcher, as of the last pump.
    demand: bool,
    /// The time of the last pump.
    pumped: Instant,
    /// When the star was heard last, or began to owe an answer.
    heard: Instant,
    last_refusal: Option<Refusal>,
    /// Where the last refusal said the stream is led.
    redirect: Option<Target>,
    /// The session is to be resumed after a backoff, at least this long if the star said so.
    pause: Option<Option<u64>>,
}

impl Producer {
    /// A producer without a session; without a writer id, repeats are not recognised.
    pub fn new(rules: ProducerRules, writer: Option<WriterId>) -> Producer {
        let patience = Patience::new(rules.retry_budget_us);
        Producer {
            rules,
            writer,
            state: State::Idle,
            target: Target::Star,
            queue: Queue::default(),
            actions: VecDeque::new(),
            emptied: Vec::new(),
            refuse_staged: None,
            stream_id: None,
            opened: None,
            tail: SequenceNumber(0),
            patience,
            demand: false,
            pumped: Instant::default(),
            heard: Instant::default(),
            last_refusal: None,
            redirect: None,
            pause: None,
        }
    }

    /// The answer that opened the session, while there is one.
    pub fn session(&self) -> Option<&AppendOpened> {
        self.opened.as_ref()
    }

    /// Whether every batch that left the batcher is resolved.
    pub fn is_quiet(&self) -> bool {
        self.queue.is_empty()
    }

    /// Batches sent on the session and not answered.
    pub fn in_flight(&self) -> usize {
        self.queue.in_flight()
    }

    /// The error of every later append, if the producer is broken for good.
    pub fn broken(&self) -> Option<&AppendError> {
        match &self.state {
            State::Broken(error) => Some(error),
            _ => None,
        }
    }

    /// Opens a session before there is something to send.
    pub fn start(&mut self) {
        if matches!(self.state, State::Idle) {
            self.connect();
        }
    }

    /// Takes from the batcher what may be sent, or refuses what is staged if it can't be.
    pub fn pump(&mut self, now: Instant, batcher: &mut Batcher) {
        self.pumped = now;
        for list in self.emptied.drain(..) {
            batcher.recycle(list);
        }
        let refusal = self.refuse_staged.take().or_else(|| self.broken().cloned());
        if let Some(error) = refusal {
            while let Some(cut) = batcher.take() {
                self.resolve(cut.number, Err(error.clone()));
            }
        }
        self.demand = !batcher.is_empty();
        match self.state {
            State::Idle if self.demand => self.connect(),
            State::Open { window } => {
                while self.queue.len() < window
                    && let Some(cut) = batcher.cut(now)
                {
                    self.queue.push(cut);
                }
            }
            _ => {}
        }
    }

    /// The next thing to do.
    pub fn poll_action(&mut self) -> Option<Action> {
        if let Some(action) = self.actions.pop_front() {
            return Some(action);
        }
        if !matches!(self.state, State::Open { .. }) {
            return None;
        }
        if self.queue.in_flight() == 0 {
            self.heard = self.pumped;
        }
        let next = self.queue.send(self.writer.is_some(), self.tail)?;
        self.emptied.extend(next.emptied);
        let number = next.number;
        Some(match next.batch {
            Ok(batch) => Action::Send {
                number,
                append: next.append,
                batch,
            },
            Err(refusal) => {
                let result = Err(AppendError::Refused(refusal));
                Action::Resolve {
                    batch: number,
                    result,
                }
            }
        })
    }

    /// When [`Producer::handle_tick`] or, for a linger, [`Producer::pump`] is to be called.
    pub fn next_deadline(&self, batcher: &Batcher) -> Option<Instant> {
        let step = match self.state {
            State::Waiting { until } | State::Paused { until, .. } => Some(until),
            State::Open { window } if self.queue.len() < window => batcher.next_deadline(),
            _ => None,
        };
        let budget = self
            .needs_session()
            .then(|| self.patience.deadline())
            .flatten();
        step.into_iter().chain(budget).chain(self.silent_at()).min()
    }

    /// When the star counts as silent: it owes an answer and is not heard until then.
    fn silent_at(&self) -> Option<Instant> {
        let is_owed = match self.state {
            State::Opening { is_asked } => is_asked,
            State::Open { .. } | State::Rejecting { .. } => self.queue.in_flight() > 0,
            State::Idle
            | State::AwaitingWriter
            | State::Waiting { .. }
            | State::Paused { .. }
            | State::Broken(_) => false,
        };
        is_owed.then(|| self.heard.plus_us(self.rules.silence_us_max))
    }

    /// Time has passed.
    pub fn handle_tick(&mut self, at: Moment) {
        if self.needs_session() && self.patience.is_spent(at.now) && self.broken().is_none() {
            return self.give_up();
        }
        if self
            .silent_at()
            .is_some_and(|silent_at| at.now >= silent_at)
        {
            return self.handle_lost(at);
        }
        match self.state {
            State::Waiting { until } if at.now >= until => {
                if self.needs_session() {
                    self.connect();
                } else {
                    self.rest();
                }
            }
            State::Paused { window, until } if at.now >= until => {
                self.actions.push_back(Action::Resume);
                self.state = State::Open { window };
            }
            _ => {}
        }
    }

    /// The driver's fresh writer id.
    pub fn set_writer(&mut self, at: Moment, writer: WriterId) {
        if !matches!(self.state, State::AwaitingWriter) {
            return;
        }
        self.writer = Some(writer);
        if !self.needs_session() {
            self.rest();
        } else if self.patience.redirect_at_once() {
            self.connect();
        } else {
            self.wait(at, None);
        }
    }

    /// Resolves everything: what never left is `Closed`, the rest is ambiguous. For a producer
    /// that is dropped; one that is closed in order is drained before.
    pub fn abandon(&mut self, batcher: &mut Batcher) {
        self.lose_session();
        let error = self.broken().cloned().unwrap_or(AppendError::Closed);
        self.fail_all(error.clone(), None);
        self.refuse_staged = None;
        while let Some(cut) = batcher.take() {
            self.resolve(cut.number, Err(error.clone()));
        }
        if self.broken().is_none() {
            self.actions.push_back(Action::Disconnect);
            self.state = State::Broken(AppendError::Closed);
        }
    }

    fn has_session(&self) -> bool {
        match self.state {
            State::Open { .. } | State::Rejecting { .. } | State::Paused { .. } => true,
            State::Idle
            | State::Opening { .. }
            | State::Waiting { .. }
            | State::AwaitingWriter
            | State::Broken(_) => false,
        }
    }

    fn needs_session(&self) -> bool {
        self.demand || !self.queue.is_empty()
    }

    fn connect(&mut self) {
        self.opened = None;
        self.state = State::Opening { is_asked: false };
        let open = AppendOpen {
            stream: self.rules.stream.clone(),
            fence: self.rules.fence.clone(),
            writer: self.writer,
        };
        self.actions.push_back(Action::Connect {
            target: self.target.clone(),
            open,
        });
    }

    fn rest(&mut self) {
        self.patience.reset();
        self.state = State::Idle;
    }

    /// Tries again after a refusal's backoff, unless the budget is spent.
    fn wait(&mut self, at: Moment, after_us: Option<u64>) {
        self.wait_until(at, |patience| patience.next_attempt(at, after_us));
    }

    /// Tries again after the backoff of a star that does not answer, unless the budget is spent.
    fn wait_for_star(&mut self, at: Moment) {
        self.wait_until(at, |patience| patience.next_dial(at));
    }

    fn wait_until(&mut self, at: Moment, next: impl FnOnce(&mut Patience) -> Instant) {
        if self.needs_session() {
            self.patience.begin(at.now);
        }
        if self.patience.is_spent(at.now) {
            return self.give_up();
        }
        let until = next(&mut self.patience);
        self.state = State::Waiting { until };
    }

    fn give_up(&mut self) {
        self.lose_session();
        let last = self.last_refusal.take().map(Box::new);
        let error = AppendError::Unavailable { sent: None, last };
        self.fail_all(error.clone(), None);
        self.actions.push_back(Action::Disconnect);
        self.state = State::Broken(error);
    }

    /// The session is gone without a word: what it did not answer may have been applied.
    fn lose_session(&mut self) {
        if let State::Open { .. } = self.state {
            self.queue.doubt();
        }
        self.end_session();
    }

    /// The session is over: what it did not answer is sent again on the next one, except for
    /// conditional batches behind a rejected one.
    fn end_session(&mut self) {
        if let State::Rejecting { .. } = self.state {
            self.report_conditional();
        }
        self.queue.rewind();
        self.opened = None;
        self.pause = None;
    }

    /// Resolves every batch of the queue and all that is staged: what certainly was not applied
    /// with `error`, the rest as unknown.
    fn fail_all(&mut self, error: AppendError, refusal: Option<Refusal>) {
        for pending in self.queue.extract(|_| true) {
            let result = match &error {
                _ if !pending.maybe_applied => error.clone(),
                AppendError::Unavailable { last, .. } => AppendError::Unavailable {
                    sent: Some(self.ambiguity(&pending, refusal.clone())),
                    last: last.clone(),
                },
                _ => AppendError::Ambiguous(self.ambiguity(&pending, refusal.clone())),
            };
            self.resolve(pending.number, Err(result));
        }
        self.refuse_staged = Some(error);
    }

    fn ambiguity(&self, pending: &Pending, refusal: Option<Refusal>) -> Box<super::Ambiguity> {
        Box::new(pending.ambiguity(self.stream_id, refusal))
    }

    fn resolve(&mut self, batch: BatchNumber, result: Result<Ack, AppendError>) {
        self.actions.push_back(Action::Resolve { batch, result });
    }
}

#[cfg(test)]
#[path = "rig_tests.rs"]
mod rig;

#[cfg(test)]
#[path = "producer_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "breaks_tests.rs"]
mod breaks_tests;

#[cfg(test)]
#[path = "random_tests.rs"]
mod random_tests;
