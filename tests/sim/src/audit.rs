//! The audit after a crash: recovers a copy of the disk and reads everything through the shards'
//! front door.
//!
//! # Invariants
//! - The disk of the run is not touched.
//! - Time stands still; the copy's disk answers at once.

use crate::agenda::Life;
use crate::disk::SimDisk;
use crate::history::{Copies, RecordId};
use crate::node::{BootEnd, BootPlan, boot, reading};
use crate::oracle::{Oracle, Seen};
use crate::rng::Rng;
use nova_core::{Caller, Event, ReaderKey, Shard};
use nova_model::names::BucketName;
use nova_model::placement::stream_home;
use nova_model::request::{Answer, Page, ReadLimits, ReadOpen, ReadStart, Request, StreamInfo};
use nova_model::{Code, Refusal, StoredBatch, StreamId, StreamName};
use std::collections::BTreeMap;

/// A stream as it is on the disk.
pub struct Found {
    /// Its description.
    pub info: StreamInfo,
    /// Its batches from the first record that is left.
    pub batches: Vec<StoredBatch>,
    /// Why reading stopped before the tail, if it did.
    pub failure: Option<Refusal>,
}

/// All streams of the given names that are there.
pub struct Contents {
    /// By name.
    pub streams: BTreeMap<StreamName, Found>,
    /// What lists of them say.
    pub listed: Vec<StreamInfo>,
}

/// Recovers a copy of the disk and reads the streams of these names.
pub fn contents(
    disk: &SimDisk,
    plan: &BootPlan,
    names: &[StreamName],
    now: u64,
) -> Result<Contents, String> {
    let mut copy = disk.copy();
    let plan = BootPlan {
        dies_at_call: None,
        ..plan.clone()
    };
    let star = match boot(&mut copy, &plan, Life(u64::MAX), Rng::new(0)) {
        BootEnd::Running(star, _) => star,
        BootEnd::Died => unreachable!("no death was planned"),
        BootEnd::Refused(error) => return Err(error),
    };
    let mut desk = Desk {
        disk: copy,
        shards: star.into_shards(),
        now,
        last: 0,
    };
    let mut contents = Contents {
        streams: BTreeMap::new(),
        listed: Vec::new(),
    };
    for name in names {
        if let Some(found) = desk.read(name)? {
            contents.streams.insert(name.clone(), found);
        }
    }
    let mut buckets: Vec<&BucketName> = names.iter().map(|name| &name.bucket).collect();
    buckets.dedup();
    for bucket in buckets {
        desk.list(bucket, &mut contents.listed)?;
    }
    Ok(contents)
}

struct Desk {
    disk: SimDisk,
    shards: Vec<Shard>,
    now: u64,
    last: u64,
}

impl Desk {
    fn ask(&mut self, core: usize, request: Request) -> Result<Result<Answer, Refusal>, String> {
        self.last += 1;
        let caller = Caller(self.last);
        let now = reading(self.now);
        self.shards[core].request(now, caller, request, StreamId(0));
        let events = self.settle(core)?;
        let answer = events.into_iter().find_map(|event| match event {
            Event::Answered(found, result) if found == caller => Some(result),
            _ => None,
        });
        answer.ok_or_else(|| "a request of the audit has no answer".to_owned())
    }

    /// Works until the shard is dry; all its events.
    fn settle(&mut self, core: usize) -> Result<Vec<Event>, String> {
        let (shard, now) = (&mut self.shards[core], reading(self.now));
        let mut events = Vec::new();
        loop {
            let mut has_moved = false;
            while let Some((token, op)) = shard.poll_disk(now.instant) {
                let flight = self.disk.begin(op);
                let result = self.disk.complete(flight);
                shard.handle_disk(now, token, result);
                has_moved = true;
            }
            while let Some(event) = shard.poll_event() {
                has_moved = true;
                if let Event::Fatal(error) = &event {
                    return Err(format!("the audit's disk failed: {error}"));
                }
                events.push(event);
            }
            if !has_moved {
                return Ok(events);
            }
        }
    }

    fn read(&mut self, name: &StreamName) -> Result<Option<Found>, String> {
        let core = usize::from(stream_home(name, self.shards.len() as u16).0);
        let describe = Request::DescribeStream { name: name.clone() };
        let info = match self.ask(core, describe)? {
            Ok(Answer::Stream { info, .. }) => info,
            Ok(other) => return Err(format!("a description is {other:?}")),
            Err(refusal) => {
                return match refusal.code {
                    Code::StreamNotFound | Code::BucketNotFound => Ok(None),
                    _ => Err(format!("{name} cannot be described: {refusal}")),
                };
            }
        };
        self.last += 1;
        let reader = ReaderKey(self.last);
        let open = ReadOpen {
            stream: name.clone(),
            stream_id: Some(info.id),
            start: ReadStart::Sequence(info.first),
            limits: ReadLimits::default(),
            follow: false,
            clamp: false,
        };
        self.shards[core].open_reader(reading(self.now), reader, open, StreamId(0));
        let (mut batches, mut failure, mut is_over) = (Vec::new(), None, false);
        while !is_over {
            self.shards[core].credit_reader(reader);
            let events = self.settle(core)?;
            is_over = events.is_empty();
            for event in events {
                match event {
                    Event::ReaderBatch(_, batch) => batches.push(batch),
                    Event::ReaderEnded { .. } => is_over = true,
                    Event::ReaderFailed(_, refusal) | Event::ReaderRefused(_, refusal) => {
                        failure = Some(refusal);
                        is_over = true;
                    }
                    _ => {}
                }
            }
        }
        Ok(Some(Found {
            info,
            batches,
            failure,
        }))
    }

    fn list(&mut self, bucket: &BucketName, listed: &mut Vec<StreamInfo>) -> Result<(), String> {
        for core in 0..self.shards.len() {
            let mut page = Page {
                limit: 2,
                ..Page::default()
            };
            loop {
                let request = Request::ListStreams {
                    bucket: bucket.clone(),
                    page: page.clone(),
                };
                let (items, has_more) = match self.ask(core, request)? {
                    Ok(Answer::Streams { items, has_more }) => (items, has_more),
                    Ok(other) => return Err(format!("a list is {other:?}")),
                    Err(refusal) if refusal.code == Code::BucketNotFound => break,
                    Err(refusal) => return Err(format!("{bucket} cannot be listed: {refusal}")),
                };
                if let Some(last) = items.last() {
                    page.start_after = last.name.key.as_str().to_owned();
                }
                listed.extend(items);
                if !has_more {
                    break;
                }
            }
        }
        Ok(())
    }
}

/// Where the audit has found records so far.
type Places = BTreeMap<RecordId, u64>;

impl Oracle {
    /// Holds what is on the disk against all that was told.
    pub fn audit(&mut self, contents: &Contents) {
        let names: Vec<StreamName> = self.history.names.keys().cloned().collect();
        let mut places = BTreeMap::new();
        for name in &names {
            let found = contents.streams.get(name);
            self.audit_name(name, found.map(|found| found.info.id));
            if let Some(found) = found {
                self.audit_stream(name, found, &mut places);
            }
        }
        self.audit_lists(contents);
    }

    fn audit_name(&mut self, name: &StreamName, found: Option<StreamId>) {
        let named = &self.history.names[name];
        let newest = named.alive.iter().max_by_key(|(_, mark)| **mark);
        let newest = newest.map(|(id, mark)| (*id, *mark));
        let may_be_gone = named.delete_asked.is_some();
        let is_dead = found.is_some_and(|id| named.dead.contains_key(&id));
        let deletes_open = named.deletes_open;
        let deleted_since =
            |mark| named.delete_asked.is_some_and(|asked| asked > mark) || deletes_open > 0;
        let is_kept = match newest {
            None => true,
            Some((id, mark)) => found == Some(id) || (may_be_gone && deleted_since(mark)),
        };
        let is_unknown = newest.is_none_or(|(id, _)| named.dead.contains_key(&id));
        self.check(!is_dead, || {
            format!("{name}: {found:?} was deleted for good and is there")
        });
        self.check(is_kept || is_unknown, || {
            format!("{name}: {newest:?} was told to be there; {found:?} is")
        });
    }

    fn audit_stream(&mut self, name: &StreamName, found: &Found, places: &mut Places) {
        let info = &found.info;
        let id = info.id;
        let ledger = self.history.ledgers.entry(id).or_default().clone();
        let (first, tail) = (info.first.0, info.tail.sequence.0);
        self.check(tail >= ledger.tail, || {
            format!("{name}: the tail is {tail}, {} was told", ledger.tail)
        });
        self.check(first >= ledger.first && first <= ledger.first_asked, || {
            let (told, asked) = (ledger.first, ledger.first_asked);
            format!("{name}: trimmed to {first}, told {told}, asked for {asked}")
        });
        self.audit_token(name, found, &ledger);
        if let Some(failure) = &found.failure {
            self.found(format!(
                "{name} cannot be read to its tail {tail}: {failure}"
            ));
            return;
        }
        let (mut next, mut last, mut epoch) = (first, 0, 0);
        for batch in &found.batches {
            self.check(batch.epoch.0 >= epoch, || {
                format!("{name}: at {next} the epoch goes back to {}", batch.epoch)
            });
            epoch = batch.epoch.0;
            batch.for_each(|position, record| {
                if position.sequence.0 < first {
                    return;
                }
                let (sequence, time) = (position.sequence.0, position.timestamp.0);
                self.check(sequence == next && time >= last, || {
                    format!("{name}: {sequence} at {time} follows {next} at {last}")
                });
                (next, last) = (sequence + 1, time);
                let seen = Seen {
                    position,
                    epoch: batch.epoch,
                    body: record.body(),
                };
                let Some(record) = self.judge_record(name, id, seen) else {
                    return;
                };
                let told = ledger.records.get(&sequence).copied();
                let fits = told.is_none_or(|told| {
                    told.record == record && told.timestamp.is_none_or(|told| told == time)
                });
                self.check(fits, || {
                    format!(
                        "{name}: {sequence} was told to be {told:?} and is {record:?} at {time}"
                    )
                });
                let before = places.insert(record, sequence);
                let is_once = self.history.sent[record.0 as usize].copies == Copies::One;
                self.check(!is_once || before.is_none(), || {
                    format!("{name}: {record:?} is at {before:?} and at {sequence}")
                });
                let place = self.place_of(record).filter(|_| is_once);
                self.check(place.is_none_or(|place| place == (id, sequence)), || {
                    format!("{name}: {record:?} was at {place:?} and is at {sequence} of {id}")
                });
            });
        }
        self.check(next == tail, || {
            format!("{name}: read to {next}, the tail is {tail}")
        });
    }

    fn audit_token(&mut self, name: &StreamName, found: &Found, ledger: &crate::history::Ledger) {
        let token = found.info.fence.as_str();
        let at = ledger.fences.iter().position(|fence| fence.token == token);
        let is_older = match (at, ledger.fence_told) {
            (_, None) => false,
            (None, Some(_)) => true,
            (Some(at), Some(told)) => ledger.is_before(at, told),
        };
        let told = ledger
            .fence_told
            .map(|told| ledger.fences[told].token.clone());
        self.check(!is_older && (at.is_some() || token.is_empty()), || {
            format!("{name}: the token is '{token}', told was {told:?}")
        });
    }

    fn audit_lists(&mut self, contents: &Contents) {
        let mut listed: BTreeMap<&StreamName, &StreamInfo> = BTreeMap::new();
        for info in &contents.listed {
            let before = listed.insert(&info.name, info);
            self.check(before.is_none(), || {
                format!("{} is listed twice", info.name)
            });
        }
        for (name, found) in &contents.streams {
            let info = listed.remove(name);
            self.check(info == Some(&found.info), || {
                format!("{name} is listed as {info:?}, it is {:?}", found.info)
            });
        }
        let more: Vec<_> = listed.keys().collect();
        self.check(more.is_empty(), || {
            format!("listed, but not there: {more:?}")
        });
    }
}
