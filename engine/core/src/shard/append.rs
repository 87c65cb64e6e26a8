//! The append command, top to bottom: session or one-shot, admission, sequencing, commit.

use super::Shard;
use super::durable::{AckTo, Held};
use super::stream::Resolved;
use crate::admission::{self, AppendCase, Verdict};
use crate::entry::{BatchEntry, Entry};
use crate::event::{Caller, Event, SessionKey};
use crate::planted::PlantedBug;
use nova_model::condition::{FencingToken, WriterStamp};
use nova_model::ids::StreamId;
use nova_model::position::{Position, SequenceNumber};
use nova_model::request::{OneShotAppend, SessionAppend};
use nova_model::settings::{EffectiveSettings, ProducerPolicy};
use nova_model::stored::Stamping;
use nova_model::{Code, EncodedBatch, Now, Refusal, StoredBatch};

/// What an append brings besides its batch.
struct Terms {
    fence: Option<FencingToken>,
    match_sequence: Option<SequenceNumber>,
    writer: Option<WriterStamp>,
}

impl Shard {
    /// The next batch of a session; answered in order by [`Event::Acked`] or [`Event::Rejected`].
    /// A batch of a session that was broken meanwhile gets no further answer.
    pub fn append(
        &mut self,
        now: Now,
        session: SessionKey,
        append: SessionAppend,
        batch: EncodedBatch,
    ) {
        let Some(open) = self.sessions.get(&session) else {
            return;
        };
        let id = open.stream;
        if !open.is_rejecting && self.moving.contains_key(&id) {
            // Not taken, which the end of the session says as soon as there is a leader to go to:
            // a client that is rejected now goes to and fro between two cores of which neither
            // leads, and then waits longer than the move takes.
            return;
        }
        if open.is_rejecting {
            let message = "a batch before this one was rejected";
            let refusal = Refusal::new(Code::BehindRejected, message);
            return self.hold_event(
                self.stream(id).last_ticket,
                Event::Rejected(session, refusal),
            );
        }
        let writer = open.writer.zip(append.writer_sequence);
        let terms = Terms {
            fence: open.fence.clone(),
            match_sequence: append.match_sequence,
            writer: writer.map(|(writer, sequence)| WriterStamp { writer, sequence }),
        };
        if let Err(refusal) = self.append_to(now, AckTo::Session(session), id, terms, batch) {
            self.reject(session, id, refusal);
        }
    }

    fn reject(&mut self, session: SessionKey, id: StreamId, refusal: Refusal) {
        if let Some(open) = self.sessions.get_mut(&session) {
            open.is_rejecting = true;
        }
        self.hold_refusal(
            self.stream(id).last_ticket,
            Event::Rejected(session, refusal),
        );
    }

    /// A one-shot append; answered by [`Event::AppendedOnce`]. `fresh` becomes the stream's id if
    /// it must be created.
    pub fn append_once(
        &mut self,
        now: Now,
        caller: Caller,
        append: OneShotAppend,
        batch: EncodedBatch,
        fresh: StreamId,
    ) {
        let id = match self.resolve_for_append(now, &append.stream, fresh) {
            Ok(Resolved::Live(id)) if append.stream_id.is_none_or(|wanted| wanted == id) => id,
            Ok(Resolved::Live(id)) => {
                let refusal = Refusal::stream_not_found(&append.stream);
                let ticket = self.stream(id).last_ticket;
                return self.hold_event(ticket, Event::AppendedOnce(caller, Err(refusal)));
            }
            Ok(Resolved::Absent { ticket, .. }) => {
                let refusal = Refusal::stream_not_found(&append.stream);
                return self.hold_event(ticket, Event::AppendedOnce(caller, Err(refusal)));
            }
            Err(refusal) => {
                return self
                    .events
                    .push_back(Event::AppendedOnce(caller, Err(refusal)));
            }
        };
        let terms = Terms {
            fence: append.conditions.fence,
            match_sequence: append.conditions.match_sequence,
            writer: append.writer,
        };
        let result = self
            .check_one_shot(id)
            .and_then(|()| self.append_to(now, AckTo::Caller(caller), id, terms, batch));
        if let Err(refusal) = result {
            let ticket = self.stream(id).last_ticket;
            self.hold_refusal(ticket, Event::AppendedOnce(caller, Err(refusal)));
        }
        self.note_idle(now.instant, id);
    }

    /// On a `fenced` stream a one-shot takes the one handle for the call.
    fn check_one_shot(&self, id: StreamId) -> Result<(), Refusal> {
        let is_fenced = self.settings_of(id).policy.value == ProducerPolicy::Fenced;
        if is_fenced && !self.stream(id).sessions.is_empty() {
            let message = "the stream admits one writer at a time and a session is open";
            return Err(Refusal::new(Code::PolicyBusy, message));
        }
        Ok(())
    }

    fn append_to(
        &mut self,
        now: Now,
        to: AckTo,
        id: StreamId,
        terms: Terms,
        batch: EncodedBatch,
    ) -> Result<(), Refusal> {
        self.check_moving(id)?;
        let (mut settings, mut terms) = (self.settings_of(id), terms);
        self.overlook(&mut settings, &mut terms);
        let stream = self.stream(id);
        let case = AppendCase {
            state: &stream.assigned,
            settings: &settings,
            fence: terms.fence.as_ref(),
            match_sequence: terms.match_sequence,
            writer: terms.writer,
            batch: &batch,
            shortage: self.shortage(),
        };
        let arrived = now.instant;
        match admission::judge(&case) {
            Verdict::Refuse(refusal) => Err(refusal),
            Verdict::Repeat(known) => {
                let (start, end) = (known.start, known.end);
                let ticket = stream.last_ticket;
                self.hold_ack(
                    ticket,
                    Held::Ack {
                        to,
                        id,
                        start,
                        end,
                        duplicate: true,
                        arrived,
                    },
                );
                Ok(())
            }
            Verdict::Admit => {
                self.lead(id);
                let (start, end, ticket) = self.sequence(now, id, terms.writer, batch);
                self.hold_ack(
                    ticket,
                    Held::Ack {
                        to,
                        id,
                        start,
                        end,
                        duplicate: false,
                        arrived,
                    },
                );
                Ok(())
            }
        }
    }

    /// What the mistakes `no_fence` and `no_dedup` do not look at.
    fn overlook(&self, settings: &mut EffectiveSettings, terms: &mut Terms) {
        if self.config.planted.has(PlantedBug::NoFence) {
            settings.policy.value = ProducerPolicy::Any;
            terms.fence = None;
        }
        if self.config.planted.has(PlantedBug::NoDedup) {
            terms.writer = None;
        }
    }

    /// Gives the batch its positions and times and adds it to the log.
    fn sequence(
        &mut self,
        now: Now,
        id: StreamId,
        writer: Option<WriterStamp>,
        batch: EncodedBatch,
    ) -> (Position, Position, crate::commit::gate::Ticket) {
        let settings = self.settings_of(id);
        let state = &self.stream(id).assigned;
        let stamping = Stamping {
            mode: settings.timestamps.value,
            uncapped: settings.timestamps_uncapped.value,
            arrival: now.wall,
            floor: state.tail.timestamp,
        };
        let last_timestamp = stamping.last(&batch);
        let (first, epoch) = (state.tail.sequence, state.epoch);
        let stored = StoredBatch {
            first,
            epoch,
            stamping,
            writer,
            batch,
        };
        let entry = BatchEntry {
            stream: id,
            stored,
            last_timestamp,
        };
        let (start, end) = (entry.start(), entry.end());
        let bytes = entry.stored.batch.bytes().len() as u64;
        let ticket = self.commit(id, Entry::Batch(entry));
        let stream = self.stream_mut(id);
        stream.marks.advance_assigned(end);
        let records = end.sequence.0 - start.sequence.0;
        stream.load.note_append(now.instant, bytes, records);
        (start, end, ticket)
    }
}
