//! A client that reads: from somewhere, up to somewhere or for ever, again after every loss.
//!
//! # Invariants
//! - What it reads has no gap: it goes on where it stopped, in the same incarnation.

use super::pipe::Pipe;
use super::{Holders, Surroundings};
use crate::history::Mark;
use crate::network::LinkId;
use crate::oracle::Seen;
use nova_model::cursor::ReadCursor;
use nova_model::request::{ReadLimits, ReadOpen, ReadOpened, ReadStart};
use nova_model::{Code, Facts, Position, Refusal, SequenceNumber, StoredBatch, StreamId};
use nova_model::{StreamName, Timestamp};
use nova_proto::client::{ReadEvent, ReadLane};

/// The client.
pub struct ReaderClient {
    holders: Holders,
    reads_left: u64,
    read: Option<Read>,
    pipe: Option<Pipe<ReadLane>>,
    next_at: u64,
    is_done: bool,
}

/// One read, over all the links that it takes.
#[derive(Debug)]
struct Read {
    stream: StreamName,
    id: Option<StreamId>,
    open: ReadOpen,
    cursor: Option<ReadCursor>,
    asked: Mark,
    /// The tail that was told when it was asked, of this incarnation.
    floor: u64,
    floor_of: Option<StreamId>,
    /// No record is older: the time it starts at, if any record had that when it began.
    time: Timestamp,
    losses: u64,
}

impl ReaderClient {
    /// A client that makes this many reads.
    pub fn new(around: &mut Surroundings<'_>, reads: u64) -> ReaderClient {
        ReaderClient {
            holders: Holders::default(),
            reads_left: reads,
            read: None,
            pipe: None,
            next_at: around.agenda.now(),
            is_done: false,
        }
    }

    pub(super) fn is_done(&self) -> bool {
        self.is_done
    }

    pub(super) fn state(&self) -> String {
        format!(
            "{:?} with {} more, {:?}",
            self.read, self.reads_left, self.pipe
        )
    }

    pub(super) fn lost(&mut self, around: &mut Surroundings<'_>, link: LinkId) {
        if self.pipe.as_ref().is_some_and(|pipe| pipe.link == link) {
            self.leave(around);
            if let Some(read) = &mut self.read {
                read.losses += 1;
            }
            self.pause(around, 30_000);
        }
        self.step(around);
    }

    pub(super) fn step(&mut self, around: &mut Surroundings<'_>) {
        self.receive(around);
        let is_over = self.reads_left == 0 || around.is_calm;
        if self.read.is_none() && self.pipe.is_none() && is_over {
            self.is_done = true;
            return;
        }
        if self.pipe.is_none() && self.next_at <= around.agenda.now() {
            self.begin(around);
        }
        let is_ended = self.pipe.as_ref().is_some_and(|pipe| pipe.is_ended);
        if is_ended {
            self.leave(around);
            self.pause(around, 3_000);
        }
        if let Some(pipe) = &mut self.pipe {
            pipe.flush(around);
        }
    }

    fn pause(&mut self, around: &mut Surroundings<'_>, us_max: u64) {
        let wait = around.rng.between(1, us_max);
        self.next_at = around.agenda.now() + wait;
        around.wake_after(wait);
    }

    fn leave(&mut self, around: &mut Surroundings<'_>) {
        if let Some(pipe) = self.pipe.take() {
            pipe.leave(around);
        }
    }

    fn begin(&mut self, around: &mut Surroundings<'_>) {
        if self.read.is_none() {
            self.reads_left -= 1;
            self.read = Some(draw(around));
        }
        let read = self.read.as_mut().expect("just drawn");
        if let Some(cursor) = &read.cursor {
            read.open.start = ReadStart::Sequence(cursor.next());
            read.open.limits = cursor.remaining();
            read.open.stream_id = read.id;
        }
        read.asked = around.oracle.history.mark();
        let id = read
            .id
            .or_else(|| around.oracle.history.current(&read.stream));
        read.floor = id.map_or(0, |id| around.oracle.history.floor(id));
        read.floor_of = id;
        let core = self.holders.core(&read.stream, around);
        let lane = ReadLane::new(read.open.clone());
        self.pipe = Some(Pipe::open(around, core, lane));
    }

    fn receive(&mut self, around: &mut Surroundings<'_>) {
        loop {
            let Some(pipe) = &mut self.pipe else { return };
            pipe.receive(around);
            let mut has_moved = false;
            while let Some(event) = self.pipe.as_mut().and_then(|pipe| pipe.lane.poll_event()) {
                has_moved = true;
                around.say(|| format!("hears {event:?}"));
                self.hear(around, event);
            }
            if !has_moved {
                return;
            }
        }
    }

    fn hear(&mut self, around: &mut Surroundings<'_>, event: ReadEvent) {
        let Some(read) = &mut self.read else { return };
        match event {
            ReadEvent::Opened(opened) => read.opened(around, &opened),
            ReadEvent::Batch(batch) => read.take(around, &batch),
            ReadEvent::CaughtUp(tail) => {
                read.at_tail(around, tail);
                if around.is_calm {
                    self.finish();
                }
            }
            ReadEvent::Heartbeat(tail) => {
                read.at_tail(around, tail);
                if around.is_calm {
                    self.finish();
                }
            }
            ReadEvent::Ended { next, tail } => {
                read.ended(around, next, tail);
                self.read = None;
            }
            ReadEvent::Refused(refusal) | ReadEvent::Failed(refusal) => {
                let stream = read.stream.clone();
                self.holders.learn(&stream, &refusal);
                if read.refused(around, &refusal) {
                    self.read = None;
                }
            }
        }
    }

    fn finish(&mut self) {
        self.read = None;
        if let Some(pipe) = &mut self.pipe {
            pipe.lane.finish();
        }
    }
}

impl Read {
    fn opened(&mut self, around: &mut Surroundings<'_>, opened: &ReadOpened) {
        let id = opened.stream_id;
        around.oracle.alive(&self.stream, id, self.asked);
        let is_same = self.id.is_none_or(|known| known == id);
        around.oracle.check(is_same, || {
            format!("a read of {:?} goes on in {id}", self.id)
        });
        if self.floor_of != Some(id) {
            self.floor = 0;
        }
        around.oracle.tail(id, opened.tail, self.floor);
        self.id = Some(id);
        let start = opened.start;
        let fits = match self.open.start {
            ReadStart::Sequence(wanted) if self.open.clamp => start <= wanted,
            ReadStart::Sequence(wanted) => start == wanted,
            ReadStart::TailOffset(_) => start <= opened.tail.sequence,
            ReadStart::Timestamp(time) => before_is_older(around, id, start, time),
        };
        around.oracle.check(fits, || {
            format!(
                "{}: a read at {:?} begins at {start}",
                self.stream, self.open.start
            )
        });
        if let ReadStart::Timestamp(time) = self.open.start
            && start < opened.tail.sequence
        {
            self.time = time;
        }
        if self.cursor.is_none() {
            self.cursor = Some(ReadCursor::new(start, self.open.limits));
        }
    }

    fn take(&mut self, around: &mut Surroundings<'_>, batch: &StoredBatch) {
        let (Some(id), Some(cursor)) = (self.id, self.cursor.as_mut()) else {
            return;
        };
        let taken = cursor.take(batch);
        let mut index = 0;
        let time_wanted = self.time;
        batch.for_each(|position, record| {
            if taken.records.contains(&index) {
                let seen = Seen {
                    position,
                    epoch: batch.epoch,
                    body: record.body(),
                };
                around.oracle.read(&self.stream, id, seen);
                around.oracle.check(position.timestamp >= time_wanted, || {
                    format!("{}: {position:?} is older than {time_wanted}", self.stream)
                });
            }
            index += 1;
        });
    }

    fn at_tail(&mut self, around: &mut Surroundings<'_>, tail: Position) {
        let (Some(id), Some(cursor)) = (self.id, &self.cursor) else {
            return;
        };
        around.oracle.tail(id, tail, 0);
        around.oracle.check(cursor.next() == tail.sequence, || {
            format!(
                "{}: told to have all, has {cursor:?} of {tail:?}",
                self.stream
            )
        });
    }

    fn ended(&mut self, around: &mut Surroundings<'_>, next: SequenceNumber, tail: Position) {
        let (Some(id), Some(cursor)) = (self.id, &self.cursor) else {
            return;
        };
        around.oracle.tail(id, tail, 0);
        // A read that goes on after a loss gets at least one record for its last few bytes; its
        // client does not take it.
        let fits = cursor.next() == next || (self.losses > 0 && cursor.next() < next);
        around.oracle.check(fits, || {
            format!(
                "{}: the read ends at {next}, it has {cursor:?}",
                self.stream
            )
        });
        let is_without_limits = cursor.remaining() == ReadLimits::default();
        let is_whole = next == tail.sequence && next.0 >= self.floor;
        around.oracle.check(!is_without_limits || is_whole, || {
            format!(
                "{}: ends at {next} of {tail:?}, told {}",
                self.stream, self.floor
            )
        });
    }

    /// Takes a refusal; whether the read is over.
    fn refused(&mut self, around: &mut Surroundings<'_>, refusal: &Refusal) -> bool {
        if let Some(id) = self.id {
            around.oracle.refusal(id, refusal, self.asked, 0);
        }
        match (refusal.code, &refusal.facts) {
            (Code::StreamNotFound | Code::BucketNotFound, _) => {
                if self.open.stream_id.is_none() {
                    around.oracle.gone(&self.stream, self.asked);
                }
                true
            }
            (Code::Trimmed, Facts::First(_)) => true,
            (Code::NotOwner | Code::Draining | Code::RateLimited | Code::Unavailable, _) => {
                self.losses += 1;
                false
            }
            (Code::PastTail, Facts::Tail(tail)) => {
                let is_lost = self
                    .cursor
                    .is_some_and(|cursor| cursor.next() > tail.sequence);
                around.oracle.check(!is_lost, || {
                    format!("{}: what was read is past {tail:?}", self.stream)
                });
                true
            }
            _ => {
                around
                    .oracle
                    .found(format!("{}: a read is refused: {refusal}", self.stream));
                true
            }
        }
    }
}

/// Whether the record before the start of a read by time is older than that time, or forgotten.
fn before_is_older(
    around: &Surroundings<'_>,
    id: StreamId,
    start: SequenceNumber,
    time: Timestamp,
) -> bool {
    let account = around.oracle.history.accounts.get(&id);
    let before = start.0.checked_sub(1);
    let told = account
        .zip(before)
        .and_then(|(account, at)| account.records.get(&at));
    let told = told.and_then(|told| told.timestamp);
    let may_be_trimmed = account.is_some_and(|account| start.0 <= account.first_asked);
    let may_be_trimmed = may_be_trimmed || around.oracle.history.may_have_expired(id, start.0);
    may_be_trimmed || told.is_none_or(|told| told < time.0)
}

fn draw(around: &mut Surroundings<'_>) -> Read {
    let stream = around.rng.pick(around.streams).clone();
    let id = around.oracle.history.current(&stream);
    let tail = id.map_or(0, |id| around.oracle.history.floor(id));
    let wall = crate::node::reading(around.agenda.now()).wall.0;
    let start = match around.rng.below(8) {
        0 => ReadStart::TailOffset(around.rng.below(20)),
        1 => ReadStart::Timestamp(Timestamp(wall - around.rng.below(2_000_000))),
        2 | 3 => ReadStart::Sequence(SequenceNumber(around.rng.below(tail + 3))),
        _ => ReadStart::Sequence(SequenceNumber(0)),
    };
    let mut limits = ReadLimits::default();
    match around.rng.below(8) {
        0 => limits.count = Some(around.rng.between(1, 30)),
        1 => limits.bytes = Some(around.rng.between(1, 3_000)),
        2 => limits.until_timestamp = Some(Timestamp(wall)),
        _ => {}
    }
    let open = ReadOpen {
        stream: stream.clone(),
        stream_id: None,
        start,
        limits,
        follow: around.rng.chance(60),
        clamp: around.rng.chance(50),
    };
    Read {
        stream,
        id: None,
        open,
        cursor: None,
        asked: Mark(0),
        floor: 0,
        floor_of: None,
        time: Timestamp(0),
        losses: 0,
    }
}
