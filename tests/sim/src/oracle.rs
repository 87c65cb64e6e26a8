//! The judge: holds everything that is told, and everything found after a crash, against the
//! history.
//!
//! While the star runs each answer is checked when a client gets it. After each crash, before the
//! star starts again, the audit recovers a copy of the disk and compares what is there with all
//! that was ever told ([`Oracle::audit`]).
//!
//! # Invariants
//! - A finding is a broken promise in words; nothing is excused because a bug was planted.
//!
//! # Not here
//! - How a copy of the disk is read: [`crate::audit`].

use crate::history::{Copies, Fate, History, Mark, RecordId, Told, record_of};
use crate::updates::UpdateId;
use nova_core::disk::SegmentFile;
use nova_model::request::{Ack, StreamInfo};
use nova_model::{Code, Epoch, Facts, Position, Refusal, StreamId, StreamName};
use std::collections::BTreeMap;

/// A record as somebody read it.
#[derive(Debug, Clone, Copy)]
pub struct Seen<'a> {
    /// Its place.
    pub position: Position,
    /// The leadership that took it.
    pub epoch: Epoch,
    /// Its body.
    pub body: &'a [u8],
}

/// The judge and what it knows.
#[derive(Debug, Default)]
pub struct Oracle {
    /// The facts.
    pub history: History,
    findings: Vec<String>,
    /// Places of records that may be there once.
    places: BTreeMap<RecordId, (StreamId, u64)>,
    /// Which content of an update is stored.
    pub(crate) stored: BTreeMap<UpdateId, RecordId>,
    /// Things that were checked.
    pub checks: u64,
}

impl Oracle {
    /// The first broken promise, if there is one.
    pub fn finding(&self) -> Option<&str> {
        self.findings.first().map(String::as_str)
    }

    /// A promise is broken.
    pub fn found(&mut self, text: String) {
        self.findings.push(text);
    }

    /// No start takes an older generation of a segment than one that had its name.
    pub(crate) fn started_with_an_older(&mut self, file: Option<SegmentFile>) {
        self.check(file.is_none(), || {
            format!("a start takes an older {file:?}")
        });
    }

    pub(crate) fn check(&mut self, holds: bool, text: impl FnOnce() -> String) {
        self.checks += 1;
        if !holds {
            self.findings.push(text());
        }
    }

    /// The incarnation is there, says the answer to something that was sent at `asked`.
    pub fn alive(&mut self, name: &StreamName, id: StreamId, asked: Mark) {
        let mark = self.history.mark();
        let named = self.history.names.entry(name.clone()).or_default();
        let is_new = !named.alive.contains_key(&id);
        named.alive.entry(id).or_insert(mark);
        let died = named.dead.get(&id).copied();
        let is_replaced = named.delete_asked.is_none() && named.alive.len() > 1;
        let all: Vec<StreamId> = named.alive.keys().copied().collect();
        if is_new {
            self.settings_begin(name, id, mark);
        }
        self.check(!is_replaced, || {
            format!("{name} was {all:?} though nobody asked to delete it")
        });
        self.check(died.is_none_or(|died| died > asked), || {
            format!("{name}: {id} was deleted for good and is there again")
        });
    }

    /// No such stream is there, says the answer to something that was sent at `asked`.
    pub fn gone(&mut self, name: &StreamName, asked: Mark) {
        let mark = self.history.mark();
        let named = self.history.names.entry(name.clone()).or_default();
        let before = named.alive.iter().filter(|(_, told)| **told < asked);
        let lost: Vec<StreamId> = before.map(|(id, _)| *id).collect();
        let asked_ever = named.delete_asked.is_some();
        for id in &lost {
            named.dead.entry(*id).or_insert(mark);
        }
        self.check(lost.is_empty() || asked_ever, || {
            format!("{name} is not there though nobody asked to delete it: {lost:?}")
        });
    }

    /// A deletion that was asked for at `asked` is done.
    pub fn deleted(&mut self, name: &StreamName, asked: Mark) {
        self.gone(name, asked);
        self.history.delete_ended(name);
    }

    /// A tail was told to somebody who asked when `floor` had been told.
    pub fn tail(&mut self, id: StreamId, tail: Position, floor: u64) {
        let tail = tail.sequence.0;
        self.check(tail >= floor, || {
            format!("{id}: the tail {tail} is told after {floor} was")
        });
        let account = self.history.accounts.entry(id).or_default();
        account.tail = account.tail.max(tail);
    }

    /// An append session is open.
    pub fn led(&mut self, id: StreamId, epoch: Epoch, tail: Position) {
        let account = self.history.accounts.entry(id).or_default();
        let known = account.epochs.entry(epoch).or_insert(tail.sequence.0);
        *known = (*known).min(tail.sequence.0);
    }

    /// The first record that is left was told.
    pub fn first(&mut self, id: StreamId, first: u64) {
        let account = self.history.accounts.entry(id).or_default();
        account.first = account.first.max(first);
        let asked = account.first_asked;
        let may_be = first <= asked || self.history.may_have_expired(id, first);
        self.check(may_be, || {
            format!("{id} is trimmed to {first}, at most {asked} was asked for")
        });
    }

    /// A stream was described to somebody who asked when `floor` had been told.
    pub fn described(&mut self, info: &StreamInfo, asked: Mark, floor: u64, epoch: Epoch) {
        self.alive(&info.name, info.id, asked);
        self.tail(info.id, info.tail, floor);
        self.epoch(info.id, info.epoch, epoch);
        self.settings_told(info, asked);
        self.first(info.id, info.first.0);
        self.token(info.id, info.fence.as_str(), asked);
    }

    /// The installed token was told to somebody who asked at `asked`.
    pub fn token(&mut self, id: StreamId, token: &str, asked: Mark) {
        let mark = self.history.mark();
        let account = self.history.accounts.entry(id).or_default();
        let at = account.fences.iter().position(|fence| fence.token == token);
        let is_before = |at: &usize| account.fences[*at].told.is_some_and(|told| told < asked);
        let told = account.fence_told.filter(is_before);
        let is_older = match (at, told) {
            (None, None) => false,
            (None, Some(_)) => true,
            (Some(_), None) => false,
            (Some(at), Some(told)) => account.is_before(at, told),
        };
        let is_superseded = at
            .zip(account.fence_told)
            .is_some_and(|(at, told)| account.is_before(at, told));
        let is_known = at.is_some() || token.is_empty();
        if let Some(at) = at {
            account.fences[at].told.get_or_insert(mark);
            if !is_superseded {
                account.fence_told = Some(at);
            }
        }
        let before = told.map(|told| self.history.accounts[&id].fences[told].token.clone());
        self.check(is_known && !is_older, || {
            format!("{id}: the token is '{token}', before it was told to be {before:?}")
        });
    }

    /// A batch that presented `token` was taken; it was sent at `sent`. A token that was told to be
    /// replaced before that must not be accepted any more.
    pub(crate) fn accepted_token(&mut self, id: StreamId, token: &str, sent: Mark) {
        let account = self.history.accounts.entry(id).or_default();
        let at = account.fences.iter().position(|fence| fence.token == token);
        let told = account.fence_told;
        let is_replaced = at.zip(told).is_some_and(|(at, told)| {
            let was_told = account.fences[told].told.is_some_and(|mark| mark < sent);
            was_told && account.is_before(at, told)
        });
        self.check(!is_replaced, || {
            format!("{id}: a batch with the token '{token}' is acked, {told:?} had replaced it")
        });
    }

    /// Records were acknowledged; `floor` is the tail told when the batch was sent.
    pub fn acked(&mut self, id: StreamId, records: &[RecordId], ack: &Ack, floor: u64) {
        let (start, end) = (ack.start.sequence.0, ack.end.sequence.0);
        let is_whole = end - start == records.len() as u64;
        self.check(is_whole, || {
            format!(
                "{id}: {} records are acked as {start} to {end}",
                records.len()
            )
        });
        self.check(ack.duplicate || start >= floor, || {
            format!("{id}: acked at {start}, sent when the tail was told to be {floor}")
        });
        for (sequence, record) in (start..).zip(records) {
            let mut position = ack.start;
            position.sequence.0 = sequence;
            let sent = &mut self.history.sent[record.0 as usize];
            let was_refused = sent.fate == Fate::Refused;
            sent.fate = Fate::Acked(id, position);
            self.check(!was_refused, || {
                format!("{record:?} was refused and is acked")
            });
            self.place(id, sequence, *record, None);
        }
        self.tail(id, ack.tail, end);
    }

    /// Records certainly are in no stream.
    pub fn refused(&mut self, records: &[RecordId]) {
        for record in records {
            let place = self.places.get(record).copied();
            self.check(place.is_none(), || {
                format!("{record:?} is refused for good and is at {place:?}")
            });
            self.history.sent[record.0 as usize].fate = Fate::Refused;
        }
    }

    /// What a refusal names is as true as an ack; `floor` is the tail told at `asked`.
    pub fn refusal(&mut self, id: StreamId, refusal: &Refusal, asked: Mark, floor: u64) {
        match (&refusal.facts, refusal.code) {
            (Facts::Tail(tail), _) => self.tail(id, *tail, floor),
            (Facts::Token(token), _) => self.token(id, token, asked),
            (Facts::First(first), _) => self.first(id, first.0),
            (_, Code::Corrupt) => self.found(format!("{id}: {refusal}")),
            (_, Code::Internal) => self.found(format!("{id}: {refusal}")),
            _ => {}
        }
    }

    /// A record was read.
    pub fn read(&mut self, name: &StreamName, id: StreamId, seen: Seen<'_>) {
        let sequence = seen.position.sequence.0;
        if let Some(record) = self.judge_record(name, id, seen) {
            let timestamp = Some(seen.position.timestamp.0);
            self.place(id, sequence, record, timestamp);
            let account = self.history.accounts.entry(id).or_default();
            account.tail = account.tail.max(sequence + 1);
        }
    }

    /// Whether somebody sent the record, to this stream, and under a leadership that held then.
    pub(crate) fn judge_record(
        &mut self,
        name: &StreamName,
        id: StreamId,
        seen: Seen<'_>,
    ) -> Option<RecordId> {
        let sequence = seen.position.sequence.0;
        let record = record_of(seen.body, self.history.sent.len() as u64);
        self.check(record.is_some(), || {
            let bytes = seen.body.len();
            format!("{name}: nobody sent the {bytes} bytes at {sequence} of {id}")
        });
        let record = record?;
        self.same_update(record);
        let sent = &self.history.sent[record.0 as usize];
        let is_here = sent.stream == *name;
        let is_refused = sent.fate == Fate::Refused;
        self.check(is_here, || {
            format!("{record:?} is in {name}, which it was not sent to")
        });
        self.check(!is_refused, || {
            format!("{name}: {record:?} at {sequence} was refused for good")
        });
        let account = self.history.accounts.entry(id).or_default();
        let newer = account.epochs.range(Epoch(seen.epoch.0 + 1)..);
        let begun = newer
            .map(|(epoch, tail)| (*epoch, *tail))
            .min_by_key(|(_, tail)| *tail);
        self.check(begun.is_none_or(|(_, tail)| sequence < tail), || {
            let epoch = seen.epoch;
            format!("{name}: {sequence} is of {epoch}, but {begun:?} had begun before it")
        });
        Some(record)
    }

    /// A record is told to be at a place.
    pub(crate) fn place(
        &mut self,
        id: StreamId,
        sequence: u64,
        record: RecordId,
        timestamp: Option<u64>,
    ) {
        let account = self.history.accounts.entry(id).or_default();
        let told = Told { record, timestamp };
        let known = *account.records.entry(sequence).or_insert(told);
        if known.timestamp.is_none() {
            account.records.insert(sequence, told);
        }
        let is_same_time = match (known.timestamp, timestamp) {
            (Some(known), Some(time)) => known == time,
            _ => true,
        };
        self.check(known.record == record && is_same_time, || {
            format!("{id}: {sequence} was told to be {known:?} and is {told:?}")
        });
        self.place_once(id, sequence, record);
    }

    /// Where a record that may be there once was told to be.
    pub(crate) fn place_of(&self, record: RecordId) -> Option<(StreamId, u64)> {
        self.places.get(&record).copied()
    }

    fn place_once(&mut self, id: StreamId, sequence: u64, record: RecordId) {
        if self.history.sent[record.0 as usize].copies == Copies::Many {
            return;
        }
        let place = *self.places.entry(record).or_insert((id, sequence));
        self.check(place == (id, sequence), || {
            format!(
                "{record:?} is at {place:?} and again at {:?}",
                (id, sequence)
            )
        });
    }
}

impl crate::history::Account {
    /// Whether a token is certainly older than another one: it was told before the other one was
    /// even asked for.
    pub(crate) fn is_before(&self, at: usize, other: usize) -> bool {
        let asked = self.fences[other].asked;
        at != other && self.fences[at].told.is_some_and(|told| told < asked)
    }
}
