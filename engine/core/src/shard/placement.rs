//! Where streams are placed, and this core's part in a change of that.
//!
//! ```text
//!   Prepare --> streams that must go are handed over, 64 at a time; what rests here and gets
//!               another home is sealed, so that every core can find it --> Settled
//!   Again   --> Flush to all, Flushed from all: what they had sent has come --> Settled
//!   Commit  --> the new placement holds        Abort --> the old one does
//! ```
//! In between a stream that rests and gets another home belongs to nobody: it is refused
//! `DRAINING`. One that is led is served until its turn comes.
//!
//! # Invariants
//! - From Prepare to the end nothing comes to rest whose home changes, and no guest goes home: with
//!   either placement each stream has one place to be asked for.
//! - A core is settled only if no stream is on its way from it.
//!
//! # Not here
//! - Who decides and counts the answers: `drain`. The steps of one move: `moves`.

use super::Shard;
use super::durable::Held;
use super::moves::MoveFor;
use crate::event::{ChangeStep, Event, PeerMessage};
use nova_model::ids::{CoreId, Epoch, StreamId};
use nova_model::limits::MOVES_IN_HAND_MAX;
use nova_model::names::StreamName;
use nova_model::placement::Placement;
use nova_model::star::CoreSet;
use nova_model::{Code, Facts, Instant, Refusal};
use std::collections::VecDeque;

/// Least time between two signs of progress.
const PROGRESS_US: u64 = 1_000_000;

/// The placement that holds, and the change in hand.
pub(super) struct Places {
    pub(super) current: Placement,
    pub(super) change: Option<Change>,
}

/// A change of placement, as this core sees it.
pub(super) struct Change {
    number: u64,
    pub(super) next: Placement,
    /// Streams whose turn to be handed over has not come.
    to_move: VecDeque<StreamId>,
    /// How many were handed over.
    moved: u64,
    round: u32,
    is_reported: bool,
    /// Whether nothing was sent since the last report.
    is_quiet: bool,
    /// Cores that have not said `Flushed` in this round.
    flushing: u16,
    sealing: Sealing,
    progress_at: Instant,
}

/// How far a core is with sealing what rests there and gets another home.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sealing {
    /// What was on its way at Prepare is not durable yet: what rests is not known.
    Unknown,
    /// A new segment is to begin, and the index of the one before it to be stored.
    Rolling,
    /// Every core knows all that rests here.
    Done,
}

impl Places {
    pub(super) fn new(cores: u16) -> Places {
        Places {
            current: Placement::new(cores),
            change: None,
        }
    }

    /// The placement that will hold.
    pub(super) fn coming(&self) -> &Placement {
        let next = self.change.as_ref().map(|change| &change.next);
        next.unwrap_or(&self.current)
    }

    /// Whether this core is a stream's home, now or when the change is done.
    pub(super) fn is_home(&self, core: CoreId, name: &StreamName) -> bool {
        self.current.home(name) == core || self.coming().home(name) == core
    }

    /// Whether a stream gets another home.
    pub(super) fn changes_home(&self, name: &StreamName) -> bool {
        let change = self.change.as_ref();
        change.is_some_and(|change| change.next.home(name) != self.current.home(name))
    }
}

impl Shard {
    /// Refuses what may not be led or read here at the moment, although the stream is here.
    pub(super) fn check_open_star(&self) -> Result<(), Refusal> {
        let is_closed = self.places.current.is_closed() || self.places.coming().is_closed();
        let message = match (self.is_stopping, is_closed) {
            (true, _) => "the star is stopping",
            (false, true) => "all cores of the star are drained",
            (false, false) => return Ok(()),
        };
        let facts = Facts::Holder {
            address: None,
            epoch: Epoch(0),
        };
        Err(Refusal::new(Code::Draining, message).with(facts))
    }

    /// Refuses a stream that is not in memory, unless it rests here.
    pub(super) fn check_place(&self, name: &StreamName) -> Result<(), Refusal> {
        let home = self.places.current.home(name);
        let next = self.places.coming().home(name);
        let me = self.config.core;
        if next != home && (home == me || next == me) {
            return Err(self.led_elsewhere(Code::Draining, next, Epoch(0)));
        }
        self.check_home(home)
    }

    /// The core that a stream in memory must be handed to, if it must.
    pub(super) fn must_go_to(&self, name: &StreamName) -> Option<CoreId> {
        let me = self.config.core;
        let coming = self.places.coming();
        let home = coming.home(name);
        let must_go = coming.is_drained(me) || self.places.current.home(name) == me;
        (home != me && must_go).then_some(home)
    }

    /// Whether an idle stream stays in memory until the change in hand is over.
    pub(super) fn is_put_off(&self, name: &StreamName) -> bool {
        let is_guest = self.places.current.home(name) != self.config.core;
        self.places.change.is_some() && (is_guest || self.places.changes_home(name))
    }

    /// Core 0 speaks of a change, or another core of its part in it.
    pub(super) fn change_step(&mut self, from: CoreId, number: u64, step: ChangeStep) {
        match step {
            ChangeStep::Prepare { drained } => self.prepare_change(number, &drained),
            ChangeStep::Again { round } => self.begin_round(round),
            ChangeStep::Flush => {
                self.tell(from, PeerMessage::Change(number, ChangeStep::Flushed));
            }
            ChangeStep::Flushed => {
                // It may belong to a change that was given up.
                let change = self.places.change.as_mut();
                if let Some(change) = change.filter(|change| change.number == number) {
                    change.flushing -= 1;
                    self.go_on_with_change();
                }
            }
            ChangeStep::Commit => self.end_change(true),
            ChangeStep::Abort => self.end_change(false),
            ChangeStep::Settled { .. }
            | ChangeStep::Progress
            | ChangeStep::Stuck(_)
            | ChangeStep::Ended { .. } => self.drain_step(from, number, step),
        }
    }

    fn prepare_change(&mut self, number: u64, drained: &[CoreId]) {
        let mut next = Placement::new(self.config.cores());
        for core in drained {
            let with = next.with(CoreSet::One(*core), true);
            next = with.expect("core 0 names cores of the star");
        }
        assert!(self.places.change.is_none(), "one change at a time");
        // Also at the beginning: other cores may end the change before this one does.
        self.buckets.arrivals.note_any();
        self.places.change = Some(Change {
            number,
            next,
            to_move: VecDeque::new(),
            moved: 0,
            round: 0,
            is_reported: true,
            is_quiet: false,
            flushing: 0,
            sealing: Sealing::Unknown,
            progress_at: self.seen,
        });
        if self.places.coming().is_closed() {
            self.break_all();
        }
        self.find_what_moves();
        let ticket = self.log.last_ticket();
        self.hold(ticket, Held::Seal(number));
        self.begin_round(1);
    }

    /// Lists what must be handed over, lets go what merely rests in memory, and tells the new homes
    /// of guests.
    fn find_what_moves(&mut self) {
        for id in self.streams.ids() {
            let stream = self.stream(id);
            let (name, epoch) = (stream.assigned.name.clone(), stream.assigned.epoch);
            let is_at_rest = stream.is_idle(self.durable) && !stream.is_led;
            let is_durable = stream.created_in <= self.durable;
            if self.moving.contains_key(&id) {
                continue;
            }
            if self.must_go_to(&name).is_some() {
                let is_superseded = self.streams.find(&name) != Some(id);
                if is_at_rest || (is_superseded && self.stream(id).is_idle(self.durable)) {
                    self.forget(id);
                } else {
                    let change = self.places.change.as_mut().expect("a change in hand");
                    change.to_move.push_back(id);
                }
                continue;
            }
            let home = self.places.coming().home(&name);
            let is_guest = self.places.current.home(&name) != self.config.core;
            if is_guest && home != self.config.core && is_durable {
                let core = self.config.core;
                self.tell(home, PeerMessage::LedAt { name, core, epoch });
            }
        }
    }

    /// What rests in an index that only this core knows and gets another home is sealed.
    pub(super) fn seal_for_change(&mut self, number: u64) {
        let change = self.places.change.as_mut();
        let Some(change) = change.filter(|change| change.number == number) else {
            return;
        };
        change.sealing = Sealing::Done;
        // Also of one that rests elsewhere by now, records lie here that its next home must find.
        let rests_here =
            |name: &StreamName| self.places.changes_home(name) && self.streams.find(name).is_none();
        if !self.indexes.has_unshared(rests_here) {
            return self.go_on_with_change();
        }
        let active = self.indexes.active();
        if active.is_some_and(|active| active.names().any(rests_here)) {
            self.log.roll_soon();
        }
        let change = self.places.change.as_mut().expect("a change in hand");
        change.sealing = Sealing::Rolling;
        self.tell_if_stuck();
    }

    /// What rests cannot be sealed while no file can be made for the next segment.
    pub(super) fn tell_if_stuck(&mut self) {
        let change = self.places.change.as_ref();
        let Some(change) = change.filter(|change| change.sealing == Sealing::Rolling) else {
            return;
        };
        if self.log.is_rolling() && self.log.has_no_space() {
            let core = self.config.core;
            let message = format!(
                "{core} has no space to seal its segment; no core was drained or undrained, some \
                 streams may be led elsewhere than before"
            );
            let step = ChangeStep::Stuck(Refusal::new(Code::DiskFull, message));
            let number = change.number;
            self.tell(CoreId(0), PeerMessage::Change(number, step));
        }
    }

    /// A segment of this log was rolled or its index stored.
    pub(super) fn note_sealed(&mut self) {
        let is_sealed = self.indexes.is_all_stored() && !self.log.is_rolling();
        if let Some(change) = self.places.change.as_mut() {
            if is_sealed && change.sealing == Sealing::Rolling {
                change.sealing = Sealing::Done;
            }
            self.go_on_with_change();
        }
    }

    /// The first round does not flush: until its end others may send what they were about to.
    fn begin_round(&mut self, round: u32) {
        let peers = self.config.cores() - 1;
        let Some(change) = self.places.change.as_mut() else {
            return;
        };
        change.round = round;
        change.is_reported = false;
        if round > 1 {
            change.flushing = peers;
            let number = change.number;
            self.tell_peers(&PeerMessage::Change(number, ChangeStep::Flush));
        }
        self.go_on_with_change();
    }

    /// Hands over what is due, and reports once nothing is left to do.
    pub(super) fn go_on_with_change(&mut self) {
        self.hand_over_next();
        let is_closing = self.places.coming().is_closed();
        let Some(change) = self.places.change.as_mut() else {
            return;
        };
        let is_sealed = change.sealing == Sealing::Done;
        let is_at_work = !change.to_move.is_empty() || !is_sealed || change.flushing > 0;
        if change.is_reported || is_at_work || !self.moving.is_empty() {
            return;
        }
        if is_closing && !self.streams.are_idle(self.durable) {
            return;
        }
        change.is_reported = true;
        let (number, round) = (change.number, change.round);
        let is_quiet = std::mem::replace(&mut change.is_quiet, true) && round > 1;
        let step = ChangeStep::Settled { round, is_quiet };
        self.tell(CoreId(0), PeerMessage::Change(number, step));
    }

    fn hand_over_next(&mut self) {
        while self.moving.len() < MOVES_IN_HAND_MAX {
            let change = self.places.change.as_mut();
            let Some(id) = change.and_then(|change| change.to_move.pop_front()) else {
                return;
            };
            let Some(stream) = self.streams.get(id) else {
                continue;
            };
            let name = stream.assigned.name.clone();
            if self.moving.contains_key(&id) || self.streams.find(&name) != Some(id) {
                continue;
            }
            if let Some(to) = self.must_go_to(&name) {
                self.begin_move(id, to, MoveFor::Change);
            }
        }
    }

    /// A stream has come to this core. It goes on at once if it may not stay.
    pub(super) fn pass_through(&mut self, id: StreamId) {
        let name = self.stream(id).assigned.name.clone();
        if self.moving.contains_key(&id) {
            return;
        }
        if let Some(to) = self.must_go_to(&name) {
            match self.places.change.as_mut() {
                Some(change) => change.to_move.push_back(id),
                None => self.begin_move(id, to, MoveFor::Home),
            }
        }
        self.go_on_with_change();
    }

    /// A stream was handed over for the change.
    pub(super) fn note_moved(&mut self) {
        let now = self.seen;
        let Some(change) = self.places.change.as_mut() else {
            return;
        };
        change.moved += 1;
        if now.since_us(change.progress_at) >= PROGRESS_US {
            change.progress_at = now;
            let step = PeerMessage::Change(change.number, ChangeStep::Progress);
            self.tell(CoreId(0), step);
        }
    }

    /// Something is on its way that the next report must not overtake.
    pub(super) fn note_sent(&mut self) {
        if let Some(change) = self.places.change.as_mut() {
            change.is_quiet = false;
        }
    }

    fn end_change(&mut self, is_committed: bool) {
        let Some(Change {
            number,
            next,
            moved,
            ..
        }) = self.places.change.take()
        else {
            return;
        };
        if is_committed {
            self.places.current = next;
            self.buckets.arrivals.note_any();
        }
        let places = &self.places;
        let core = self.config.core;
        self.away
            .retain(|name, _| places.current.home(name) == core);
        let is_closed = self.places.current.is_closed();
        for id in self.streams.ids() {
            match is_closed {
                true => self.streams.set_deadline(id, Some(self.seen)),
                false => self.note_idle(self.seen, id),
            }
            self.pass_through(id);
        }
        let step = ChangeStep::Ended { moved };
        self.tell(CoreId(0), PeerMessage::Change(number, step));
    }

    /// The star stops, or is closed: sessions and readers learn it once they have what is owed.
    pub(super) fn break_all(&mut self) {
        let refusal = self.check_open_star().expect_err("nothing may be led");
        for id in self.streams.ids() {
            self.break_sessions(id, &refusal, |_| true);
            for key in self.stream(id).readers.clone() {
                self.end_reader(key, Event::ReaderFailed(key, refusal.clone()));
            }
        }
        let opening: Vec<_> = self.opening.keys().copied().collect();
        for key in opening {
            self.opening.remove(&key);
            self.events
                .push_back(Event::ReaderRefused(key, refusal.clone()));
        }
    }

    /// Tells another core, or this one.
    pub(super) fn tell(&mut self, to: CoreId, message: PeerMessage) {
        if matches!(
            message,
            PeerMessage::Take(_) | PeerMessage::Taken { .. } | PeerMessage::LedAt { .. }
        ) {
            self.note_sent();
        }
        if to == self.config.core {
            self.handle_peer(to, message);
        } else {
            self.events.push_back(Event::Peer(to, message));
        }
    }
}
