//! Append sessions: opening, breaking, closing.
//!
//! # Invariants
//! - A session is bound to one incarnation of its stream and never outlives it.
//! - A `fenced` stream has at most one session.

use super::Shard;
use super::durable::Held;
use super::stream::Resolved;
use crate::admission;
use crate::event::{Event, SessionKey};
use crate::planted::PlantedBug;
use nova_model::condition::FencingToken;
use nova_model::ids::{StreamId, WriterId};
use nova_model::limits::SESSION_WINDOW_BATCHES;
use nova_model::request::{AppendOpen, AppendOpened};
use nova_model::settings::ProducerPolicy;
use nova_model::{Code, Facts, Now, Refusal};

/// An open append session.
pub(super) struct Session {
    pub(super) stream: StreamId,
    pub(super) fence: Option<FencingToken>,
    pub(super) writer: Option<WriterId>,
    /// Whether a batch was rejected and the client has not said `resume` yet.
    pub(super) is_rejecting: bool,
}

impl Shard {
    /// Opens an append session; `fresh` becomes the stream's id if it must be created.
    ///
    /// Answered by [`Event::SessionOpened`] or [`Event::SessionRefused`].
    pub fn open_session(
        &mut self,
        now: Now,
        session: SessionKey,
        open: AppendOpen,
        fresh: StreamId,
    ) {
        let resolved = match self.resolve_for_append(now, &open.stream, fresh) {
            Ok(resolved) => resolved,
            Err(refusal) => {
                return self
                    .events
                    .push_back(Event::SessionRefused(session, refusal));
            }
        };
        let id = match resolved {
            Resolved::Live(id) => id,
            Resolved::Absent { ticket, .. } => {
                let refusal = Refusal::stream_not_found(&open.stream);
                return self.hold_event(ticket, Event::SessionRefused(session, refusal));
            }
        };
        if let Err(refusal) = self.check_open(id, open.fence.as_ref()) {
            let ticket = self.stream(id).last_ticket;
            return self.hold_event(ticket, Event::SessionRefused(session, refusal));
        }
        self.lead(id);
        let opened = self.opened(id);
        let (fence, writer) = (open.fence, open.writer);
        let opened_session = Session {
            stream: id,
            fence,
            writer,
            is_rejecting: false,
        };
        self.sessions.insert(session, opened_session);
        self.streams.set_deadline(id, None);
        self.stream_mut(id).sessions.insert(session);
        let ticket = self.stream(id).last_ticket;
        self.hold_event(ticket, Event::SessionOpened(session, opened));
    }

    fn opened(&self, id: StreamId) -> AppendOpened {
        let state = &self.stream(id).assigned;
        AppendOpened {
            stream_id: id,
            epoch: state.epoch,
            tail: state.tail,
            window_batches: SESSION_WINDOW_BATCHES as u32,
            idle_timeout_us: self.config.idle_us,
        }
    }

    fn check_open(&self, id: StreamId, fence: Option<&FencingToken>) -> Result<(), Refusal> {
        let policy = self.settings_of(id).policy.value;
        let stream = self.stream(id);
        // The fence first: a writer that was fenced out must learn it, not wait for the handle that
        // its successor holds.
        if !self.config.planted.has(PlantedBug::NoFence) {
            admission::check_fence(&stream.assigned, policy, fence)?;
        }
        if policy == ProducerPolicy::Fenced && !stream.sessions.is_empty() {
            let message = "the stream admits one session at a time and another is open";
            return Err(Refusal::new(Code::PolicyBusy, message));
        }
        Ok(())
    }

    /// The client goes on after a rejected batch.
    pub fn resume_session(&mut self, session: SessionKey) {
        if let Some(session) = self.sessions.get_mut(&session) {
            session.is_rejecting = false;
        }
    }

    /// The session's client is gone or has finished.
    pub fn close_session(&mut self, now: Now, session: SessionKey) {
        let Some(closed) = self.sessions.remove(&session) else {
            return;
        };
        if let Some(stream) = self.streams.get_mut(closed.stream) {
            stream.sessions.remove(&session);
        }
        self.note_idle(now.instant, closed.stream);
    }

    /// Closes those sessions of a stream that `is_broken` names, telling each `refusal` once what
    /// is committed by now is durable.
    pub(super) fn break_sessions(
        &mut self,
        id: StreamId,
        refusal: &Refusal,
        is_broken: impl Fn(&Session) -> bool,
    ) {
        let all: Vec<SessionKey> = self.stream(id).sessions.iter().copied().collect();
        let ticket = self.stream(id).last_ticket;
        for key in all {
            if !is_broken(&self.sessions[&key]) {
                continue;
            }
            self.sessions.remove(&key);
            self.stream_mut(id).sessions.remove(&key);
            self.hold_event(ticket, Event::SessionBroken(key, refusal.clone()));
        }
        self.note_idle(self.seen, id);
    }

    /// The stream's policy is another one now: its sessions open again under it.
    pub(super) fn break_for_policy(&mut self, id: StreamId) {
        if self.config.planted.has(PlantedBug::PolicyKeepsSessions) {
            return;
        }
        let epoch = self.stream(id).assigned.epoch;
        let address = self.config.addresses[usize::from(self.config.core.0)].clone();
        let facts = Facts::Holder {
            address: Some(address),
            epoch,
        };
        let message = "the stream's policy has changed: open the session again";
        let refusal = Refusal::new(Code::Draining, message).with(facts);
        self.break_sessions(id, &refusal, |_| true);
    }

    pub(super) fn hold_event(&mut self, ticket: crate::commit::gate::Ticket, event: Event) {
        self.hold(ticket, Held::Event(Box::new(event)));
    }
}
