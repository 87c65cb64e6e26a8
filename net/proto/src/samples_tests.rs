//! One value of every frame, and the few tools that the other tests share.

use crate::frame::decode::{Decoder, RawFrame};
use crate::frame::header::{HEADER_BYTES, Header};
use crate::frame::read::{Placed, ReadEnd, encode_batch};
use crate::frame::{Frame, Kind, RawBatch, append, control};
use crate::output::Output;
use crate::{ProtocolError, RequestId};
use bytes::Bytes;
use nova_model::error::Facts;
use nova_model::position::Position;
use nova_model::request::{
    Ack, Answer, AppendOpen, AppendOpened, OneShotAppend, ReadLimits, ReadOpen, ReadOpened,
    ReadStart, Request, ServerTimes, SessionAppend,
};
use nova_model::settings::TimestampMode;
use nova_model::stored::Stamping;
use nova_model::{
    Checksum, Code, Conditions, EncodedBatch, Epoch, FencingToken, Record, Refusal, SequenceNumber,
    StoredBatch, StreamId, StreamName, Timestamp, WriterId, WriterStamp,
};
use rkyv::rancor;
use rkyv::{Archive, Serialize};

pub(crate) fn name() -> StreamName {
    StreamName::parse("telemetry/turbine-17/vibration").expect("a legal name")
}

pub(crate) fn position(sequence: u64, timestamp: u64) -> Position {
    Position {
        sequence: SequenceNumber(sequence),
        timestamp: Timestamp(timestamp),
    }
}

pub(crate) fn batch() -> EncodedBatch {
    let records = [
        Record::new("first").with_timestamp(Timestamp(1_700_000_000_000_000)),
        Record::new("second, with a header").with_header("unit", "mm/s"),
    ];
    EncodedBatch::encode(&records).expect("a legal batch")
}

/// A batch with one record of this many bytes.
pub(crate) fn batch_of(body_bytes: usize) -> EncodedBatch {
    let body: Vec<u8> = (0..body_bytes).map(|i| (i * 31 % 251) as u8).collect();
    EncodedBatch::encode(&[Record::new(body)]).expect("a legal batch")
}

/// The archive of any records at all, also of those that make no legal batch.
pub(crate) fn raw_batch(records: &[Record]) -> RawBatch {
    #[derive(Archive, Serialize)]
    struct Mirror {
        records: Vec<Record>,
    }
    let mirror = Mirror {
        records: records.to_vec(),
    };
    let bytes = rkyv::to_bytes::<rancor::Error>(&mirror).expect("plain values");
    let bytes = Bytes::copy_from_slice(&bytes);
    let checksum = Checksum::of(&bytes);
    RawBatch { bytes, checksum }
}

/// A batch of two records that are legal alone and too large together.
pub(crate) fn too_large() -> RawBatch {
    raw_batch(&[Record::new(vec![1; 700_000]), Record::new(vec![2; 700_000])])
}

pub(crate) fn raw(batch: &EncodedBatch) -> RawBatch {
    RawBatch {
        bytes: batch.bytes().clone(),
        checksum: batch.checksum(),
    }
}

pub(crate) fn append_open() -> AppendOpen {
    AppendOpen {
        stream: name(),
        fence: Some(FencingToken::parse("writer-a").expect("a legal token")),
        writer: Some(WriterId(0x1122_3344_5566_7788_99aa_bbcc_ddee_ff00)),
    }
}

pub(crate) fn append_opened() -> AppendOpened {
    AppendOpened {
        stream_id: StreamId(7),
        epoch: Epoch(3),
        tail: position(42, 1_700_000_000_000_000),
        window_batches: 16,
        idle_timeout_us: 30_000_000,
    }
}

pub(crate) fn session_append() -> SessionAppend {
    SessionAppend {
        writer_sequence: Some(5),
        match_sequence: Some(SequenceNumber(42)),
    }
}

pub(crate) fn one_shot() -> OneShotAppend {
    OneShotAppend {
        stream: name(),
        stream_id: Some(StreamId(7)),
        conditions: Conditions {
            fence: None,
            match_sequence: Some(SequenceNumber(42)),
        },
        writer: Some(WriterStamp {
            writer: WriterId(9),
            sequence: 0,
        }),
    }
}

pub(crate) fn ack(start: u64) -> Ack {
    Ack {
        start: position(start, 1_000),
        end: position(start + 2, 1_001),
        tail: position(start + 2, 1_001),
        duplicate: false,
        times: ServerTimes {
            queued_us: 11,
            written_us: 70,
            total_us: 83,
        },
    }
}

pub(crate) fn read_open() -> ReadOpen {
    ReadOpen {
        stream: name(),
        stream_id: None,
        start: ReadStart::Sequence(SequenceNumber(40)),
        limits: ReadLimits {
            count: Some(1000),
            bytes: None,
            until_sequence: None,
            until_timestamp: None,
        },
        follow: true,
        clamp: false,
    }
}

pub(crate) fn read_opened() -> ReadOpened {
    ReadOpened {
        stream_id: StreamId(7),
        start: SequenceNumber(40),
        tail: position(42, 1_001),
    }
}

pub(crate) fn stored(first: u64) -> StoredBatch {
    let stamping = Stamping {
        mode: TimestampMode::ClientRequire,
        uncapped: true,
        arrival: Timestamp(1_001),
        floor: Timestamp(999),
    };
    StoredBatch {
        first: SequenceNumber(first),
        epoch: Epoch(3),
        stamping,
        writer: Some(WriterStamp {
            writer: WriterId(9),
            sequence: 21,
        }),
        batch: batch(),
    }
}

pub(crate) fn refusal() -> Refusal {
    let message = "the tail is 42, the append requires 40";
    Refusal::new(Code::SeqMismatch, message).with(Facts::Tail(position(42, 1_001)))
}

/// One frame of every kind, in the order of the kinds.
pub(crate) fn frames() -> Vec<Frame> {
    let stored = stored(40);
    let placed = Placed {
        first: stored.first,
        epoch: stored.epoch,
        stamping: stored.stamping,
        writer: stored.writer,
    };
    let id = RequestId(3);
    vec![
        Frame::OpenAppend(append_open()),
        Frame::Append(session_append(), raw(&batch())),
        Frame::Resume,
        Frame::OpenRead(read_open()),
        Frame::Request(id, Request::CheckTail { name: name() }),
        Frame::AppendOnce(id, one_shot(), raw(&batch())),
        Frame::AppendOpened(append_opened()),
        Frame::OpenRefused(refusal()),
        Frame::Acked(ack(40)),
        Frame::Rejected(refusal()),
        Frame::Broken(refusal()),
        Frame::ReadOpened(read_opened()),
        Frame::Batch(placed, raw(&stored.batch)),
        Frame::CaughtUp(position(42, 1_001)),
        Frame::Heartbeat(position(42, 1_001)),
        Frame::ReadEnded(ReadEnd {
            next: SequenceNumber(41),
            tail: position(42, 1_001),
        }),
        Frame::ReadFailed(refusal()),
        Frame::Answered(id, Answer::Tail(position(42, 1_001))),
        Frame::AppendedOnce(id, ack(40)),
        Frame::RequestRefused(id, refusal()),
    ]
}

/// The bytes of a frame, made by what the lanes use.
pub(crate) fn encode(frame: &Frame) -> Vec<u8> {
    let mut output = Output::default();
    let out = &mut output;
    match frame {
        Frame::OpenAppend(open) => out.archive(Kind::OpenAppend, open),
        Frame::Append(append, batch) => append::encode_append(out, append, &checked(batch)),
        Frame::Resume => out.frame(Kind::Resume, |_| {}),
        Frame::OpenRead(open) => out.archive(Kind::OpenRead, open),
        Frame::Request(id, request) => out.archive_for(Kind::Request, *id, request),
        Frame::AppendOnce(id, append, batch) => {
            control::encode_append_once(out, *id, append, &checked(batch));
        }
        Frame::AppendOpened(opened) => out.archive(Kind::AppendOpened, opened),
        Frame::OpenRefused(refusal) => out.archive(Kind::OpenRefused, refusal),
        Frame::Acked(ack) => out.archive(Kind::Acked, ack),
        Frame::Rejected(refusal) => out.archive(Kind::Rejected, refusal),
        Frame::Broken(refusal) => out.archive(Kind::Broken, refusal),
        Frame::ReadOpened(opened) => out.archive(Kind::ReadOpened, opened),
        Frame::Batch(placed, batch) => {
            let stored = StoredBatch {
                first: placed.first,
                epoch: placed.epoch,
                stamping: placed.stamping,
                writer: placed.writer,
                batch: checked(batch),
            };
            encode_batch(out, &stored);
        }
        Frame::CaughtUp(tail) => out.archive(Kind::CaughtUp, tail),
        Frame::Heartbeat(tail) => out.archive(Kind::Heartbeat, tail),
        Frame::ReadEnded(end) => out.archive(Kind::ReadEnded, end),
        Frame::ReadFailed(refusal) => out.archive(Kind::ReadFailed, refusal),
        Frame::Answered(id, answer) => out.archive_for(Kind::Answered, *id, answer),
        Frame::AppendedOnce(id, ack) => out.archive_for(Kind::AppendedOnce, *id, ack),
        Frame::RequestRefused(id, refusal) => out.archive_for(Kind::RequestRefused, *id, refusal),
    }
    drain(|| output.poll())
}

fn checked(batch: &RawBatch) -> EncodedBatch {
    EncodedBatch::check(batch.bytes.clone(), batch.checksum).expect("a legal batch")
}

/// A frame of any kind from its parts, with a right checksum, however wrong the parts are.
pub(crate) fn assemble(kind: Kind, head: &[u8], batch: &[u8]) -> Vec<u8> {
    let mut raw = [0; HEADER_BYTES];
    raw[0] = kind as u8;
    raw[1] = 1;
    raw[4..8].copy_from_slice(&(head.len() as u32).to_le_bytes());
    raw[8..12].copy_from_slice(&(batch.len() as u32).to_le_bytes());
    let summed = [&raw[..12], head].concat();
    raw[12..16].copy_from_slice(&Checksum::of(&summed).0.to_le_bytes());
    [&raw[..], head, batch].concat()
}

/// Kind, head and batch of a frame's bytes.
pub(crate) fn parts(bytes: &[u8]) -> (Kind, Vec<u8>, Vec<u8>) {
    let header: [u8; HEADER_BYTES] = bytes[..HEADER_BYTES].try_into().expect("16 bytes");
    let header = Header::decode(header).expect("a legal header");
    let (head, batch) = bytes[HEADER_BYTES..].split_at(header.head_bytes);
    (header.kind, head.to_vec(), batch.to_vec())
}

/// An append frame around bytes that need not be a batch.
pub(crate) fn append_frame(append: &SessionAppend, batch: &RawBatch) -> Vec<u8> {
    let model = encode(&Frame::Append(*append, raw(&self::batch())));
    let (kind, mut head, _) = parts(&model);
    head[..4].copy_from_slice(&batch.checksum.0.to_le_bytes());
    assemble(kind, &head, &batch.bytes)
}

/// The frame with one text in its head replaced by another of the same length.
pub(crate) fn with_text(frame: &[u8], text: &str, other: &str) -> Vec<u8> {
    assert_eq!(text.len(), other.len(), "same length");
    let (kind, mut head, batch) = parts(frame);
    let at = head
        .windows(text.len())
        .position(|window| window == text.as_bytes())
        .expect("the text is in the head");
    head[at..at + text.len()].copy_from_slice(other.as_bytes());
    assemble(kind, &head, &batch)
}

/// All chunks as one.
pub(crate) fn drain(mut poll: impl FnMut() -> Option<Bytes>) -> Vec<u8> {
    std::iter::from_fn(&mut poll).flatten().collect()
}

/// Decodes one frame from chunks; `None` if more is needed.
pub(crate) fn decode(
    chunks: impl IntoIterator<Item = Bytes>,
) -> Result<Option<Frame>, ProtocolError> {
    let mut decoder = Decoder::new();
    for mut chunk in chunks {
        if let Some(raw) = step(&mut decoder, &mut chunk)? {
            assert!(chunk.is_empty(), "bytes after the frame");
            return Frame::decode(raw).map(Some);
        }
    }
    Ok(None)
}

pub(crate) fn step(
    decoder: &mut Decoder,
    chunk: &mut Bytes,
) -> Result<Option<RawFrame>, ProtocolError> {
    decoder.next(chunk, |_| Ok(()))
}
