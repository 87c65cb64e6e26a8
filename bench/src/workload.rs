//! What a load is made of: shapes by name, and what the command line changes about them.
//!
//! | shape | producers | streams | pace |
//! | --- | --- | --- | --- |
//! | `latency` | 1 | 1 | 1,000 records a second: one record for each ack |
//! | `throughput` | 1 | 1 | closed loop, 16,384 records unanswered |
//! | `fan-in` | 50 | 1 | 10,000 a second |
//! | `fan-out` | 1, 4, 50 | 1, 100, 2,000 | 5,000 a second, each with each |
//! | `catch-up` | 1 | 4 | closed loop; then each stream is read from its start |
//! | `soak` | 4 | 16 | 2,000 a second for an hour, followed by 4 readers |
//!
//! # Invariants
//! - A workload has at least one producer, one stream and one record on its way.
//!
//! # Not here
//! - When a record is due: [`crate::run::schedule`].

use crate::args::LoadOptions;
use crate::error::BenchError;
use crate::run::schedule::time_of;
use nova_model::limits::RECORD_METERED_BYTES_MAX;
use serde::{Serialize, Serializer};
use std::time::Duration;

/// A load with a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Shape {
    /// One record for each ack.
    Latency,
    /// As much as one session takes.
    Throughput,
    /// Many producers, one stream.
    FanIn,
    /// Few and many producers, few and many streams.
    FanOut,
    /// Readers from the start of a stream to its tail.
    CatchUp,
    /// A steady load for long.
    Soak,
}

impl Shape {
    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Shape::Latency => "latency",
            Shape::Throughput => "throughput",
            Shape::FanIn => "fan-in",
            Shape::FanOut => "fan-out",
            Shape::CatchUp => "catch-up",
            Shape::Soak => "soak",
        }
    }
}

/// When records are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Pace {
    /// At fixed times, whatever the star does.
    Open {
        /// Records a second of all sessions together.
        per_second: u64,
    },
    /// When an earlier one is acked.
    Closed {
        /// Records of each session that are unanswered.
        in_flight: usize,
    },
}

/// One load.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Workload {
    /// Its shape.
    pub shape: Shape,
    /// Those that append.
    pub producers: usize,
    /// Clients that they share, each with connections of its own.
    pub clients: usize,
    /// Streams that they append to.
    pub streams: usize,
    /// Bytes of a record's body.
    pub record_bytes: usize,
    /// When records are sent.
    pub pace: Pace,
    /// What runs before anything is counted.
    #[serde(rename = "warm_up_seconds", serialize_with = "as_seconds")]
    pub warm_up: Duration,
    /// What is counted.
    #[serde(rename = "seconds", serialize_with = "as_seconds")]
    pub duration: Duration,
    /// Records of each session at most, in a closed loop.
    pub records_max: Option<u64>,
    /// Readers that follow, or that catch up.
    pub readers: usize,
    /// Whether all that was acked is read back.
    pub verify: bool,
}

fn as_seconds<S: Serializer>(time: &Duration, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_f64(time.as_secs_f64())
}

struct Defaults {
    producers: &'static [usize],
    streams: &'static [usize],
    pace: Pace,
    warm_up_s: u64,
    duration_s: u64,
    readers: usize,
}

/// What a closed loop without a number keeps unanswered.
pub const IN_FLIGHT_DEFAULT: usize = 16_384;
/// Body bytes that `catch-up` appends to each stream, unless a number of records is said.
const CATCH_UP_BYTES: u64 = 256 * 1024 * 1024;
/// How long a load may last whose end is a number of records.
const COUNTED_TIME_MAX: Duration = Duration::from_secs(24 * 60 * 60);

fn defaults(shape: Shape) -> Defaults {
    let base = Defaults {
        producers: &[1],
        streams: &[1],
        pace: Pace::Open { per_second: 1_000 },
        warm_up_s: 2,
        duration_s: 20,
        readers: 0,
    };
    let closed = Pace::Closed {
        in_flight: IN_FLIGHT_DEFAULT,
    };
    let open = |per_second| Pace::Open { per_second };
    match shape {
        Shape::Latency => base,
        Shape::Throughput => Defaults {
            pace: closed,
            duration_s: 10,
            ..base
        },
        Shape::FanIn => Defaults {
            producers: &[50],
            pace: open(10_000),
            ..base
        },
        Shape::FanOut => Defaults {
            producers: &[1, 4, 50],
            streams: &[1, 100, 2_000],
            pace: open(5_000),
            duration_s: 10,
            ..base
        },
        Shape::CatchUp => Defaults {
            streams: &[4],
            pace: closed,
            readers: 4,
            ..base
        },
        Shape::Soak => Defaults {
            producers: &[4],
            streams: &[16],
            pace: open(2_000),
            warm_up_s: 10,
            duration_s: 3_600,
            readers: 4,
        },
    }
}

/// The loads that a command line asks for: each number of producers with each of streams.
pub fn workloads(shape: Shape, said: &LoadOptions) -> Result<Vec<Workload>, BenchError> {
    let defaults = defaults(shape);
    let pace = match (said.rate, said.in_flight) {
        (Some(per_second), None) => Pace::Open { per_second },
        (None, Some(in_flight)) => Pace::Closed { in_flight },
        _ => defaults.pace,
    };
    if said.record_bytes + 64 > RECORD_METERED_BYTES_MAX {
        let most = RECORD_METERED_BYTES_MAX - 64;
        let text = format!("a record has at most {most} bytes: set a lower --record-bytes");
        return Err(BenchError::Usage(text));
    }
    let seconds = |said: Option<f64>, default: u64| {
        said.map_or(Duration::from_secs(default), Duration::from_secs_f64)
    };
    let or = |said: &[usize], default: &[usize]| match said {
        [] => default.to_vec(),
        said => said.to_vec(),
    };
    let mut all = Vec::new();
    for producers in or(&said.producers, defaults.producers) {
        for streams in or(&said.streams, defaults.streams) {
            let sessions = producers.max(streams) as u64;
            let count = said.count.or_else(|| {
                let fill = CATCH_UP_BYTES / said.record_bytes.max(1) as u64;
                (shape == Shape::CatchUp).then_some(fill * sessions)
            });
            let duration = match (count, pace) {
                (None, _) => seconds(said.duration, defaults.duration_s),
                (Some(count), Pace::Open { per_second }) => time_of(count, per_second),
                (Some(_), Pace::Closed { .. }) => COUNTED_TIME_MAX,
            };
            all.push(Workload {
                shape,
                producers,
                clients: said.clients.unwrap_or(producers).min(producers),
                streams,
                record_bytes: said.record_bytes,
                pace,
                warm_up: seconds(said.warm_up, defaults.warm_up_s),
                duration,
                records_max: count.map(|count| count.div_ceil(sessions)),
                readers: said.readers.unwrap_or(defaults.readers),
                verify: !said.no_verify,
            });
        }
    }
    Ok(all)
}

/// A producer's session on a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Session {
    /// Which of all.
    pub number: usize,
    /// Whose.
    pub producer: usize,
    /// Through which client.
    pub client: usize,
    /// On which stream.
    pub stream: usize,
}

impl Workload {
    /// All sessions: every producer has one at least, every stream has one at least.
    pub fn sessions(&self) -> Vec<Session> {
        (0..self.producers.max(self.streams))
            .map(|number| Session {
                number,
                producer: number % self.producers,
                client: number % self.producers % self.clients,
                stream: number % self.streams,
            })
            .collect()
    }

    /// In words.
    pub fn title(&self) -> String {
        let plural = |count: usize, what: &str| match count {
            1 => format!("1 {what}"),
            count => format!("{count} {what}s"),
        };
        let pace = match self.pace {
            Pace::Open { per_second } => format!("open loop, {per_second} records/s"),
            Pace::Closed { in_flight } => format!("closed loop, {in_flight} in flight a session"),
        };
        let readers = match (self.shape, self.readers) {
            (_, 0) => String::new(),
            (Shape::CatchUp, readers) => format!(", then {} catch up", plural(readers, "reader")),
            (_, readers) => format!(", {} follow", plural(readers, "reader")),
        };
        let clients = match self.clients == self.producers {
            true => String::new(),
            false => format!(" through {}", plural(self.clients, "client")),
        };
        format!(
            "{}{clients} x {} x {} B, {pace}{readers}",
            plural(self.producers, "producer"),
            plural(self.streams, "stream"),
            self.record_bytes
        )
    }
}

#[cfg(test)]
#[path = "workload_tests.rs"]
mod tests;
