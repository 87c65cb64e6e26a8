//! Who gets what one read brings.

use super::*;
use crate::disk::{DiskError, DiskFailure};
use nova_model::ids::{LogId, SegmentNumber};

const A: Taker = in_need(ReaderKey(1));
const B: Taker = in_need(ReaderKey(2));
const C: Taker = in_need(ReaderKey(3));

const fn in_need(key: ReaderKey) -> Taker {
    Taker {
        key,
        is_ahead: false,
    }
}

const fn ahead(by: Taker) -> Taker {
    Taker {
        is_ahead: true,
        ..by
    }
}

fn place(offset: u64) -> Place {
    Place {
        file: SegmentFile {
            log: LogId(0),
            number: SegmentNumber(1),
        },
        generation: Generation(0),
        offset,
        length: 4096,
    }
}

fn brought() -> DiskResult {
    DiskResult::Read(Bytes::from_static(b"groups"))
}

#[test]
fn all_who_have_a_read_before_them_get_it_and_nobody_behind_them() {
    let mut reads = SharedReads::default();
    let (here, token) = (place(0), OpToken(7));
    assert!(reads.join(&here, A).is_none());
    reads.begin(here, token, A);
    assert_eq!(reads.join(&here, B), Some((token, None)));
    assert!(reads.join(&place(4096), B).is_none(), "another place");
    assert_eq!(reads.end(&here, token, &brought()), [A.key, B.key]);
    reads.leave(&here, token, A.key);
    let bytes = Some(Bytes::from_static(b"groups"));
    assert_eq!(reads.join(&here, C), Some((token, bytes)));
    reads.leave(&here, token, B.key);
    reads.leave(&here, token, C.key);
    assert!(reads.join(&here, A).is_none(), "nothing is kept");
    assert!(reads.reads.is_empty());
}

#[test]
fn what_failed_is_told_and_read_again() {
    let mut reads = SharedReads::default();
    let (here, token) = (place(0), OpToken(7));
    reads.begin(here, token, A);
    reads.join(&here, B);
    let failed = DiskResult::Failed(DiskError {
        operation: "read",
        path: String::new(),
        offset: 0,
        length: 4096,
        failure: DiskFailure::Io,
        message: String::new(),
    });
    assert_eq!(reads.end(&here, token, &failed), [A.key, B.key]);
    assert!(reads.join(&here, C).is_none());
    reads.begin(here, OpToken(8), C);
    reads.leave(&here, token, A.key);
    reads.leave(&here, token, B.key);
    assert_eq!(
        reads.end(&here, OpToken(8), &brought()),
        [C.key],
        "that is another read"
    );
}

#[test]
fn a_read_that_nobody_needs_any_more_is_nobodys() {
    let mut reads = SharedReads::default();
    let (here, token) = (place(0), OpToken(7));
    reads.begin(here, token, A);
    reads.join(&here, B);
    reads.leave(&here, token, A.key);
    assert_eq!(reads.join(&here, C), Some((token, None)));
    reads.leave(&here, token, B.key);
    reads.leave(&here, token, C.key);
    reads.begin(here, OpToken(8), A);
    assert!(reads.end(&here, token, &brought()).is_empty());
    assert_eq!(reads.end(&here, OpToken(8), &brought()), [A.key]);
}

#[test]
fn what_is_read_ahead_counts_once_for_as_long_as_anybody_has_it() {
    let large = |offset| Place {
        length: READ_AHEAD_BYTES_MAX / 2,
        ..place(offset)
    };
    let mut reads = SharedReads::default();
    reads.begin(large(0), OpToken(1), ahead(A));
    reads.begin(large(1), OpToken(2), B);
    assert!(reads.has_room(&place(2)), "what is needed does not count");
    reads.join(&large(1), ahead(A));
    assert!(!reads.has_room(&place(2)));
    assert!(reads.has_room(&large(0)) && reads.has_room(&large(1)));
    reads.join(&large(0), ahead(C));
    reads.leave(&large(0), OpToken(1), A.key);
    reads.leave(&large(1), OpToken(2), A.key);
    assert!(!reads.has_room(&place(2)), "others have both");
    reads.leave(&large(0), OpToken(1), C.key);
    assert!(reads.has_room(&place(2)));
    reads.leave(&large(1), OpToken(2), B.key);
    assert_eq!(reads.ahead_bytes, 0);
}
