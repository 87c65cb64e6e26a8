//! Latencies of acks, as a histogram with three digits.

use crate::config::units::show_us;
use hdrhistogram::Histogram;
use serde_json::{Value, json};
use std::time::Duration;

/// Longest latency told apart: an hour.
const LATENCY_US_MAX: u64 = 3_600_000_000;

/// Latencies that were measured.
#[derive(Debug, Clone)]
pub(crate) struct Latencies(Histogram<u64>);

impl Latencies {
    /// None yet.
    pub(crate) fn new() -> Latencies {
        let histogram = Histogram::new_with_bounds(1, LATENCY_US_MAX, 3);
        Latencies(histogram.expect("1 to an hour with three digits is a legal histogram"))
    }

    /// Takes one down.
    pub(crate) fn note(&mut self, latency: Duration) {
        let us = u64::try_from(latency.as_micros()).unwrap_or(LATENCY_US_MAX);
        self.0.saturating_record(us.max(1));
    }

    /// The latency that this share (0 to 1) of all did not exceed, in microseconds.
    pub(crate) fn us_at(&self, share: f64) -> u64 {
        self.0.value_at_quantile(share)
    }

    /// `ack p50 310 us, p99 1.42 ms`.
    pub(crate) fn to_text(&self) -> String {
        let (half, most) = (show_us(self.us_at(0.5)), show_us(self.us_at(0.99)));
        format!("ack p50 {half}, p99 {most}")
    }

    /// `{"p50": 310, "p99": 1420, "max": 2001}`, in microseconds.
    pub(crate) fn to_json(&self) -> Value {
        json!({ "p50": self.us_at(0.5), "p99": self.us_at(0.99), "max": self.0.max() })
    }
}
