//! Opening readers: what a name leads to, and where a read starts.
//!
//! # Invariants
//! - A reader is told of a stream, or that there is none, only once that is durable: an opening
//!   that meets a creation or a deletion on its way to the disk is put off until it is there.

use super::Shard;
use super::durable::Held;
use super::read::trimmed;
use super::stream::Resolved;
use crate::event::{Event, ReaderKey};
use crate::reader::Reader;
use nova_model::cursor::ReadCursor;
use nova_model::ids::StreamId;
use nova_model::limits::{READER_HEARTBEAT_US, READERS_MAX};
use nova_model::position::SequenceNumber;
use nova_model::request::{ReadLimits, ReadOpen, ReadOpened, ReadStart};
use nova_model::{Code, Facts, Now, Refusal};

impl Shard {
    /// Opens a reader; `fresh` becomes the stream's id if it must be created.
    ///
    /// Answered by [`Event::ReaderOpened`] or [`Event::ReaderRefused`]; batches come for credit.
    pub fn open_reader(&mut self, now: Now, reader: ReaderKey, open: ReadOpen, fresh: StreamId) {
        self.opening.insert(reader, false);
        self.go_on_opening(now, reader, open, fresh);
    }

    /// Opens a reader, or puts it off until what its name leads to is durable.
    pub(super) fn go_on_opening(
        &mut self,
        now: Now,
        key: ReaderKey,
        open: ReadOpen,
        fresh: StreamId,
    ) {
        if !self.opening.contains_key(&key) {
            return;
        }
        let resolved = match self.resolve_for_read(now, &open.stream, fresh) {
            Ok(resolved) => resolved,
            Err(refusal) => return self.refuse_reader(key, refusal),
        };
        let ticket = match resolved {
            Resolved::Live(id) => self.stream(id).created_in,
            Resolved::Absent { ticket, .. } => ticket,
        };
        if ticket > self.durable {
            let open = Box::new(open);
            return self.hold(ticket, Held::OpenReader { key, open, fresh });
        }
        match self.try_open_reader(now, key, &open, resolved) {
            Ok(()) => {
                if self.opening.remove(&key) == Some(true) {
                    self.credit_reader(key);
                }
            }
            Err(refusal) => self.refuse_reader(key, refusal),
        }
    }

    fn refuse_reader(&mut self, key: ReaderKey, refusal: Refusal) {
        self.opening.remove(&key);
        self.events.push_back(Event::ReaderRefused(key, refusal));
    }

    fn try_open_reader(
        &mut self,
        now: Now,
        key: ReaderKey,
        open: &ReadOpen,
        resolved: Resolved,
    ) -> Result<(), Refusal> {
        if self.readers.len() >= READERS_MAX {
            let message = format!("a core serves at most {READERS_MAX} readers at once");
            return Err(Refusal::new(Code::RateLimited, message).with(Facts::After(1_000_000)));
        }
        let id = match resolved {
            Resolved::Live(id) if open.stream_id.is_none_or(|wanted| wanted == id) => id,
            Resolved::Live(_) => return Err(Refusal::stream_not_found(&open.stream)),
            Resolved::Absent { .. } if !self.buckets.known.contains_key(&open.stream.bucket) => {
                return Err(Refusal::bucket_not_found(&open.stream.bucket));
            }
            Resolved::Absent { .. } => return Err(Refusal::stream_not_found(&open.stream)),
        };
        let (start, search) = self.start_of(id, open)?;
        let limits = if search {
            ReadLimits::default()
        } else {
            open.limits
        };
        let mut reader = Reader::new(id, ReadCursor::new(start, limits), open.follow);
        if open.follow {
            self.heartbeats
                .insert((now.instant.plus_us(READER_HEARTBEAT_US), key));
        }
        if let (true, ReadStart::Timestamp(time)) = (search, open.start) {
            reader.search = Some((time, open.limits));
            self.hungry.insert(key);
        } else {
            self.events.push_back(self.reader_opened(key, id, start));
        }
        self.readers.insert(key, reader);
        self.stream_mut(id).readers.insert(key);
        self.streams.set_deadline(id, None);
        Ok(())
    }

    pub(super) fn reader_opened(
        &self,
        key: ReaderKey,
        id: StreamId,
        start: SequenceNumber,
    ) -> Event {
        let tail = self.stream(id).marks.durable();
        Event::ReaderOpened(
            key,
            ReadOpened {
                stream_id: id,
                start,
                tail,
            },
        )
    }

    /// Where to start, and whether that is only where a search for a time begins.
    fn start_of(&self, id: StreamId, open: &ReadOpen) -> Result<(SequenceNumber, bool), Refusal> {
        let stream = self.stream(id);
        let (first, tail) = (stream.marks.trimmed(), stream.marks.durable());
        match open.start {
            ReadStart::TailOffset(back) => Ok((
                SequenceNumber(tail.sequence.0.saturating_sub(back)).max(first),
                false,
            )),
            ReadStart::Timestamp(time) => {
                let newest = stream.records_in.filter(|_| first < tail.sequence);
                let located = match newest {
                    Some(file) => self.indexes.locate_time(id, file, time, first)?,
                    None => None,
                };
                Ok(located.map_or((tail.sequence, false), |at| (at.max(first), true)))
            }
            ReadStart::Sequence(start) if start > tail.sequence && !open.clamp => {
                let message = format!("the read starts at {start}, the tail is {}", tail.sequence);
                Err(Refusal::new(Code::PastTail, message).with(Facts::Tail(tail)))
            }
            ReadStart::Sequence(start) if start < first => Err(trimmed(first)),
            ReadStart::Sequence(start) => Ok((start.min(tail.sequence), false)),
        }
    }
}
