//! Tests of how much a read has ahead of it.

use super::*;
use nova_client::SequenceNumber;

#[test]
fn a_read_ends_at_the_first_of_its_ends() {
    let ends = |count, until: Option<u64>| ReadLimits {
        count,
        until_sequence: until.map(SequenceNumber),
        ..ReadLimits::default()
    };
    let cases = [
        (ends(None, None), 90),
        (ends(Some(7), None), 7),
        (ends(Some(700), None), 90),
        (ends(None, Some(20)), 10),
        (ends(Some(7), Some(20)), 7),
        (ends(None, Some(700)), 90),
        (ends(None, Some(3)), 0),
    ];
    for (limits, expected) in cases {
        assert_eq!(total(10, 100, &limits), expected, "{limits:?}");
    }
}
