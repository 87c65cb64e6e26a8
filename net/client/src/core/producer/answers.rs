//! What the producer makes of the star's answers and of the end of a session.
//!
//! # Invariants
//! - A batch is reported `Refused` only if no attempt to append it can have been applied.

use super::queue::Pending;
use super::{Action, Producer, State, Target};
use crate::core::Moment;
use crate::core::handshake::HandshakeFailure;
use crate::core::outcome::AppendError;
use nova_model::request::{Ack, AppendOpened};
use nova_model::{Code, Facts, Instant, Refusal};

impl Producer {
    /// The open frame is on its way to the star, which owes an answer from now on.
    pub fn handle_asked(&mut self, now: Instant) {
        if let State::Opening { is_asked } = &mut self.state {
            *is_asked = true;
            self.heard = now;
        }
    }

    /// The session is open.
    pub fn handle_opened(&mut self, opened: AppendOpened) {
        if !matches!(self.state, State::Opening { .. }) {
            return;
        }
        if self.stream_id.is_some_and(|id| id != opened.stream_id) {
            return self.incarnation_is_gone();
        }
        self.stream_id = Some(opened.stream_id);
        self.tail = self.tail.max(opened.tail.sequence);
        self.opened = Some(opened);
        if self.queue.is_empty() {
            self.patience.reset();
        }
        let window = opened.window_batches.max(1) as usize;
        self.state = State::Open { window };
    }

    /// The star did not open the session.
    pub fn handle_open_refused(&mut self, at: Moment, refusal: Refusal) {
        if matches!(self.state, State::Opening { .. }) {
            self.session_refused(at, refusal);
        }
    }

    /// The oldest batch in flight is durable.
    pub fn handle_acked(&mut self, at: Moment, ack: Ack) {
        let Some(pending) = self.queue.answered() else {
            return self.handle_lost(at);
        };
        self.heard = at.now;
        self.queue.applied(&pending);
        self.tail = self.tail.max(ack.end.sequence);
        self.patience.reset();
        self.resolve(pending.number, Ok(ack));
        self.finish_rejection(at);
    }

    /// The oldest batch in flight was not applied, or its outcome is unknown to the star.
    pub fn handle_rejected(&mut self, at: Moment, refusal: Refusal) {
        let Some(mut pending) = self.queue.answered() else {
            return self.handle_lost(at);
        };
        self.heard = at.now;
        if let State::Open { window } = self.state {
            self.state = State::Rejecting { window };
        }
        if refusal.code == Code::BehindRejected {
            self.behind_rejected(pending, refusal);
        } else if refusal.code == Code::WriterGap && self.writer.is_some() {
            self.queue.keep(pending);
            return self.renew_writer(at, refusal);
        } else if refusal.retry {
            pending.maybe_applied |= !refusal.clean;
            self.queue.keep(pending);
            self.note_retry(&refusal);
        } else if self.is_certain(&pending, &refusal) {
            if pending.maybe_applied {
                self.queue.clear_doubt();
            }
            let numbering_lost = refusal.code == Code::DuplicateMismatch;
            self.resolve(pending.number, Err(AppendError::Refused(refusal.clone())));
            if numbering_lost && self.writer.is_some() {
                return self.renew_writer(at, refusal);
            }
        } else {
            let ambiguity = self.ambiguity(&pending, Some(refusal.clone()));
            self.resolve(pending.number, Err(AppendError::Ambiguous(ambiguity)));
            if self.writer.is_some() {
                return self.renew_writer(at, refusal);
            }
        }
        self.finish_rejection(at);
    }

    /// The star ended the session and said why. If that is clean, nothing of what it did not answer
    /// was applied by this session; what an earlier one left in doubt stays in doubt.
    pub fn handle_broken(&mut self, at: Moment, refusal: Refusal) {
        if !self.has_session() {
            // It was given up already, for an answer right before this notice.
            return;
        }
        if refusal.clean {
            self.end_session();
        } else {
            self.lose_session();
        }
        self.session_refused(at, refusal);
    }

    /// The session, or the attempt to get one, ended without a word.
    pub fn handle_lost(&mut self, at: Moment) {
        if matches!(self.state, State::Opening { .. }) {
            self.target = Target::Star;
        } else if !self.has_session() {
            return;
        }
        self.lose_session();
        self.actions.push_back(Action::Disconnect);
        if let Some(target) = self.redirect.take() {
            self.target = target;
        }
        self.wait_for_star(at);
    }

    /// The address that a session was asked for does not resolve.
    pub fn handle_unresolvable(&mut self, address: String) {
        if !matches!(self.state, State::Opening { .. }) {
            return;
        }
        self.target = Target::Star;
        self.fail_all(AppendError::HolderUnresolvable { address }, None);
        self.after_failing_all();
    }

    /// Who answers where a session was asked for is not to be spoken with, now or later.
    pub fn handle_handshake_failed(&mut self, failure: Box<HandshakeFailure>) {
        if !matches!(self.state, State::Opening { .. }) {
            return;
        }
        let error = AppendError::Handshake(failure);
        self.fail_all(error.clone(), None);
        self.state = State::Broken(error);
    }

    /// A session was refused or ended by the star; nothing is in flight.
    fn session_refused(&mut self, at: Moment, refusal: Refusal) {
        self.actions.push_back(Action::Disconnect);
        self.last_refusal = Some(refusal.clone());
        if !refusal.retry {
            self.fail_all(AppendError::Refused(refusal.clone()), Some(refusal));
            return self.after_failing_all();
        }
        self.note_retry(&refusal);
        self.pause = None;
        self.reconnect(at, after_us(&refusal));
    }

    /// Goes where the refusal pointed to: at once to a known holder, else after a backoff.
    fn reconnect(&mut self, at: Moment, after_us: Option<u64>) {
        let Some(target) = self.redirect.take() else {
            return self.wait(at, after_us);
        };
        let is_known = matches!(target, Target::Address(_));
        self.target = target;
        if self.needs_session() {
            self.patience.begin(at.now);
        }
        if is_known && self.patience.redirect_at_once() {
            self.connect();
        } else {
            self.wait(at, None);
        }
    }

    /// Remembers what a retryable refusal says about where and when.
    fn note_retry(&mut self, refusal: &Refusal) {
        self.last_refusal = Some(refusal.clone());
        if let Facts::Holder { address, .. } = &refusal.facts {
            self.redirect = Some(address.clone().map_or(Target::Star, Target::Address));
        }
        self.pause = Some(after_us(refusal));
    }

    fn behind_rejected(&mut self, pending: Pending, refusal: Refusal) {
        if pending.match_sequence.is_some() && !pending.maybe_applied {
            self.resolve(pending.number, Err(AppendError::Refused(refusal)));
        } else {
            self.queue.keep(pending);
        }
    }

    /// Whether a final refusal of this batch proves that no attempt was applied, nor will be. With
    /// a writer the star knows repeats before it judges the tail; but a copy that is still on its
    /// way could fit later, unless the tail is past the one it needs already.
    fn is_certain(&self, pending: &Pending, refusal: &Refusal) -> bool {
        let is_past = match (&refusal.facts, pending.match_sequence) {
            (Facts::Tail(tail), Some(needed)) => tail.sequence > needed,
            _ => false,
        };
        let after_duplicates =
            self.writer.is_some() && refusal.code == Code::SeqMismatch && is_past;
        refusal.clean && (!pending.maybe_applied || after_duplicates)
    }

    /// Goes on after a rejection, once all that was behind it is answered.
    fn finish_rejection(&mut self, at: Moment) {
        let State::Rejecting { window } = self.state else {
            return;
        };
        if self.queue.in_flight() > 0 {
            return;
        }
        self.queue.rewind();
        let pause = self.pause.take();
        if self.redirect.is_some() {
            self.opened = None;
            self.actions.push_back(Action::Disconnect);
            return self.reconnect(at, pause.flatten());
        }
        let Some(after_us) = pause else {
            self.actions.push_back(Action::Resume);
            self.state = State::Open { window };
            return;
        };
        self.patience.begin(at.now);
        if self.patience.is_spent(at.now) {
            return self.give_up();
        }
        let until = self.patience.next_attempt(at, after_us);
        self.state = State::Paused { window, until };
    }

    /// Conditional batches that are in flight behind a rejected one, when the session ends before
    /// it says so: they were written on the belief that the rejected one held.
    pub(super) fn report_conditional(&mut self) {
        while let Some(pending) = self.queue.answered() {
            self.behind_rejected(pending, behind_rejected());
        }
    }

    /// The numbering is lost: a new writer goes on with what certainly was not applied.
    fn renew_writer(&mut self, at: Moment, refusal: Refusal) {
        self.lose_session();
        for pending in self.queue.extract(|pending| pending.maybe_applied) {
            let ambiguity = self.ambiguity(&pending, Some(refusal.clone()));
            self.resolve(pending.number, Err(AppendError::Ambiguous(ambiguity)));
        }
        if let Some(target) = self.redirect.take() {
            self.target = target;
        }
        self.last_refusal = Some(refusal);
        self.patience.begin(at.now);
        self.actions.push_back(Action::Disconnect);
        self.ask_for_writer();
    }

    fn ask_for_writer(&mut self) {
        self.queue.renumber();
        self.actions.push_back(Action::NeedWriter);
        self.state = State::AwaitingWriter;
    }

    /// After all was resolved: with a writer, the star may have numbers that are not known here.
    fn after_failing_all(&mut self) {
        self.demand = false;
        self.redirect = None;
        if self.writer.is_some() {
            self.ask_for_writer();
        } else {
            self.rest();
        }
    }

    /// The stream was deleted and made again: this producer was not made for the new one.
    fn incarnation_is_gone(&mut self) {
        let message = "the stream this producer was opened on was deleted and made again";
        let error = AppendError::Refused(Refusal::new(Code::StreamNotFound, message));
        self.fail_all(error.clone(), None);
        self.actions.push_back(Action::Disconnect);
        self.state = State::Broken(error);
    }
}

fn after_us(refusal: &Refusal) -> Option<u64> {
    match refusal.facts {
        Facts::After(us) => Some(us),
        _ => None,
    }
}

fn behind_rejected() -> Refusal {
    Refusal::new(
        Code::BehindRejected,
        "a batch before this one in its session was rejected",
    )
}
