//! The star's ends of the lanes of one core: bytes to commands, answers to bytes.
//!
//! # Invariants
//! - A session's or reader's key is its link's number, so an answer finds its lane or nothing.
//! - Appends stay with their lane while the shard takes none.

use super::Ground;
use crate::agenda::Happening;
use crate::network::{LinkId, Piece, Side, Way};
use nova_core::{Caller, Event, ReaderKey, SessionKey, Shard};
use nova_model::limits::READER_CREDIT_BYTES;
use nova_model::{CoreId, Now, StreamId};
use nova_proto::RequestId;
use nova_proto::server::{Input, Lane};
use std::collections::{BTreeMap, BTreeSet};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    Unknown,
    Session,
    Reader { credited: bool },
    Control,
}

struct End {
    lane: Lane,
    role: Role,
    is_finished: bool,
}

/// All lanes of a core.
#[derive(Default)]
pub(super) struct Ends {
    ends: BTreeMap<LinkId, End>,
    callers: BTreeMap<Caller, (LinkId, RequestId)>,
    last_caller: u64,
    moved: BTreeSet<LinkId>,
    is_deaf: bool,
}

impl Ends {
    /// Something happened on a link.
    pub(super) fn mark(&mut self, link: LinkId) {
        self.moved.insert(link);
    }

    /// Takes nothing more from any lane.
    pub(super) fn close_ears(&mut self) {
        self.is_deaf = true;
    }

    /// The link is gone.
    pub(super) fn lost(&mut self, shard: &mut Shard, now: Now, link: LinkId) {
        if let Some(end) = self.ends.remove(&link) {
            let_go(shard, now, link, end.role);
        }
        self.moved.remove(&link);
    }

    /// Hands what has arrived to the shard.
    pub(super) fn feed(
        &mut self,
        shard: &mut Shard,
        ground: &mut Ground<'_>,
        core: CoreId,
    ) -> bool {
        if self.is_deaf {
            return false;
        }
        let mut has_moved = false;
        for link in self.moved.clone() {
            if ground.network.ends(link).is_none() {
                self.lost(shard, ground.agenda.reading(), link);
                continue;
            }
            has_moved |= self.feed_one(shard, ground, core, link);
        }
        has_moved
    }

    fn feed_one(
        &mut self,
        shard: &mut Shard,
        ground: &mut Ground<'_>,
        core: CoreId,
        link: LinkId,
    ) -> bool {
        let end = self.ends.entry(link).or_insert_with(|| End {
            lane: Lane::new(),
            role: Role::Unknown,
            is_finished: false,
        });
        let mut has_moved = false;
        while end.lane.wants_input()
            && let Some(piece) = ground.network.take(link, Way::Up)
        {
            has_moved = true;
            let (now, client) = (ground.agenda.now(), ground.network.ends(link));
            let taken = match piece {
                Piece::Bytes(bytes) => {
                    let hash = crate::trace::hash_bytes(&bytes);
                    ground.trace.note(now, "heard", hash, || {
                        format!("{core} {link:?} of {client:?}: {} bytes", bytes.len())
                    });
                    end.lane.handle_bytes(bytes)
                }
                Piece::End => end.lane.handle_end(),
            };
            taken.expect("the simulated clients keep the protocol");
        }
        if ground.network.has_room_again(link, Way::Up)
            && let Some((client, _)) = ground.network.ends(link)
        {
            ground.agenda.after(0, Happening::Client(client));
        }
        let (mut end, now) = (
            self.ends.remove(&link).expect("just used"),
            ground.agenda.now(),
        );
        let arriving = self.arriving() + end.lane.input_bytes();
        while shard.accepts_appends_beside(arriving)
            && let Some(input) = end.lane.poll_input()
        {
            has_moved = true;
            ground.trace.note(now, "input", link.0, || {
                format!("{core} {link:?} {input:?}")
            });
            let fresh = StreamId(ground.rng.wide());
            self.command(shard, ground.agenda.reading(), link, &mut end, input, fresh);
        }
        self.ends.insert(link, end);
        has_moved
    }

    /// Bytes that hold frames which have come in part.
    fn arriving(&self) -> usize {
        self.ends.values().map(|end| end.lane.input_bytes()).sum()
    }

    fn command(
        &mut self,
        shard: &mut Shard,
        now: Now,
        link: LinkId,
        end: &mut End,
        input: Input,
        fresh: StreamId,
    ) {
        let (session, reader) = (SessionKey(link.0), ReaderKey(link.0));
        match input {
            Input::OpenAppend(open) => {
                end.role = Role::Session;
                shard.open_session(now, session, open, fresh);
            }
            Input::Append(append, batch) => shard.append(now, session, append, batch),
            Input::Resume => shard.resume_session(session),
            Input::EndAppend => shard.close_session(now, session),
            Input::OpenRead(open) => {
                end.role = Role::Reader { credited: false };
                shard.open_reader(now, reader, open, fresh);
            }
            Input::EndRead => shard.close_reader(now, reader),
            Input::Request(id, request) => {
                end.role = Role::Control;
                let caller = self.caller(link, id);
                shard.request(now, caller, request, fresh);
            }
            Input::AppendOnce(id, append, batch) => {
                end.role = Role::Control;
                let caller = self.caller(link, id);
                shard.append_once(now, caller, append, batch, fresh);
            }
        }
    }

    fn caller(&mut self, link: LinkId, id: RequestId) -> Caller {
        self.last_caller += 1;
        let caller = Caller(self.last_caller);
        self.callers.insert(caller, (link, id));
        caller
    }

    /// Brings an answer of the shard to its lane, if that is still there.
    pub(super) fn answer(&mut self, event: Event) {
        let link = match &event {
            Event::SessionOpened(key, _)
            | Event::SessionRefused(key, _)
            | Event::Acked(key, _)
            | Event::Rejected(key, _)
            | Event::SessionBroken(key, _) => LinkId(key.0),
            Event::ReaderOpened(key, _)
            | Event::ReaderRefused(key, _)
            | Event::ReaderBatch(key, _)
            | Event::ReaderCredited(key)
            | Event::ReaderCaughtUp(key, _)
            | Event::ReaderHeartbeat(key, _)
            | Event::ReaderEnded { reader: key, .. }
            | Event::ReaderFailed(key, _) => LinkId(key.0),
            Event::AppendedOnce(caller, _) | Event::Answered(caller, _) => {
                return self.answer_caller(*caller, &event);
            }
            Event::Ready
            | Event::Peer(..)
            | Event::Fatal(_)
            | Event::IndexNotStored(..)
            | Event::NotRecycled(..)
            | Event::Rewritten { .. }
            | Event::NotRewritten(..) => {
                unreachable!("the core keeps these")
            }
        };
        let Some(end) = self.ends.get_mut(&link) else {
            return;
        };
        self.moved.insert(link);
        match event {
            Event::SessionOpened(_, opened) => end.lane.opened(opened),
            Event::SessionRefused(_, refusal) | Event::ReaderRefused(_, refusal) => {
                end.lane.open_refused(&refusal);
            }
            Event::Acked(_, ack) => end.lane.acked(&ack),
            Event::Rejected(_, refusal) => end.lane.rejected(&refusal),
            Event::SessionBroken(_, refusal) => end.lane.broken(&refusal),
            Event::ReaderOpened(_, opened) => end.lane.read_opened(opened),
            Event::ReaderBatch(_, batch) => end.lane.batch(&batch),
            Event::ReaderCredited(_) => end.role = Role::Reader { credited: false },
            Event::ReaderCaughtUp(_, tail) => end.lane.caught_up(tail),
            Event::ReaderHeartbeat(_, tail) => end.lane.heartbeat(tail),
            Event::ReaderEnded { next, tail, .. } => end.lane.read_ended(next, tail),
            Event::ReaderFailed(_, refusal) => end.lane.read_failed(&refusal),
            _ => unreachable!("matched above"),
        }
    }

    fn answer_caller(&mut self, caller: Caller, event: &Event) {
        let Some((link, id)) = self.callers.remove(&caller) else {
            return;
        };
        let Some(end) = self.ends.get_mut(&link) else {
            return;
        };
        self.moved.insert(link);
        match event {
            Event::AppendedOnce(_, result) => end.lane.appended_once(id, result),
            Event::Answered(_, result) => end.lane.answered(id, result),
            _ => unreachable!("only these have a caller"),
        }
    }

    /// Writes what the lanes have to say, gives readers their credit, ends what is finished.
    pub(super) fn flush(&mut self, shard: &mut Shard, ground: &mut Ground<'_>) -> bool {
        let mut has_moved = false;
        for link in std::mem::take(&mut self.moved) {
            let Some(end) = self.ends.get_mut(&link) else {
                continue;
            };
            while ground.network.has_room(link, Way::Down)
                && let Some(chunk) = end.lane.poll_output()
            {
                has_moved = true;
                let piece = Piece::Bytes(chunk);
                ground.network.send(ground.agenda, link, Way::Down, piece);
            }
            if let Role::Reader { credited: false } = end.role
                && end.lane.output_room() >= READER_CREDIT_BYTES
                && ground.network.has_room(link, Way::Down)
            {
                end.role = Role::Reader { credited: true };
                shard.credit_reader(ReaderKey(link.0));
                has_moved = true;
            }
            if end.lane.is_finished() && !end.is_finished {
                end.is_finished = true;
                ground
                    .network
                    .send(ground.agenda, link, Way::Down, Piece::End);
                let now = ground.agenda.reading();
                let_go(shard, now, link, end.role);
                ground.network.leave(ground.agenda, link, Side::Star);
                self.ends.remove(&link);
                continue;
            }
            let waits = !shard.accepts_appends_beside(self.arriving())
                || !ground.network.has_room(link, Way::Down);
            if waits {
                self.moved.insert(link);
            }
        }
        has_moved
    }
}

fn let_go(shard: &mut Shard, now: Now, link: LinkId, role: Role) {
    match role {
        Role::Session => shard.close_session(now, SessionKey(link.0)),
        Role::Reader { .. } => shard.close_reader(now, ReaderKey(link.0)),
        Role::Unknown | Role::Control => {}
    }
}
