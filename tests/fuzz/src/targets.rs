//! What is fed with bytes from outside. A target panics if something is wrong with the code.
//!
//! The first [`CHOICES`] bytes of an input decide how it is cut into pieces, what is answered and
//! whether its checksums are made right.

use crate::repair;
use crate::samples::CHOICES;
use bytes::Bytes;
use nova_core::disk::SegmentFile;
use nova_core::index::{NameHash, SealedIndex};
use nova_core::recovery::{RecoveryOptions, recover};
use nova_core::segment::{SegmentHeader, decode_group};
use nova_model::limits::{BATCH_ENCODED_BYTES_MAX, REQUEST_FRAME_BYTES_MAX};
use nova_model::request::{
    Ack, AppendOpen, AppendOpened, OneShotAppend, ReadLimits, ReadOpen, ReadOpened, ReadStart,
    Request, ServerTimes, SessionAppend,
};
use nova_model::{
    Code, Conditions, EncodedBatch, Epoch, LogId, Position, Record, Refusal, SegmentId,
    SegmentNumber, SequenceNumber, StreamId, StreamName, Timestamp,
};
use nova_pieces::samples::MemoryDisk;
use nova_proto::ProtocolError;
use nova_proto::client::{AppendEvent, AppendLane, ControlLane, ReadEvent, ReadLane};
use nova_proto::server::{Input, Lane};
use std::sync::Arc;

/// What a lane may hold for a part of a frame of which no more has come.
const PART_BYTES_FIRST: usize = 64 * 1024;

/// How far an input got.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Depth {
    /// Refused at once, or incomplete.
    Refused,
    /// Something of it was accepted.
    Accepted,
    /// All of it was.
    Whole,
}

/// The choices of an input, again and again.
struct Choices<'d> {
    bytes: &'d [u8],
    next: usize,
}

impl<'d> Choices<'d> {
    fn split(data: &'d [u8]) -> Option<(Choices<'d>, &'d [u8])> {
        let (bytes, rest) = data.split_at_checked(CHOICES)?;
        Some((Choices { bytes, next: 0 }, rest))
    }

    fn next(&mut self) -> u8 {
        let byte = self.bytes[self.next % CHOICES];
        self.next += 1;
        byte
    }

    /// Whether checksums are to be made right: three times in four.
    fn repairs(&mut self) -> bool {
        !self.next().is_multiple_of(4) || self.bytes.iter().all(|byte| *byte == 0)
    }

    /// Cuts frames into pieces, as a network does: mostly each is one, and what belongs to none.
    fn pieces(&mut self, bytes: Vec<u8>) -> Vec<Bytes> {
        let mut bytes = Bytes::from(bytes);
        let mut pieces = Vec::new();
        while !bytes.is_empty() {
            let most = match self.next() {
                0..128 => repair::frame_bytes(&bytes).unwrap_or(bytes.len()),
                few @ 128..192 => usize::from(few - 127),
                many => usize::from(many) * 16,
            };
            pieces.push(bytes.split_to(most.min(bytes.len())));
        }
        pieces
    }
}

fn repaired_frames(choices: &mut Choices<'_>, bytes: &[u8]) -> Vec<Bytes> {
    let mut bytes = bytes.to_vec();
    if choices.repairs() {
        repair::frames(&mut bytes);
    }
    choices.pieces(bytes)
}

/// What clients send: the star's end of a lane, with a shard that answers everything.
pub fn star(data: &[u8]) -> Depth {
    let Some((mut choices, bytes)) = Choices::split(data) else {
        return Depth::Refused;
    };
    let (mut lane, mut received, mut depth) = (Lane::new(), 0, Depth::Refused);
    for piece in repaired_frames(&mut choices, bytes) {
        if !lane.wants_input() {
            return depth;
        }
        received += piece.len();
        if lane.handle_bytes(piece).is_err() {
            return depth;
        }
        let most = match received <= PART_BYTES_FIRST {
            // A head that is there, and the first piece of the batch behind it.
            true => received + PART_BYTES_FIRST,
            false => REQUEST_FRAME_BYTES_MAX + BATCH_ENCODED_BYTES_MAX,
        };
        assert!(lane.input_bytes() <= most, "memory for what did not come");
        while let Some(input) = lane.poll_input() {
            depth = Depth::Accepted;
            answer(&mut lane, input, choices.next());
        }
        while lane.poll_output().is_some() {
            // Also what the lane refuses by itself was a frame.
            depth = Depth::Accepted;
        }
    }
    whole_if(lane.handle_end().is_ok(), depth)
}

fn answer(lane: &mut Lane, input: Input, choice: u8) {
    let is_refused = choice.is_multiple_of(8);
    match input {
        Input::OpenAppend(_) | Input::OpenRead(_) if is_refused => lane.open_refused(&refusal()),
        Input::OpenAppend(_) => lane.opened(append_opened()),
        Input::OpenRead(_) => lane.read_opened(read_opened()),
        Input::Append(_, batch) => {
            read_all(&batch);
            match choice % 8 {
                0 => lane.rejected(&refusal()),
                1 => lane.broken(&refusal()),
                _ => lane.acked(&ack()),
            }
        }
        Input::Request(id, _) => lane.answered(id, &Err(refusal())),
        Input::AppendOnce(id, _, batch) => {
            read_all(&batch);
            lane.appended_once(id, &Ok(ack()));
        }
        Input::Resume | Input::EndAppend | Input::EndRead => {}
    }
}

fn read_all(batch: &EncodedBatch) {
    assert_eq!(batch.to_records().len(), batch.records() as usize);
}

/// What stars send: a client's lane of each kind, with all that it may have asked.
pub fn client(data: &[u8]) -> Depth {
    let Some((mut choices, bytes)) = Choices::split(data) else {
        return Depth::Refused;
    };
    let pieces = repaired_frames(&mut choices, bytes);
    let depths = [
        append_lane(&pieces),
        read_lane(&pieces),
        control_lane(&pieces),
    ];
    depths.into_iter().max().expect("three lanes")
}

fn append_lane(pieces: &[Bytes]) -> Depth {
    let mut lane = AppendLane::new(append_open());
    let depth = feed(&mut lane, pieces, AppendLane::handle_bytes, |lane| {
        while lane.poll_output().is_some() {}
        let event = lane.poll_event()?;
        if let AppendEvent::Opened(_) = event {
            for _ in 0..lane.window_free() {
                lane.send(SessionAppend::default(), &batch());
            }
        }
        Some(())
    });
    whole_if(lane.handle_end().is_ok(), depth)
}

fn read_lane(pieces: &[Bytes]) -> Depth {
    let mut lane = ReadLane::new(read_open());
    let depth = feed(&mut lane, pieces, ReadLane::handle_bytes, |lane| {
        while lane.poll_output().is_some() {}
        let event = lane.poll_event()?;
        if let ReadEvent::Batch(stored) = event {
            assert_eq!(stored.to_records().len(), stored.batch.records() as usize);
        }
        Some(())
    });
    whole_if(lane.handle_end().is_ok(), depth)
}

fn control_lane(pieces: &[Bytes]) -> Depth {
    let mut lane = ControlLane::new();
    for _ in 0..lane.window_free() / 2 {
        lane.request(&Request::CheckTail {
            name: stream_name(),
        });
        lane.append_once(&one_shot(), &batch());
    }
    while lane.poll_output().is_some() {}
    let depth = feed(&mut lane, pieces, ControlLane::handle_bytes, |lane| {
        lane.poll_event().map(drop)
    });
    whole_if(lane.handle_end().is_ok(), depth)
}

/// Feeds a client's lane, and takes its events behind each piece.
fn feed<L>(
    lane: &mut L,
    pieces: &[Bytes],
    take: impl Fn(&mut L, Bytes) -> Result<(), ProtocolError>,
    next: impl Fn(&mut L) -> Option<()>,
) -> Depth {
    let mut depth = Depth::Refused;
    for piece in pieces {
        if take(lane, piece.clone()).is_err() {
            return depth;
        }
        while next(lane).is_some() {
            depth = Depth::Accepted;
        }
    }
    depth
}

fn whole_if(is_whole: bool, depth: Depth) -> Depth {
    match depth {
        Depth::Accepted if is_whole => Depth::Whole,
        other => other,
    }
}

/// A segment's file: recovery of a log that has no other one, strict and with leave to skip damage.
pub fn segment(data: &[u8]) -> Depth {
    let Some((mut choices, bytes)) = Choices::split(data) else {
        return Depth::Refused;
    };
    let mut bytes = bytes.to_vec();
    if choices.repairs() {
        repair::segment(&mut bytes);
    }
    let bytes = Bytes::from(bytes);
    let header = bytes.get(..4096).map(SegmentHeader::decode);
    let Some(Ok(Some(header))) = header else {
        return Depth::Refused;
    };
    let _group = decode_group(&bytes.slice(4096..), &header.id);
    let strict = recovered(&bytes, &header.id, false);
    let lax = recovered(&bytes, &header.id, true);
    assert!(lax >= strict, "leave to skip damage never makes it worse");
    strict.max(Depth::Accepted)
}

fn recovered(bytes: &Bytes, id: &SegmentId, allow_corrupt: bool) -> Depth {
    let mut disk = MemoryDisk {
        bytes: bytes.clone(),
        id: *id,
    };
    let options = RecoveryOptions {
        allow_corrupt,
        ..RecoveryOptions::default()
    };
    let Ok(log) = recover(&mut disk, id.log, id.star, options) else {
        return Depth::Refused;
    };
    for index in &log.indexes {
        let asked = ask(index);
        assert!(asked.is_some(), "an index that recovery made is whole");
    }
    match log.indexes.is_empty() {
        true => Depth::Accepted,
        false => Depth::Whole,
    }
}

/// The index of a sealed segment.
pub fn index(data: &[u8]) -> Depth {
    let Some((mut choices, bytes)) = Choices::split(data) else {
        return Depth::Refused;
    };
    let mut bytes = bytes.to_vec();
    if choices.repairs() {
        repair::index(&mut bytes);
    }
    let file = file_of(&bytes);
    match SealedIndex::open(file, Arc::new(Bytes::from(bytes))) {
        Err(_) => Depth::Refused,
        Ok(index) => match ask(&index) {
            None => Depth::Accepted,
            Some(()) => Depth::Whole,
        },
    }
}

/// The file that an index says it is of: log and number at 40 and 56 of its trailer.
fn file_of(bytes: &[u8]) -> SegmentFile {
    let trailer = bytes.len().saturating_sub(256);
    let part = |at: usize, length: usize| {
        let mut raw = [0; 8];
        if let Some(found) = bytes.get(trailer + at..trailer + at + length) {
            raw[..length].copy_from_slice(found);
        }
        u64::from_le_bytes(raw)
    };
    SegmentFile {
        log: LogId(part(40, 2) as u16),
        number: SegmentNumber(part(56, 8)),
    }
}

/// Asks an index everything; none if an answer was that it is damaged.
fn ask(index: &SealedIndex) -> Option<()> {
    index.verify().ok()?;
    let damaged = index.damaged().ok()?;
    for span in damaged {
        index.streams_in(span).ok()?;
    }
    let buckets = index.buckets().ok()?;
    index.released().ok()?;
    for bucket in buckets.keys() {
        for state in index.names_after(bucket, "", "").ok()? {
            state.ok()?;
        }
    }
    for id in index.stream_ids().ok()? {
        let id = id.ok()?;
        let state = index.stream(id).ok()?;
        index.has_records(id).ok()?;
        index.first_sequence(id).ok()?;
        for run in index.runs_from(id, SequenceNumber(0)).ok()? {
            run.ok()?;
        }
        index.run_at_time(id, Timestamp(1)).ok()?;
        if let Some(state) = state {
            index
                .find_name(&state.name, NameHash::of(&state.name))
                .ok()?;
        }
    }
    Some(())
}

fn stream_name() -> StreamName {
    StreamName::parse("bucket/stream").expect("legal")
}

fn append_open() -> AppendOpen {
    AppendOpen {
        stream: stream_name(),
        fence: None,
        writer: None,
    }
}

fn read_open() -> ReadOpen {
    ReadOpen {
        stream: stream_name(),
        stream_id: None,
        start: ReadStart::Sequence(SequenceNumber(0)),
        limits: ReadLimits::default(),
        follow: true,
        clamp: false,
    }
}

fn append_opened() -> AppendOpened {
    AppendOpened {
        stream_id: StreamId(1),
        epoch: Epoch(1),
        tail: Position::default(),
        window_batches: 16,
        idle_timeout_us: 30_000_000,
    }
}

fn read_opened() -> ReadOpened {
    ReadOpened {
        stream_id: StreamId(1),
        start: SequenceNumber(0),
        tail: Position::default(),
    }
}

fn ack() -> Ack {
    Ack {
        start: Position::default(),
        end: Position::default(),
        tail: Position::default(),
        duplicate: false,
        times: ServerTimes::default(),
    }
}

fn one_shot() -> OneShotAppend {
    OneShotAppend {
        stream: stream_name(),
        stream_id: None,
        conditions: Conditions::default(),
        writer: None,
    }
}

fn refusal() -> Refusal {
    Refusal::new(Code::Internal, "by choice")
}

fn batch() -> EncodedBatch {
    EncodedBatch::encode(&[Record::new("body")]).expect("within the limits")
}
