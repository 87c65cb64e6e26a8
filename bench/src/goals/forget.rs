//! What forgetting costs appends: their p99 while segments are trimmed and recycled, or rewritten,
//! beside them, and the same where everything stays.
//!
//! ```text
//!   each round:  star that forgets | star that keeps      the next: keeps | forgets ...
//!                1,000 records a second of 1 KiB, each timed from when it was due, and beside
//!                them 2,000 a second of 16 KiB, which fill two segments of 16 MiB a second
//! ```
//! Both stars have the same streams, load, core and file system; one is idle while the other is
//! measured. The one that forgets keeps the last 33 MiB, so that from the first round on it trims
//! each second and gives back as many segments as are filled. In the second scenario it keeps the
//! timed stream whole, a sixteenth of each segment, so that all of them are rewritten instead.
//!
//! # Invariants
//! - Forgetting that did not happen is seen: the space that is taken at the end is judged, too.
//!
//! # Not here
//! - That the space stays within its bound: `tests/e2e`.

use super::start::visit;
use super::{Bench, RECORD_BYTES, connect};
use crate::error::BenchError;
use crate::folder::MIB;
use crate::goals::load::{ensure_bucket, ensure_stream, stream_name};
use crate::report::{Bound, Section, Verdict};
use crate::run::bodies::Bodies;
use crate::run::pacer::Pacer;
use crate::run::recorder::{Recorder, Shared};
use crate::run::schedule::Schedule;
use crate::run::session::{Drive, SessionEnd, open_loop};
use crate::series::{Role, Series, Unit};
use crate::star::Star;
use nova_client::{Client, Producer, ProducerConfig, StreamSettings};
use nova_model::settings::Retention;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::task::LocalSet;

/// How many times as long the slowest hundredth may take.
const RATIO_MAX: f64 = 1.3;
const SEGMENT: &str = "16MiB";
/// How much of the space of the other one the star that forgets may take at the end: it did forget.
const SPACE_RATIO_MAX: f64 = 0.5;
/// What the star that forgets keeps of the stream beside.
const KEPT_BYTES: u64 = 32 * MIB;
/// And of the timed one: little, since one record that is left keeps a segment.
const KEPT_BYTES_TIMED: u64 = MIB;
/// Records a second that are timed.
const TIMED_PER_S: u64 = 1_000;
/// Records a second beside them, and their size.
const BESIDE_PER_S: u64 = 2_000;
const BESIDE_BYTES: usize = 16 * 1024;
/// From the start of a turn until its records are counted.
const WARM_UP: Duration = Duration::from_secs(1);
/// The records that are timed, and those beside them.
const STREAMS: [usize; 2] = [0, 1];

/// One of the two stars with its producers.
struct Side {
    client: Client,
    timed: Producer,
    beside: Producer,
}

/// What a turn came to, in microseconds.
struct Turn {
    p50: f64,
    p99: f64,
    p999: f64,
}

/// How much the star that forgets keeps of each stream.
struct Scenario {
    name: &'static str,
    /// What becomes of its segments.
    segments: &'static str,
    kept: [Option<u64>; 2],
}

/// Measures it with segments that are recycled.
pub fn trim(bench: &Bench) -> Result<Section, BenchError> {
    let scenario = Scenario {
        name: "forget",
        segments: "recycled",
        kept: [Some(KEPT_BYTES_TIMED), Some(KEPT_BYTES)],
    };
    run(bench, &scenario)
}

/// Measures it with segments that are rewritten.
pub fn rewrite(bench: &Bench) -> Result<Section, BenchError> {
    let scenario = Scenario {
        name: "rewrite",
        segments: "rewritten",
        kept: [None, Some(KEPT_BYTES)],
    };
    run(bench, &scenario)
}

fn run(bench: &Bench, scenario: &Scenario) -> Result<Section, BenchError> {
    let options = &bench.options;
    let rounds = options.rounds();
    let time = Duration::from_secs(options.pick(6, 3));
    let turns = rounds as u64 + 1;
    let seconds = (time + WARM_UP).as_secs() * turns;
    let bytes = BESIDE_PER_S * BESIDE_BYTES as u64 + TIMED_PER_S * 2 * RECORD_BYTES as u64;
    let folder = bench.folder(scenario.name, 2 * seconds * bytes * 5 / 4 + 1024 * MIB)?;
    let star = |name| bench.star_with(&folder.data(name), 1, &["--segment-bytes", SEGMENT]);
    let (forgets, keeps) = (star("forgets")?, star("keeps")?);
    let work = async || {
        let local = LocalSet::new();
        local
            .run_until(measure(bench, scenario, [&forgets, &keeps], (rounds, time)))
            .await
    };
    let (series, ratio) = bench.cpus.run_client(work)?;
    forgets.stop()?;
    keeps.stop()?;
    let left = [left(&folder.data("forgets"))?, left(&folder.data("keeps"))?];
    Ok(section(scenario, (series, ratio), left, time))
}

/// MiB that a star has left on the disk.
fn left(data: &Path) -> Result<f64, BenchError> {
    let mut bytes = 0;
    visit(data, &mut |_, length| {
        bytes += length;
        Ok(())
    })?;
    Ok(bytes as f64 / MIB as f64)
}

async fn measure(
    bench: &Bench,
    scenario: &Scenario,
    [forgets, keeps]: [&Star; 2],
    (rounds, time): (usize, Duration),
) -> Result<(Vec<Series>, Series), BenchError> {
    let forgets = Side::open(forgets, scenario.kept).await?;
    let keeps = Side::open(keeps, [None; 2]).await?;
    let micros = |role, name| Series::new(role, name, Unit::Micros);
    let mut with = micros(Role::Star, "append to durable ack while forgetting, p99");
    let mut without = micros(Role::Context, "append to durable ack without, p99");
    let mut further = [
        micros(Role::Context, "while forgetting, p50"),
        micros(Role::Context, "without, p50"),
        micros(Role::Context, "while forgetting, p99.9"),
        micros(Role::Context, "without, p99.9"),
    ];
    let mut ratio = Series::new(Role::Context, "p99 with / without, by round", Unit::Times);
    bench.progress(&format!("{}, until there is something", scenario.name));
    forgets.turn(time).await?;
    keeps.turn(time).await?;
    for round in 0..rounds {
        bench.progress(&format!("{}, round {}", scenario.name, round + 1));
        let (forgot, kept);
        if round % 2 == 0 {
            forgot = forgets.turn(time).await?;
            kept = keeps.turn(time).await?;
        } else {
            kept = keeps.turn(time).await?;
            forgot = forgets.turn(time).await?;
        }
        with.push(forgot.p99);
        without.push(kept.p99);
        ratio.push(forgot.p99 / kept.p99);
        let values = [forgot.p50, kept.p50, forgot.p999, kept.p999];
        for (series, value) in further.iter_mut().zip(values) {
            series.push(value);
        }
    }
    for side in [forgets, keeps] {
        side.close().await?;
    }
    let series = [with, without].into_iter().chain(further).collect();
    Ok((series, ratio))
}

fn section(
    scenario: &Scenario,
    (mut series, ratio): (Vec<Series>, Series),
    left: [f64; 2],
    time: Duration,
) -> Section {
    let [forgets, keeps] = left;
    let [low, high] = ratio.quartiles();
    let verdicts = vec![
        Verdict::new(
            "p99 while forgetting / p99 without, median over the rounds",
            ratio.median(),
            Bound::AtMost,
            RATIO_MAX,
        ),
        Verdict::new(
            "bytes on the disk at the end, of the star that forgets / of the one that keeps",
            forgets / keeps,
            Bound::AtMost,
            SPACE_RATIO_MAX,
        ),
    ];
    series.push(ratio);
    let once = |name, value| Series::once(Role::Context, name, Unit::Mebibytes, value);
    series.push(once("on the disk at the end, where it forgets", forgets));
    series.push(once("on the disk at the end, where it keeps", keeps));
    Section {
        name: scenario.name,
        title: format!(
            "{TIMED_PER_S} records of 1 KiB a second beside {BESIDE_PER_S} of 16 KiB, segments of \
             {SEGMENT}; rounds of {} s on a star whose segments are {}, and on one that keeps all",
            time.as_secs(),
            scenario.segments
        ),
        series,
        verdicts,
        notes: vec![format!(
            "half of the rounds are between {low:.2} and {high:.2}"
        )],
    }
}

impl Side {
    async fn open(star: &Star, kept: [Option<u64>; 2]) -> Result<Side, BenchError> {
        let client = connect(star)?;
        ensure_bucket(&client).await?;
        let mut producers = Vec::with_capacity(STREAMS.len());
        for (number, kept) in STREAMS.into_iter().zip(kept) {
            let name = stream_name(number);
            ensure_stream(&client, name.clone()).await?;
            if kept.is_some() {
                let settings = StreamSettings {
                    retention: Some(Retention {
                        age_s: None,
                        bytes: kept,
                    }),
                    ..StreamSettings::default()
                };
                let changed = client.reconfigure_stream(name.clone(), settings).await;
                changed.map_err(BenchError::client("setting what a stream keeps"))?;
            }
            let producer = client.producer(name, ProducerConfig::default());
            producers.push(producer.map_err(BenchError::client("opening a producer"))?);
        }
        let [timed, beside] = <[Producer; 2]>::try_from(producers).expect("one for each stream");
        Ok(Side {
            client,
            timed,
            beside,
        })
    }

    /// Both loads for some time.
    async fn turn(&self, time: Duration) -> Result<Turn, BenchError> {
        let pacer = Pacer::start()?;
        let start = Instant::now();
        let drive = |record_bytes| Drive {
            start,
            warm_up: WARM_UP,
            end: WARM_UP + time,
            records_max: u64::MAX,
            recorder: Shared::default(),
            bodies: Arc::new(Bodies::new(record_bytes, 1)),
            pacer: pacer.clone(),
            is_over: Arc::default(),
        };
        let (timed, beside) = (drive(RECORD_BYTES), drive(BESIDE_BYTES));
        let schedule = |per_second| Schedule::new(per_second, 1, 0);
        let (ended, ended_beside) = tokio::join!(
            open_loop(&self.timed, schedule(TIMED_PER_S), &timed),
            open_loop(&self.beside, schedule(BESIDE_PER_S), &beside),
        );
        all_acked(ended?)?;
        all_acked(ended_beside?)?;
        let recorder: Recorder = timed.recorder.take();
        let quantile = |share| recorder.latency.quantile_us(share);
        Ok(Turn {
            p50: quantile(0.5),
            p99: quantile(0.99),
            p999: quantile(0.999),
        })
    }

    async fn close(self) -> Result<(), BenchError> {
        for producer in [self.timed, self.beside] {
            let closed = producer.close().await;
            closed.map_err(BenchError::client("closing a producer"))?;
        }
        self.client.close().await;
        Ok(())
    }
}

/// A p99 without the records that failed would be one of nothing.
fn all_acked(end: SessionEnd) -> Result<(), BenchError> {
    match end.first_failure {
        None => Ok(()),
        Some(why) => Err(BenchError::Lost {
            records: end.failed,
            why,
        }),
    }
}
