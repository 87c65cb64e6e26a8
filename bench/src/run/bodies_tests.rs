//! Digests are equal for the same records only, whatever the order.

use super::*;

fn digest(records: &[(u64, &[u8])]) -> Digest {
    let mut digest = Digest::default();
    for (sequence, body) in records {
        digest.add(*sequence, hash(body));
    }
    digest
}

#[test]
fn the_order_and_the_parts_do_not_matter() {
    let whole = digest(&[(0, b"a"), (1, b"b"), (2, b"c")]);
    assert_eq!(digest(&[(2, b"c"), (0, b"a"), (1, b"b")]), whole);
    let mut parts = digest(&[(1, b"b")]);
    parts.merge(&digest(&[(2, b"c"), (0, b"a")]));
    assert_eq!(parts, whole);
    assert_eq!((whole.records, whole.end), (3, 3));
}

#[test]
fn a_lost_doubled_swapped_or_changed_record_is_seen() {
    let whole = digest(&[(0, b"a"), (1, b"b"), (2, b"c")]);
    let others: [&[(u64, &[u8])]; 5] = [
        &[(0, b"a"), (2, b"c")],
        &[(0, b"a"), (1, b"b"), (1, b"b"), (2, b"c")],
        &[(0, b"b"), (1, b"a"), (2, b"c")],
        &[(0, b"a"), (1, b"b"), (2, b"d")],
        &[(0, b"a"), (1, b"b"), (3, b"c")],
    ];
    for other in others {
        assert_ne!(digest(other), whole, "{other:?}");
    }
}

#[test]
fn bodies_have_their_length_and_follow_from_the_seed() {
    for bytes in [0, 1, 7, 8, 1024, 100_000] {
        let (bodies, again) = (Bodies::new(bytes, 7), Bodies::new(bytes, 7));
        for number in [0, 1, 255, 256, u64::MAX] {
            let (body, hashed) = bodies.get(number);
            assert_eq!((body.len(), hashed), (bytes, hash(&body)));
            assert_eq!(again.get(number).0, body);
        }
    }
    assert_ne!(Bodies::new(64, 1).get(0), Bodies::new(64, 2).get(0));
}
