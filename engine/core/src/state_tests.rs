//! The writer table: repeats, mismatches, gaps, and its two bounds.

use super::*;

fn stamp(writer: u128, sequence: u64) -> WriterStamp {
    WriterStamp {
        writer: WriterId(writer),
        sequence,
    }
}

fn batch(sequence: u64, at: u64) -> WriterBatch {
    let position = |s| Position {
        sequence: SequenceNumber(s),
        timestamp: Timestamp(1),
    };
    let checksum = Checksum(sequence as u32);
    WriterBatch {
        sequence,
        start: position(at),
        end: position(at + 1),
        checksum,
    }
}

#[test]
fn each_verdict() {
    let mut table = WriterTable::default();
    assert_eq!(
        table.judge(stamp(1, 0), Checksum(0), 1),
        WriterVerdict::Next
    );
    assert_eq!(
        table.judge(stamp(1, 1), Checksum(0), 1),
        WriterVerdict::Gap { expected: 0 }
    );
    table.remember(stamp(1, 0), batch(0, 10));
    table.remember(stamp(1, 1), batch(1, 20));
    assert_eq!(
        table.judge(stamp(1, 2), Checksum(0), 1),
        WriterVerdict::Next
    );
    assert_eq!(
        table.judge(stamp(1, 3), Checksum(0), 1),
        WriterVerdict::Gap { expected: 2 }
    );
    assert_eq!(
        table.judge(stamp(1, 1), Checksum(1), 1),
        WriterVerdict::Repeat(batch(1, 20))
    );
    assert_eq!(
        table.judge(stamp(1, 1), Checksum(9), 1),
        WriterVerdict::Mismatch { expected: 2 }
    );
    assert_eq!(
        table.judge(stamp(1, 1), Checksum(1), 2),
        WriterVerdict::Mismatch { expected: 2 }
    );
}

#[test]
fn a_writer_is_remembered_for_32_batches() {
    let mut table = WriterTable::default();
    (0..40).for_each(|n| table.remember(stamp(1, n), batch(n, n)));
    assert_eq!(
        table.judge(stamp(1, 8), Checksum(8), 1),
        WriterVerdict::Repeat(batch(8, 8))
    );
    assert_eq!(
        table.judge(stamp(1, 7), Checksum(7), 1),
        WriterVerdict::Gap { expected: 40 }
    );
}

#[test]
fn the_writer_silent_longest_is_forgotten_first() {
    let mut table = WriterTable::default();
    (0..1024u64).for_each(|w| table.remember(stamp(u128::from(w), 0), batch(0, w)));
    table.remember(stamp(0, 1), batch(1, 5000));
    table.remember(stamp(9999, 0), batch(0, 5001));
    assert_eq!(table.len(), 1024);
    assert_eq!(
        table.judge(stamp(1, 1), Checksum(1), 1),
        WriterVerdict::Gap { expected: 0 }
    );
    assert_eq!(
        table.judge(stamp(0, 2), Checksum(2), 1),
        WriterVerdict::Next
    );
}
