//! Shares of known times; a curve that rises to the last one.

use super::*;
use std::time::Duration;

#[test]
fn shares_of_known_times() {
    let mut times = Times::default();
    times.extend((1..=10_000).map(Duration::from_micros));
    let found = Quantiles::of(&times);
    let expected = [5_000.0, 9_000.0, 9_900.0, 9_990.0, 9_999.0, 10_000.0];
    for ((name, us), expected) in found.named().into_iter().zip(expected) {
        assert!((us - expected).abs() <= expected / 500.0, "{name}: {us}");
    }
    assert_eq!(found.count, 10_000);
    assert_eq!(Quantiles::of(&Times::default()), Quantiles::default());
}

#[test]
fn a_curve_rises_to_the_last_time() {
    let mut times = Times::default();
    times.extend((1..=1_000).map(Duration::from_micros));
    let curve = curve(&times);
    for pair in curve.windows(2) {
        assert!(pair[0].share <= pair[1].share && pair[0].us <= pair[1].us);
    }
    let last = curve.last().unwrap();
    assert_eq!(last.share, 1.0);
    assert!((last.us - 1_000.0).abs() < 2.0);
}
