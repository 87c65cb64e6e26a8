//! What a read or a write came to, and what follows from it.
//!
//! | what came | what follows |
//! | --- | --- |
//! | written | all are answered |
//! | `SEQ_MISMATCH` | read again; at once if the write was a guess from memory |
//! | no answer, or a refusal with the `retry` bit | read again after a wait; a doubt if not clean |
//! | `FENCED` | all are told; if a write is in doubt, the stream is read once more before |
//! | a read that starts at trimmed records | read the newest again |
//! | another incarnation than an earlier batch had | forget it and begin anew, unless in doubt |
//! | a read that starts behind a write in doubt | all are told, and that it is not certain |
//! | no stream, and none was ever read | it is empty: whether it is created is the bucket's rule |
//! | any other refusal | all are told |

use super::{Action, FencedWrite, Safeguard, State};
use crate::core::Moment;
use crate::core::cursor::ReadBatch;
use crate::core::fenced::memory::{Memory, Stored};
use crate::core::fenced::outcome::UpdateError;
use crate::core::outcome::AppendError;
use nova_model::{Code, Facts, Instant, Refusal, SequenceNumber, StreamId};

impl FencedWrite {
    /// The read of this incarnation starts here.
    pub fn handle_read_begun(&mut self, stream_id: StreamId, start: SequenceNumber) {
        if !matches!(self.state, State::Reading { .. }) {
            return;
        }
        self.is_guess = false;
        self.memory.begin(stream_id, start);
        if self.doubt.is_some_and(|doubt| start > doubt) {
            // What was written in between is not in this read, so the doubt can't end.
            self.actions.push_back(Action::Cancel);
            self.give_up();
        }
    }

    /// The read gave its next batch.
    pub fn handle_stored(&mut self, now: Instant, batch: &ReadBatch) {
        if !matches!(self.state, State::Reading { .. }) {
            return;
        }
        self.memory.learn_batch(batch);
        let deadline = self.attempt_deadline(now);
        self.state = State::Reading { deadline };
    }

    /// The read has given all up to the tail.
    pub fn handle_read_all(&mut self, now: Instant) {
        if matches!(self.state, State::Reading { .. }) {
            self.decide(now);
        }
    }

    /// The write is durable, from `start` up to but without `end`.
    pub fn handle_written(&mut self, at: Moment, start: SequenceNumber, end: SequenceNumber) {
        if !matches!(self.state, State::Writing { .. }) {
            return;
        }
        let written = self.firsts().count() as u64;
        let fits = self.memory.next() == Some(start) || !self.has(Safeguard::Match);
        if !fits || end != start.plus(written) {
            // Not what was asked for: only the stream itself can tell what it holds.
            self.begin_doubt();
            return self.again(at, None);
        }
        let stored = |(at, update): (u64, &super::Update)| {
            let (at, content) = (SequenceNumber(at), update.content());
            (update.id().clone(), Stored { at, content })
        };
        let all: Vec<_> = (start.0..).zip(self.firsts()).map(stored).collect();
        for (id, stored) in all {
            self.memory.learn(stored.at, id.clone(), stored.content);
            self.settle(&id, stored, false);
        }
        self.memory.advance(end);
        self.state = State::Over;
    }

    /// The read or the write has failed.
    pub fn handle_failed(&mut self, at: Moment, error: AppendError) {
        let was_writing = match self.state {
            State::Reading { .. } => false,
            State::Writing { .. } => true,
            State::New | State::Waiting { .. } | State::Over => return,
        };
        if was_writing && !error.is_clean() {
            self.begin_doubt();
        }
        match error {
            AppendError::Refused(refusal) => self.refused(at, refusal, was_writing),
            AppendError::Ambiguous(ambiguity) => self.failed(at, ambiguity.refusal),
            AppendError::Unavailable { last, .. } => self.failed(at, last.map(|last| *last)),
            AppendError::HolderUnresolvable { address } => {
                let is_clean = self.doubt.is_none();
                self.fail(UpdateError::HolderUnresolvable { address, is_clean });
            }
            AppendError::Handshake(failure) => {
                let is_clean = self.doubt.is_none();
                self.fail(UpdateError::Handshake { failure, is_clean });
            }
            AppendError::Closed => {
                let is_clean = self.doubt.is_none();
                self.fail(UpdateError::Closed { is_clean });
            }
        }
    }

    /// Trouble that may pass.
    fn failed(&mut self, at: Moment, refusal: Option<Refusal>) {
        let after_us = refusal.as_ref().and_then(after_us);
        self.last = refusal.or(self.last.take());
        self.again(at, after_us);
    }

    fn refused(&mut self, at: Moment, refusal: Refusal, was_writing: bool) {
        match refusal.code {
            Code::SeqMismatch if was_writing => self.mismatched(at, refusal),
            Code::Fenced if was_writing && self.doubt.is_some() => {
                self.verdict = Some(refusal);
                self.patience.begin(at.now);
                self.read(at.now);
            }
            Code::Trimmed if !was_writing && self.doubt.is_none() => {
                self.memory.lose_place();
                self.failed(at, Some(refusal));
            }
            Code::StreamNotFound | Code::PastTail if self.is_guess && self.doubt.is_none() => {
                self.memory = Memory::new(self.memory.known_records());
                self.is_guess = false;
                self.read(at.now);
            }
            Code::StreamNotFound if !was_writing && self.memory.stream_id().is_none() => {
                self.memory.begin_absent();
                self.decide(at.now);
            }
            _ if refusal.retry => self.failed(at, Some(refusal)),
            _ => self.refuse(refusal),
        }
    }

    fn mismatched(&mut self, at: Moment, refusal: Refusal) {
        if !self.has(Safeguard::ReadAgain) {
            if let Facts::Tail(tail) = refusal.facts {
                self.memory.advance(tail.sequence);
            }
            return self.decide(at.now);
        }
        if self.is_guess {
            // Somebody else has written since: no trouble yet.
            self.is_guess = false;
            self.read(at.now);
        } else {
            self.failed(at, Some(refusal));
        }
    }
}

fn after_us(refusal: &Refusal) -> Option<u64> {
    match refusal.facts {
        Facts::After(us) => Some(us),
        _ => None,
    }
}
