//! Whether a history keeps the contract (docs: appending, reading).
//!
//! ```text
//!   acks, reads -> what is at each place of each stream, contradicted by nothing
//!               -> each producer's records: where they are, in which order, how often
//!   fences      -> whose records may be behind them
//! ```
//! The history must end with a read of each stream from its beginning to its tail, by a reader of
//! the name [`LAST_READER`].
//!
//! # Invariants
//! - Every finding names the places and records that contradict each other.

use crate::history::{Event, Promise};
use std::collections::{BTreeMap, BTreeSet};

/// Who reads everything at the end.
pub const LAST_READER: &str = "last";

/// What a history holds, for people.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Times the star was killed.
    pub kills: u64,
    /// Times it was told to end.
    pub stops: u64,
    /// Moves of leadership that were answered.
    pub moves: u64,
    /// Tokens installed.
    pub fences: u64,
    /// Records given to clients.
    pub sent: u64,
    /// Records acked.
    pub acked: u64,
    /// Records whose outcome is not known.
    pub ambiguous: u64,
    /// Records certainly in no stream.
    pub refused: u64,
    /// Records given to readers.
    pub read: u64,
    /// Records in the streams at the end.
    pub there: u64,
    /// Records that are in a stream more than once, where that may be.
    pub copies: u64,
}

/// A record: its producer and its number there.
type Record = (String, u64);

#[derive(Default)]
struct Checker {
    counts: Counts,
    findings: Vec<String>,
    promises: BTreeMap<String, (String, Promise)>,
    sent: BTreeMap<Record, Fate>,
    next_id: BTreeMap<String, u64>,
    /// What somebody was told of a place of a stream.
    told: BTreeMap<(String, u64), Record>,
    /// The place after the last one, for each reader of a stream.
    readers: BTreeMap<(String, String), u64>,
    /// One past the highest place that anybody was told of.
    floors: BTreeMap<String, u64>,
    tails: BTreeMap<String, u64>,
    streams: BTreeMap<String, Vec<Record>>,
    /// Where tokens were installed, and by which producers.
    fences: BTreeMap<String, Vec<(u64, String)>>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Fate {
    /// The place it must not be before: everything told when it was sent is before it.
    floor: u64,
    acked: Option<u64>,
    is_refused: bool,
}

/// Checks a history: what it holds, or everything that is wrong with it.
pub fn check(events: &[Event]) -> Result<Counts, Vec<String>> {
    let mut checker = Checker::default();
    for event in events {
        checker.take(event);
    }
    checker.conclude();
    if checker.findings.is_empty() {
        Ok(checker.counts)
    } else {
        Err(checker.findings)
    }
}

impl Checker {
    fn find(&mut self, finding: String) {
        self.findings.push(finding);
    }

    fn take(&mut self, event: &Event) {
        match event {
            Event::Producer {
                stream,
                producer,
                promise,
            } => {
                self.promises
                    .insert(producer.clone(), (stream.clone(), *promise));
            }
            Event::Sent {
                stream,
                producer,
                id,
            } => self.take_sent(stream, producer, *id),
            Event::Acked {
                stream,
                producer,
                id,
                sequence,
            } => {
                self.counts.acked += 1;
                self.take_acked(stream, &(producer.clone(), *id), *sequence);
            }
            Event::Failed {
                producer,
                id,
                clean,
                ..
            } => self.take_failed((producer.clone(), *id), *clean),
            Event::Read {
                stream,
                reader,
                sequence,
                producer,
                id,
            } => {
                self.take_read(stream, reader, *sequence, (producer.clone(), *id));
            }
            Event::Unknown {
                stream,
                reader,
                sequence,
            } => {
                self.find(format!(
                    "{reader} was given what nobody sent: {stream} {sequence}"
                ));
            }
            Event::Tail { stream, sequence } => {
                let before = self.tails.insert(stream.clone(), *sequence).unwrap_or(0);
                if *sequence < before {
                    self.find(format!(
                        "the tail of {stream} went back: {before} to {sequence}"
                    ));
                }
                self.raise_floor(stream, *sequence);
            }
            Event::Fenced {
                stream,
                producer,
                sequence,
            } => self.take_fenced(stream, producer, *sequence),
            Event::Moved => self.counts.moves += 1,
            Event::Stopped => self.counts.stops += 1,
            Event::Killed => self.counts.kills += 1,
        }
    }

    fn fate(&mut self, record: &Record) -> &mut Fate {
        self.sent.entry(record.clone()).or_default()
    }

    fn raise_floor(&mut self, stream: &str, to: u64) {
        let floor = self.floors.entry(stream.to_owned()).or_default();
        *floor = to.max(*floor);
    }

    fn take_sent(&mut self, stream: &str, producer: &str, id: u64) {
        self.counts.sent += 1;
        let next = self.next_id.entry(producer.to_owned()).or_default();
        assert_eq!(
            *next, id,
            "{producer} numbers its records from 0 without gaps"
        );
        *next += 1;
        let floor = self.floors.get(stream).copied().unwrap_or_default();
        *self.fate(&(producer.to_owned(), id)) = Fate {
            floor,
            ..Fate::default()
        };
    }

    fn take_acked(&mut self, stream: &str, record: &Record, sequence: u64) {
        let fate = self.fate(record);
        let floor = fate.floor;
        if let Some(other) = fate.acked.replace(sequence)
            && other != sequence
        {
            self.find(format!("{record:?} was acked at {other} and at {sequence}"));
        }
        if sequence < floor {
            self.find(format!(
                "{record:?} was acked at {stream} {sequence}, but {floor} was told before it was \
                 sent"
            ));
        }
        self.tell(stream, sequence, record, "an ack");
    }

    fn take_failed(&mut self, record: Record, clean: bool) {
        self.fate(&record).is_refused = clean;
        self.counts.refused += u64::from(clean);
        self.counts.ambiguous += u64::from(!clean);
    }

    fn take_fenced(&mut self, stream: &str, producer: &str, sequence: u64) {
        self.counts.fences += 1;
        let fence = (sequence, producer.to_owned());
        let fences = self.fences.entry(stream.to_owned()).or_default();
        fences.push(fence);
        self.raise_floor(stream, sequence);
    }

    fn take_read(&mut self, stream: &str, reader: &str, sequence: u64, record: Record) {
        self.counts.read += 1;
        let key = (stream.to_owned(), reader.to_owned());
        let next = self.readers.insert(key, sequence + 1).unwrap_or(0);
        if sequence != next {
            self.find(format!(
                "{reader} of {stream} was given {sequence} where {next} was next"
            ));
        }
        if !self.sent.contains_key(&record) {
            self.find(format!(
                "{stream} {sequence} holds {record:?}, which was never sent"
            ));
        }
        self.tell(stream, sequence, &record, reader);
        if reader == LAST_READER {
            self.streams
                .entry(stream.to_owned())
                .or_default()
                .push(record);
        }
    }

    fn tell(&mut self, stream: &str, sequence: u64, record: &Record, who: &str) {
        self.raise_floor(stream, sequence + 1);
        let place = (stream.to_owned(), sequence);
        let before = self.told.entry(place).or_insert_with(|| record.clone());
        if before != record {
            let finding = format!("{stream} {sequence} was {before:?} and is {record:?} for {who}");
            self.find(finding);
        }
    }

    fn conclude(&mut self) {
        let streams = std::mem::take(&mut self.streams);
        for ((stream, sequence), record) in &std::mem::take(&mut self.told) {
            let there = streams
                .get(stream)
                .and_then(|all| all.get(*sequence as usize));
            if there != Some(record) {
                self.find(format!(
                    "{stream} {sequence} was {record:?} and at last {there:?}"
                ));
            }
        }
        for (stream, tail) in &std::mem::take(&mut self.tails) {
            let there = streams.get(stream).map_or(0, Vec::len);
            if (there as u64) < *tail {
                self.find(format!(
                    "the tail of {stream} was {tail} and at last {there}"
                ));
            }
        }
        self.check_records(&streams);
        self.check_fences(&streams);
        self.counts.there = streams.values().map(|all| all.len() as u64).sum();
    }

    /// Of those who present tokens, only who installed the last one before a place may be there.
    fn check_fences(&mut self, streams: &BTreeMap<String, Vec<Record>>) {
        for (stream, mut fences) in std::mem::take(&mut self.fences) {
            fences.sort();
            let holders: BTreeSet<&String> = fences.iter().map(|(_, who)| who).collect();
            let there = streams.get(&stream).map_or(&[][..], Vec::as_slice);
            for (sequence, record) in (0..).zip(there) {
                let before = fences.partition_point(|(tail, _)| *tail <= sequence);
                let before = &fences[..before];
                let newest = before.last().map(|(tail, _)| *tail);
                let of_newest = before
                    .iter()
                    .rev()
                    .take_while(|(tail, _)| Some(*tail) == newest);
                let is_holder = of_newest.into_iter().any(|(_, who)| *who == record.0);
                if holders.contains(&record.0) && !is_holder {
                    self.find(format!(
                        "{record:?} is at {stream} {sequence}, where another one holds the token"
                    ));
                }
            }
        }
    }

    fn check_records(&mut self, streams: &BTreeMap<String, Vec<Record>>) {
        let mut places: BTreeMap<&Record, Vec<u64>> = BTreeMap::new();
        for (sequence, record) in streams.values().flat_map(|all| (0..).zip(all)) {
            places.entry(record).or_default().push(sequence);
        }
        let mut last: BTreeMap<String, u64> = BTreeMap::new();
        for (record, fate) in &std::mem::take(&mut self.sent) {
            let found = places.get(record).map_or(&[][..], Vec::as_slice);
            let promise = self.promises.get(&record.0).map(|(_, promise)| *promise);
            if fate.is_refused && !found.is_empty() {
                self.find(format!(
                    "{record:?} was refused as clean and is at {found:?}"
                ));
            }
            if fate.acked.is_some_and(|at| !found.contains(&at)) {
                self.find(format!(
                    "{record:?} was acked at {:?}, it is at {found:?}",
                    fate.acked
                ));
            }
            if found.len() > 1 {
                self.counts.copies += 1;
                if promise != Some(Promise::AtLeastOnce) {
                    self.find(format!("{record:?} is there more than once: {found:?}"));
                }
            }
            let Some(&first) = found.first() else {
                continue;
            };
            if first < fate.floor {
                self.find(format!(
                    "{record:?} is at {first}, before {} was told",
                    fate.floor
                ));
            }
            let before = last.insert(record.0.clone(), first);
            if before.is_some_and(|before| before >= first) {
                self.find(format!(
                    "{record:?} is at {first}, behind the one sent after it"
                ));
            }
        }
    }
}

#[cfg(test)]
#[path = "checker_tests.rs"]
mod tests;
