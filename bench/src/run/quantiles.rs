//! Times in short: what shares of them took at most.

use crate::series::Times;
use serde::Serialize;

/// Steps of a curve between a share of misses and half of it.
const STEPS_PER_HALF: u32 = 5;

/// Times in short, in microseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Quantiles {
    /// How many.
    pub count: u64,
    /// The mean.
    pub mean: f64,
    /// Half of them.
    pub p50: f64,
    /// 90 of 100.
    pub p90: f64,
    /// 99 of 100.
    pub p99: f64,
    /// 999 of 1,000.
    #[serde(rename = "p99.9")]
    pub p99_9: f64,
    /// 9,999 of 10,000.
    #[serde(rename = "p99.99")]
    pub p99_99: f64,
    /// All of them.
    pub max: f64,
}

impl Quantiles {
    /// Of these times.
    pub fn of(times: &Times) -> Quantiles {
        Quantiles {
            count: times.count(),
            mean: times.mean_us(),
            p50: times.quantile_us(0.5),
            p90: times.quantile_us(0.9),
            p99: times.quantile_us(0.99),
            p99_9: times.quantile_us(0.999),
            p99_99: times.quantile_us(0.9999),
            max: times.most_us(),
        }
    }

    /// With the names of the shares, in their order.
    pub fn named(&self) -> [(&'static str, f64); 6] {
        [
            ("p50", self.p50),
            ("p90", self.p90),
            ("p99", self.p99),
            ("p99.9", self.p99_9),
            ("p99.99", self.p99_99),
            ("max", self.max),
        ]
    }
}

/// A point of the curve of a distribution.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Point {
    /// A share of all, 0 to 1.
    pub share: f64,
    /// What it took at most, in microseconds.
    pub us: f64,
}

/// The curve of a distribution: finer towards its end, where few are and much is to be seen.
pub fn curve(times: &Times) -> Vec<Point> {
    let iterator = times.histogram().iter_quantiles(STEPS_PER_HALF);
    iterator
        .map(|step| Point {
            share: step.quantile(),
            us: step.value_iterated_to() as f64 / 1e3,
        })
        .collect()
}

#[cfg(test)]
#[path = "quantiles_tests.rs"]
mod tests;
