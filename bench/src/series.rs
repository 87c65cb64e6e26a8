//! One measured quantity over the rounds of a run: its median and how far the rounds differ.
//!
//! ```text
//!   round:    1      2      3      4      5
//!   ping p50  71     69     75     70     71    us   -> median 71, spread 8 %
//! ```
//! The rounds of all quantities of one scenario take turns, so what the machine does meanwhile
//! hits all of them. The spread is `(most - least) / median`.
//!
//! # Invariants
//! - A series has a value for each round, in their order.

use hdrhistogram::Histogram;
use serde::Serialize;
use std::time::Duration;

/// Longest time that a histogram holds: more is counted as this.
const TIME_NS_MAX: u64 = 3_600_000_000_000;
/// Significant digits of a histogram.
const DIGITS: u8 = 3;

/// What a quantity is measured in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Unit {
    /// Microseconds.
    #[serde(rename = "us")]
    Micros,
    /// Milliseconds.
    #[serde(rename = "ms")]
    Millis,
    /// Millions of bytes per second.
    #[serde(rename = "MB/s")]
    MegabytesPerSecond,
    /// Bytes in units of 2^20.
    #[serde(rename = "MiB")]
    Mebibytes,
    /// Hundredths of one CPU.
    #[serde(rename = "% of a CPU")]
    CpuPercent,
    /// Hundredths of another quantity.
    #[serde(rename = "%")]
    Percent,
    /// How many times as much.
    #[serde(rename = "times")]
    Times,
}

impl Unit {
    /// How it is printed.
    pub fn text(self) -> &'static str {
        match self {
            Unit::Micros => "us",
            Unit::Millis => "ms",
            Unit::MegabytesPerSecond => "MB/s",
            Unit::Mebibytes => "MiB",
            Unit::CpuPercent => "% of a CPU",
            Unit::Percent => "%",
            Unit::Times => "times",
        }
    }
}

/// What a quantity stands for in its scenario.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Of the star.
    Star,
    /// Of the machine alone, and part of a ratio.
    Baseline,
    /// Printed beside the others, and part of no ratio.
    Context,
}

/// One quantity over all rounds.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Series {
    /// What it is.
    pub name: &'static str,
    /// What it stands for.
    pub role: Role,
    /// In what.
    pub unit: Unit,
    /// One value for each round.
    pub rounds: Vec<f64>,
}

impl Series {
    /// A quantity without rounds.
    pub fn new(role: Role, name: &'static str, unit: Unit) -> Series {
        Series {
            name,
            role,
            unit,
            rounds: Vec::new(),
        }
    }

    /// A quantity that is measured once.
    pub fn once(role: Role, name: &'static str, unit: Unit, value: f64) -> Series {
        let mut series = Series::new(role, name, unit);
        series.push(value);
        series
    }

    /// The next round's value.
    pub fn push(&mut self, value: f64) {
        self.rounds.push(value);
    }

    /// The middle value, the mean of the two middle ones if their number is even; 0 of none.
    pub fn median(&self) -> f64 {
        let mut sorted = self.rounds.clone();
        sorted.sort_by(f64::total_cmp);
        let middle = sorted.len() / 2;
        match sorted.len() {
            0 => 0.0,
            length if length % 2 == 1 => sorted[middle],
            _ => f64::midpoint(sorted[middle - 1], sorted[middle]),
        }
    }

    /// The values that a quarter and three quarters of all do not exceed; 0 of none.
    pub fn quartiles(&self) -> [f64; 2] {
        let mut sorted = self.rounds.clone();
        sorted.sort_by(f64::total_cmp);
        let last = sorted.len().saturating_sub(1);
        [last / 4, 3 * last / 4].map(|place| sorted.get(place).copied().unwrap_or_default())
    }

    /// The largest value; 0 of none.
    pub fn most(&self) -> f64 {
        self.rounds.iter().copied().fold(0.0, f64::max)
    }

    /// How far the rounds differ, in hundredths of the median.
    pub fn spread_percent(&self) -> f64 {
        let median = self.median();
        if median <= 0.0 {
            return 0.0;
        }
        let least = self.rounds.iter().copied().fold(f64::INFINITY, f64::min);
        100.0 * (self.most() - least) / median
    }
}

/// Millions of bytes per second.
pub fn megabytes_per_second(bytes: u64, time: Duration) -> f64 {
    bytes as f64 / time.as_secs_f64().max(f64::MIN_POSITIVE) / 1e6
}

/// The times of one round.
#[derive(Debug, Clone)]
pub struct Times {
    histogram: Histogram<u64>,
}

impl Default for Times {
    fn default() -> Times {
        let histogram = Histogram::new_with_max(TIME_NS_MAX, DIGITS);
        Times {
            histogram: histogram.expect("the bounds are those of a histogram"),
        }
    }
}

impl Times {
    /// Adds a time.
    pub fn record(&mut self, time: Duration) {
        let ns = u64::try_from(time.as_nanos()).unwrap_or(TIME_NS_MAX);
        self.histogram.saturating_record(ns);
    }

    /// Adds a time that many things took.
    pub fn record_many(&mut self, time: Duration, count: u64) {
        let ns = u64::try_from(time.as_nanos()).unwrap_or(TIME_NS_MAX);
        self.histogram.saturating_record_n(ns, count);
    }

    /// Adds all times of another one.
    pub fn merge(&mut self, other: &Times) {
        let added = self.histogram.add(&other.histogram);
        added.expect("both have the same bounds");
    }

    /// How many times there are.
    pub fn count(&self) -> u64 {
        self.histogram.len()
    }

    /// The longest, in microseconds.
    pub fn most_us(&self) -> f64 {
        self.histogram.max() as f64 / 1e3
    }

    /// The mean, in microseconds.
    pub fn mean_us(&self) -> f64 {
        self.histogram.mean() / 1e3
    }

    /// The counts, in nanoseconds.
    pub fn histogram(&self) -> &Histogram<u64> {
        &self.histogram
    }

    /// The time, in microseconds, that a share (0 to 1) of all were done in.
    pub fn quantile_us(&self, share: f64) -> f64 {
        self.histogram.value_at_quantile(share) as f64 / 1e3
    }
}

impl Extend<Duration> for Times {
    fn extend<T: IntoIterator<Item = Duration>>(&mut self, times: T) {
        times.into_iter().for_each(|time| self.record(time));
    }
}

#[cfg(test)]
#[path = "series_tests.rs"]
mod tests;
