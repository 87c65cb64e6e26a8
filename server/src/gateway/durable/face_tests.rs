//! Tests of what the protocol keeps of a stream.

use super::*;
use nova_model::EncodedBatch;

const SECOND: u64 = 1_000_000;

fn face() -> Face {
    Face::new("text/plain".to_owned(), 100 * SECOND)
}

fn producer(id: usize, seq: u64) -> Producer {
    Producer {
        id: id.to_string(),
        epoch: 0,
        seq,
    }
}

#[test]
fn a_record_carries_a_face_and_gives_it_back() {
    let mut face = face();
    face.ttl_s = Some(9);
    face.is_closed = true;
    face.note(producer(7, 3));
    let records = [
        face.on(Record::new("hi")),
        face.on(control()),
        Record::new(""),
    ];
    let batch = EncodedBatch::encode(&records).unwrap();
    let mut read = Vec::new();
    batch.for_each(|record| read.push((Face::of(record), is_message(record), is_end(record))));
    let expected = [
        (Some(face.clone()), true, true),
        (Some(face), false, true),
        (None, true, false),
    ];
    assert_eq!(read, expected);
}

#[test]
fn a_copy_is_as_much_of_a_message_and_of_an_end() {
    let records = [
        face().on(Record::new("hi")),
        face().on(control()),
        Record::new("yo"),
    ];
    let batch = EncodedBatch::encode(&records).unwrap();
    let mut copies = Vec::new();
    batch.for_each(|record| copies.push(copied(record)));
    let again = EncodedBatch::encode(&copies).unwrap();
    let mut read = Vec::new();
    again.for_each(|record| {
        assert!(Face::of(record).is_none());
        read.push((record.body().to_vec(), is_message(record), is_end(record)));
    });
    let expected = [
        (b"hi".to_vec(), true, true),
        (Vec::new(), false, true),
        (b"yo".to_vec(), true, false),
    ];
    assert_eq!(read, expected);
}

#[test]
fn a_stream_expires_unused_or_at_its_time() {
    let mut unused = face();
    assert!(!unused.is_expired(u64::MAX));
    assert!(!unused.is_renewal_due(u64::MAX));
    unused.ttl_s = Some(8);
    assert!(!unused.is_expired(108 * SECOND - 1));
    assert!(unused.is_expired(108 * SECOND));
    assert!(!unused.is_renewal_due(101 * SECOND - 1));
    assert!(unused.is_renewal_due(101 * SECOND));
    let mut at = face();
    at.expires_us = Some(105 * SECOND);
    assert!(!at.is_expired(105 * SECOND - 1));
    assert!(at.is_expired(105 * SECOND));
    assert!(!at.is_renewal_due(105 * SECOND));
}

#[test]
fn the_longest_unused_producer_is_forgotten_first() {
    let mut face = face();
    for id in 0..PRODUCERS_MAX {
        face.note(producer(id, 0));
    }
    face.note(producer(0, 1));
    face.note(producer(PRODUCERS_MAX, 0));
    assert_eq!(face.producers.len(), PRODUCERS_MAX);
    assert_eq!(face.producer("1"), None);
    assert_eq!(face.producer("0"), Some(&producer(0, 1)));
}

#[test]
fn a_face_stays_within_what_a_body_leaves() {
    let mut face = face();
    let long = |bytes: usize, at: usize| format!("{at:0bytes$}");
    face.kind = long(256, 0);
    face.seq = Some(long(256, 0));
    for at in 0..PRODUCERS_MAX {
        face.note(Producer {
            id: long(256, at),
            epoch: (1 << 53) - 1,
            seq: (1 << 53) - 1,
        });
    }
    face.forks = (0..FORKS_MAX).map(|at| long(577, at)).collect();
    let bytes = face.on(Record::new("")).metered_bytes();
    assert!(bytes <= FACE_BYTES_MAX, "{bytes}");
}

#[test]
fn json_and_text_are_known_whatever_their_parameters() {
    let kinds = [
        ("application/json", true, true),
        ("Application/JSON; charset=utf-8", true, true),
        ("text/plain", false, true),
        ("application/ndjson", false, false),
        ("image/png", false, false),
    ];
    for (kind, is_json, is_text) in kinds {
        let face = Face::new(kind.to_owned(), 0);
        assert_eq!(
            (face.is_json(), face.is_text()),
            (is_json, is_text),
            "{kind}"
        );
    }
}
