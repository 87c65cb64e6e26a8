//! What a load came to, as numbers; text, JSON and the page are made of it.

use crate::process::Usage;
use crate::run::bare::{Bare, BareReading};
use crate::run::conductor::{Conducted, Interval};
use crate::run::quantiles::{Point, Quantiles, curve};
use crate::series::megabytes_per_second;
use crate::workload::{Pace, Shape, Workload};
use serde::Serialize;
use std::time::Duration;

/// Baselines before and after a load that differ by more than this make its ratios doubtful.
const SPREAD_PERCENT_MAX: f64 = 35.0;

/// Whether what was read back is what was acked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verified {
    /// It was not read back.
    NotAsked,
    /// It is, byte for byte.
    Same {
        /// How many records.
        records: u64,
    },
    /// Some appends have no result, and there are at most that many records more than were acked.
    Unsure {
        /// Records that were acked.
        acked: u64,
        /// Records that were read.
        read: u64,
    },
    /// It is not.
    Different {
        /// In which streams.
        streams: Vec<String>,
    },
}

/// A number against what the machine does without a star.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Ratio {
    /// Of what.
    pub what: &'static str,
    /// The ratio.
    pub value: f64,
}

/// What a load came to.
#[derive(Debug, Clone, Serialize)]
pub struct LoadResult {
    /// The load.
    pub workload: Workload,
    /// In words.
    pub title: String,
    /// From the end of the warm-up to the last record.
    pub seconds: f64,
    /// Records that became durable.
    pub acked: u64,
    /// How many of them a second.
    pub records_per_s: f64,
    /// Bytes of their bodies.
    pub mb_per_s: f64,
    /// From the intended send time to the durable ack, in microseconds.
    pub latency: Quantiles,
    /// The star's part: until the group was sent to the disk.
    pub queued: Quantiles,
    /// The star's part: from then until it was durable.
    pub written: Quantiles,
    /// The star's part: until the answer.
    pub inside: Quantiles,
    /// From the arrival in the star to a follower.
    pub delivered: Option<Quantiles>,
    /// Bytes that readers were given, a second.
    pub read_mb_per_s: Option<f64>,
    /// The most records of one session that were due and not sent.
    pub behind_max: u64,
    /// Records that were never sent, since they were due too long before.
    pub given_up: u64,
    /// Records that have no positions.
    pub failed: u64,
    /// Why the first of them has none.
    pub first_failure: Option<String>,
    /// Answers that named another address.
    pub redirects: u64,
    /// CPU and memory.
    pub usage: Usage,
    /// Whether what was read back is what was acked.
    pub verified: Verified,
    /// The machine without a star, before and after.
    pub baselines: Vec<Bare>,
    /// The load against them.
    pub ratios: Vec<Ratio>,
    /// The same by time.
    pub intervals: Vec<Interval>,
    /// The latencies' distribution.
    pub curve: Vec<Point>,
    /// What makes the numbers doubtful.
    pub warnings: Vec<String>,
}

impl LoadResult {
    /// Puts it together.
    pub fn new(
        workload: Workload,
        conducted: Conducted,
        verified: Verified,
        baselines: Vec<Bare>,
    ) -> LoadResult {
        let total = &conducted.total;
        let time = match (workload.pace, workload.shape) {
            // An open loop lasts as long as it was meant to, or longer if the star is late.
            (Pace::Open { .. }, shape) if shape != Shape::CatchUp => {
                conducted.time.max(workload.duration)
            }
            _ => conducted.time,
        };
        let rate = |bytes| megabytes_per_second(bytes, time);
        let mut result = LoadResult {
            title: workload.title(),
            seconds: time.as_secs_f64(),
            acked: total.acked,
            records_per_s: total.acked as f64 / time.max(Duration::from_nanos(1)).as_secs_f64(),
            mb_per_s: rate(total.acked_bytes),
            latency: Quantiles::of(&total.latency),
            queued: Quantiles::of(&total.queued),
            written: Quantiles::of(&total.written),
            inside: Quantiles::of(&total.inside),
            delivered: (total.delivered.count() > 0).then(|| Quantiles::of(&total.delivered)),
            read_mb_per_s: (total.read > 0).then(|| rate(total.read_bytes)),
            behind_max: total.behind_max,
            given_up: total.given_up,
            failed: total.failed,
            first_failure: conducted
                .ended
                .iter()
                .find_map(|end| end.first_failure.clone()),
            redirects: conducted.ended.iter().map(|end| end.redirects).sum(),
            usage: conducted.usage,
            verified,
            baselines,
            ratios: Vec::new(),
            intervals: conducted.intervals,
            curve: curve(&total.latency),
            warnings: Vec::new(),
            workload,
        };
        result.ratios = result.ratios();
        result.warnings = result.warnings();
        result
    }

    /// The mean of the baselines before and after.
    fn bare(&self, of: impl Fn(&Bare) -> f64) -> Option<f64> {
        let count = self.baselines.len();
        (count > 0).then(|| self.baselines.iter().map(of).sum::<f64>() / count as f64)
    }

    fn ratios(&self) -> Vec<Ratio> {
        let ratio = |what, value: Option<f64>| value.map(|value| Ratio { what, value });
        let throughput = |rate: f64| {
            let most = self.bare(|bare| bare.echo_mb_per_s.min(bare.large_writes_mb_per_s));
            ratio(
                "throughput / the smaller of echoed 64 KiB frames and 1 MiB writes",
                most.map(|most| rate / most),
            )
        };
        let found = match (self.workload.shape, self.workload.pace) {
            (Shape::CatchUp, _) => {
                let read = self.read_mb_per_s.unwrap_or_default();
                let against = |of: fn(&BareReading) -> f64| {
                    let bare = |bare: &Bare| bare.reading.as_ref().map_or(f64::NAN, of);
                    self.bare(bare)
                        .filter(|most| most.is_finite())
                        .map(|most| read / most)
                };
                vec![
                    ratio(
                        "reading / the smaller of bare reads and 64 KiB frames from the star's end",
                        against(BareReading::most_mb_per_s),
                    ),
                    ratio(
                        "reading / reads of 1 MiB",
                        against(|bare| bare.reads_mb_per_s),
                    ),
                    ratio(
                        "reading / 64 KiB frames from the star's end",
                        against(|bare| bare.frames_mb_per_s),
                    ),
                ]
            }
            (_, Pace::Closed { in_flight: 2.. }) => vec![throughput(self.mb_per_s)],
            _ => vec![
                ratio(
                    "latency p50 / (round trip p50 + write p50)",
                    self.bare(|bare| bare.round_trip.p50 + bare.write.p50)
                        .map(|bare| self.latency.p50 / bare),
                ),
                ratio(
                    "latency p50 / round trip with a write in it, p50",
                    self.bare(|bare| bare.round_trip_with_write.p50)
                        .map(|bare| self.latency.p50 / bare),
                ),
                ratio(
                    "latency p99 / (round trip p99 + write p99)",
                    self.bare(|bare| bare.round_trip.p99 + bare.write.p99)
                        .map(|bare| self.latency.p99 / bare),
                ),
            ],
        };
        found.into_iter().flatten().collect()
    }

    fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        if let [before, after] = &self.baselines[..] {
            let pairs = [
                ("bare writes, p50", before.write.p50, after.write.p50),
                (
                    "round trips, p50",
                    before.round_trip.p50,
                    after.round_trip.p50,
                ),
                (
                    "1 MiB writes",
                    before.large_writes_mb_per_s,
                    after.large_writes_mb_per_s,
                ),
                ("echoed frames", before.echo_mb_per_s, after.echo_mb_per_s),
            ];
            let reading = |of: fn(&BareReading) -> f64| {
                let of = |bare: &Bare| bare.reading.as_ref().map_or(0.0, of);
                (of(before), of(after))
            };
            let (reads, frames) = (
                reading(|bare| bare.reads_mb_per_s),
                reading(|bare| bare.frames_mb_per_s),
            );
            let pairs = pairs.into_iter().chain([
                ("bare reads", reads.0, reads.1),
                ("frames from the star's end", frames.0, frames.1),
            ]);
            for (what, before, after) in pairs {
                let spread = 100.0 * (before - after).abs() / before.min(after).max(1e-9);
                if spread > SPREAD_PERCENT_MAX {
                    warnings.push(format!(
                        "{what} differ by {spread:.0} % before and after: conclude nothing"
                    ));
                }
            }
        }
        if self.given_up > 0 {
            warnings.push(format!(
                "the star did not keep up: {} records were never sent, {} were due at once",
                self.given_up, self.behind_max
            ));
        }
        if self.failed > 0 {
            let why = self.first_failure.as_deref().unwrap_or("unknown");
            warnings.push(format!("{} appends have no result: {why}", self.failed));
        }
        warnings
    }
}

#[cfg(test)]
#[path = "outcome_tests.rs"]
pub(crate) mod tests;
