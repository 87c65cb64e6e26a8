//! Tests of the name that was meant.

use super::*;

#[test]
fn a_slip_of_the_pen_finds_its_name_and_a_stranger_none() {
    let known = ["count", "timestamp", "tail_offset"];
    let cases = [
        ("conut", Some("count")),
        ("timestmap", Some("timestamp")),
        ("tail-offset", Some("tail_offset")),
        ("policy", None),
        ("", None),
    ];
    for (meant, expected) in cases {
        assert_eq!(nearest(meant, known), expected, "{meant}");
    }
    assert_eq!(nearest("count", []), None);
}
