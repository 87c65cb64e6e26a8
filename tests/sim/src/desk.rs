//! A star on a copy of the disk, driven by hand: describes, reads and lists whatever is there.
//!
//! # Invariants
//! - Time stands still and the copy's disk answers at once.
//!
//! # Not here
//! - What must be there: [`crate::audit`] and [`crate::cold`].

use crate::agenda::Life;
use crate::disk::SimDisk;
use crate::node::{BootEnd, BootPlan, boot, reading};
use crate::rng::Rng;
use nova_core::{Caller, Event, ReaderKey, Shard};
use nova_model::names::BucketName;
use nova_model::placement::stream_home;
use nova_model::request::{Answer, Page, ReadLimits, ReadOpen, ReadStart, Request, StreamInfo};
use nova_model::settings::BucketSettings;
use nova_model::{Code, Facts, Refusal, SequenceNumber, StoredBatch, StreamId, StreamName};
use std::collections::BTreeMap;
use std::ops::Range;

/// A stream as it is on the disk.
pub struct Found {
    /// Its description.
    pub info: StreamInfo,
    /// Its batches from the first record that is left.
    pub batches: Vec<StoredBatch>,
    /// Ranges of records that cannot be read.
    pub damaged: Vec<Range<u64>>,
    /// Why reading stopped before the tail, if it did.
    pub failure: Option<Refusal>,
}

/// All streams of the given names that are there.
pub struct Contents {
    /// By name.
    pub streams: BTreeMap<StreamName, Found>,
    /// All buckets.
    pub buckets: BTreeMap<BucketName, BucketSettings>,
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
        buckets: desk.buckets()?,
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

impl Found {
    /// A read from `start` failed; where it can go on, if the refusal says that.
    fn note(&mut self, start: SequenceNumber, refusal: Refusal) -> Option<SequenceNumber> {
        match (refusal.code, &refusal.facts) {
            (Code::Corrupt, Facts::Range { from, to }) if *to > start => {
                self.damaged.push(from.0..to.0);
                (*to < self.info.tail.sequence).then_some(*to)
            }
            _ => {
                self.failure = Some(refusal);
                None
            }
        }
    }
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
        let mut found = Found {
            info,
            batches: Vec::new(),
            damaged: Vec::new(),
            failure: None,
        };
        let mut from = Some(found.info.first);
        while let Some(start) = from {
            from = self.read_from(core, &mut found, start)?;
        }
        Ok(Some(found))
    }

    /// Reads from `start` to the tail or to damage; where to go on behind that.
    fn read_from(
        &mut self,
        core: usize,
        found: &mut Found,
        start: SequenceNumber,
    ) -> Result<Option<SequenceNumber>, String> {
        self.last += 1;
        let reader = ReaderKey(self.last);
        let open = ReadOpen {
            stream: found.info.name.clone(),
            stream_id: Some(found.info.id),
            start: ReadStart::Sequence(start),
            limits: ReadLimits::default(),
            follow: false,
            clamp: false,
        };
        self.shards[core].open_reader(reading(self.now), reader, open, StreamId(0));
        loop {
            self.shards[core].credit_reader(reader);
            let events = self.settle(core)?;
            if events.is_empty() {
                return Err(format!("{} is not read to its end", found.info.name));
            }
            for event in events {
                match event {
                    Event::ReaderBatch(_, batch) => found.batches.push(batch),
                    Event::ReaderEnded { .. } => return Ok(None),
                    Event::ReaderFailed(_, refusal) | Event::ReaderRefused(_, refusal) => {
                        return Ok(found.note(start, refusal));
                    }
                    _ => {}
                }
            }
        }
    }

    fn buckets(&mut self) -> Result<BTreeMap<BucketName, BucketSettings>, String> {
        let page = Page {
            limit: 100,
            ..Page::default()
        };
        match self.ask(0, Request::ListBuckets { page })? {
            Ok(Answer::Buckets { items, .. }) => {
                let items = items.into_iter();
                Ok(items.map(|info| (info.name, info.settings)).collect())
            }
            other => Err(format!("the buckets are {other:?}")),
        }
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
                    known: None,
                };
                let (items, has_more) = match self.ask(core, request)? {
                    Ok(Answer::Streams {
                        items, has_more, ..
                    }) => (items, has_more),
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
