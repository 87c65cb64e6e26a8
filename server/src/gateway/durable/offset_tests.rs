//! Tests of offsets and cursors.

use super::*;

#[test]
fn an_offset_is_read_as_it_was_written() {
    for at in [0, 1, 9_999, 10_000, 9_999_999_999_999_999] {
        assert_eq!(parse(&text(at)), Some(Offset::At(at)));
    }
    assert_eq!(parse("-1"), Some(Offset::Beginning));
    assert_eq!(parse("now"), Some(Offset::Now));
    let wrong = [
        "",
        "7",
        "0000000000000007",
        "0000000000000007_7",
        "0000000000000007_+000000000000000",
    ];
    for text in wrong
        .into_iter()
        .chain(["000000000000000a_0000000000000000", "NOW", "-2"])
    {
        assert_eq!(parse(text), None, "{text}");
    }
}

#[test]
fn offsets_are_in_order_as_text() {
    let numbers = [0, 9, 10, 99, 100, 1 << 40];
    let texts: Vec<_> = numbers.map(text).to_vec();
    assert!(texts.is_sorted(), "{texts:?}");
}

#[test]
fn a_cursor_goes_on_and_never_back() {
    let now_us = (CURSOR_EPOCH_S + 1_000 * INTERVAL_S) * 1_000_000;
    assert_eq!(cursor(None, now_us), 1_000);
    assert_eq!(cursor(Some("999"), now_us), 1_000);
    assert_eq!(cursor(Some("no number"), now_us), 1_000);
    for had in [1_000, 1_001, 5_000] {
        let next = cursor(Some(&had.to_string()), now_us + 7);
        assert!((had + 1..=had + AHEAD_MAX).contains(&next), "{had} {next}");
    }
    assert_eq!(cursor(Some(&u64::MAX.to_string()), now_us), u64::MAX);
}
