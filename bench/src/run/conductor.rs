//! Starts the workers at one moment and looks at them once each interval until all have ended.
//!
//! # Invariants
//! - Intervals follow each other without a gap from the end of the warm-up to the last result.

use crate::error::BenchError;
use crate::process::{Usage, Watched};
use crate::run::recorder::{Recorder, Shared};
use crate::run::worker::{Ended, Event, Share, work};
use crate::series::Times;
use crate::show::histogram_log::encode;
use serde::Serialize;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::{Duration, Instant};
use tokio::sync::watch;

/// How long all workers together may take to open everything.
const OPEN_PATIENCE: Duration = Duration::from_secs(120);
/// From the word to the first record, so that no worker is late for it.
const RUN_UP: Duration = Duration::from_millis(20);
/// Intervals of a run at most; a longer run has longer ones.
const INTERVALS_MAX: u32 = 600;

/// What happened within some time.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Interval {
    /// When it began, in seconds since the end of the warm-up.
    pub at: f64,
    /// How long it was.
    pub seconds: f64,
    /// Records that became durable.
    pub acked: u64,
    /// Bytes of their bodies.
    pub acked_bytes: u64,
    /// Latency of half of them at most, in microseconds.
    pub p50_us: f64,
    /// Latency of 99 of 100 at most.
    pub p99_us: f64,
    /// The longest latency.
    pub max_us: f64,
    /// The most records of a session that were due and not sent.
    pub behind_max: u64,
    /// Records that were given up or failed.
    pub lost: u64,
    /// Bytes that readers were given.
    pub read_bytes: u64,
    /// CPU time of the star in hundredths of a CPU, if it is on this machine.
    pub star_cpu_percent: Option<f64>,
    /// Its memory in MiB.
    pub star_mib: Option<f64>,
    /// CPU time of this process.
    pub client_cpu_percent: f64,
    /// The latencies, encoded for a histogram log.
    #[serde(skip)]
    pub encoded: String,
}

/// What a run came to.
#[derive(Debug, Default)]
pub struct Conducted {
    /// All that was measured.
    pub total: Recorder,
    /// The same by time.
    pub intervals: Vec<Interval>,
    /// What the workers say.
    pub ended: Vec<Ended>,
    /// From the end of the warm-up to the last ack, or the last record that was read.
    pub time: Duration,
    /// What star and client used in all.
    pub usage: Usage,
}

/// How long a run is looked at, and how.
pub struct Look<'a> {
    /// What is not looked at.
    pub warm_up: Duration,
    /// What is.
    pub duration: Duration,
    /// The star's process, if it is on this machine.
    pub star: Option<u32>,
    /// Is told each interval, and all so far; `None` while it warms up.
    pub tell: &'a mut dyn FnMut(Option<&Interval>),
}

impl Look<'_> {
    fn interval(&self) -> Duration {
        // A run that ends by count has no duration to speak of: a second.
        let hour = Duration::from_secs(3_600);
        if self.duration > 10 * hour {
            return Duration::from_secs(1);
        }
        (self.duration / INTERVALS_MAX).max(Duration::from_secs(1))
    }
}

/// Runs shares, one on each of the CPUs, in turns if there are more shares.
pub fn conduct(
    shares: Vec<Share>,
    cpus: &[usize],
    look: &mut Look<'_>,
) -> Result<Conducted, BenchError> {
    let recorders: Vec<Shared> = shares.iter().map(|share| share.recorder.clone()).collect();
    let is_over = shares.first().map(|share| Arc::clone(&share.is_over));
    let is_over = is_over.unwrap_or_default();
    let workers = shares.len();
    let (sender, events) = sync_channel(2 * workers.max(1));
    let (start, started) = watch::channel(None);
    std::thread::scope(|scope| {
        for (share, &cpu) in shares.into_iter().zip(cpus.iter().cycle()) {
            let (sender, started) = (sender.clone(), started.clone());
            scope.spawn(move || work(share, cpu, started, &sender));
        }
        drop(sender);
        let conducted = all_ready(&events, workers).and_then(|()| {
            let at = Instant::now() + RUN_UP;
            // Workers that fail meanwhile say so through their events.
            let _all_gone = start.send(Some(at));
            watch_all(&events, &recorders, at, look, &is_over)
        });
        if conducted.is_err() {
            is_over.store(true, Ordering::Relaxed);
            drop(start);
        }
        conducted
    })
}

fn all_ready(events: &Receiver<Event>, workers: usize) -> Result<(), BenchError> {
    let until = Instant::now() + OPEN_PATIENCE;
    for _ in 0..workers {
        let left = until.saturating_duration_since(Instant::now());
        match events.recv_timeout(left) {
            Ok(Event::Ready) => {}
            Ok(Event::Done(Err(error))) => return Err(error),
            Ok(Event::Done(Ok(_))) | Err(_) => {
                return Err(BenchError::Unready {
                    seconds: OPEN_PATIENCE.as_secs(),
                });
            }
        }
    }
    Ok(())
}

fn watch_all(
    events: &Receiver<Event>,
    recorders: &[Shared],
    start: Instant,
    look: &mut Look<'_>,
    is_over: &AtomicBool,
) -> Result<Conducted, BenchError> {
    let counted_from = start + look.warm_up;
    let length = look.interval();
    let mut conducted = Conducted::default();
    let mut watched = Watched::begin(look.star)?;
    let mut begun = Instant::now();
    let mut failure = None;
    let mut running = recorders.len();
    let mut next = if look.warm_up.is_zero() {
        start + length
    } else {
        counted_from
    };
    while running > 0 {
        match events.recv_timeout(next.saturating_duration_since(Instant::now())) {
            Ok(Event::Done(Ok(ended))) => {
                running -= 1;
                conducted.ended.push(ended);
            }
            Ok(Event::Done(Err(error))) => {
                running -= 1;
                failure.get_or_insert(error);
            }
            Ok(Event::Ready) => {}
            Err(RecvTimeoutError::Disconnected) => break,
            Err(RecvTimeoutError::Timeout) if next == counted_from && !look.warm_up.is_zero() => {
                (look.tell)(None);
                watched = Watched::begin(look.star)?;
                begun = Instant::now();
                next += length;
            }
            Err(RecvTimeoutError::Timeout) => {
                let is_over = is_over.load(Ordering::Relaxed);
                take(
                    &mut conducted,
                    recorders,
                    &mut watched,
                    (begun, counted_from),
                    is_over,
                )?;
                (look.tell)(conducted.intervals.last());
                begun = Instant::now();
                next += length;
            }
        }
    }
    take(
        &mut conducted,
        recorders,
        &mut watched,
        (begun, counted_from),
        true,
    )?;
    conducted.usage = watched.whole()?;
    let last = conducted.total.last.unwrap_or(counted_from);
    conducted.time = last.saturating_duration_since(counted_from);
    match failure {
        Some(error) => Err(error),
        None => Ok(conducted),
    }
}

/// Closes an interval.
fn take(
    conducted: &mut Conducted,
    recorders: &[Shared],
    watched: &mut Watched,
    (begun, counted_from): (Instant, Instant),
    is_last: bool,
) -> Result<(), BenchError> {
    let mut all = Recorder::default();
    for recorder in recorders {
        all.merge(&recorder.take());
    }
    let now = Instant::now();
    let usage = watched.since_last()?;
    // What is left after the last whole interval is the end of a few records.
    if is_last && all.latency.count() == 0 && all.read == 0 {
        return Ok(());
    }
    let seconds = match (is_last, all.last) {
        (true, Some(last)) => last
            .saturating_duration_since(begun)
            .max(Duration::from_millis(1)),
        _ => now - begun,
    };
    let latency: &Times = &all.latency;
    conducted.intervals.push(Interval {
        at: begun.saturating_duration_since(counted_from).as_secs_f64(),
        seconds: seconds.as_secs_f64(),
        acked: all.acked,
        acked_bytes: all.acked_bytes,
        p50_us: latency.quantile_us(0.5),
        p99_us: latency.quantile_us(0.99),
        max_us: latency.most_us(),
        behind_max: all.behind_max,
        lost: all.given_up + all.failed,
        read_bytes: all.read_bytes,
        star_cpu_percent: usage.star_cpu_percent,
        star_mib: usage.star_mib,
        client_cpu_percent: usage.client_cpu_percent,
        encoded: encode(latency)?,
    });
    conducted.total.merge(&all);
    Ok(())
}
