//! Each limit of a read ends it at the right record, also in the middle of a batch.

use super::*;
use crate::batch::EncodedBatch;
use crate::record::Record;
use crate::stored::Stamping;
use crate::{Epoch, Timestamp};

/// Ten records of 10 metered bytes from sequence 100, at the times 0, 1, .. 9.
fn batch() -> StoredBatch {
    let records: Vec<Record> = (0..10)
        .map(|i| Record::new("ab").with_timestamp(Timestamp(i)))
        .collect();
    StoredBatch {
        first: SequenceNumber(100),
        epoch: Epoch(1),
        stamping: Stamping {
            arrival: Timestamp(1000),
            ..Stamping::default()
        },
        writer: None,
        batch: EncodedBatch::encode(&records).expect("legal"),
    }
}

fn take(start: u64, limits: ReadLimits) -> (Range<usize>, bool, u64) {
    let mut cursor = ReadCursor::new(SequenceNumber(start), limits);
    let taken = cursor.take(&batch());
    (taken.records, taken.ended, cursor.next().0)
}

#[test]
fn without_limits_the_whole_rest_is_taken() {
    assert_eq!(take(100, ReadLimits::default()), (0..10, false, 110));
    assert_eq!(take(104, ReadLimits::default()), (4..10, false, 110));
    assert_eq!(take(110, ReadLimits::default()), (0..0, false, 110));
}

#[test]
fn each_limit_cuts() {
    let count = ReadLimits {
        count: Some(3),
        ..ReadLimits::default()
    };
    assert_eq!(take(104, count), (4..7, true, 107));
    let bytes = ReadLimits {
        bytes: Some(25),
        ..ReadLimits::default()
    };
    assert_eq!(take(100, bytes), (0..2, true, 102));
    let few_bytes = ReadLimits {
        bytes: Some(1),
        ..ReadLimits::default()
    };
    assert_eq!(take(100, few_bytes), (0..1, true, 101));
    let until = ReadLimits {
        until_sequence: Some(SequenceNumber(105)),
        ..ReadLimits::default()
    };
    assert_eq!(take(103, until), (3..5, true, 105));
    let time = ReadLimits {
        until_timestamp: Some(Timestamp(4)),
        ..ReadLimits::default()
    };
    assert_eq!(take(100, time), (0..4, true, 104));
    let exact = ReadLimits {
        count: Some(10),
        ..ReadLimits::default()
    };
    assert_eq!(take(100, exact), (0..10, true, 110));
}

#[test]
#[should_panic(expected = "never skips")]
fn a_gap_is_never_passed_over() {
    take(99, ReadLimits::default());
}
