//! Timestamps follow from header and payload: modes, cap, floor, order.

use super::*;
use crate::record::Record;

fn times(mode: TimestampMode, uncapped: bool, clients: &[Option<u64>]) -> Vec<u64> {
    let records: Vec<Record> = clients
        .iter()
        .map(|time| match time {
            Some(t) => Record::new("x").with_timestamp(Timestamp(*t)),
            None => Record::new("x"),
        })
        .collect();
    let stored = StoredBatch {
        first: SequenceNumber(10),
        epoch: Epoch(1),
        stamping: Stamping {
            mode,
            uncapped,
            arrival: Timestamp(1000),
            floor: Timestamp(500),
        },
        writer: None,
        batch: EncodedBatch::encode(&records).expect("legal"),
    };
    let all: Vec<u64> = stored.timestamps().into_iter().map(|t| t.0).collect();
    assert_eq!(stored.stamping.last(&stored.batch).0, all[all.len() - 1]);
    all
}

#[test]
fn each_mode_chooses_its_time_and_never_goes_back() {
    let clients = [Some(0), Some(700), None, Some(600), Some(5000)];
    let prefer = times(TimestampMode::ClientPrefer, false, &clients);
    assert_eq!(prefer, [500, 700, 1000, 1000, 1000]);
    let uncapped = times(TimestampMode::ClientPrefer, true, &clients);
    assert_eq!(uncapped, [500, 700, 1000, 1000, 5000]);
    let arrival = times(TimestampMode::Arrival, true, &clients);
    assert_eq!(arrival, [1000; 5]);
    let require = times(TimestampMode::ClientRequire, false, &[Some(600), Some(550)]);
    assert_eq!(require, [600, 600]);
}

#[test]
fn records_come_with_dense_positions() {
    let stored = StoredBatch {
        first: SequenceNumber(7),
        epoch: Epoch(1),
        stamping: Stamping::default(),
        writer: None,
        batch: EncodedBatch::encode(&[Record::new("a"), Record::new("b")]).expect("legal"),
    };
    let records = stored.to_records();
    let seen: Vec<(u64, &[u8])> = records
        .iter()
        .map(|(p, r)| (p.sequence.0, &r.body[..]))
        .collect();
    assert_eq!(seen, [(7, &b"a"[..]), (8, &b"b"[..])]);
    assert_eq!(stored.end(), SequenceNumber(9));
}
