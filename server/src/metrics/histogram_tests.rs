//! Tests of histograms.

use super::*;

#[test]
fn a_value_is_counted_under_every_bound_that_it_reaches() {
    let histogram = Histogram::new(&TIME_BOUNDS_US);
    for value in [0, 1, 2, 3, 10_000_000, 10_000_001] {
        histogram.note(value);
    }
    let seen = histogram.snapshot();
    assert_eq!(seen.buckets[..3], [(1, 2), (2, 3), (5, 4)]);
    assert_eq!(seen.buckets.last(), Some(&(10_000_000, 5)));
    assert_eq!((seen.count, seen.sum), (6, 20_000_007));
}

#[test]
fn bounds_ascend() {
    assert!(TIME_BOUNDS_US.is_sorted());
    assert!(SIZE_BOUNDS_BYTES.is_sorted());
}
