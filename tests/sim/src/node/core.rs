//! One core: its shard and its loop.
//!
//! # Invariants
//! - A turn feeds what has come in, then polls disk operations and events until both are dry.
//! - At most one turn is planned for what came in, and one for the shard's next deadline.

use super::ends::Ends;
use super::{Ground, TurnEnd};
use crate::agenda::{Happening, Life};
use crate::disk::Flight;
use crate::network::LinkId;
use crate::trace::hash_bytes;
use nova_core::disk::{DiskResult, OpToken};
use nova_core::{Event, PeerMessage, Shard};
use nova_model::{CoreId, Instant};
use std::collections::{BTreeMap, VecDeque};

/// Rounds of one turn after which something goes round in circles.
const ROUNDS_MAX: usize = 10_000;

/// What a core may hold at the end of a turn.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bounds {
    pub(super) pending_bytes_max: usize,
    pub(super) recent_bytes_max: usize,
}

/// A core of a running star.
pub(super) struct Core {
    id: CoreId,
    shard: Shard,
    bounds: Bounds,
    flights: BTreeMap<OpToken, Flight>,
    done: VecDeque<(OpToken, DiskResult)>,
    mail: VecDeque<(CoreId, PeerMessage)>,
    ends: Ends,
    turn_at: Option<u64>,
    wakes_at: Option<u64>,
    mail_due: BTreeMap<CoreId, u64>,
}

impl Core {
    pub(super) fn new(id: CoreId, shard: Shard, bounds: Bounds) -> Core {
        Core {
            id,
            shard,
            bounds,
            flights: BTreeMap::new(),
            done: VecDeque::new(),
            mail: VecDeque::new(),
            ends: Ends::default(),
            turn_at: None,
            wakes_at: None,
            mail_due: BTreeMap::new(),
        }
    }

    /// Plans a turn for what has just come in.
    pub(super) fn wake(&mut self, ground: &mut Ground<'_>, life: Life) {
        if self.turn_at.is_none() {
            let at = ground.agenda.now() + ground.rng.below(40);
            self.turn_at = Some(at);
            ground.agenda.at(at, Happening::Turn(life, self.id));
        }
    }

    pub(super) fn disk_done(&mut self, ground: &mut Ground<'_>, life: Life, token: OpToken) {
        let Some(flight) = self.flights.remove(&token) else {
            return;
        };
        let result = ground.disk.end(flight);
        self.done.push_back((token, result));
        self.wake(ground, life);
    }

    pub(super) fn mail(
        &mut self,
        ground: &mut Ground<'_>,
        life: Life,
        from: CoreId,
        mail: PeerMessage,
    ) {
        self.mail.push_back((from, mail));
        self.wake(ground, life);
    }

    pub(super) fn link_moves(&mut self, ground: &mut Ground<'_>, life: Life, link: LinkId) {
        self.ends.mark(link);
        self.wake(ground, life);
    }

    pub(super) fn link_lost(&mut self, ground: &mut Ground<'_>, life: Life, link: LinkId) {
        let now = ground.agenda.reading();
        self.ends.lost(&mut self.shard, now, link);
        ground
            .network
            .leave(ground.agenda, link, crate::network::Side::Star);
        self.wake(ground, life);
    }

    pub(super) fn has_in_flight(&self, kind: &str) -> bool {
        let mut flights = self.flights.values();
        flights.any(|flight| flight.weight().0 == kind)
    }

    pub(super) fn into_shard(self) -> Shard {
        self.shard
    }

    pub(super) fn into_flights(self) -> Vec<Flight> {
        self.flights.into_values().collect()
    }

    pub(super) fn turn(&mut self, ground: &mut Ground<'_>, life: Life) -> TurnEnd {
        let now = ground.agenda.reading();
        if self.turn_at.is_some_and(|at| at <= now.instant.0) {
            self.turn_at = None;
        }
        if self.wakes_at.is_some_and(|at| at <= now.instant.0) {
            self.wakes_at = None;
        }
        if self
            .shard
            .poll_timeout()
            .is_some_and(|at| at <= now.instant)
        {
            self.shard.handle_timeout(now);
        }
        self.take_results(ground);
        let end = self.run_dry(ground, life);
        if end == TurnEnd::Done {
            self.plan_timeout(ground, life);
        }
        end
    }

    fn take_results(&mut self, ground: &mut Ground<'_>) {
        let now = ground.agenda.reading();
        while let Some((token, result)) = self.done.pop_front() {
            self.shard.handle_disk(now, token, result);
        }
        while let Some((from, mail)) = self.mail.pop_front() {
            self.shard.handle_peer(from, mail);
        }
    }

    fn run_dry(&mut self, ground: &mut Ground<'_>, life: Life) -> TurnEnd {
        for _ in 0..ROUNDS_MAX {
            let mut has_moved = self.ends.feed(&mut self.shard, ground, self.id);
            has_moved |= self.submit(ground, life);
            match self.pass_events_on(ground, life) {
                Ok(passed) => has_moved |= passed,
                Err(end) => return end,
            }
            has_moved |= self.ends.flush(&mut self.shard, ground);
            if !has_moved {
                return self.check();
            }
        }
        TurnEnd::Wrong(format!("{} goes round in circles", self.id))
    }

    fn submit(&mut self, ground: &mut Ground<'_>, life: Life) -> bool {
        let now = ground.agenda.now();
        let mut has_moved = false;
        while let Some((token, op)) = self.shard.poll_disk(Instant(now)) {
            has_moved = true;
            let flight = ground.disk.begin(op);
            let (kind, bytes) = flight.weight();
            let usual = match kind {
                "read" => ground.rng.between(40, 400),
                "create" | "index" | "finish" => ground.rng.between(200, 8_000),
                _ => ground.rng.between(60, 900) + bytes as u64 / 500,
            };
            let spread = if ground.rng.chance(3) { 15 } else { 1 };
            let delay = usual * spread * ground.disk_slowness;
            let (core, file) = (self.id, flight.file());
            let offset = flight.offset();
            let hash = hash_bytes(flight.bytes());
            ground.trace.note(now, kind, hash, || {
                format!("{core} {file} at {offset} for {bytes} bytes, takes {delay} us")
            });
            self.flights.insert(token, flight);
            ground
                .agenda
                .after(delay, Happening::DiskDone(life, self.id, token));
        }
        has_moved
    }

    fn pass_events_on(&mut self, ground: &mut Ground<'_>, life: Life) -> Result<bool, TurnEnd> {
        let mut has_moved = false;
        while let Some(event) = self.shard.poll_event() {
            has_moved = true;
            let now = ground.agenda.now();
            let core = self.id;
            ground
                .trace
                .note(now, "event", 0, || format!("{core} {event:?}"));
            match event {
                Event::Ready => {}
                Event::Fatal(error) => return Err(TurnEnd::Fatal(error.to_string())),
                Event::Peer(to, mail) => {
                    let due = self.mail_due.entry(to).or_default();
                    *due = (*due).max(now + ground.rng.between(2, 300));
                    let mail = Happening::Mail(life, to, self.id, mail);
                    ground.agenda.at(*due, mail);
                }
                Event::IndexNotStored(file, _)
                | Event::NotRecycled(file, _)
                | Event::NotRewritten(file, _)
                    if ground.disk.is_troubled(file) => {}
                Event::IndexNotStored(file, error) => {
                    let text = format!("an index was not stored: {file}: {error}");
                    return Err(TurnEnd::Wrong(text));
                }
                Event::NotRecycled(file, error) => {
                    let text = format!("a segment was not recycled: {file}: {error}");
                    return Err(TurnEnd::Wrong(text));
                }
                Event::Rewritten { .. } => {}
                Event::NotRewritten(file, why) => {
                    let text = format!("a segment was not rewritten: {file}: {why}");
                    return Err(TurnEnd::Wrong(text));
                }
                event => self.ends.answer(event),
            }
        }
        Ok(has_moved)
    }

    fn plan_timeout(&mut self, ground: &mut Ground<'_>, life: Life) {
        let Some(at) = self.shard.poll_timeout() else {
            return;
        };
        let at = at.0.max(ground.agenda.now() + 1);
        if self.wakes_at.is_none_or(|planned| at < planned) {
            self.wakes_at = Some(at);
            ground.agenda.at(at, Happening::Turn(life, self.id));
        }
    }

    /// What holds at the end of every turn.
    fn check(&self) -> TurnEnd {
        let (pending, recent) = (self.shard.pending_bytes(), self.shard.recent_bytes());
        let Bounds {
            pending_bytes_max,
            recent_bytes_max,
        } = self.bounds;
        let broken = match () {
            () if pending > pending_bytes_max => format!("{pending} bytes are pending"),
            () if recent > recent_bytes_max => format!("{recent} bytes are kept for followers"),
            () => return TurnEnd::Done,
        };
        TurnEnd::Wrong(format!("{}: {broken}", self.id))
    }

    /// Completes and answers what was taken, without taking more from the lanes.
    pub(super) fn finish(&mut self, ground: &mut Ground<'_>, life: Life) -> TurnEnd {
        self.ends.close_ears();
        self.shard.stop();
        for _ in 0..ROUNDS_MAX {
            let tokens: Vec<OpToken> = self.flights.keys().copied().collect();
            for token in &tokens {
                let flight = self.flights.remove(token).expect("it was listed");
                let result = ground.disk.end(flight);
                self.done.push_back((*token, result));
            }
            self.take_results(ground);
            match self.run_dry(ground, life) {
                TurnEnd::Done => {}
                end => return end,
            }
            if tokens.is_empty() && self.flights.is_empty() {
                return TurnEnd::Done;
            }
        }
        TurnEnd::Wrong(format!("{} does not come to its end", self.id))
    }
}
