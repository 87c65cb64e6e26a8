//! What a reader reads next, and when.

use super::*;
use nova_model::ids::{LogId, SegmentNumber};
use nova_model::{Generation, Position};

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

fn segment() -> (SegmentFile, SegmentId) {
    let file = SegmentFile {
        log: LogId(0),
        number: SegmentNumber(1),
    };
    (file, SegmentId::default())
}

fn reader(runs: &[Run]) -> Reader {
    let cursor = ReadCursor::new(SequenceNumber(0), ReadLimits::default());
    let mut reader = Reader::new(StreamId(1), cursor, false);
    reader.segment = Some(segment());
    reader.runs = runs.iter().copied().collect();
    reader
}

fn next(reader: &Reader, bytes: u64) -> (u64, usize, usize) {
    let next = reader.next_read(bytes).expect("there are runs");
    (next.place.offset, next.place.length, next.runs)
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

/// Of a reader whose client has set a limit.
fn limited() -> ReadCursor {
    let count = Some(1_000);
    let limits = ReadLimits {
        count,
        ..ReadLimits::default()
    };
    ReadCursor::new(SequenceNumber(0), limits)
}

fn begun(first: u64, length: usize, is_ahead: bool) -> Read {
    Read {
        token: OpToken(first),
        segment: segment(),
        first: SequenceNumber(first),
        place: Place {
            file: segment().0,
            generation: Generation(0),
            offset: 0,
            length,
        },
        is_ahead,
        result: None,
    }
}

#[test]
fn no_more_is_read_ahead_than_was_read_before() {
    let block = 4096;
    let runs: Vec<Run> = (0..16)
        .map(|n| run(n, (n as u32 + 1) * 2 * block, block))
        .collect();
    let mut reader = reader(&runs);
    reader.cursor = limited();
    let ahead = |reader: &Reader| reader.next_ahead().map(|next| next.place.length);
    assert_eq!(ahead(&reader), Some(4096), "one always may be");
    reader.reads.push_back(begun(0, 4096, false));
    assert_eq!(ahead(&reader), None, "nothing was read before");
    reader.read_bytes = 2 * 4096;
    reader.reads.push_back(begun(1, 4096, true));
    assert_eq!(
        ahead(&reader),
        Some(4096),
        "what was begun in need does not count"
    );
    reader.reads.push_back(begun(2, 4096, true));
    assert_eq!(ahead(&reader), None);
    reader.read_bytes = u64::MAX;
    reader
        .reads
        .push_back(begun(3, READER_AHEAD_BYTES_MAX - 3 * 4096, true));
    assert_eq!(ahead(&reader), Some(4096), "up to the bound of one reader");
    reader.reads.push_back(begun(4, 4096, true));
    assert_eq!(ahead(&reader), None);
    reader.reads.clear();
    reader.runs.clear();
    assert_eq!(ahead(&reader), None, "where it goes on is not known");
}

#[test]
fn who_wants_all_is_read_ahead_for_from_the_beginning() {
    let runs: Vec<Run> = (0..16)
        .map(|n| run(n, (n as u32 + 1) * 8192, 4096))
        .collect();
    let mut reader = reader(&runs);
    reader.reads.push_back(begun(0, 4096, false));
    let is_ahead = |reader: &Reader| reader.next_ahead().is_some();
    assert!(is_ahead(&reader));
    let limits = limited().remaining();
    reader.search = Some((Timestamp(7), limits));
    assert!(!is_ahead(&reader), "the limits that hold from its start on");
    reader.search = Some((Timestamp(7), ReadLimits::default()));
    assert!(is_ahead(&reader));
    let most = begun(1, READER_AHEAD_BYTES_MAX, true);
    reader.reads.push_back(most);
    assert!(!is_ahead(&reader), "up to the bound of one reader");
}

#[test]
fn reads_are_taken_in_order_however_they_come() {
    let mut reader = reader(&[]);
    reader.has_credit = true;
    assert!(reader.is_hungry(), "it may begin a read");
    reader.reads.push_back(begun(0, 4096, false));
    reader.reads.push_back(begun(1, 4096, true));
    assert_eq!(reader.ahead_bytes(), 4096);
    reader.reads[1].result = Some(DiskResult::Finished);
    assert!(!reader.is_hungry(), "the first is still on its way");
    reader.reads[0].result = Some(DiskResult::Finished);
    assert!(reader.is_hungry());
    reader.has_credit = false;
    assert!(!reader.is_hungry());
}

#[test]
fn the_next_read_is_one_that_was_begun_or_one_that_was_located() {
    let mut reader = reader(&[run(7, 4096, 4096)]);
    assert_eq!(reader.next_first(), Some(SequenceNumber(7)));
    reader.reads.push_back(begun(5, 4096, true));
    assert_eq!(reader.next_first(), Some(SequenceNumber(5)));
}
