//! Every caller's own part, when batches are due, and the bounds.

use super::*;
use nova_model::request::ServerTimes;

const T0: Instant = Instant(1_000);

fn record(bytes: usize) -> Record {
    Record::new(vec![7_u8; bytes])
}

fn batcher(batch_bytes: usize, linger_us: u64) -> Batcher {
    Batcher::new(BatcherConfig {
        batch_bytes,
        linger_us,
    })
}

fn push(batcher: &mut Batcher, bytes: usize) -> Pushed {
    batcher.push(T0, record(bytes)).expect("there is room")
}

fn sizes(batcher: &mut Batcher, now: Instant) -> Vec<usize> {
    std::iter::from_fn(|| batcher.cut(now))
        .map(|cut| cut.records.len())
        .collect()
}

fn ack(start: u64, records: u64, first_time: u64, last_time: u64) -> Ack {
    let position = |sequence, time| Position {
        sequence: SequenceNumber(sequence),
        timestamp: Timestamp(time),
    };
    Ack {
        start: position(start, first_time),
        end: position(start + records, last_time),
        tail: position(start + records, last_time),
        duplicate: false,
        times: ServerTimes::default(),
    }
}

#[test]
fn an_idle_append_is_due_at_once_and_more_ride_together() {
    let mut batcher = batcher(BATCH_METERED_BYTES_MAX, 0);
    assert!(
        push(&mut batcher, 10).wake,
        "the first one wakes the producer"
    );
    assert_eq!(sizes(&mut batcher, T0), [1]);
    assert!(push(&mut batcher, 10).wake);
    assert!(
        !push(&mut batcher, 10).wake,
        "the producer knows of this batch already"
    );
    push(&mut batcher, 10);
    assert_eq!(sizes(&mut batcher, T0), [3]);
    assert!(batcher.is_empty());
    assert_eq!(batcher.staged_bytes(), 0);
}

#[test]
fn every_caller_gets_its_own_range_of_a_merged_batch() {
    let mut batcher = batcher(BATCH_METERED_BYTES_MAX, 0);
    let one = push(&mut batcher, 1).share;
    let three = vec![record(1), record(2), record(3)];
    let many = batcher
        .push_batch(T0, three, None)
        .expect("there is room")
        .share;
    let last = push(&mut batcher, 1).share;
    assert_eq!(sizes(&mut batcher, T0), [5]);
    let ack = ack(100, 5, 9, 9);
    let range = |share: Share| {
        let own = share.appended(&ack);
        (own.start.sequence.0, own.end.sequence.0)
    };
    assert_eq!(range(one), (100, 101));
    assert_eq!(range(many), (101, 104));
    assert_eq!(range(last), (104, 105));
}

#[test]
fn timestamps_inside_a_batch_follow_the_streams_rule() {
    let mut batcher = batcher(BATCH_METERED_BYTES_MAX, 0);
    let mut timed = |time: Option<u64>| {
        let plain = record(1);
        let made = time.map_or(plain.clone(), |t| plain.with_timestamp(Timestamp(t)));
        batcher.push(T0, made).expect("there is room").share
    };
    let shares = [
        timed(Some(3)),
        timed(Some(7)),
        timed(Some(6)),
        timed(None),
        timed(Some(8)),
    ];
    // Floor 5, arrival 9: the star gives 5, 7, 7, 9, 9.
    let ack = ack(0, 5, 5, 9);
    let times = shares.map(|share| share.appended(&ack).start.timestamp.0);
    assert_eq!(times, [5, 7, 7, 9, 9]);
}

#[test]
fn batch_size_lowers_the_target_but_splits_nobody() {
    let mut batcher = batcher(100, 0);
    for _ in 0..5 {
        push(&mut batcher, 32);
    }
    let big: Vec<Record> = (0..10).map(|_| record(32)).collect();
    batcher.push_batch(T0, big, None).expect("there is room");
    push(&mut batcher, 32);
    assert_eq!(sizes(&mut batcher, T0), [2, 2, 1, 10, 1]);
}

#[test]
fn a_lingering_batch_waits_for_its_time_or_until_it_is_full_or_flushed() {
    let mut batcher = batcher(100, 500);
    push(&mut batcher, 32);
    assert_eq!(batcher.next_deadline(), Some(T0.plus_us(500)));
    assert!(batcher.cut(T0.plus_us(499)).is_none());
    assert_eq!(sizes(&mut batcher, T0.plus_us(500)), [1]);
    push(&mut batcher, 32);
    assert!(push(&mut batcher, 52).wake, "full wakes");
    assert_eq!(batcher.next_deadline(), None, "a full one is due");
    assert_eq!(sizes(&mut batcher, T0), [2]);
    push(&mut batcher, 32);
    batcher.flush();
    assert_eq!(sizes(&mut batcher, T0), [1]);
}

#[test]
fn a_condition_stands_alone() {
    let mut batcher = batcher(BATCH_METERED_BYTES_MAX, 1_000);
    push(&mut batcher, 1);
    let at = Some(SequenceNumber(1));
    let pushed = batcher
        .push_batch(T0, vec![record(1)], at)
        .expect("there is room");
    assert!(pushed.wake);
    push(&mut batcher, 1);
    let first = batcher.cut(T0).expect("closed by the one behind it");
    assert_eq!((first.number, first.match_sequence), (BatchNumber(0), None));
    let second = batcher.cut(T0).expect("a condition does not linger");
    assert_eq!((second.number, second.match_sequence), (BatchNumber(1), at));
    assert!(batcher.cut(T0).is_none(), "the third lingers");
    assert_eq!(batcher.next_number(), BatchNumber(3));
}

#[test]
fn staged_bytes_are_bounded() {
    let mut batcher = batcher(BATCH_METERED_BYTES_MAX, 0);
    let half = CLIENT_STAGED_BYTES_MAX / 2 - 8;
    push(&mut batcher, half);
    push(&mut batcher, half);
    assert_eq!(batcher.staged_bytes(), CLIENT_STAGED_BYTES_MAX);
    assert_eq!(batcher.push(T0, record(0)), Err(PushError::Full));
    assert_eq!(
        batcher.push_batch(T0, vec![record(0)], None),
        Err(PushError::Full)
    );
    assert_eq!(sizes(&mut batcher, T0), [2]);
    push(&mut batcher, 0);
}

#[test]
fn what_can_never_be_appended_is_refused() {
    let mut batcher = batcher(BATCH_METERED_BYTES_MAX, 0);
    let refused = |result: Result<Pushed, PushError>| match result {
        Err(PushError::Refused(refusal)) => refusal.code.name(),
        other => panic!("{other:?}"),
    };
    assert_eq!(
        refused(batcher.push(T0, record(BATCH_METERED_BYTES_MAX))),
        "TOO_LARGE"
    );
    assert_eq!(refused(batcher.push_batch(T0, vec![], None)), "INVALID");
    let two = vec![
        record(BATCH_METERED_BYTES_MAX / 2),
        record(BATCH_METERED_BYTES_MAX / 2),
    ];
    assert_eq!(refused(batcher.push_batch(T0, two, None)), "TOO_LARGE");
    assert!(batcher.is_empty());
}

#[test]
fn configurations_out_of_range_are_refused() {
    let check = |batch_bytes, linger_us| {
        BatcherConfig {
            batch_bytes,
            linger_us,
        }
        .check()
    };
    assert!(check(1, 0).is_ok());
    assert!(check(BATCH_METERED_BYTES_MAX, CLIENT_LINGER_US_MAX).is_ok());
    assert!(check(0, 0).is_err());
    assert!(check(BATCH_METERED_BYTES_MAX + 1, 0).is_err());
    assert!(check(1, CLIENT_LINGER_US_MAX + 1).is_err());
}
