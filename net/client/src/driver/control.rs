//! Requests and one-shot appends: one control lane per address, in a task of its own.
//!
//! ```text
//!   ask(address) -> bounded mailbox -> task: Pipe<ControlLane> -> answer to whoever asked
//! ```
//! The task begins with the first request to its address and ends when its lane is lost or no
//! client is left; the next request begins another one.
//!
//! # Invariants
//! - A request that never left is told apart from one without an answer.
//! - At most the window of the lane is unanswered; as many more wait in the mailbox.
//! - A lane on which an answer is owed for longer than the star may be silent is taken for lost.
//!   Moves of streams are left out: they end by themselves, and may take longer than that.

use crate::core::HandshakeFailure;
use crate::driver::dialer::DialError;
use crate::driver::pipe::{Lost, Pipe};
use crate::star::Star;
use nova_model::limits::CONTROL_WINDOW_REQUESTS;
use nova_model::request::{Ack, Answer, OneShotAppend, Request};
use nova_model::{EncodedBatch, Refusal};
use nova_proto::RequestId;
use nova_proto::client::{ControlEvent, ControlLane};
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

/// Addresses with a lane; beyond, those whose task has ended are dropped.
const LANES_MAX: usize = 1024;

/// What is asked.
#[derive(Debug, Clone)]
pub(crate) enum Ask {
    Request(Request),
    Append(OneShotAppend, EncodedBatch),
}

/// What came back.
#[derive(Debug)]
pub(crate) enum Reply {
    Answer(Answer),
    Ack(Ack),
}

/// Why nothing came back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ControlError {
    /// The address does not resolve.
    Unresolvable { address: String },
    /// Who answers there does not fit the configuration.
    Handshake(Box<HandshakeFailure>),
    /// It never left.
    NotSent,
    /// It left, and the lane was lost before an answer.
    Unanswered,
}

type Outcome = Result<Result<Reply, Refusal>, ControlError>;

struct Call {
    ask: Ask,
    reply: oneshot::Sender<Outcome>,
}

/// A call that left.
struct Waiting {
    reply: oneshot::Sender<Outcome>,
    /// When its answer is overdue.
    until: Option<Instant>,
}

/// The control lanes of a client.
#[derive(Debug, Default)]
pub(crate) struct Controls {
    lanes: Mutex<BTreeMap<String, mpsc::Sender<Call>>>,
}

impl Controls {
    /// Asks at an address and waits for what comes back.
    pub(crate) async fn ask(&self, star: &Star, address: &str, ask: Ask) -> Outcome {
        let lane = match self.lane(address) {
            Some(lane) => lane,
            None => self.open(star, address).await?,
        };
        let (reply, answer) = oneshot::channel();
        if lane.send(Call { ask, reply }).await.is_err() {
            return Err(ControlError::NotSent);
        }
        // The task answers every call it takes; a call that it did not take is dropped with the
        // mailbox.
        answer.await.unwrap_or(Err(ControlError::NotSent))
    }

    fn lane(&self, address: &str) -> Option<mpsc::Sender<Call>> {
        let lanes = self.lanes.lock().unwrap_or_else(PoisonError::into_inner);
        lanes.get(address).filter(|lane| !lane.is_closed()).cloned()
    }

    async fn open(&self, star: &Star, address: &str) -> Result<mpsc::Sender<Call>, ControlError> {
        let connection = star.dialer.connection(&star.source, address).await;
        let connection = connection.map_err(|error| match error {
            DialError::Unresolvable { address } => ControlError::Unresolvable { address },
            DialError::Handshake(failure) => ControlError::Handshake(failure),
            DialError::Unreachable => ControlError::NotSent,
        })?;
        let pipe = Pipe::open(connection, ControlLane::new()).await;
        let pipe = pipe.map_err(|Lost| ControlError::NotSent)?;
        let mut lanes = self.lanes.lock().unwrap_or_else(PoisonError::into_inner);
        // Another call may have opened one meanwhile; this one is closed again then.
        if let Some(lane) = lanes.get(address)
            && !lane.is_closed()
        {
            return Ok(lane.clone());
        }
        if lanes.len() >= LANES_MAX {
            lanes.retain(|_, lane| !lane.is_closed());
        }
        let (lane, mailbox) = mpsc::channel(CONTROL_WINDOW_REQUESTS);
        lanes.insert(address.to_owned(), lane.clone());
        let silence_max = Duration::from_micros(star.silence_us_max);
        tokio::spawn(run(pipe, mailbox, silence_max));
        Ok(lane)
    }
}

/// Whether the star may take longer over it than it may be silent.
fn is_long(ask: &Ask) -> bool {
    match ask {
        Ask::Request(
            Request::Drain { .. }
            | Request::Undrain { .. }
            | Request::Rebalance
            | Request::HandOff { .. },
        ) => true,
        Ask::Request(_) | Ask::Append(..) => false,
    }
}

/// Waits until an answer is overdue.
async fn overdue(waiting: &BTreeMap<RequestId, Waiting>) {
    match waiting.values().filter_map(|call| call.until).min() {
        Some(until) => tokio::time::sleep_until(until).await,
        None => std::future::pending().await,
    }
}

async fn run(
    mut pipe: Pipe<ControlLane>,
    mut mailbox: mpsc::Receiver<Call>,
    silence_max: Duration,
) {
    let mut waiting: BTreeMap<RequestId, Waiting> = BTreeMap::new();
    loop {
        let has_room = pipe.lane.window_free() > 0;
        tokio::select! {
            call = mailbox.recv(), if has_room => match call {
                Some(Call { ask, reply }) => {
                    let until = (!is_long(&ask)).then(|| Instant::now() + silence_max);
                    let id = match &ask {
                        Ask::Request(request) => pipe.lane.request(request),
                        Ask::Append(append, batch) => pipe.lane.append_once(append, batch),
                    };
                    waiting.insert(id, Waiting { reply, until });
                }
                None => break,
            },
            turned = pipe.turn() => if turned == Err(Lost) {
                break;
            },
            () = overdue(&waiting) => {
                tracing::debug!("a star that lives owes an answer for too long");
                break;
            }
        }
        while let Some(event) = pipe.lane.poll_event() {
            let (id, outcome) = match event {
                ControlEvent::Answered(id, answer) => (id, answer.map(Reply::Answer)),
                ControlEvent::AppendedOnce(id, ack) => (id, ack.map(Reply::Ack)),
            };
            if let Some(Waiting { reply, .. }) = waiting.remove(&id) {
                // Whoever asked may have stopped waiting.
                let _ = reply.send(Ok(outcome));
            }
        }
    }
    for (_, Waiting { reply, .. }) in waiting {
        let _ = reply.send(Err(ControlError::Unanswered));
    }
}
