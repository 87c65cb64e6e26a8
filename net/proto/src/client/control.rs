//! The client's end of a control lane: requests out, answers in, in any order.
//!
//! # Invariants
//! - At most `CONTROL_WINDOW_REQUESTS` are unanswered or have an event that waits.
//! - Ids are never used twice.

use super::check;
use crate::error::ProtocolError;
use crate::frame::control::encode_append_once;
use crate::frame::decode::Decoder;
use crate::frame::{Frame, Kind, RequestId};
use crate::output::Output;
use bytes::Bytes;
use nova_model::limits::CONTROL_WINDOW_REQUESTS;
use nova_model::request::{Ack, Answer, OneShotAppend, Request};
use nova_model::{EncodedBatch, Refusal};
use std::collections::{BTreeMap, VecDeque};

/// What happened on a [`ControlLane`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ControlEvent {
    /// The answer to a request.
    Answered(RequestId, Result<Answer, Refusal>),
    /// The answer to a one-shot append.
    AppendedOnce(RequestId, Result<Ack, Refusal>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pending {
    Request,
    AppendOnce,
}

/// A control lane.
#[derive(Debug)]
pub struct ControlLane {
    decoder: Decoder,
    is_closed: bool,
    is_finishing: bool,
    next: u64,
    pending: BTreeMap<RequestId, Pending>,
    events: VecDeque<ControlEvent>,
    output: Output,
}

impl Default for ControlLane {
    fn default() -> ControlLane {
        ControlLane::new()
    }
}

impl ControlLane {
    /// A lane without requests.
    pub fn new() -> ControlLane {
        ControlLane {
            decoder: Decoder::new(),
            is_closed: false,
            is_finishing: false,
            next: 0,
            pending: BTreeMap::new(),
            events: VecDeque::new(),
            output: Output::default(),
        }
    }

    /// Queues a request. One that the star would refuse is refused here, by an event.
    ///
    /// # Panics
    /// If [`ControlLane::window_free`] is 0.
    pub fn request(&mut self, request: &Request) -> RequestId {
        let id = self.next_id();
        match request.check() {
            Ok(()) => {
                self.pending.insert(id, Pending::Request);
                self.output.archive_for(Kind::Request, id, request);
            }
            Err(refusal) => {
                let event = ControlEvent::Answered(id, Err(refusal));
                self.events.push_back(event);
            }
        }
        id
    }

    /// Queues a one-shot append. One that the star would refuse is refused here, by an event.
    ///
    /// # Panics
    /// If [`ControlLane::window_free`] is 0.
    pub fn append_once(&mut self, append: &OneShotAppend, batch: &EncodedBatch) -> RequestId {
        let id = self.next_id();
        match append.check() {
            Ok(()) => {
                self.pending.insert(id, Pending::AppendOnce);
                encode_append_once(&mut self.output, id, append, batch);
            }
            Err(refusal) => {
                let event = ControlEvent::AppendedOnce(id, Err(refusal));
                self.events.push_back(event);
            }
        }
        id
    }

    /// Sends nothing more; answers still come.
    pub fn finish(&mut self) {
        self.is_finishing = true;
    }

    /// Bytes of the star, in order, cut anywhere. After an error the lane is dead.
    pub fn handle_bytes(&mut self, mut bytes: Bytes) -> Result<(), ProtocolError> {
        while !self.is_closed {
            let raw = self.decoder.next(&mut bytes, permit);
            let taken = match raw {
                Ok(None) => return Ok(()),
                Ok(Some(raw)) => Frame::decode(raw).and_then(|frame| self.take(frame)),
                Err(error) => Err(error),
            };
            taken.map_err(|error| self.fail(error))?;
        }
        Ok(())
    }

    /// The star sends nothing more. Fails if it owes answers.
    pub fn handle_end(&mut self) -> Result<(), ProtocolError> {
        if self.is_closed {
            return Ok(());
        }
        if !self.pending.is_empty() || !self.decoder.is_between_frames() {
            return Err(self.fail(ProtocolError::Truncated { lane: LANE }));
        }
        self.is_closed = true;
        Ok(())
    }

    /// The next event.
    pub fn poll_event(&mut self) -> Option<ControlEvent> {
        self.events.pop_front()
    }

    /// The next chunk to write.
    pub fn poll_output(&mut self) -> Option<Bytes> {
        self.output.poll()
    }

    /// Bytes that wait to be written.
    pub fn output_bytes(&self) -> usize {
        self.output.bytes()
    }

    /// Whether all is written and the direction is to be finished.
    pub fn wants_finish(&self) -> bool {
        (self.is_finishing || self.is_closed) && self.output.bytes() == 0
    }

    /// Requests that may be sent now: the window without those that are unanswered and those
    /// whose events are not polled.
    pub fn window_free(&self) -> u32 {
        if self.is_finishing || self.is_closed {
            return 0;
        }
        let taken = self.pending.len() + self.events.len();
        (CONTROL_WINDOW_REQUESTS - taken) as u32
    }

    /// Requests without an answer.
    pub fn unanswered(&self) -> usize {
        self.pending.len()
    }

    fn next_id(&mut self) -> RequestId {
        assert!(self.window_free() > 0, "no room in the window");
        let id = RequestId(self.next);
        self.next += 1;
        id
    }

    fn take(&mut self, frame: Frame) -> Result<(), ProtocolError> {
        let event = match frame {
            Frame::Answered(id, answer) => {
                self.end(Kind::Answered, id, Some(Pending::Request))?;
                check::answer(&answer)?;
                ControlEvent::Answered(id, Ok(answer))
            }
            Frame::AppendedOnce(id, ack) => {
                self.end(Kind::AppendedOnce, id, Some(Pending::AppendOnce))?;
                check::ack(Kind::AppendedOnce, &ack)?;
                ControlEvent::AppendedOnce(id, Ok(ack))
            }
            Frame::RequestRefused(id, refusal) => {
                let pending = self.end(Kind::RequestRefused, id, None)?;
                check::refusal(Kind::RequestRefused, &refusal)?;
                match pending {
                    Pending::Request => ControlEvent::Answered(id, Err(refusal)),
                    Pending::AppendOnce => ControlEvent::AppendedOnce(id, Err(refusal)),
                }
            }
            frame => unreachable!("{frame:?} was not permitted"),
        };
        self.events.push_back(event);
        Ok(())
    }

    /// Takes the request with this id, which must wait for such an answer.
    fn end(
        &mut self,
        kind: Kind,
        id: RequestId,
        expected: Option<Pending>,
    ) -> Result<Pending, ProtocolError> {
        match self.pending.remove(&id) {
            Some(found) if expected.is_none_or(|expected| expected == found) => Ok(found),
            _ => Err(ProtocolError::RequestId { kind, id }),
        }
    }

    fn fail(&mut self, error: ProtocolError) -> ProtocolError {
        self.is_closed = true;
        self.output.clear();
        self.events.clear();
        self.decoder = Decoder::new();
        error
    }
}

const LANE: &str = "a control lane";

fn permit(kind: Kind) -> Result<(), ProtocolError> {
    match kind {
        Kind::Answered | Kind::AppendedOnce | Kind::RequestRefused => Ok(()),
        kind => Err(ProtocolError::OutOfPlace { kind, lane: LANE }),
    }
}
