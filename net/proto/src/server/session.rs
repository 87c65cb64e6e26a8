//! The order of a session's answers, when some are the shard's and some the lane's own.
//!
//! ```text
//!   batches:  1 to the shard   2 too large: own   3 behind it: own   Resume   4 to the shard
//!   slots:    [Shard]          [Own TOO_LARGE]    [Own BEHIND_..]             [Shard]
//!   the shard acks 1  ->  Acked 1, Rejected 2, Rejected 3 leave together; 4 waits for its own
//! ```
//!
//! # Invariants
//! - The first slot is the shard's: own answers at the front have left.
//! - There are at most the window of slots, and at most as many resumes to come.
//!
//! # Not here
//! - `BEHIND_REJECTED` after a rejection of the shard's: the shard says that.

use super::Input;
use crate::error::ProtocolError;
use crate::frame::{Kind, RawBatch};
use crate::output::Output;
use nova_model::limits::SESSION_WINDOW_BATCHES;
use nova_model::request::{Ack, SessionAppend};
use nova_model::{Code, Refusal};
use std::collections::VecDeque;

#[derive(Debug)]
enum Slot {
    /// The shard has the batch.
    Shard,
    /// The lane refuses it, once it is its turn.
    Own(Refusal),
}

/// An open append session.
#[derive(Debug)]
pub(super) struct Session {
    has_writer: bool,
    window: u32,
    slots: VecDeque<Slot>,
    /// The lane refused a batch and no `Resume` came since.
    is_stopped: bool,
    /// How many rejections left that no `Resume` has followed yet.
    resumes: u32,
}

impl Session {
    pub(super) fn new(has_writer: bool, window: u32) -> Session {
        let most = SESSION_WINDOW_BATCHES as u32;
        assert!((1..=most).contains(&window), "a window of {window} batches");
        Session {
            has_writer,
            window,
            slots: VecDeque::with_capacity(window as usize),
            is_stopped: false,
            resumes: 0,
        }
    }

    /// The window, if one more batch goes beyond it.
    pub(super) fn window_exceeded(&self) -> Option<u32> {
        (self.slots.len() >= self.window as usize).then_some(self.window)
    }

    /// Whether there is a rejection to resume after.
    pub(super) fn may_resume(&self) -> bool {
        self.resumes > 0
    }

    /// Whether every batch has its answer.
    pub(super) fn is_answered(&self) -> bool {
        self.slots.is_empty()
    }

    /// The next batch: for the shard, or refused here.
    pub(super) fn append(
        &mut self,
        append: SessionAppend,
        batch: RawBatch,
        output: &mut Output,
    ) -> Result<Option<Input>, ProtocolError> {
        assert!(self.window_exceeded().is_none(), "asked by the header");
        let checked = batch.check_for(Kind::Append)?;
        let judged = match checked {
            _ if self.is_stopped => Err(behind_rejected()),
            Err(refusal) => Err(refusal),
            Ok(_) if append.writer_sequence.is_some() && !self.has_writer => Err(no_writer()),
            Ok(batch) => Ok(batch),
        };
        match judged {
            Ok(batch) => {
                self.slots.push_back(Slot::Shard);
                Ok(Some(Input::Append(append, batch)))
            }
            Err(refusal) => {
                self.is_stopped = true;
                self.slots.push_back(Slot::Own(refusal));
                self.flush(output);
                Ok(None)
            }
        }
    }

    /// The peer saw a rejection and goes on.
    pub(super) fn resume(&mut self) {
        assert!(self.may_resume(), "asked by the header");
        self.resumes -= 1;
        self.is_stopped = false;
    }

    /// The shard's first batch is durable.
    pub(super) fn acked(&mut self, ack: &Ack, output: &mut Output) {
        self.pop_shard();
        output.archive(Kind::Acked, ack);
        self.flush(output);
    }

    /// The shard's first batch is refused.
    pub(super) fn rejected(&mut self, refusal: &Refusal, output: &mut Output) {
        self.pop_shard();
        self.reject(refusal, output);
        self.flush(output);
    }

    fn pop_shard(&mut self) {
        let slot = self.slots.pop_front();
        let is_shard = matches!(slot, Some(Slot::Shard));
        assert!(is_shard, "an answer for no batch of the shard");
    }

    fn flush(&mut self, output: &mut Output) {
        while let Some(Slot::Own(refusal)) = self.slots.front() {
            let refusal = refusal.clone();
            self.slots.pop_front();
            self.reject(&refusal, output);
        }
    }

    fn reject(&mut self, refusal: &Refusal, output: &mut Output) {
        assert!(refusal.is_bounded(), "a refusal of this star is too long");
        output.archive(Kind::Rejected, refusal);
        self.resumes = (self.resumes + 1).min(self.window);
    }
}

fn behind_rejected() -> Refusal {
    let message = "a batch before this one in its session was rejected";
    Refusal::new(Code::BehindRejected, message)
}

fn no_writer() -> Refusal {
    let message = "the batch has a writer's number, but its session names no writer";
    Refusal::invalid("writer_sequence", None, message)
}
