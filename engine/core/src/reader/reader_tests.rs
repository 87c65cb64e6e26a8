//! What a reader reads next, and when.

use super::*;
use nova_model::ids::{LogId, SegmentNumber};
use nova_model::{Position, SequenceNumber};

fn run(first: u64, offset: u32, length: u32) -> Run {
    Run {
        first: Position {
            sequence: SequenceNumber(first),
            timestamp: Timestamp(0),
        },
        arrival: Timestamp(0),
        before: 0,
        offset,
        length,
    }
}

fn reader(runs: &[Run]) -> Reader {
    let cursor = ReadCursor::new(SequenceNumber(0), ReadLimits::default());
    let mut reader = Reader::new(StreamId(1), cursor, false);
    let file = SegmentFile {
        log: LogId(0),
        number: SegmentNumber(1),
    };
    reader.segment = Some((file, SegmentId::default()));
    reader.runs = runs.iter().copied().collect();
    reader
}

fn next(reader: &Reader, bytes: u64) -> (u64, usize, usize) {
    let next = reader.next_read(bytes).expect("there are runs");
    (next.offset, next.length, next.runs)
}

#[test]
fn runs_side_by_side_are_one_read_up_to_its_bound() {
    let reader = reader(&[run(0, 4096, 4096), run(1, 8192, 8192), run(2, 16384, 4096)]);
    assert_eq!(next(&reader, 16384), (4096, 16384, 3));
    assert_eq!(next(&reader, 16383), (4096, 12288, 2));
    assert_eq!(next(&reader, 1), (4096, 4096, 1), "one at least");
}

#[test]
fn a_gap_ends_a_read() {
    let reader = reader(&[run(0, 4096, 4096), run(1, 12288, 4096)]);
    assert_eq!(next(&reader, 1 << 20), (4096, 4096, 1));
}

#[test]
fn a_read_ahead_is_one_and_has_something_to_read() {
    let mut reader = reader(&[run(0, 4096, 4096)]);
    assert!(reader.may_read_ahead());
    reader.op = Some(OpToken(1));
    assert!(!reader.may_read_ahead(), "one is on its way");
    reader.op = None;
    reader.arrived = Some(DiskResult::Finished);
    assert!(!reader.may_read_ahead(), "one has come and is not taken");
    reader.arrived = None;
    reader.runs.clear();
    assert!(!reader.may_read_ahead(), "where it goes on is not known");
}

#[test]
fn a_read_on_its_way_keeps_nobody_from_what_is_at_hand() {
    let mut reader = reader(&[]);
    reader.op = Some(OpToken(1));
    reader.has_credit = true;
    assert!(!reader.is_hungry());
    reader.arrived = None;
    reader.op = None;
    assert!(reader.is_hungry());
    reader.has_credit = false;
    assert!(!reader.is_hungry());
}
