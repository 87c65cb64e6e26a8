//! The client's end of an append session.
//!
//! ```text
//!   Opening --Opened--> Open --Broken, end of the star--> Closed
//!      +------OpenRefused----------------------------------^
//! ```
//!
//! # Invariants
//! - At most the window that the star gave is unanswered; answers are in the order of the batches.
//! - Events waiting: at most the window and three.

use super::check;
use crate::error::ProtocolError;
use crate::frame::append::encode_append;
use crate::frame::decode::Decoder;
use crate::frame::{Frame, Kind};
use crate::output::Output;
use bytes::Bytes;
use nova_model::request::{Ack, AppendOpen, AppendOpened, SessionAppend};
use nova_model::{EncodedBatch, Refusal};
use std::collections::VecDeque;

/// What happened on an [`AppendLane`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AppendEvent {
    /// The session is open.
    Opened(AppendOpened),
    /// It is not opened.
    OpenRefused(Refusal),
    /// The oldest unanswered batch is durable.
    Acked(Ack),
    /// The oldest unanswered batch is refused.
    Rejected(Refusal),
    /// The star ended the session; batches without an answer get none.
    Broken(Refusal),
    /// The star sends nothing more; batches without an answer get none.
    Ended,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// The open frame has no answer yet.
    Opening,
    /// Batches may be sent: this many unanswered.
    Open { window: u32 },
    /// No answer comes any more.
    Closed,
}

/// An append session.
#[derive(Debug)]
pub struct AppendLane {
    decoder: Decoder,
    state: State,
    unanswered: usize,
    has_rejection: bool,
    is_finishing: bool,
    events: VecDeque<AppendEvent>,
    output: Output,
}

impl AppendLane {
    /// Queues the open frame. An open that the star would refuse is refused here.
    pub fn new(open: AppendOpen) -> AppendLane {
        let mut lane = AppendLane {
            decoder: Decoder::new(),
            state: State::Opening,
            unanswered: 0,
            has_rejection: false,
            is_finishing: false,
            events: VecDeque::new(),
            output: Output::default(),
        };
        match open.check() {
            Ok(()) => lane.output.archive(Kind::OpenAppend, &open),
            Err(refusal) => {
                lane.state = State::Closed;
                lane.events.push_back(AppendEvent::OpenRefused(refusal));
            }
        }
        lane
    }

    /// Queues a batch.
    ///
    /// # Panics
    /// If [`AppendLane::window_free`] is 0.
    pub fn send(&mut self, append: SessionAppend, batch: &EncodedBatch) {
        assert!(self.window_free() > 0, "no room in the window");
        encode_append(&mut self.output, &append, batch);
        self.unanswered += 1;
    }

    /// Says that batches sent from now on are not behind a rejected one. Does nothing unless a
    /// batch was rejected since the last time.
    pub fn resume(&mut self) {
        let is_open = matches!(self.state, State::Open { .. }) && !self.is_finishing;
        if is_open && self.has_rejection {
            self.has_rejection = false;
            self.output.frame(Kind::Resume, |_| {});
        }
    }

    /// Sends nothing more; answers still come.
    pub fn finish(&mut self) {
        self.is_finishing = true;
    }

    /// Bytes of the star, in order, cut anywhere. After an error the lane is dead.
    pub fn handle_bytes(&mut self, mut bytes: Bytes) -> Result<(), ProtocolError> {
        while self.state != State::Closed {
            let view = (self.state, self.unanswered);
            let raw = self.decoder.next(&mut bytes, |kind| permit(view, kind));
            let taken = match raw {
                Ok(None) => return Ok(()),
                Ok(Some(raw)) => Frame::decode(raw).and_then(|frame| self.take(frame)),
                Err(error) => Err(error),
            };
            taken.map_err(|error| self.fail(error))?;
        }
        Ok(())
    }

    /// The star sends nothing more. Fails if a frame is incomplete.
    pub fn handle_end(&mut self) -> Result<(), ProtocolError> {
        if self.state == State::Closed {
            return Ok(());
        }
        if !self.decoder.is_between_frames() {
            let lane = state_name(self.state);
            return Err(self.fail(ProtocolError::Truncated { lane }));
        }
        self.state = State::Closed;
        self.events.push_back(AppendEvent::Ended);
        Ok(())
    }

    /// The next event.
    pub fn poll_event(&mut self) -> Option<AppendEvent> {
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
        let is_over = self.is_finishing || self.state == State::Closed;
        is_over && self.output.bytes() == 0
    }

    /// Batches that may be sent now; 0 unless the session is open.
    pub fn window_free(&self) -> u32 {
        match self.state {
            State::Open { window } if !self.is_finishing => window - self.unanswered as u32,
            State::Opening | State::Open { .. } | State::Closed => 0,
        }
    }

    /// Batches without an answer.
    pub fn unanswered(&self) -> usize {
        self.unanswered
    }

    fn take(&mut self, frame: Frame) -> Result<(), ProtocolError> {
        let event = match frame {
            Frame::AppendOpened(opened) => {
                check::append_opened(&opened)?;
                let window = opened.window_batches;
                self.state = State::Open { window };
                AppendEvent::Opened(opened)
            }
            Frame::OpenRefused(refusal) => {
                check::refusal(Kind::OpenRefused, &refusal)?;
                self.close();
                AppendEvent::OpenRefused(refusal)
            }
            Frame::Acked(ack) => {
                check::ack(Kind::Acked, &ack)?;
                self.unanswered -= 1;
                AppendEvent::Acked(ack)
            }
            Frame::Rejected(refusal) => {
                check::refusal(Kind::Rejected, &refusal)?;
                self.unanswered -= 1;
                self.has_rejection = true;
                AppendEvent::Rejected(refusal)
            }
            Frame::Broken(refusal) => {
                check::refusal(Kind::Broken, &refusal)?;
                self.close();
                AppendEvent::Broken(refusal)
            }
            frame => unreachable!("{frame:?} was not permitted"),
        };
        self.events.push_back(event);
        Ok(())
    }

    fn close(&mut self) {
        self.state = State::Closed;
        self.output.clear();
    }

    fn fail(&mut self, error: ProtocolError) -> ProtocolError {
        self.close();
        self.events.clear();
        self.decoder = Decoder::new();
        error
    }
}

fn permit((state, unanswered): (State, usize), kind: Kind) -> Result<(), ProtocolError> {
    match (state, kind) {
        (State::Opening, Kind::AppendOpened | Kind::OpenRefused)
        | (State::Open { .. }, Kind::Broken) => Ok(()),
        (State::Open { .. }, Kind::Acked | Kind::Rejected) if unanswered > 0 => Ok(()),
        (state, kind) => Err(ProtocolError::OutOfPlace {
            kind,
            lane: state_name(state),
        }),
    }
}

fn state_name(state: State) -> &'static str {
    match state {
        State::Opening => "an append session being opened",
        State::Open { .. } => "an append session",
        State::Closed => "closed",
    }
}
