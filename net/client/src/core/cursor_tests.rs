//! Trimming to the range asked, limits across sessions, and no record left out in silence.

use super::*;
use nova_model::stored::Stamping;
use nova_model::{EncodedBatch, Epoch, StreamId, StreamName, Timestamp};

fn open(start: ReadStart, limits: ReadLimits) -> ReadOpen {
    let stream = StreamName::parse("bucket/stream").expect("a legal name");
    ReadOpen {
        stream,
        stream_id: None,
        start,
        limits,
        follow: true,
        clamp: false,
    }
}

/// Records `first .. first + count`, each with 2 bytes and its number as its time.
fn stored(first: u64, count: u64) -> StoredBatch {
    let numbers = first..first + count;
    let timed = |n| Record::new(vec![n as u8, 0]).with_timestamp(Timestamp(n));
    let records: Vec<Record> = numbers.map(timed).collect();
    StoredBatch {
        first: SequenceNumber(first),
        epoch: Epoch(1),
        stamping: Stamping {
            uncapped: true,
            ..Stamping::default()
        },
        writer: None,
        batch: EncodedBatch::encode(&records).expect("a legal batch"),
    }
}

fn opened(start: u64, tail: u64) -> ReadOpened {
    let tail = Position {
        sequence: SequenceNumber(tail),
        timestamp: Timestamp(0),
    };
    ReadOpened {
        stream_id: StreamId(1),
        start: SequenceNumber(start),
        tail,
    }
}

/// Feeds batches of three from `from` and gives the sequence numbers that came out.
fn feed(cursor: &mut ReadCursor, from: u64, to: u64) -> Vec<u64> {
    let mut given = Vec::new();
    for first in (from..to).step_by(3) {
        let batch = cursor.handle_batch(stored(first, 3)).expect("no gap");
        let Some(batch) = batch else { continue };
        let records = batch.to_records();
        assert_eq!(records.len(), batch.records() as usize);
        assert_eq!(records[0].0.sequence, batch.first());
        let mut visited = Vec::new();
        batch.for_each(|position, view| visited.push((position, view.to_record())));
        assert_eq!(visited, records);
        given.extend(records.iter().map(|(position, _)| position.sequence.0));
    }
    given
}

#[test]
fn batches_are_trimmed_to_what_was_asked() {
    let sequence = |n| Some(SequenceNumber(n));
    let cases = [
        (ReadLimits::default(), (4..12).collect::<Vec<_>>(), false),
        (
            ReadLimits {
                count: Some(3),
                ..ReadLimits::default()
            },
            vec![4, 5, 6],
            true,
        ),
        (
            ReadLimits {
                count: Some(0),
                ..ReadLimits::default()
            },
            vec![],
            true,
        ),
        (
            ReadLimits {
                bytes: Some(25),
                ..ReadLimits::default()
            },
            vec![4, 5],
            true,
        ),
        (
            ReadLimits {
                bytes: Some(1),
                ..ReadLimits::default()
            },
            vec![4],
            true,
        ),
        (
            ReadLimits {
                until_sequence: sequence(6),
                ..ReadLimits::default()
            },
            vec![4, 5],
            true,
        ),
        (
            ReadLimits {
                until_sequence: sequence(4),
                ..ReadLimits::default()
            },
            vec![],
            true,
        ),
        (
            ReadLimits {
                until_timestamp: Some(Timestamp(7)),
                ..ReadLimits::default()
            },
            vec![4, 5, 6],
            true,
        ),
    ];
    for (limits, expected, done) in cases {
        let mut cursor = ReadCursor::new(open(ReadStart::Sequence(SequenceNumber(4)), limits));
        cursor.handle_opened(&opened(4, 100));
        assert_eq!(feed(&mut cursor, 3, 12), expected, "{limits:?}");
        assert_eq!(cursor.is_done(), done, "{limits:?}");
    }
}

#[test]
fn a_read_goes_on_where_it_broke_with_what_is_left_of_its_limits() {
    let limits = ReadLimits {
        count: Some(7),
        bytes: Some(1_000),
        ..ReadLimits::default()
    };
    let mut cursor = ReadCursor::new(open(ReadStart::TailOffset(8), limits));
    cursor.handle_opened(&opened(2, 10));
    assert_eq!(feed(&mut cursor, 0, 6), [2, 3, 4, 5]);
    let again = cursor.open_frame();
    assert_eq!(again.start, ReadStart::Sequence(SequenceNumber(6)));
    assert_eq!(again.stream_id, Some(StreamId(1)));
    assert_eq!(again.limits.count, Some(3));
    assert_eq!(again.limits.bytes, Some(1_000 - 4 * 10));
    cursor.handle_opened(&opened(6, 12));
    assert_eq!(
        feed(&mut cursor, 3, 12),
        [6, 7, 8],
        "what came before is not given again"
    );
    assert!(cursor.is_done());
}

#[test]
fn the_bytes_limit_gives_one_record_in_all_not_one_a_session() {
    let limits = ReadLimits {
        bytes: Some(15),
        ..ReadLimits::default()
    };
    let mut cursor = ReadCursor::new(open(ReadStart::Sequence(SequenceNumber(0)), limits));
    cursor.handle_opened(&opened(0, 9));
    assert_eq!(feed(&mut cursor, 0, 3), [0]);
    assert!(cursor.is_done());
}

#[test]
fn left_out_records_are_noticed() {
    let start = ReadStart::Sequence(SequenceNumber(0));
    let mut cursor = ReadCursor::new(open(start, ReadLimits::default()));
    cursor.handle_opened(&opened(0, 9));
    feed(&mut cursor, 0, 3);
    let found = cursor.handle_batch(stored(4, 3));
    let (expected, found_at) = (SequenceNumber(3), SequenceNumber(4));
    assert_eq!(
        found,
        Err(SkippedRecords {
            expected,
            found: found_at
        })
    );
}

#[test]
fn a_read_that_goes_on_takes_no_other_incarnation_and_no_later_start() {
    let mut open = open(
        ReadStart::Sequence(SequenceNumber(90)),
        ReadLimits::default(),
    );
    open.clamp = true;
    let mut cursor = ReadCursor::new(open);
    assert_eq!(cursor.check_opened(&opened(4, 9)), Ok(()), "clamped");
    cursor.handle_opened(&opened(4, 9));
    feed(&mut cursor, 3, 9);
    assert_eq!(cursor.next(), Some(SequenceNumber(9)));
    assert!(!cursor.open_frame().clamp, "a tail before 9 is to be told");
    assert_eq!(cursor.check_opened(&opened(9, 12)), Ok(()));
    let (expected, found) = (SequenceNumber(9), SequenceNumber(10));
    let skipped = SkippedRecords { expected, found };
    let later = cursor.check_opened(&opened(10, 12));
    assert_eq!(later, Err(UnfitOpening::Skipped(skipped)));
    let other = ReadOpened {
        stream_id: StreamId(2),
        ..opened(9, 12)
    };
    assert_eq!(cursor.check_opened(&other), Err(UnfitOpening::MadeAnew));
    assert_eq!(cursor.check_ended(found), Err(skipped));
    assert_eq!(cursor.check_ended(expected), Ok(()));
}

#[test]
fn silence_is_bounded_where_the_star_owes_an_answer() {
    const MOST: u64 = 7;
    let limits = ReadLimits::default();
    let by_time = ReadCursor::new(open(ReadStart::Timestamp(Timestamp(3)), limits));
    assert_eq!(by_time.silence_us(MOST), None, "a search may take its time");
    let mut cursor = ReadCursor::new(open(ReadStart::Sequence(SequenceNumber(0)), limits));
    cursor.handle_asked();
    assert_eq!(cursor.silence_us(MOST), Some(MOST));
    cursor.handle_opened(&opened(0, 6));
    assert_eq!(cursor.silence_us(MOST), None, "so may a disk");
    feed(&mut cursor, 0, 6);
    let tail = opened(0, 6).tail;
    assert!(cursor.handle_caught_up(tail));
    assert_eq!(cursor.silence_us(MOST), Some(2 * READER_HEARTBEAT_US));
    let most = 3 * READER_HEARTBEAT_US;
    assert_eq!(cursor.silence_us(most), Some(most));
    feed(&mut cursor, 6, 9);
    assert_eq!(cursor.silence_us(MOST), None);
    assert!(
        !cursor.handle_caught_up(opened(0, 12).tail),
        "not all was given"
    );
}
