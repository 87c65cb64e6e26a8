//! What follows when a disk operation is done: durable marks, answers through the gate, rolls.

use super::{OpOwner, Shard};
use crate::commit::gate::Ticket;
use crate::commit::{DurableGroup, LogEvent};
use crate::disk::{DiskError, DiskOp, DiskResult, OpToken, SegmentFile};
use crate::entry::Entry;
use crate::event::{Caller, Event, PeerMessage, ReaderKey, SessionKey};
use crate::handover::SharedIndex;
use crate::planted::PlantedBug;
use nova_model::ids::StreamId;
use nova_model::limits::INDEX_STREAMS_MAX;
use nova_model::request::{Ack, ReadOpen, ServerTimes};
use nova_model::{Code, CoreId, Instant, Now, Position, Refusal};

/// An answer that waits for its group.
pub(super) enum Held {
    /// It is complete.
    Event(Box<Event>),
    /// It gets the tail and the times when it leaves.
    Ack {
        to: AckTo,
        id: StreamId,
        start: Position,
        end: Position,
        duplicate: bool,
        arrived: Instant,
    },
    /// A reader is opened once what its name leads to is durable.
    OpenReader {
        key: ReaderKey,
        open: Box<ReadOpen>,
        fresh: StreamId,
    },
    /// A bucket's change is durable; the other cores are told before the client.
    BucketChange(u64),
    /// A stream that moves is durable: the other core may take it.
    PassOn(StreamId),
    /// This core's leadership of a stream that was handed to it is durable.
    Taken { from: CoreId, id: StreamId },
    /// What was on its way when a change of placement began is durable: what rests can be sealed.
    Seal(u64),
    /// All that was admitted to a `fenced` stream without a session is durable.
    Release(StreamId),
}

/// Who gets an ack.
#[derive(Debug, Clone, Copy)]
pub(super) enum AckTo {
    Session(SessionKey),
    Caller(Caller),
}

impl Shard {
    /// A disk operation is done.
    pub fn handle_disk(&mut self, now: Now, token: OpToken, result: DiskResult) {
        let owner = self
            .owners
            .remove(&token)
            .expect("the shard asked for the operation");
        match owner {
            OpOwner::Log => {
                if let Some(event) = self.log.handle(now.instant, token, result) {
                    self.handle_log(now, event);
                }
                self.tell_if_stuck();
            }
            OpOwner::Index(file) => self.handle_index(file, result),
            OpOwner::Finish(_) => match result {
                DiskResult::Failed(error) => self.fatal(error),
                _ => self.recycling.hurry(),
            },
            OpOwner::Space => self.space_known(result),
            OpOwner::Recycle(file, generation) => self.recycled(file, generation, result),
            OpOwner::LetGo {
                to,
                file,
                generation,
            } => self.tell_let_go(to, file, generation, result),
            OpOwner::Rewrite => self.rewrite_went_on(result),
            OpOwner::Read(place) => self.handle_read(&place, token, &result),
        }
    }

    fn handle_log(&mut self, now: Now, event: LogEvent) {
        match event {
            LogEvent::Durable(group) => self.group_durable(now, group),
            LogEvent::Rolled { from, to, id } => {
                let end = from.as_ref().map(|(_, end)| end);
                let index = self.indexes.roll(to, id, end);
                if let (Some((file, bytes)), Some(end)) = (index, end) {
                    let length = end.length;
                    self.ask(
                        OpOwner::Finish(file),
                        DiskOp::FinishSegment { file, length },
                    );
                    self.store_index(file, bytes);
                }
                self.ask_for_space();
                if !self.is_ready {
                    self.is_ready = true;
                    self.events.push_front(Event::Ready);
                }
                self.note_sealed();
            }
            LogEvent::Fatal(error) => self.fatal(error),
        }
    }

    fn fatal(&mut self, error: DiskError) {
        self.is_fatal = true;
        self.events.clear();
        self.events.push_back(Event::Fatal(error));
    }

    fn handle_index(&mut self, file: SegmentFile, result: DiskResult) {
        match result {
            DiskResult::Mapped(mapped) => {
                self.again.done(file);
                let stored = self.indexes.stored(file, mapped);
                for sealed in stored.expect("an index that was just stored is whole") {
                    self.tell_peers(&PeerMessage::Sealed(SharedIndex(sealed)));
                }
                self.note_sealed();
                self.retention.hurry();
            }
            DiskResult::Failed(error) => self.index_failed(file, error),
            DiskResult::Created { .. }
            | DiskResult::Written
            | DiskResult::Read(_)
            | DiskResult::Space { .. }
            | DiskResult::Finished => unreachable!("a stored index is mapped"),
        }
    }

    fn group_durable(&mut self, now: Now, group: DurableGroup) {
        self.indexes
            .apply(group.offset, group.length, &group.entries);
        for entry in &group.entries {
            match entry.stream() {
                Some(id) => self.entry_durable(id, entry),
                None => self.bucket_durable(entry),
            }
        }
        self.bound_index();
        let Some(ticket) = group.ticket else { return };
        self.durable = ticket;
        self.recycling.note_durable(ticket);
        for held in self.gate.release(ticket) {
            self.release(now, group.sent, held);
        }
        self.go_on_with_change();
    }

    /// The index of the segment being written is in memory, with each stream that the segment
    /// names. When most of them were let go, a new segment begins, and the index goes to the disk.
    pub(super) fn bound_index(&mut self) {
        let named = self
            .indexes
            .active()
            .map_or(0, |index| index.stream_count());
        if named > INDEX_STREAMS_MAX + 2 * self.streams.len() {
            self.log.roll_soon();
        }
    }

    fn entry_durable(&mut self, id: StreamId, entry: &Entry) {
        let file = self.indexes.active().map(|index| index.file());
        let Some(stream) = self.streams.get_mut(id) else {
            return;
        };
        stream.durable.apply(entry);
        match entry {
            Entry::Batch(batch) => {
                stream.records_in = file;
                stream.marks.advance_durable(batch.end());
                self.recent.add(&mut self.streams, id, batch.stored.clone());
                self.wake_followers(id);
            }
            Entry::Trim { first, .. } => {
                stream.marks.advance_trimmed(*first);
                self.recycling.hurry();
            }
            Entry::Deleted { .. } => {
                self.fail_readers(id);
                self.recycling.hurry();
            }
            Entry::Led(_)
            | Entry::Fence { .. }
            | Entry::Settings { .. }
            | Entry::BucketPut(_)
            | Entry::BucketDeleted(_)
            | Entry::Released { .. } => {}
        }
    }

    /// Holds an answer until `ticket` is durable.
    pub(super) fn hold(&mut self, ticket: Ticket, held: Held) {
        if let Some(held) = self.gate.hold(ticket, held) {
            let now = Now::default();
            self.release(now, now.instant, held);
        }
    }

    /// Holds a refusal. The mistake `refuse_before_durable` lets it go at once.
    pub(super) fn hold_refusal(&mut self, ticket: Ticket, event: Event) {
        if self.config.planted.has(PlantedBug::RefuseBeforeDurable) {
            return self.events.push_back(event);
        }
        self.hold_event(ticket, event);
    }

    /// Holds an ack. The mistake `ack_before_durable` lets it go at once.
    pub(super) fn hold_ack(&mut self, ticket: Ticket, held: Held) {
        if self.config.planted.has(PlantedBug::AckBeforeDurable) {
            let now = Now::default();
            return self.release(now, now.instant, held);
        }
        self.hold(ticket, held);
    }

    fn release(&mut self, now: Now, sent: Instant, held: Held) {
        match held {
            Held::Event(event) => self.events.push_back(*event),
            Held::BucketChange(change) => self.tell_bucket(change),
            Held::PassOn(id) => self.pass_on(id),
            Held::Taken { from, id } => self.tell_taken(from, id),
            Held::Seal(change) => self.seal_for_change(change),
            Held::Release(id) => self.release_leadership(id),
            Held::OpenReader { key, open, fresh } => self.go_on_opening(now, key, *open, fresh),
            Held::Ack {
                to,
                id,
                start,
                end,
                duplicate,
                arrived,
            } => {
                let durable = self.streams.get(id).map(|stream| stream.marks.durable());
                let tail = durable.map_or(end, |tail| tail.max(end));
                let times = server_times(arrived, sent, now.instant);
                let ack = Ack {
                    start,
                    end,
                    tail,
                    duplicate,
                    times,
                };
                let forgotten = self.forgets_admitted(id);
                self.events.push_back(match (to, forgotten) {
                    (AckTo::Session(session), None) => Event::Acked(session, ack),
                    (AckTo::Session(session), Some(moved)) => Event::Rejected(session, moved),
                    (AckTo::Caller(caller), None) => Event::AppendedOnce(caller, Ok(ack)),
                    (AckTo::Caller(caller), Some(moved)) => Event::AppendedOnce(caller, Err(moved)),
                });
            }
        }
    }

    /// The mistake `not_owner_after_admission`: what was admitted is told to have come too late.
    fn forgets_admitted(&self, id: StreamId) -> Option<Refusal> {
        if !self.config.planted.has(PlantedBug::NotOwnerAfterAdmission) {
            return None;
        }
        let code = Code::NotOwner;
        let moving = self.check_moving(id).err()?;
        Some(Refusal { code, ..moving })
    }
}

/// A group may have been on its way already when a repeat arrived; then nothing was queued.
fn server_times(arrived: Instant, sent: Instant, now: Instant) -> ServerTimes {
    let us = |value: u64| u32::try_from(value).unwrap_or(u32::MAX);
    ServerTimes {
        queued_us: us(sent.since_us(arrived)),
        written_us: us(now.since_us(sent.max(arrived))),
        total_us: us(now.since_us(arrived)),
    }
}
