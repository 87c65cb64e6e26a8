//! Retention: records that have had their time or their room are trimmed, and streams that are
//! empty for long are deleted, in the background.
//!
//! ```text
//!   every second, and when a segment is sealed: the streams in memory, one after the other
//!   every 30th:   a round over the streams at rest, index by index
//!     each: expired in the newest segment? in the one before? ... -> Trim or Deleted, in the log
//! ```
//! Age goes by the arrival of records at the star, which the log keeps, so that no client's clock
//! can hold records or lose them. The star's own clock may be set: what arrived while it was behind
//! goes no earlier than what came before it, and what arrived while it was ahead holds nothing. A
//! trim goes to the beginning of a run of the index, or to the tail when all has expired; so of
//! what has expired at most one run stays.
//!
//! # Invariants
//! - A turn looks into a bounded number of indexes and loads at most one stream for each look.
//! - What retention does is an entry like any other: durable before anybody sees it.
//! - A stream with an open session is not deleted for being empty.
//!
//! # Not here
//! - Giving space back: segments in which nothing is left.

use super::Shard;
use crate::catalog::indexes::Found;
use crate::catalog::retained::{Expired, Resting};
use crate::catalog::streams::Stream;
use crate::commit::gate::Ticket;
use crate::disk::SegmentFile;
use crate::entry::Entry;
use crate::index::Expiry;
use crate::planted::PlantedBug;
use crate::state::StreamState;
use nova_model::ids::StreamId;
use nova_model::limits::{FORGET_ROUND_LOOKS, FORGET_STEPS_MAX};
use nova_model::names::StreamName;
use nova_model::position::SequenceNumber;
use nova_model::settings::EffectiveSettings;
use nova_model::{Instant, Now, Timestamp};

const SECOND_US: u64 = 1_000_000;
/// A search by name asks the filter of each index in turn, and this many in the time of one look.
const FILTERS_A_LOOK: usize = 32;
/// So many runs are looked at in the time of one look.
const RUNS_A_LOOK: usize = 64;

/// How far retention has come.
#[derive(Default)]
pub(super) struct Retention {
    due: Instant,
    /// The stream in memory that was looked at last in the look at hand.
    after: Option<StreamId>,
    /// Whether all streams in memory were looked at.
    is_looked: bool,
    /// Looks until the next round over streams at rest.
    looks_left: u64,
    /// How often there was more to look at, and how much of that the look at hand covers, and the
    /// last one did.
    hurries: u64,
    looking: u64,
    looked: u64,
    /// What the last trim or deletion waits for.
    trimmed: Ticket,
    /// When a segment may next be sealed because another core asks for it.
    sealing_due: Instant,
    /// What is left of the round at hand.
    round: Vec<Resting>,
    search: Option<Search>,
}

/// A search for expired records that goes on in the next turn.
struct Search {
    id: StreamId,
    name: StreamName,
    expiry: Expiry,
    trimmed: SequenceNumber,
    at: SegmentFile,
    /// What newer segments have found.
    upto: Option<SequenceNumber>,
}

impl Retention {
    pub(super) fn deadline(&self) -> Instant {
        self.due
    }

    /// A segment is full: there is more to look at now than at other times.
    pub(super) fn hurry(&mut self) {
        self.hurries += 1;
        if self.is_looked {
            self.is_looked = false;
            self.after = None;
        }
        self.due = Instant::default();
    }

    /// Whether a stream was not looked at since there was more to look at, or what was found of
    /// that is not durable.
    pub(super) fn is_behind(&self, durable: Ticket) -> bool {
        self.looked < self.hurries || self.trimmed > durable
    }

    /// All streams in memory were looked at; again, if there was more since.
    fn end_look(&mut self) {
        self.looked = self.looking;
        self.is_looked = self.looked == self.hurries;
        self.after = None;
    }
}

/// What retention asks of a stream at the moment.
enum Due {
    Nothing,
    /// It has been empty long enough.
    Delete,
    /// Some of it may have expired: all, if the last record has.
    Search(Expiry, Option<SequenceNumber>),
}

impl Shard {
    /// Does a bounded piece of what retention asks for, if it is time.
    pub(super) fn retain(&mut self, now: Now) {
        if !self.is_ready || self.retention.due > now.instant {
            return;
        }
        let mut steps = FORGET_STEPS_MAX;
        while steps > 0 {
            steps -= 1;
            if !self.retain_step(now, &mut steps) {
                self.retention.due = now.instant.plus_us(self.config.forget_us);
                self.begin_look();
                return;
            }
        }
        self.retention.due = now.instant.plus_us(self.forget_pause_us());
    }

    fn begin_look(&mut self) {
        self.retention.is_looked = false;
        self.retention.after = None;
        if !self.retention.round.is_empty() {
            return;
        }
        match self.retention.looks_left.checked_sub(1) {
            Some(left) => self.retention.looks_left = left,
            None => {
                self.retention.looks_left = FORGET_ROUND_LOOKS;
                self.retention.round = self.indexes.resting();
            }
        }
    }

    /// One look; whether there is more to look at.
    fn retain_step(&mut self, now: Now, steps: &mut usize) -> bool {
        if let Some(search) = self.retention.search.take() {
            self.go_on_searching(now, search, steps);
            return true;
        }
        if !self.retention.is_looked {
            if self.retention.after.is_none() {
                self.retention.looking = self.retention.hurries;
            }
            match self.streams.behind(self.retention.after) {
                Some(stream) => {
                    let (state, records_in) = (stream.assigned.clone(), stream.records_in);
                    self.retention.after = Some(state.id);
                    self.retain_stream(now, &state, records_in);
                }
                None => self.retention.end_look(),
            }
            return true;
        }
        let Some(place) = self.retention.round.last_mut() else {
            return false;
        };
        match self.indexes.next_resting(place) {
            Some((state, file)) => self.retain_resting(now, &state, file, steps),
            None => {
                self.retention.round.pop();
            }
        }
        true
    }

    /// A stream as one index states it: it counts if nothing newer is stated and it is not in
    /// memory, where it is looked at anyway.
    fn retain_resting(
        &mut self,
        now: Now,
        state: &StreamState,
        file: SegmentFile,
        steps: &mut usize,
    ) {
        let is_asked = !matches!(self.due(now.wall, state), Due::Nothing);
        if !is_asked || self.streams.find(&state.name).is_some() || !self.is_here(&state.name) {
            return;
        }
        *steps = steps.saturating_sub(self.indexes.depth().div_ceil(FILTERS_A_LOOK));
        if let Ok(Some(found)) = self.indexes.find(&state.name)
            && (found.state.id, found.stated_in) == (state.id, file)
        {
            self.retain_stream(now, &found.state, found.records_in);
        }
    }

    fn retain_stream(&mut self, now: Now, state: &StreamState, records_in: Option<SegmentFile>) {
        match self.due(now.wall, state) {
            Due::Nothing => {}
            Due::Delete => self.delete_empty(now, &state.name, state.id),
            Due::Search(expiry, upto) => match (records_in, upto) {
                (Some(at), _) => {
                    self.retention.search = Some(Search {
                        id: state.id,
                        name: state.name.clone(),
                        expiry,
                        trimmed: state.trimmed,
                        at,
                        upto,
                    });
                }
                // No segment has any of its records.
                (None, Some(upto)) => self.trim_expired(now, &state.name, state.id, upto),
                (None, None) => {}
            },
        }
    }

    fn due(&self, wall: Timestamp, state: &StreamState) -> Due {
        if state.deleted {
            return Due::Nothing;
        }
        let bucket = self.buckets.known.get(&state.name.bucket);
        let defaults = bucket
            .map(|info| info.settings.defaults)
            .unwrap_or_default();
        let settings = EffectiveSettings::resolve(&state.settings, &defaults);
        if state.trimmed == state.tail.sequence {
            let since = state.arrived.max(state.trimmed_at);
            let wanted = settings.delete_on_empty_s.value;
            let is_due = wanted > 0 && wall.0.saturating_sub(since.0) / SECOND_US >= wanted;
            return match is_due {
                true => Due::Delete,
                false => Due::Nothing,
            };
        }
        let retention = settings.retention.value;
        let age_us = retention.age_s.map(|age| age.saturating_mul(SECOND_US));
        let arrived_by = age_us.and_then(|age| wall.0.checked_sub(age).map(Timestamp));
        let before = retention
            .bytes
            .and_then(|keep| state.bytes.checked_sub(keep));
        if arrived_by.is_none() && before.is_none() {
            return Due::Nothing;
        }
        let is_last_old = arrived_by.is_some_and(|time| state.arrived <= time);
        let upto = is_last_old.then_some(state.tail.sequence);
        let is_blind = self.config.planted.has(PlantedBug::YoungExpired);
        let expiry = Expiry {
            now: if is_blind { Timestamp(0) } else { wall },
            arrived_by,
            before,
        };
        Due::Search(expiry, upto)
    }

    fn go_on_searching(&mut self, now: Now, search: Search, steps: &mut usize) {
        let Search {
            id,
            ref expiry,
            trimmed,
            at,
            upto,
            ..
        } = search;
        let (expired, runs) = self.indexes.expired_in(id, at, expiry, trimmed, upto);
        *steps = steps.saturating_sub(runs / RUNS_A_LOOK);
        match expired {
            Expired::Nothing => {}
            Expired::Before(first) => self.trim_expired(now, &search.name, id, first),
            Expired::Perhaps(at, upto) => {
                self.retention.search = Some(Search { at, upto, ..search });
            }
        }
    }

    fn trim_expired(&mut self, now: Now, name: &StreamName, id: StreamId, first: SequenceNumber) {
        if !self.bring(now.instant, name, id) {
            return;
        }
        let state = &self.stream(id).assigned;
        if first > state.trimmed && first <= state.tail.sequence {
            self.lead(id);
            let (epoch, at) = (self.stream(id).assigned.epoch, now.wall);
            let entry = Entry::Trim {
                stream: id,
                epoch,
                first,
                at,
            };
            self.retention.trimmed = self.commit(id, entry);
        }
    }

    fn delete_empty(&mut self, now: Now, name: &StreamName, id: StreamId) {
        if !self.bring(now.instant, name, id) {
            return;
        }
        let stream = self.stream(id);
        let is_due = matches!(self.due(now.wall, &stream.assigned), Due::Delete);
        if is_due && stream.sessions.is_empty() {
            self.lead(id);
            let epoch = self.stream(id).assigned.epoch;
            self.retention.trimmed = self.commit(id, Entry::Deleted { stream: id, epoch });
        }
    }

    /// Leads a stream at rest here that another core asks to be stated anew, which states it in
    /// this log. If it was asked for before, the other core waits for that segment to be sealed.
    pub(super) fn restate(&mut self, name: &StreamName, id: StreamId) {
        if !self.is_ready || self.is_stopping || self.places.change.is_some() {
            return;
        }
        let active = self.indexes.active();
        if active.is_some_and(|active| active.stream(id).is_some()) {
            if self.retention.sealing_due <= self.seen && !self.log.has_no_space() {
                self.retention.sealing_due = self.seen.plus_us(self.config.forget_us);
                self.log.roll_soon();
            }
        } else if self.bring(self.seen, name, id) {
            self.lead(id);
        }
    }

    /// Brings a stream of this core into memory; whether it is there and may be changed.
    fn bring(&mut self, now: Instant, name: &StreamName, id: StreamId) -> bool {
        if let Some(known) = self.streams.find(name) {
            return known == id && self.check_moving(id).is_ok();
        }
        // While cores are drained its place may be about to change.
        if self.check_owner(name).is_err() {
            return false;
        }
        match self.indexes.find(name) {
            Ok(Some(Found {
                state, records_in, ..
            })) if state.id == id && !state.deleted => {
                self.streams.insert(Stream::at_rest(state, records_in));
                self.note_idle(now, id);
                true
            }
            Ok(_) | Err(_) => false,
        }
    }
}
