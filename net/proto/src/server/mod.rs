//! The star's end of a lane: bytes to inputs for the shard, the shard's answers to bytes.
//!
//! ```text
//!             OpenAppend                 opened              peer ended, all answered
//!        +----------------> AppendOpening ----> Appending ----------------------+
//!        |                        | open_refused      | broken                  v
//!   New -+  Request, AppendOnce   +-------------------+------------------->  Closed
//!        +----------------> Control --------------------------------------------^
//!        |  OpenRead                    read_opened           peer ended        |
//!        +----------------> ReadOpening ----> Reading --------------------------+
//!                                 | open_refused      | read_ended, read_failed |
//!                                 +-------------------+-------------------------+
//! ```
//! What is wrong in a well-formed frame (a name, a token, a size) is refused by the lane itself;
//! the shard never sees it, and the answers of a session keep the order of its batches.
//!
//! # How a driver uses it
//! Bytes in, all inputs out, answers in, all output out; then, when [`Lane::is_finished`], it
//! finishes its direction and stops the other with code 0. It may read on while
//! [`Lane::wants_input`]. Answers that come for a lane that has ended meanwhile are ignored.
//!
//! # Invariants
//! - Inputs waiting: at most the window, as many `Resume`s, an open and an end.
//! - At most the window of batches, or of requests, is unanswered; one more is the peer's error.
//!
//! # Not here
//! - Whether an append holds: the shard. The lane says `BEHIND_REJECTED` only behind a batch that
//!   it refused itself.

mod control;
mod session;
mod state;

use crate::error::ProtocolError;
use crate::frame::decode::Decoder;
use crate::frame::read::{ReadEnd, encode_batch};
use crate::frame::{Frame, Kind, RequestId};
use crate::output::Output;
use bytes::Bytes;
use control::{Control, Pending};
use nova_model::limits::{GROUP_BYTES_MAX, LANE_OUTPUT_BYTES_MAX};
use nova_model::position::Position;
use nova_model::request::{
    Ack, Answer, AppendOpen, AppendOpened, OneShotAppend, ReadOpen, ReadOpened, Request,
    SessionAppend,
};
use nova_model::{EncodedBatch, Refusal, SequenceNumber, StoredBatch};
use session::Session;
use state::State;
use std::collections::VecDeque;

/// What the peer of a lane wants of the shard.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Input {
    /// Open a session: answered by [`Lane::opened`] or [`Lane::open_refused`].
    OpenAppend(AppendOpen),
    /// A batch of the session: answered, in order, by [`Lane::acked`] or [`Lane::rejected`].
    Append(SessionAppend, EncodedBatch),
    /// Batches from here on are not behind a rejected one. It can come although the shard has
    /// rejected nothing: the lane may have.
    Resume,
    /// The peer sends nothing more on the session. What is unanswered still wants its answer.
    EndAppend,
    /// A request: answered, in any order, by [`Lane::answered`].
    Request(RequestId, Request),
    /// A one-shot append: answered, in any order, by [`Lane::appended_once`].
    AppendOnce(RequestId, OneShotAppend, EncodedBatch),
    /// Open a reader: answered by [`Lane::read_opened`] or [`Lane::open_refused`].
    OpenRead(ReadOpen),
    /// The peer wants nothing more of the reader. Nothing has to be answered.
    EndRead,
}

/// One lane, see the module.
#[derive(Debug)]
pub struct Lane {
    decoder: Decoder,
    state: State,
    peer_ended: bool,
    inputs: VecDeque<Input>,
    output: Output,
}

impl Default for Lane {
    fn default() -> Lane {
        Lane::new()
    }
}

impl Lane {
    /// A lane whose first frame has not come yet.
    pub fn new() -> Lane {
        Lane {
            decoder: Decoder::new(),
            state: State::New,
            peer_ended: false,
            inputs: VecDeque::new(),
            output: Output::default(),
        }
    }

    // Facts from the peer.

    /// Bytes of the peer, in order, cut anywhere. After an error the lane is dead.
    pub fn handle_bytes(&mut self, mut bytes: Bytes) -> Result<(), ProtocolError> {
        assert!(!self.peer_ended, "bytes after the end");
        loop {
            if matches!(self.state, State::Closed | State::Failed) {
                return Ok(());
            }
            let state = &self.state;
            let step = self.decoder.next(&mut bytes, |kind| state.permit(kind));
            let step = step.and_then(|raw| match raw {
                None => Ok(None),
                Some(raw) => Frame::decode(raw).map(Some),
            });
            let taken = match step {
                Ok(None) => return Ok(()),
                Ok(Some(frame)) => self.take(frame),
                Err(error) => Err(error),
            };
            taken.map_err(|error| self.fail(error))?;
        }
    }

    /// The peer sends nothing more. Fails if a frame is incomplete.
    pub fn handle_end(&mut self) -> Result<(), ProtocolError> {
        self.peer_ended = true;
        if matches!(self.state, State::Closed | State::Failed) {
            return Ok(());
        }
        if !self.decoder.is_between_frames() {
            let lane = self.state.name();
            return Err(self.fail(ProtocolError::Truncated { lane }));
        }
        match &self.state {
            State::AppendOpening { .. } | State::Appending(_) => {
                self.inputs.push_back(Input::EndAppend);
            }
            State::ReadOpening | State::Reading => {
                self.inputs.push_back(Input::EndRead);
                self.state = State::Closed;
            }
            State::New | State::Control(_) | State::Closed | State::Failed => {}
        }
        Ok(())
    }

    /// The next thing that the peer wants.
    pub fn poll_input(&mut self) -> Option<Input> {
        self.inputs.pop_front()
    }

    // Answers of the shard.

    /// The session is open.
    ///
    /// # Panics
    /// If no `OpenAppend` waits, or the window is not 1 to `SESSION_WINDOW_BATCHES`.
    pub fn opened(&mut self, opened: AppendOpened) {
        let State::AppendOpening { has_writer } = self.state else {
            return self.assert_over("opened");
        };
        self.output.archive(Kind::AppendOpened, &opened);
        self.state = State::Appending(Session::new(has_writer, opened.window_batches));
    }

    /// The session or the reader is not opened. The lane's last word.
    ///
    /// # Panics
    /// If nothing waits to be opened.
    pub fn open_refused(&mut self, refusal: &Refusal) {
        match self.state {
            State::AppendOpening { .. } | State::ReadOpening => {
                self.last_word(Kind::OpenRefused, refusal);
            }
            _ => self.assert_over("open_refused"),
        }
    }

    /// The oldest batch that the shard has not answered is durable.
    ///
    /// # Panics
    /// If there is none.
    pub fn acked(&mut self, ack: &Ack) {
        match &mut self.state {
            State::Appending(session) => session.acked(ack, &mut self.output),
            _ => self.assert_over("acked"),
        }
    }

    /// The oldest batch that the shard has not answered is refused.
    ///
    /// # Panics
    /// If there is none.
    pub fn rejected(&mut self, refusal: &Refusal) {
        match &mut self.state {
            State::Appending(session) => session.rejected(refusal, &mut self.output),
            _ => self.assert_over("rejected"),
        }
    }

    /// The session is over; batches without an answer get none. The lane's last word.
    ///
    /// # Panics
    /// If the lane is no open session.
    pub fn broken(&mut self, refusal: &Refusal) {
        match self.state {
            State::Appending(_) => self.last_word(Kind::Broken, refusal),
            _ => self.assert_over("broken"),
        }
    }

    /// The answer to a request.
    ///
    /// # Panics
    /// If no request with this id is unanswered.
    pub fn answered(&mut self, id: RequestId, result: &Result<Answer, Refusal>) {
        match &mut self.state {
            State::Control(control) => {
                control.answer(id, Pending::Request);
                match result {
                    Ok(answer) => self.output.archive_for(Kind::Answered, id, answer),
                    Err(refusal) => refuse_request(&mut self.output, id, refusal),
                }
            }
            _ => self.assert_over("answered"),
        }
    }

    /// The answer to a one-shot append.
    ///
    /// # Panics
    /// If no one-shot append with this id is unanswered.
    pub fn appended_once(&mut self, id: RequestId, result: &Result<Ack, Refusal>) {
        match &mut self.state {
            State::Control(control) => {
                control.answer(id, Pending::AppendOnce);
                match result {
                    Ok(ack) => self.output.archive_for(Kind::AppendedOnce, id, ack),
                    Err(refusal) => refuse_request(&mut self.output, id, refusal),
                }
            }
            _ => self.assert_over("appended_once"),
        }
    }

    /// The reader is open.
    ///
    /// # Panics
    /// If no `OpenRead` waits.
    pub fn read_opened(&mut self, opened: ReadOpened) {
        match self.state {
            State::ReadOpening => {
                self.output.archive(Kind::ReadOpened, &opened);
                self.state = State::Reading;
            }
            _ => self.assert_over("read_opened"),
        }
    }

    /// A batch for the reader. The shard sends no more than [`Lane::output_room`] has room for,
    /// give or take one group.
    ///
    /// # Panics
    /// If the reader is not open, or far more was sent than there was room for.
    pub fn batch(&mut self, stored: &StoredBatch) {
        match self.state {
            State::Reading => {
                let most = LANE_OUTPUT_BYTES_MAX + GROUP_BYTES_MAX;
                assert!(self.output.bytes() <= most, "a reader is sent too much");
                encode_batch(&mut self.output, stored);
            }
            _ => self.assert_over("batch"),
        }
    }

    /// The reader has all that is durable, up to `tail`.
    ///
    /// # Panics
    /// If the reader is not open.
    pub fn caught_up(&mut self, tail: Position) {
        match self.state {
            State::Reading => self.output.archive(Kind::CaughtUp, &tail),
            _ => self.assert_over("caught_up"),
        }
    }

    /// The tail, told so that the peer knows that it still gets all there is.
    ///
    /// # Panics
    /// If the reader is not open.
    pub fn heartbeat(&mut self, tail: Position) {
        match self.state {
            State::Reading => self.output.archive(Kind::Heartbeat, &tail),
            _ => self.assert_over("heartbeat"),
        }
    }

    /// The read is complete: all before `next` was sent. The lane's last word.
    ///
    /// # Panics
    /// If the reader is not open.
    pub fn read_ended(&mut self, next: SequenceNumber, tail: Position) {
        match self.state {
            State::Reading => {
                self.output
                    .archive(Kind::ReadEnded, &ReadEnd { next, tail });
                self.close();
            }
            _ => self.assert_over("read_ended"),
        }
    }

    /// The read cannot go on. The lane's last word.
    ///
    /// # Panics
    /// If the reader is not open.
    pub fn read_failed(&mut self, refusal: &Refusal) {
        match self.state {
            State::Reading => self.last_word(Kind::ReadFailed, refusal),
            _ => self.assert_over("read_failed"),
        }
    }

    // What the driver needs to know.

    /// The next chunk to write.
    pub fn poll_output(&mut self) -> Option<Bytes> {
        self.output.poll()
    }

    /// Bytes that wait to be written.
    pub fn output_bytes(&self) -> usize {
        self.output.bytes()
    }

    /// Bytes that may be added before the lane has more than it should keep.
    pub fn output_room(&self) -> usize {
        LANE_OUTPUT_BYTES_MAX.saturating_sub(self.output.bytes())
    }

    /// Bytes allocated for a frame that has not arrived as a whole.
    pub fn input_bytes(&self) -> usize {
        self.decoder.held_bytes()
    }

    /// Whether the driver should read from the stream. A reader's lane always does, because all
    /// that can come is the end.
    pub fn wants_input(&self) -> bool {
        let has_room = self.output.bytes() <= LANE_OUTPUT_BYTES_MAX;
        match &self.state {
            _ if self.peer_ended => false,
            State::Failed => false,
            State::New | State::AppendOpening { .. } | State::Appending(_) => has_room,
            State::Control(control) => has_room && control.has_room(),
            State::ReadOpening | State::Reading | State::Closed => true,
        }
    }

    /// Whether everything is said and polled: the driver then finishes its direction.
    pub fn is_finished(&self) -> bool {
        let is_silent = match &self.state {
            State::Closed | State::Failed => true,
            State::New => self.peer_ended,
            State::Appending(session) => self.peer_ended && session.is_answered(),
            State::Control(control) => self.peer_ended && control.is_answered(),
            State::AppendOpening { .. } | State::ReadOpening | State::Reading => false,
        };
        is_silent && self.inputs.is_empty() && self.output.bytes() == 0
    }

    fn take(&mut self, frame: Frame) -> Result<(), ProtocolError> {
        if matches!(self.state, State::New) {
            self.state = self.begin(&frame);
        }
        match (&mut self.state, frame) {
            (State::AppendOpening { .. }, Frame::OpenAppend(open)) => match open.check() {
                Ok(()) => self.inputs.push_back(Input::OpenAppend(open)),
                Err(refusal) => self.last_word(Kind::OpenRefused, &refusal),
            },
            (State::ReadOpening, Frame::OpenRead(open)) => match open.check() {
                Ok(()) => self.inputs.push_back(Input::OpenRead(open)),
                Err(refusal) => self.last_word(Kind::OpenRefused, &refusal),
            },
            (State::Appending(session), Frame::Append(append, batch)) => {
                let input = session.append(append, batch, &mut self.output)?;
                self.inputs.extend(input);
            }
            (State::Appending(session), Frame::Resume) => {
                session.resume();
                self.inputs.push_back(Input::Resume);
            }
            (State::Control(control), Frame::Request(id, request)) => {
                control.begin(id, Pending::Request)?;
                match request.check() {
                    Ok(()) => self.inputs.push_back(Input::Request(id, request)),
                    Err(refusal) => self.answered(id, &Err(refusal)),
                }
            }
            (State::Control(control), Frame::AppendOnce(id, append, batch)) => {
                control.begin(id, Pending::AppendOnce)?;
                match control::check_append_once(&append, batch)? {
                    Ok(batch) => self.inputs.push_back(Input::AppendOnce(id, append, batch)),
                    Err(refusal) => self.appended_once(id, &Err(refusal)),
                }
            }
            (state, frame) => unreachable!("{frame:?} was not permitted on {}", state.name()),
        }
        Ok(())
    }

    /// What the lane becomes by its first frame.
    fn begin(&self, frame: &Frame) -> State {
        match frame {
            Frame::OpenAppend(open) => State::AppendOpening {
                has_writer: open.writer.is_some(),
            },
            Frame::OpenRead(_) => State::ReadOpening,
            _ => State::Control(Control::default()),
        }
    }

    fn last_word(&mut self, kind: Kind, refusal: &Refusal) {
        assert!(refusal.is_bounded(), "a refusal of this star is too long");
        self.output.archive(kind, refusal);
        self.close();
    }

    /// Nothing more is said; inputs that the shard has not taken mean nothing any more.
    fn close(&mut self) {
        self.inputs.clear();
        self.decoder = Decoder::new();
        self.state = State::Closed;
    }

    fn fail(&mut self, error: ProtocolError) -> ProtocolError {
        self.close();
        self.output.clear();
        self.state = State::Failed;
        error
    }

    /// An answer may come late, for a lane that is over; anything else is our own mistake.
    fn assert_over(&self, answer: &str) {
        let is_over = matches!(self.state, State::Closed | State::Failed);
        assert!(is_over, "{answer} on a lane that is {}", self.state.name());
    }
}

fn refuse_request(output: &mut Output, id: RequestId, refusal: &Refusal) {
    assert!(refusal.is_bounded(), "a refusal of this star is too long");
    output.archive_for(Kind::RequestRefused, id, refusal);
}
