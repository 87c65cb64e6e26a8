//! Moves of leadership: one stream from this core to another, without a record copied.
//!
//! ```text
//!   leader                                     the other core                     home
//!   stop admitting (DRAINING)
//!   all that was admitted is durable
//!   Take: state, where its records lie ------> statement under the next epoch
//!                                              durable
//!   sessions and readers end <---- Taken ----- leads          --- LedAt --------> knows where
//!   (NOT_OWNER: the new leader)
//! ```
//! A stream that is led away from its home, a guest, goes back there when it is idle, by the same
//! steps; so does a guest that is deleted. A start of the star forgets all moves: the home finds
//! the newest statement, whichever log has it.
//!
//! # Invariants
//! - Nothing is admitted between the last group of the old leader and the statement of the new.
//! - The old leader names the new one only after that one's epoch is durable.
//! - A stream is in the memory of one core.
//! - A segment holds records of one stay of a stream: it comes back into a new one.
//!
//! # Not here
//! - Which streams should move: an operator, an idle clock, a change of placement (`placement`), or
//!   the load (`balance`).

use super::Shard;
use super::durable::Held;
use crate::catalog::streams::Stream;
use crate::commit::gate::Ticket;
use crate::event::{Caller, Event, LoadStep, PeerMessage};
use crate::handover::Handover;
use nova_model::ids::{CoreId, Epoch, StreamId};
use nova_model::names::{BucketName, StreamName};
use nova_model::request::Answer;
use nova_model::{Code, Facts, Now, Refusal};

/// A move that this core, the old leader, has in hand.
pub(super) struct Move {
    to: CoreId,
    reason: MoveFor,
    /// Whether the stream was passed on already.
    is_passed: bool,
}

/// Who wants a move.
#[derive(Debug, Clone, Copy)]
pub(super) enum MoveFor {
    /// A client.
    Caller(Caller),
    /// Core 0, which spreads the load; the number of its question.
    Order(u64),
    /// A change of placement.
    Change,
    /// Nobody: the stream goes where it belongs.
    Home,
}

/// Where a stream is led whose home is here, or was when it left.
#[derive(Debug, Clone, Copy)]
pub(super) struct Away {
    core: CoreId,
    epoch: Epoch,
}

impl Shard {
    /// Hands a stream's leadership to another core; answered once that core leads.
    pub(super) fn hand_off(&mut self, now: Now, caller: Caller, name: &StreamName, to: CoreId) {
        if let Err((ticket, refusal)) = self.try_hand_off(now, caller, name, to) {
            let event = Event::Answered(caller, Err(refusal));
            self.hold_event(ticket, event);
        }
    }

    fn try_hand_off(
        &mut self,
        now: Now,
        caller: Caller,
        name: &StreamName,
        to: CoreId,
    ) -> Result<(), (Ticket, Refusal)> {
        if to.0 >= self.config.cores() {
            let most = u64::from(self.config.cores()) - 1;
            let message = format!("the star has no {to}; its cores are 0 to {most}");
            return Err((Ticket(0), Refusal::invalid("to", Some(most), message)));
        }
        if self.places.current.is_drained(to) {
            let message = format!("{to} is drained: it leads no stream");
            return Err((Ticket(0), Refusal::invalid("to", None, message)));
        }
        if self.places.change.is_some() {
            let message = "cores are being drained or undrained";
            let refusal = Refusal::new(Code::RateLimited, message);
            return Err((Ticket(0), refusal.with(Facts::After(50_000))));
        }
        let id = self.live(now, name)?;
        if to == self.config.core {
            // One at rest is led from now on: its last epoch may be that of another core.
            self.lead(id);
            let epoch = self.stream(id).assigned.epoch;
            let answer = self.moved(to, epoch);
            let ticket = self.stream(id).last_ticket;
            self.hold_event(ticket, Event::Answered(caller, Ok(answer)));
            return Ok(());
        }
        self.begin_move(id, to, MoveFor::Caller(caller));
        Ok(())
    }

    /// Core 0 wants the load spread: hands a stream over if it can go.
    pub(super) fn order_move(&mut self, number: u64, id: StreamId, to: CoreId) {
        let can_go = self.streams.get(id).is_some_and(|stream| {
            stream.is_led && !stream.assigned.deleted && !self.moving.contains_key(&id)
        });
        if can_go && self.places.change.is_none() && !self.places.current.is_drained(to) {
            return self.begin_move(id, to, MoveFor::Order(number));
        }
        let (stream, name) = (id, None);
        let done = LoadStep::Done { stream, name };
        self.tell(CoreId(0), PeerMessage::Load(number, done));
    }

    /// Stops admitting and passes the stream on when it is durable.
    pub(super) fn begin_move(&mut self, id: StreamId, to: CoreId, reason: MoveFor) {
        self.streams.set_deadline(id, None);
        let is_passed = false;
        let begun = self.moving.insert(
            id,
            Move {
                to,
                reason,
                is_passed,
            },
        );
        assert!(begun.is_none(), "a stream moves once at a time");
        let ticket = self.stream(id).last_ticket;
        self.hold(ticket, Held::PassOn(id));
    }

    /// All that was admitted is durable: the other core takes over.
    pub(super) fn pass_on(&mut self, id: StreamId) {
        let in_hand = self.moving.get_mut(&id).expect("a move in hand");
        in_hand.is_passed = true;
        let to = in_hand.to;
        let stream = self.stream(id);
        assert_eq!(
            (stream.durable.tail, stream.durable.epoch),
            (stream.assigned.tail, stream.assigned.epoch),
            "all that was admitted is durable"
        );
        let handover = Handover {
            state: stream.durable.clone(),
            records_in: stream.records_in,
            holdings: self.indexes.holdings(id, stream.records_in),
            load: stream.load,
        };
        self.tell(to, PeerMessage::Take(Box::new(handover)));
    }

    /// Another core hands a stream over to this one.
    pub(super) fn take(&mut self, from: CoreId, handover: Handover) {
        let Handover {
            state,
            records_in,
            holdings,
            load,
        } = handover;
        let (id, name) = (state.id, state.name.clone());
        self.away.remove(&name);
        if !state.deleted {
            self.buckets.note_come(&name.bucket);
        }
        self.arriving.insert(id);
        self.indexes.adopt(id, holdings);
        // The segment may have been recycled while the stream was on its way.
        let records_in = records_in.filter(|file| self.indexes.knows(id, *file));
        self.streams.insert(Stream::at_rest(state, records_in));
        self.lead(id);
        let stream = self.stream_mut(id);
        let ticket = stream.last_ticket;
        stream.created_in = ticket;
        stream.load = load;
        // Its handles are expected back: also under the policy `fenced` it stays for a while.
        let deadline = self.seen.plus_us(self.config.idle_us);
        self.streams.set_deadline(id, Some(deadline));
        self.hold(ticket, Held::Taken { from, id });
    }

    /// The statement of this core's leadership is durable: the others learn it.
    pub(super) fn tell_taken(&mut self, from: CoreId, id: StreamId) {
        self.arriving.remove(&id);
        let state = &self.stream(id).assigned;
        let (name, epoch) = (state.name.clone(), state.epoch);
        let core = self.config.core;
        let taken = PeerMessage::Taken { id, epoch };
        let home = self.places.current.home(&name);
        let next_home = self.places.coming().home(&name);
        self.tell(from, taken);
        // The old leader may not know yet that it will be the home: it is told as well, behind
        // `Taken`, when it has let the stream go.
        let next_home = (next_home != home).then_some(next_home);
        let homes = [Some(home).filter(|home| *home != from), next_home];
        for home in homes.into_iter().flatten().filter(|home| *home != core) {
            let name = name.clone();
            self.tell(home, PeerMessage::LedAt { name, core, epoch });
        }
        self.pass_through(id);
        if home == core {
            self.note_idle(self.seen, id);
        }
    }

    /// The other core leads: this one lets the stream go and says where it is.
    pub(super) fn taken(&mut self, id: StreamId, epoch: Epoch) {
        let Move {
            to,
            reason,
            is_passed,
        } = self.moving.remove(&id).expect("a move in hand");
        assert!(is_passed, "only what was passed on is taken");
        let refusal = self.led_elsewhere(Code::NotOwner, to, epoch);
        self.break_sessions(id, &refusal, |_| true);
        for key in self.stream(id).readers.clone() {
            self.end_reader(key, Event::ReaderFailed(key, refusal.clone()));
        }
        let is_named = self.streams.find(&self.stream(id).assigned.name) == Some(id);
        let gone = self
            .streams
            .remove(id)
            .expect("a stream that moves is in memory");
        self.recent.forget(&gone);
        // Should it come back soon, it waits for a new segment.
        self.log.make_ready();
        let name = gone.assigned.name;
        if is_named && self.places.is_home(self.config.core, &name) {
            self.away.insert(name.clone(), Away { core: to, epoch });
        }
        match reason {
            MoveFor::Caller(caller) => {
                let answer = self.moved(to, epoch);
                self.events.push_back(Event::Answered(caller, Ok(answer)));
            }
            MoveFor::Order(number) => {
                let (stream, name) = (id, Some(name));
                let done = LoadStep::Done { stream, name };
                self.tell(CoreId(0), PeerMessage::Load(number, done));
            }
            MoveFor::Change => self.note_moved(),
            MoveFor::Home => {}
        }
        self.go_on_with_change();
    }

    /// A stream whose home is here is led elsewhere now. The news may be old: the stream may have
    /// come back since.
    pub(super) fn led_at(&mut self, name: StreamName, core: CoreId, epoch: Epoch) {
        let is_newer = self.away.get(&name).is_none_or(|known| known.epoch < epoch);
        let stated = self.indexes.find(&name).ok().flatten();
        let is_old = stated.is_some_and(|found| found.state.epoch > epoch);
        if is_newer && !is_old && self.streams.find(&name).is_none() {
            self.away.insert(name, Away { core, epoch });
        }
    }

    /// Refuses what is on its way to another core, or led by one.
    pub(super) fn check_moves(&self, name: &StreamName) -> Result<Option<StreamId>, Refusal> {
        if let Some(id) = self.streams.find(name) {
            return match self.check_moving(id) {
                Ok(()) => Ok(self.stream(id).is_led.then_some(id)),
                Err(refusal) => Err(refusal),
            };
        }
        match self.away.get(name) {
            Some(away) => Err(self.led_elsewhere(Code::NotOwner, away.core, away.epoch)),
            None => Ok(None),
        }
    }

    /// Whether this core speaks for a stream: it leads it, or it is the home of one that nobody
    /// leads. On the way from one core to another neither does.
    pub(super) fn is_here(&self, name: &StreamName) -> bool {
        match self.streams.find(name) {
            Some(id) => {
                let is_passed = self
                    .moving
                    .get(&id)
                    .is_some_and(|in_hand| in_hand.is_passed);
                !is_passed && self.stream(id).created_in <= self.durable
            }
            None => {
                let home = self.places.current.home(name);
                home == self.config.core && !self.away.contains_key(name)
            }
        }
    }

    /// Refuses to list a bucket while one of its streams is between this core and another one:
    /// neither of them speaks for it, and a list that left it out would be wrong.
    pub(super) fn check_none_between(&self, bucket: &BucketName) -> Result<(), Refusal> {
        let leaving = self.moving.iter().filter(|(_, in_hand)| in_hand.is_passed);
        let mut between = leaving.map(|(id, _)| id).chain(&self.arriving);
        let is_meant = |id: &StreamId| {
            let state = self.streams.get(*id).map(|stream| &stream.assigned);
            state.is_some_and(|state| state.name.bucket == *bucket && !state.deleted)
        };
        match between.any(is_meant) {
            true => Err(between_homes(bucket)),
            false => Ok(()),
        }
    }

    /// Refuses what would be admitted to a stream on its way to another core.
    pub(super) fn check_moving(&self, id: StreamId) -> Result<(), Refusal> {
        match self.moving.get(&id) {
            Some(in_hand) => {
                let epoch = self.stream(id).assigned.epoch;
                Err(self.led_elsewhere(Code::Draining, in_hand.to, epoch))
            }
            None => Ok(()),
        }
    }

    pub(super) fn led_elsewhere(&self, code: Code, core: CoreId, epoch: Epoch) -> Refusal {
        let address = self.config.addresses[usize::from(core.0)].clone();
        let message = match code {
            Code::Draining => format!("the stream is being handed to {core} at {address}"),
            _ => format!("{core} at {address} has it"),
        };
        let address = Some(address);
        Refusal::new(code, message).with(Facts::Holder { address, epoch })
    }

    fn moved(&self, core: CoreId, epoch: Epoch) -> Answer {
        let address = self.config.addresses[usize::from(core.0)].clone();
        Answer::Moved {
            core,
            address,
            epoch,
        }
    }
}

/// Refuses to list a bucket for the moment.
pub(super) fn between_homes(bucket: &BucketName) -> Refusal {
    let facts = Facts::Holder {
        address: None,
        epoch: Epoch(0),
    };
    let message = format!("streams of {bucket} are being handed from core to core");
    Refusal::new(Code::Draining, message).with(facts)
}
