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
//! A stream that is led away from its home goes back there when it is idle, by the same steps. A
//! start of the star forgets all moves: the home finds the newest statement, whichever log has it.
//!
//! # Invariants
//! - Nothing is admitted between the last group of the old leader and the statement of the new.
//! - The old leader names the new one only after that one's epoch is durable.
//! - A stream is in the memory of one core.
//! - A segment holds records of one stay of a stream: it comes back into a new one.
//!
//! # Not here
//! - Which streams should move: an operator, or an idle clock.

use super::Shard;
use super::durable::Held;
use crate::catalog::streams::Stream;
use crate::commit::gate::Ticket;
use crate::event::{Caller, Event, PeerMessage};
use crate::handover::Handover;
use nova_model::ids::{CoreId, Epoch, StreamId};
use nova_model::names::StreamName;
use nova_model::placement::stream_home;
use nova_model::request::Answer;
use nova_model::{Code, Facts, Now, Refusal};

/// A move that this core, the old leader, has in hand.
pub(super) struct Move {
    to: CoreId,
    /// Who asked for it; nobody if the stream goes home by itself.
    caller: Option<Caller>,
    /// Whether the stream was passed on already.
    is_passed: bool,
}

/// A stream whose home is here and that is led elsewhere.
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
        let id = self.live(now, name)?;
        if to == self.config.core {
            let epoch = self.stream(id).assigned.epoch;
            let answer = self.moved(to, epoch);
            let ticket = self.stream(id).last_ticket;
            self.hold_event(ticket, Event::Answered(caller, Ok(answer)));
            return Ok(());
        }
        self.begin_move(id, to, Some(caller));
        Ok(())
    }

    /// Stops admitting and passes the stream on when it is durable.
    pub(super) fn begin_move(&mut self, id: StreamId, to: CoreId, caller: Option<Caller>) {
        self.streams.set_deadline(id, None);
        let is_passed = false;
        let begun = self.moving.insert(
            id,
            Move {
                to,
                caller,
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
        };
        let message = PeerMessage::Take(Box::new(handover));
        self.events.push_back(Event::Peer(to, message));
    }

    /// Another core hands a stream over to this one.
    pub(super) fn take(&mut self, from: CoreId, handover: Handover) {
        let Handover {
            state,
            records_in,
            holdings,
        } = handover;
        let (id, name) = (state.id, state.name.clone());
        self.away.remove(&name);
        self.indexes.adopt(id, holdings);
        if self
            .indexes
            .active()
            .is_some_and(|index| index.stream(id).is_some())
        {
            // It was here before in the same segment, whose index would not see the gap.
            self.log.roll();
        }
        self.streams.insert(Stream::at_rest(state, records_in));
        self.lead(id);
        self.note_idle(self.seen, id);
        let ticket = self.stream(id).last_ticket;
        self.stream_mut(id).created_in = ticket;
        self.hold(ticket, Held::Taken { from, id });
    }

    /// The statement of this core's leadership is durable: the others learn it.
    pub(super) fn tell_taken(&mut self, from: CoreId, id: StreamId) {
        let state = &self.stream(id).assigned;
        let (name, epoch) = (state.name.clone(), state.epoch);
        let home = stream_home(&name, self.config.cores());
        if home != self.config.core && home != from {
            let core = self.config.core;
            let message = PeerMessage::LedAt { name, core, epoch };
            self.events.push_back(Event::Peer(home, message));
        }
        let message = PeerMessage::Taken { id, epoch };
        self.events.push_back(Event::Peer(from, message));
    }

    /// The other core leads: this one lets the stream go and says where it is.
    pub(super) fn taken(&mut self, id: StreamId, epoch: Epoch) {
        let Move {
            to,
            caller,
            is_passed,
        } = self.moving.remove(&id).expect("a move in hand");
        assert!(is_passed, "only what was passed on is taken");
        let refusal = self.led_elsewhere(Code::NotOwner, to, epoch);
        self.break_sessions(id, &refusal, |_| true);
        for key in self.stream(id).readers.clone() {
            self.end_reader(key, Event::ReaderFailed(key, refusal.clone()));
        }
        let gone = self
            .streams
            .remove(id)
            .expect("a stream that moves is in memory");
        self.recent.forget(&gone);
        let name = gone.assigned.name;
        if stream_home(&name, self.config.cores()) == self.config.core {
            self.away.insert(name, Away { core: to, epoch });
        }
        if let Some(caller) = caller {
            let answer = self.moved(to, epoch);
            self.events.push_back(Event::Answered(caller, Ok(answer)));
        }
    }

    /// A stream whose home is here is led elsewhere now.
    pub(super) fn led_at(&mut self, name: StreamName, core: CoreId, epoch: Epoch) {
        let is_newer = self.away.get(&name).is_none_or(|known| known.epoch < epoch);
        if is_newer && self.streams.find(&name).is_none() {
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
                let home = stream_home(name, self.config.cores());
                home == self.config.core && !self.away.contains_key(name)
            }
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

    fn led_elsewhere(&self, code: Code, core: CoreId, epoch: Epoch) -> Refusal {
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
