//! The client's end of a reader.
//!
//! ```text
//!   Opening --Opened--> Open --Ended, Failed--> Closed
//!      +------Refused-----------------------------^
//! ```
//! Batches are whole: the first may begin before the start of the read, the last may go on behind
//! its end. Who hands records out cuts them.
//!
//! # Invariants
//! - Batches leave no gap between them and none brings only what was there before.
//! - The lane keeps its direction open for as long as it reads: ending it ends the read.

use super::check;
use crate::error::ProtocolError;
use crate::frame::decode::Decoder;
use crate::frame::read::{Placed, ReadEnd};
use crate::frame::{Frame, Kind, RawBatch};
use crate::output::Output;
use bytes::Bytes;
use nova_model::limits::READER_CREDIT_BYTES;
use nova_model::position::Position;
use nova_model::request::{ReadOpen, ReadOpened};
use nova_model::{Refusal, SequenceNumber, StoredBatch};
use std::collections::VecDeque;

/// What happened on a [`ReadLane`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReadEvent {
    /// The reader is open.
    Opened(ReadOpened),
    /// It is not opened.
    Refused(Refusal),
    /// The next batch.
    Batch(StoredBatch),
    /// All that is durable was sent.
    CaughtUp(Position),
    /// The tail.
    Heartbeat(Position),
    /// The read is complete.
    Ended {
        /// The first record that was not part of it.
        next: SequenceNumber,
        /// The committed tail.
        tail: Position,
    },
    /// The read cannot go on.
    Failed(Refusal),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// The open frame has no answer yet.
    Opening,
    /// Batches come; `next` is the first record that has not come.
    Open { next: SequenceNumber },
    /// Nothing more comes.
    Closed,
}

/// A reader.
#[derive(Debug)]
pub struct ReadLane {
    decoder: Decoder,
    state: State,
    is_finishing: bool,
    events: VecDeque<ReadEvent>,
    event_bytes: usize,
    output: Output,
}

impl ReadLane {
    /// Queues the open frame. An open that the star would refuse is refused here.
    pub fn new(open: ReadOpen) -> ReadLane {
        let mut lane = ReadLane {
            decoder: Decoder::new(),
            state: State::Opening,
            is_finishing: false,
            events: VecDeque::new(),
            event_bytes: 0,
            output: Output::default(),
        };
        match open.check() {
            Ok(()) => lane.output.archive(Kind::OpenRead, &open),
            Err(refusal) => {
                lane.state = State::Closed;
                lane.push(ReadEvent::Refused(refusal));
            }
        }
        lane
    }

    /// Wants nothing more. The star ends the stream without a last word.
    pub fn finish(&mut self) {
        self.is_finishing = true;
    }

    /// Bytes of the star, in order, cut anywhere. After an error the lane is dead.
    pub fn handle_bytes(&mut self, mut bytes: Bytes) -> Result<(), ProtocolError> {
        while self.state != State::Closed {
            let state = self.state;
            let raw = self.decoder.next(&mut bytes, |kind| permit(state, kind));
            let taken = match raw {
                Ok(None) => return Ok(()),
                Ok(Some(raw)) => Frame::decode(raw).and_then(|frame| self.take(frame)),
                Err(error) => Err(error),
            };
            taken.map_err(|error| self.fail(error))?;
        }
        Ok(())
    }

    /// The star sends nothing more. Fails if it owes its last word.
    pub fn handle_end(&mut self) -> Result<(), ProtocolError> {
        if self.state == State::Closed {
            return Ok(());
        }
        if !self.is_finishing || !self.decoder.is_between_frames() {
            let lane = state_name(self.state);
            return Err(self.fail(ProtocolError::Truncated { lane }));
        }
        self.state = State::Closed;
        Ok(())
    }

    /// The next event.
    pub fn poll_event(&mut self) -> Option<ReadEvent> {
        let event = self.events.pop_front()?;
        self.event_bytes -= event_bytes(&event);
        Some(event)
    }

    /// Whether the driver should read from the stream: not while events wait that hold more than
    /// `READER_CREDIT_BYTES`.
    pub fn wants_input(&self) -> bool {
        self.event_bytes <= READER_CREDIT_BYTES
    }

    /// The next chunk to write.
    pub fn poll_output(&mut self) -> Option<Bytes> {
        self.output.poll()
    }

    /// Bytes that wait to be written.
    pub fn output_bytes(&self) -> usize {
        self.output.bytes()
    }

    /// Whether the direction is to be finished.
    pub fn wants_finish(&self) -> bool {
        let is_over = self.is_finishing || self.state == State::Closed;
        is_over && self.output.bytes() == 0
    }

    fn take(&mut self, frame: Frame) -> Result<(), ProtocolError> {
        let event = match frame {
            Frame::ReadOpened(opened) => {
                let next = opened.start;
                self.state = State::Open { next };
                ReadEvent::Opened(opened)
            }
            Frame::OpenRefused(refusal) => {
                check::refusal(Kind::OpenRefused, &refusal)?;
                self.state = State::Closed;
                ReadEvent::Refused(refusal)
            }
            Frame::Batch(placed, batch) => ReadEvent::Batch(self.take_batch(placed, batch)?),
            Frame::CaughtUp(tail) => ReadEvent::CaughtUp(tail),
            Frame::Heartbeat(tail) => ReadEvent::Heartbeat(tail),
            Frame::ReadEnded(ReadEnd { next, tail }) => {
                self.state = State::Closed;
                ReadEvent::Ended { next, tail }
            }
            Frame::ReadFailed(refusal) => {
                check::refusal(Kind::ReadFailed, &refusal)?;
                self.state = State::Closed;
                ReadEvent::Failed(refusal)
            }
            frame => unreachable!("{frame:?} was not permitted"),
        };
        self.push(event);
        Ok(())
    }

    fn push(&mut self, event: ReadEvent) {
        self.event_bytes += event_bytes(&event);
        self.events.push_back(event);
    }

    fn take_batch(
        &mut self,
        placed: Placed,
        batch: RawBatch,
    ) -> Result<StoredBatch, ProtocolError> {
        let State::Open { next } = self.state else {
            unreachable!("a batch is permitted on an open reader only");
        };
        let batch = batch.check_strictly(Kind::Batch)?;
        let end = check::batch_end(placed.first, batch.records())?;
        if placed.first > next || end <= next {
            let what = "it does not follow the batch before it";
            return Err(ProtocolError::Content {
                kind: Kind::Batch,
                what,
            });
        }
        self.state = State::Open { next: end };
        Ok(StoredBatch {
            first: placed.first,
            epoch: placed.epoch,
            stamping: placed.stamping,
            writer: placed.writer,
            batch,
        })
    }

    fn fail(&mut self, error: ProtocolError) -> ProtocolError {
        self.state = State::Closed;
        self.output.clear();
        self.events.clear();
        self.event_bytes = 0;
        self.decoder = Decoder::new();
        error
    }
}

/// What an event counts for: itself and the bytes it keeps alive.
fn event_bytes(event: &ReadEvent) -> usize {
    let batch = match event {
        ReadEvent::Batch(stored) => stored.batch.bytes().len(),
        ReadEvent::Opened(_)
        | ReadEvent::Refused(_)
        | ReadEvent::CaughtUp(_)
        | ReadEvent::Heartbeat(_)
        | ReadEvent::Ended { .. }
        | ReadEvent::Failed(_) => 0,
    };
    size_of::<ReadEvent>() + batch
}

fn permit(state: State, kind: Kind) -> Result<(), ProtocolError> {
    match (state, kind) {
        (State::Opening, Kind::ReadOpened | Kind::OpenRefused)
        | (
            State::Open { .. },
            Kind::Batch | Kind::CaughtUp | Kind::Heartbeat | Kind::ReadEnded | Kind::ReadFailed,
        ) => Ok(()),
        (state, kind) => Err(ProtocolError::OutOfPlace {
            kind,
            lane: state_name(state),
        }),
    }
}

fn state_name(state: State) -> &'static str {
    match state {
        State::Opening => "a reader being opened",
        State::Open { .. } => "a reader",
        State::Closed => "closed",
    }
}
