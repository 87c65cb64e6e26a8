//! Micro-benchmarks of the rules on the way of a record: batch, frame, group, index, recovery.
//!
//! `cargo bench -p nova-bench`; one of them by a part of its name behind `--`.
//!
//! # Not here
//! - Whole stars: the program of this crate.

#![allow(missing_docs, reason = "Criterion's macros make items without docs")]

mod samples;

use bytes::Bytes;
use criterion::{BatchSize, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use nova_core::index::SealedIndex;
use nova_core::recovery::{RecoveryOptions, recover};
use nova_core::segment::LogEnd;
use nova_model::request::{Ack, AppendOpen, AppendOpened, ServerTimes, SessionAppend};
use nova_model::{EncodedBatch, Epoch, Position, SequenceNumber, StreamId};
use nova_proto::client::AppendLane;
use nova_proto::server::{Input, Lane};
use samples::{LOG, MemoryDisk, STAR};
use std::hint::black_box;
use std::sync::Arc;

const RECORD_BYTES: usize = 1024;
/// Records of a small and of a nearly full batch.
const COUNTS: [usize; 2] = [1, 1000];

fn batches(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("batch");
    for count in COUNTS {
        let records = samples::records(count, RECORD_BYTES);
        let batch = samples::batch(count, RECORD_BYTES);
        group.throughput(Throughput::Bytes((count * RECORD_BYTES) as u64));
        group.bench_function(BenchmarkId::new("encode", count), |bencher| {
            bencher.iter(|| EncodedBatch::encode(black_box(&records)).expect("legal"));
        });
        group.bench_function(BenchmarkId::new("check", count), |bencher| {
            bencher.iter(|| {
                let bytes = black_box(batch.bytes()).clone();
                EncodedBatch::check(bytes, batch.checksum()).expect("legal")
            });
        });
    }
    group.finish();
}

fn frames(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("frame");
    for count in COUNTS {
        let batch = samples::batch(count, RECORD_BYTES);
        let frame = append_frame(&batch);
        let mut lane = open_lane();
        group.throughput(Throughput::Bytes(frame.len() as u64));
        group.bench_function(BenchmarkId::new("decode append, ack", count), |bencher| {
            bencher.iter(|| {
                lane.handle_bytes(frame.clone()).expect("legal");
                black_box(lane.poll_input()).expect("a whole frame");
                lane.acked(&ack());
                while let Some(bytes) = lane.poll_output() {
                    black_box(bytes);
                }
            });
        });
    }
    group.finish();
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

fn groups(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("group");
    // One lonely record, many small batches, a few large ones.
    for (batches, records) in [(1, 1), (256, 1), (2, 1000)] {
        let mut state = samples::stream(1);
        let batch = samples::batch(records, RECORD_BYTES);
        let entries: Vec<_> = (0..batches)
            .map(|_| samples::append(&mut state, batch.clone()))
            .collect();
        let name = format!("{batches} batches of {records}");
        group.throughput(Throughput::Bytes((batches * batch.bytes().len()) as u64));
        group.bench_function(BenchmarkId::new("build and seal", name), |bencher| {
            bencher.iter(|| samples::seal(black_box(&entries), &LogEnd::default()));
        });
    }
    group.finish();
}

fn indexes(criterion: &mut Criterion) {
    const STREAMS: usize = 1000;
    let batch = samples::batch(4, RECORD_BYTES);
    let segment = samples::segment(1000, STREAMS, 16, &batch);
    let mapped = Arc::new(segment.index.seal(&segment.end));
    let index = SealedIndex::open(samples::file(), mapped).expect("just sealed");
    index.verify().expect("just sealed");
    let mut group = criterion.benchmark_group("sealed index");
    let mut number = 0;
    group.bench_function("find one of 1000 streams, a record in it", |bencher| {
        bencher.iter(|| {
            number = (number + 389) % STREAMS;
            let stream = StreamId(number as u128 + 1);
            let mut runs = index
                .runs_from(stream, SequenceNumber(black_box(32)))
                .expect("whole");
            black_box(runs.next()).expect("it has records")
        });
    });
    group.finish();
}

fn recoveries(criterion: &mut Criterion) {
    // 64 groups of one MiB each.
    let segment = samples::segment(64, 16, 1, &samples::batch(1000, RECORD_BYTES));
    let mut group = criterion.benchmark_group("recovery");
    group.sample_size(10);
    group.throughput(Throughput::Bytes(segment.bytes.len() as u64));
    group.bench_function("last segment of 64 MiB in memory", |bencher| {
        let disk = || MemoryDisk {
            bytes: segment.bytes.clone(),
        };
        let scan = |mut disk: MemoryDisk| {
            let found = recover(&mut disk, LOG, STAR, RecoveryOptions::default());
            assert_eq!(found.expect("whole").end, segment.end);
        };
        bencher.iter_batched(disk, scan, BatchSize::PerIteration);
    });
    group.finish();
}

criterion_group!(rules, batches, frames, groups, indexes, recoveries);
criterion_main!(rules);
