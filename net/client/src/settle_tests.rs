//! Records are recognised by their content and order.

use super::*;
use nova_model::Timestamp;

fn stored(bodies: &[&'static str]) -> Vec<(Position, Record)> {
    let numbered = (10..).zip(bodies);
    let placed = numbered.map(|(n, body)| {
        let (sequence, timestamp) = (SequenceNumber(n), Timestamp(n * 2));
        (
            Position {
                sequence,
                timestamp,
            },
            Record::new(*body),
        )
    });
    placed.collect()
}

#[test]
fn records_are_found_where_all_of_them_stand_in_order() {
    let own = [Record::new("b"), Record::new("c")];
    let found = find(&stored(&["b", "x", "b", "c", "d"]), &own);
    let (start, end) = found.expect("they are there");
    assert_eq!((start.sequence.0, end.sequence.0), (12, 14));
    assert_eq!((start.timestamp.0, end.timestamp.0), (24, 26));
    assert_eq!(find(&stored(&["c", "b"]), &own), None);
    assert_eq!(find(&stored(&["b"]), &own), None);
}
