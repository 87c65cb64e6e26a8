//! A histogram with fixed bounds that one thread fills while another reads it.
//!
//! # Invariants
//! - It takes the same memory whatever it is told.

use std::sync::atomic::{AtomicU64, Ordering};

/// Bounds of times: 1 us to 10 s in steps of 1, 2 and 5.
pub(crate) const TIME_BOUNDS_US: [u64; 22] = [
    1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000,
    200_000, 500_000, 1_000_000, 2_000_000, 5_000_000, 10_000_000,
];

/// Bounds of sizes: one block to the largest group, in steps of 2.
pub(crate) const SIZE_BOUNDS_BYTES: [u64; 13] = [
    1 << 12,
    1 << 13,
    1 << 14,
    1 << 15,
    1 << 16,
    1 << 17,
    1 << 18,
    1 << 19,
    1 << 20,
    1 << 21,
    1 << 22,
    1 << 23,
    1 << 24,
];

/// Counts of values up to each of `N` bounds, and of those above.
#[derive(Debug)]
pub(crate) struct Histogram<const N: usize> {
    bounds: &'static [u64; N],
    counts: [AtomicU64; N],
    above: AtomicU64,
    sum: AtomicU64,
}

/// What a histogram held at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Snapshot {
    /// Each bound with how many values were at most that.
    pub(crate) buckets: Vec<(u64, u64)>,
    /// All values.
    pub(crate) count: u64,
    /// Their sum.
    pub(crate) sum: u64,
}

impl<const N: usize> Histogram<N> {
    pub(crate) fn new(bounds: &'static [u64; N]) -> Histogram<N> {
        Histogram {
            bounds,
            counts: std::array::from_fn(|_| AtomicU64::new(0)),
            above: AtomicU64::new(0),
            sum: AtomicU64::new(0),
        }
    }

    /// One more value.
    pub(crate) fn note(&self, value: u64) {
        let at = self.bounds.partition_point(|&bound| bound < value);
        let count = self.counts.get(at).unwrap_or(&self.above);
        count.fetch_add(1, Ordering::Relaxed);
        self.sum.fetch_add(value, Ordering::Relaxed);
    }

    /// What it holds.
    pub(crate) fn snapshot(&self) -> Snapshot {
        let mut count = 0;
        let mut buckets = Vec::with_capacity(N);
        for (bound, own) in self.bounds.iter().zip(&self.counts) {
            count += own.load(Ordering::Relaxed);
            buckets.push((*bound, count));
        }
        Snapshot {
            buckets,
            count: count + self.above.load(Ordering::Relaxed),
            sum: self.sum.load(Ordering::Relaxed),
        }
    }
}

#[cfg(test)]
#[path = "histogram_tests.rs"]
mod tests;
