//! The read commands: credit, following, and reads from disk.

use super::Shard;
use crate::catalog::indexes::Located;
use crate::disk::{DiskError, DiskFailure, DiskResult, SegmentFile};
use crate::entry::Entry;
use crate::event::{Event, ReaderKey};
use crate::reader::recent;
use crate::segment::decode_group_of;
use bytes::Bytes;
use nova_model::cursor::ReadCursor;
use nova_model::ids::StreamId;
use nova_model::limits::{BLOCK_BYTES, READ_CHUNK_BYTES, READER_CREDIT_BYTES, READER_HEARTBEAT_US};
use nova_model::position::SequenceNumber;
use nova_model::request::ReadLimits;
use nova_model::{Code, Facts, Now, Refusal, SegmentId, StoredBatch};

/// How one round of serving a reader ended.
enum Served {
    /// It went on; another round may bring more.
    More,
    /// Nothing more for the moment.
    Enough,
    /// The read is over, with what is told last.
    Over(Box<Event>),
}

impl Shard {
    /// The reader's client takes more: up to 256 KiB, at least one batch.
    pub fn credit_reader(&mut self, key: ReaderKey) {
        if let Some(reader) = self.readers.get_mut(&key) {
            reader.has_credit = true;
            self.hungry.insert(key);
        } else if let Some(has_credit) = self.opening.get_mut(&key) {
            *has_credit = true;
        }
    }

    /// The reader's client is gone or has had enough.
    pub fn close_reader(&mut self, now: Now, key: ReaderKey) {
        self.opening.remove(&key);
        let Some(reader) = self.readers.remove(&key) else {
            return;
        };
        self.let_reads_go(key, reader.reads);
        self.hungry.remove(&key);
        if let Some(stream) = self.streams.get_mut(reader.stream) {
            stream.readers.remove(&key);
            stream.followers.remove(&key);
        }
        self.note_idle(now.instant, reader.stream);
    }

    pub(super) fn wake_followers(&mut self, id: StreamId) {
        let followers = std::mem::take(&mut self.stream_mut(id).followers);
        self.hungry.extend(followers);
    }

    /// The stream is deleted, durably: its readers learn it.
    pub(super) fn fail_readers(&mut self, id: StreamId) {
        let name = self.stream(id).durable.name.clone();
        for key in self.stream(id).readers.clone() {
            self.end_reader(
                key,
                Event::ReaderFailed(key, Refusal::stream_not_found(&name)),
            );
        }
    }

    pub(super) fn send_heartbeats(&mut self, now: Now) {
        while let Some((at, key)) = self.heartbeats.first().copied() {
            if at > now.instant {
                return;
            }
            self.heartbeats.pop_first();
            let Some(reader) = self.readers.get(&key) else {
                continue;
            };
            let stream = self
                .streams
                .get(reader.stream)
                .expect("a reader holds its stream");
            if stream.followers.contains(&key) {
                let tail = stream.marks.durable();
                self.events.push_back(Event::ReaderHeartbeat(key, tail));
            }
            self.heartbeats
                .insert((now.instant.plus_us(READER_HEARTBEAT_US), key));
        }
    }

    /// Serves each reader that wants something, as far as memory and disk operations bring it.
    pub(super) fn serve_hungry_readers(&mut self) {
        if !self.is_ready {
            return;
        }
        while let Some(key) = self.hungry.pop_first() {
            loop {
                match self.serve(key) {
                    Served::More => {}
                    Served::Enough => break,
                    Served::Over(event) => {
                        self.end_reader(key, *event);
                        break;
                    }
                }
            }
        }
    }

    pub(super) fn end_reader(&mut self, key: ReaderKey, event: Event) {
        let reader = self.readers.remove(&key).expect("an open reader");
        self.let_reads_go(key, reader.reads);
        self.hungry.remove(&key);
        let stream = self.stream_mut(reader.stream);
        stream.readers.remove(&key);
        stream.followers.remove(&key);
        // One whose start is still searched was not told that it is open.
        let event = match event {
            Event::ReaderFailed(key, refusal) if reader.search.is_some() => {
                Event::ReaderRefused(key, refusal)
            }
            event => event,
        };
        self.events.push_back(event);
        self.streams
            .set_deadline(reader.stream, Some(nova_model::Instant(0)));
    }

    fn serve(&mut self, key: ReaderKey) -> Served {
        let Some(reader) = self.readers.get_mut(&key) else {
            return Served::Enough;
        };
        if !reader.is_hungry() {
            return Served::Enough;
        }
        let stream = self
            .streams
            .get(reader.stream)
            .expect("a reader holds its stream");
        let (next, tail) = (reader.cursor.next(), stream.marks.durable());
        if reader.search.is_none() && reader.cursor.is_ended() {
            return Served::Over(Box::new(Event::ReaderEnded {
                reader: key,
                next,
                tail,
            }));
        }
        if next < stream.marks.trimmed() {
            let refusal = trimmed(stream.marks.trimmed());
            return Served::Over(Box::new(Event::ReaderFailed(key, refusal)));
        }
        if !reader.ready.is_empty() {
            return self.hand_out(key);
        }
        if let Some(mut read) = reader.reads.pop_front() {
            let (segment, result) = (read.segment, read.result.take());
            reader.read_bytes += read.place.length as u64;
            self.let_reads_go(key, [read]);
            let result = result.expect("a hungry reader's first read has come");
            return self.take_read(key, segment, result);
        }
        if next >= tail.sequence {
            return self.at_tail(key);
        }
        if stream.recent_first().is_some_and(|first| first <= next) {
            // Places on disk that were looked up before lie behind what memory brings.
            reader.runs.clear();
            let mut bytes = 0;
            for batch in recent::from(stream, next) {
                reader.ready.push_back(batch.clone());
                bytes += batch.batch.bytes().len();
                if bytes >= READER_CREDIT_BYTES {
                    break;
                }
            }
            return Served::More;
        }
        self.read_from_disk(key)
    }

    fn at_tail(&mut self, key: ReaderKey) -> Served {
        let reader = self.readers.get_mut(&key).expect("an open reader");
        let stream = self
            .streams
            .get_mut(reader.stream)
            .expect("a reader holds its stream");
        let (next, tail) = (reader.cursor.next(), stream.marks.durable());
        if let Some((_, limits)) = reader.search.take() {
            reader.cursor = ReadCursor::new(next, limits);
            let id = reader.stream;
            let event = self.reader_opened(key, id, next);
            self.events.push_back(event);
            return Served::More;
        }
        if !reader.follow {
            return Served::Over(Box::new(Event::ReaderEnded {
                reader: key,
                next,
                tail,
            }));
        }
        stream.followers.insert(key);
        if !std::mem::replace(&mut reader.is_caught_up, true) {
            self.events.push_back(Event::ReaderCaughtUp(key, tail));
        }
        Served::Enough
    }

    fn hand_out(&mut self, key: ReaderKey) -> Served {
        let seen = self.seen;
        let reader = self.readers.get_mut(&key).expect("an open reader");
        if reader.search.is_some() {
            return self.search(key);
        }
        let (mut bytes, id) = (0, reader.stream);
        while bytes < READER_CREDIT_BYTES {
            let Some(batch) = reader.ready.pop_front() else {
                break;
            };
            let taken = reader.cursor.take(&batch);
            if !taken.records.is_empty() {
                bytes += batch.batch.bytes().len();
                self.events.push_back(Event::ReaderBatch(key, batch));
            }
            if taken.ended {
                let next = reader.cursor.next();
                let stream = self.stream_mut(id);
                stream.load.note_read(seen, bytes as u64);
                let tail = stream.marks.durable();
                return Served::Over(Box::new(Event::ReaderEnded {
                    reader: key,
                    next,
                    tail,
                }));
            }
        }
        if bytes == 0 {
            return Served::More;
        }
        reader.has_credit = false;
        reader.is_caught_up = false;
        self.read_ahead(key);
        self.stream_mut(id).load.note_read(seen, bytes as u64);
        self.events.push_back(Event::ReaderCredited(key));
        Served::Enough
    }

    /// Looks for the start by time among the batches at hand.
    fn search(&mut self, key: ReaderKey) -> Served {
        let reader = self.readers.get_mut(&key).expect("an open reader");
        let (time, limits) = reader.search.expect("the start is searched");
        while let Some(batch) = reader.ready.front() {
            let from = reader.cursor.next();
            let mut found = None;
            batch.for_each(|position, _| {
                if found.is_none() && position.sequence >= from && position.timestamp >= time {
                    found = Some(position.sequence);
                }
            });
            if let Some(start) = found {
                reader.search = None;
                reader.cursor = ReadCursor::new(start, limits);
                let id = reader.stream;
                let event = self.reader_opened(key, id, start);
                self.events.push_back(event);
                return Served::More;
            }
            let end = batch.end();
            reader.cursor = ReadCursor::new(end, ReadLimits::default());
            reader.ready.pop_front();
        }
        Served::More
    }

    fn read_from_disk(&mut self, key: ReaderKey) -> Served {
        let reader = self.readers.get_mut(&key).expect("an open reader");
        if reader.runs.is_empty() {
            let (id, next) = (reader.stream, reader.cursor.next());
            if let Err(refusal) = self.locate(key, id, next) {
                return Served::Over(Box::new(Event::ReaderFailed(key, refusal)));
            }
        }
        let next = self.readers[&key].next_read(READ_CHUNK_BYTES as u64);
        self.begin_read(key, &next.expect("runs were located"), false);
        self.read_ahead(key);
        Served::Enough
    }

    fn locate(
        &mut self,
        key: ReaderKey,
        id: StreamId,
        next: SequenceNumber,
    ) -> Result<(), Refusal> {
        let located = self.look_up(id, next)?;
        let Some(place) = located.place else {
            let tail = self.stream(id).marks.durable().sequence;
            return Err(corrupt(next, located.behind.unwrap_or(tail)));
        };
        let reader = self.readers.get_mut(&key).expect("an open reader");
        reader.segment = Some((place.file, place.id));
        reader.runs = place.runs.into();
        Ok(())
    }

    fn look_up(&self, id: StreamId, next: SequenceNumber) -> Result<Located, Refusal> {
        let stream = self.stream(id);
        let to_tail = |refusal: Refusal| match refusal.facts {
            Facts::None => refusal.with(Facts::Range {
                from: next,
                to: stream.marks.durable().sequence,
            }),
            _ => refusal,
        };
        match stream.records_in {
            Some(newest) => self.indexes.locate(id, newest, next).map_err(to_tail),
            None => Ok(Located {
                place: None,
                behind: None,
            }),
        }
    }

    /// All before it is handed out: what a read brought is at hand now.
    fn take_read(
        &mut self,
        key: ReaderKey,
        segment: (SegmentFile, SegmentId),
        result: DiskResult,
    ) -> Served {
        let refusal = match result {
            DiskResult::Read(bytes) => match self.take_groups(key, &bytes, &segment.1) {
                Ok(()) => return Served::More,
                Err(refusal) => refusal,
            },
            DiskResult::Failed(error) => match error.failure {
                DiskFailure::NoDescriptor => Refusal::new(Code::Unavailable, error.to_string()),
                _ => self.unreadable(key, &error),
            },
            DiskResult::Created { .. }
            | DiskResult::Written
            | DiskResult::Mapped(_)
            | DiskResult::Space { .. }
            | DiskResult::Finished => unreachable!("a read brings bytes"),
        };
        if self.is_stale(key, segment) {
            self.forget_reads(key);
            return Served::More;
        }
        Served::Over(Box::new(Event::ReaderFailed(key, refusal)))
    }

    /// The disk does not give the next records: up to those of the next read, or to the tail.
    fn unreadable(&self, key: ReaderKey, error: &DiskError) -> Refusal {
        let reader = &self.readers[&key];
        let next_read = reader.reads.front().map(|read| read.first);
        let behind = next_read.or_else(|| reader.runs.front().map(|run| run.first.sequence));
        let tail = self.stream(reader.stream).marks.durable().sequence;
        Refusal::new(Code::Corrupt, error.to_string()).with(Facts::Range {
            from: reader.cursor.next(),
            to: behind.unwrap_or(tail),
        })
    }

    /// Whether a segment was rewritten since a reader's places in it were looked up.
    fn is_stale(&self, key: ReaderKey, (file, id): (SegmentFile, SegmentId)) -> bool {
        let current = self.indexes.id_of(self.readers[&key].stream, file);
        current.is_some_and(|current| current != id)
    }

    /// Takes the stream's batches out of groups that were read. A damaged group counts only if it
    /// held records of the stream, which shows in the numbers of those behind it: they are dense.
    /// Damage is told when the reader comes to it: what lies before it is handed out first.
    fn take_groups(
        &mut self,
        key: ReaderKey,
        bytes: &Bytes,
        segment: &SegmentId,
    ) -> Result<(), Refusal> {
        let reader = self.readers.get_mut(&key).expect("an open reader");
        let (id, from) = (reader.stream, reader.cursor.next());
        let (mut next, mut taken) = (from, 0);
        let mut goes_on_at = None;
        for batch in batches(bytes, segment, id) {
            if batch.first > next {
                goes_on_at = Some(batch.first);
                break;
            }
            if batch.end() > next {
                next = batch.end();
                taken += batch.batch.bytes().len();
                reader.ready.push_back(batch);
            }
        }
        if !reader.ready.is_empty() {
            if taken < bytes.len() / 2 {
                // A few batches of a large read would keep all of it until they are delivered.
                for batch in &mut reader.ready {
                    batch.batch = batch.batch.detached();
                }
            }
            if goes_on_at.is_some() {
                self.forget_reads(key);
            }
            return Ok(());
        }
        if let Some(to) = goes_on_at {
            return Err(corrupt(from, to));
        }
        if reader.next_first().is_some_and(|first| first <= from) {
            return Ok(());
        }
        // Nothing of this run is left from here on.
        let to = self.look_up(id, from)?.goes_on_at(from);
        let tail = self.stream(id).marks.durable().sequence;
        Err(corrupt(from, to.unwrap_or(tail)))
    }
}

/// The batches of a stream in consecutive groups; a damaged group is passed over.
fn batches(bytes: &Bytes, segment: &SegmentId, stream: StreamId) -> Vec<StoredBatch> {
    let mut found = Vec::new();
    let mut rest = bytes.clone();
    while !rest.is_empty() {
        let Ok(group) = decode_group_of(&rest, segment, stream) else {
            rest = rest.slice(BLOCK_BYTES.min(rest.len())..);
            continue;
        };
        let batches = group.entries.into_iter().filter_map(|entry| match entry {
            Entry::Batch(batch) => Some(batch.stored),
            _ => None,
        });
        found.extend(batches);
        rest = rest.slice(group.length..);
    }
    found
}

pub(super) fn trimmed(first: SequenceNumber) -> Refusal {
    let message = format!("records before {first} are trimmed");
    Refusal::new(Code::Trimmed, message).with(Facts::First(first))
}

fn corrupt(from: SequenceNumber, to: SequenceNumber) -> Refusal {
    let message = format!("the records from {from} up to {to} are damaged on disk");
    Refusal::new(Code::Corrupt, message).with(Facts::Range { from, to })
}
