//! The pieces on the way of a record: batch, frame, group, index, recovery.

use crate::samples::{self, LOG, MemoryDisk, STAR};
use bytes::Bytes;
use nova_core::index::{NameHash, SealedIndex};
use nova_core::recovery::{RecoveryOptions, recover};
use nova_core::segment::LogEnd;
use nova_model::request::{Ack, AppendOpen, AppendOpened, ServerTimes, SessionAppend};
use nova_model::{EncodedBatch, Epoch, Position, SegmentNumber, SequenceNumber, StreamId};
use nova_proto::client::AppendLane;
use nova_proto::server::{Input, Lane};
use std::hint::black_box;
use std::sync::Arc;

const RECORD_BYTES: usize = 1024;

/// A piece, ready to run.
pub struct Piece {
    /// Bytes that it works on each time; 0 if that says nothing.
    pub bytes: u64,
    /// Does it once.
    pub run: Box<dyn FnMut()>,
}

/// The names of all pieces, `family/name`.
pub const NAMES: [&str; 15] = [
    "batch/encode 1",
    "batch/encode 1000",
    "batch/check 1",
    "batch/check 1000",
    "batch/stamp 1",
    "batch/stamp 1000",
    "frame/decode append 1, ack",
    "frame/decode append 1000, ack",
    "group/build and seal 1 batch of 1",
    "group/build and seal 256 batches of 1",
    "group/build and seal 2 batches of 1000",
    "index/find one of 1000 streams, a record in it",
    "index/look for a name in 1 segment",
    "index/look for a name in 100 segments",
    "recovery/scan a segment of 4 MiB",
];

/// Pieces that take too long to make for the gate.
pub const LARGE_NAMES: [&str; 1] = ["index/look for a name in 5000 segments"];

/// Makes the piece of a name.
pub fn make(name: &str) -> Option<Piece> {
    Some(match name {
        "batch/encode 1" => encode(1),
        "batch/encode 1000" => encode(1000),
        "batch/check 1" => check(1),
        "batch/check 1000" => check(1000),
        "batch/stamp 1" => stamp(1),
        "batch/stamp 1000" => stamp(1000),
        "frame/decode append 1, ack" => decode(1),
        "frame/decode append 1000, ack" => decode(1000),
        "group/build and seal 1 batch of 1" => seal(1, 1),
        "group/build and seal 256 batches of 1" => seal(256, 1),
        "group/build and seal 2 batches of 1000" => seal(2, 1000),
        "index/find one of 1000 streams, a record in it" => find(),
        "index/look for a name in 1 segment" => look(1),
        "index/look for a name in 100 segments" => look(100),
        "index/look for a name in 5000 segments" => look(5000),
        "rows 1" => rows(1),
        "rows 100" => rows(100),
        "rows 5000" => rows(5000),
        "recovery/scan a segment of 4 MiB" => scan(),
        _ => return None,
    })
}

fn encode(count: usize) -> Piece {
    let records = samples::records(count, RECORD_BYTES);
    Piece {
        bytes: (count * RECORD_BYTES) as u64,
        run: Box::new(move || {
            black_box(EncodedBatch::encode(black_box(&records)).expect("legal"));
        }),
    }
}

fn check(count: usize) -> Piece {
    let batch = samples::batch(count, RECORD_BYTES);
    Piece {
        bytes: (count * RECORD_BYTES) as u64,
        run: Box::new(move || {
            let bytes = black_box(batch.bytes()).clone();
            black_box(EncodedBatch::check(bytes, batch.checksum()).expect("legal"));
        }),
    }
}

/// Positions and timestamps for a batch, and the stream's state moved on.
fn stamp(count: usize) -> Piece {
    let batch = samples::batch(count, RECORD_BYTES);
    let mut state = samples::stream(1);
    Piece {
        bytes: 0,
        run: Box::new(move || {
            black_box(samples::append(&mut state, batch.clone()));
        }),
    }
}

fn decode(count: usize) -> Piece {
    let frame = append_frame(&samples::batch(count, RECORD_BYTES));
    let mut lane = open_lane();
    Piece {
        bytes: frame.len() as u64,
        run: Box::new(move || {
            lane.handle_bytes(frame.clone()).expect("legal");
            black_box(lane.poll_input()).expect("a whole frame");
            lane.acked(&ack());
            while let Some(bytes) = lane.poll_output() {
                black_box(bytes);
            }
        }),
    }
}

/// The bytes of an append frame.
fn append_frame(batch: &EncodedBatch) -> Bytes {
    let mut client = AppendLane::new(append_open());
    let mut star = Lane::new();
    carry_open(&mut client, &mut star);
    while let Some(bytes) = star.poll_output() {
        client.handle_bytes(bytes).expect("legal");
    }
    client.send(SessionAppend::default(), batch);
    let mut frame = Vec::new();
    while let Some(bytes) = client.poll_output() {
        frame.extend_from_slice(&bytes);
    }
    Bytes::from(frame)
}

/// The star's end of an open session.
fn open_lane() -> Lane {
    let mut star = Lane::new();
    carry_open(&mut AppendLane::new(append_open()), &mut star);
    while star.poll_output().is_some() {}
    star
}

fn carry_open(client: &mut AppendLane, star: &mut Lane) {
    while let Some(bytes) = client.poll_output() {
        star.handle_bytes(bytes).expect("legal");
    }
    let input = star.poll_input();
    assert!(matches!(input, Some(Input::OpenAppend(_))));
    star.opened(AppendOpened {
        stream_id: StreamId(1),
        epoch: Epoch(1),
        tail: Position::default(),
        window_batches: 16,
        idle_timeout_us: 30_000_000,
    });
}

fn append_open() -> AppendOpen {
    AppendOpen {
        stream: samples::stream(1).name,
        fence: None,
        writer: None,
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

fn seal(batches: usize, records: usize) -> Piece {
    let mut state = samples::stream(1);
    let batch = samples::batch(records, RECORD_BYTES);
    let entries: Vec<_> = (0..batches)
        .map(|_| samples::append(&mut state, batch.clone()))
        .collect();
    Piece {
        bytes: (batches * batch.bytes().len()) as u64,
        run: Box::new(move || {
            black_box(samples::seal(black_box(&entries), &LogEnd::default()));
        }),
    }
}

fn find() -> Piece {
    const STREAMS: usize = 1000;
    let batch = samples::batch(4, RECORD_BYTES);
    let segment = samples::segment(1000, STREAMS, 16, &batch);
    let mapped = Arc::new(segment.index.seal(&segment.end));
    let index = SealedIndex::open(samples::file(), mapped).expect("just sealed");
    index.verify().expect("just sealed");
    let mut number = 0;
    Piece {
        bytes: 0,
        run: Box::new(move || {
            number = (number + 389) % STREAMS;
            let stream = StreamId(number as u128 + 1);
            let mut runs = index
                .runs_from(stream, SequenceNumber(black_box(32)))
                .expect("whole");
            let run = black_box(runs.next()).expect("it has records");
            black_box(run.expect("whole"));
        }),
    }
}

/// The indexes of so many segments, each of them with other streams.
fn indexes(segments: u64) -> Vec<SealedIndex> {
    const STREAMS: u128 = 64;
    let index = |number| {
        let first = u128::from(number) * STREAMS;
        samples::index(SegmentNumber(number), first..first + STREAMS)
    };
    (1..=segments).map(index).collect()
}

/// Looks for a name that none of the segments states, each of them with other streams.
fn look(segments: u64) -> Piece {
    let indexes = indexes(segments);
    let mut number = 0;
    let mut run = move || {
        number = (number + 389) % 1000;
        let name = samples::stream(u128::MAX - number).name;
        let hash = NameHash::of(&name);
        let mut found = indexes.iter().rev().filter_map(|index| {
            let found = index.find_name(black_box(&name), hash);
            found.expect("whole")
        });
        assert!(black_box(found.next()).is_none());
    };
    // The first look-up makes the filters.
    run();
    let (bytes, run) = (0, Box::new(run));
    Piece { bytes, run }
}

fn rows(segments: u64) -> Piece {
    let indexes = indexes(segments);
    let mut number = 0;
    let mut run = move || {
        number = (number + 389) % 1000;
        let name = samples::stream(u128::MAX - number).name;
        let mut found = indexes.iter().rev().filter_map(|index| {
            let found = index.names_after(black_box(&name.bucket), name.key.as_str(), "");
            found.expect("whole").next()
        });
        assert!(black_box(found.next()).is_none());
    };
    run();
    let (bytes, run) = (0, Box::new(run));
    Piece { bytes, run }
}

fn scan() -> Piece {
    // 4 groups of one MiB each.
    let segment = samples::segment(4, 16, 1, &samples::batch(1000, RECORD_BYTES));
    Piece {
        bytes: segment.bytes.len() as u64,
        run: Box::new(move || {
            let mut disk = MemoryDisk {
                bytes: segment.bytes.clone(),
                id: samples::segment_id(),
            };
            let found = recover(&mut disk, LOG, STAR, RecoveryOptions::default());
            assert_eq!(found.expect("whole").end, segment.end);
        }),
    }
}
