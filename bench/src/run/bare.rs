//! What disk and network do without a star: the same sizes, file system, CPUs, cipher.
//!
//! | quantity | what it stands for |
//! | --- | --- |
//! | write of a record, in whole blocks | one durable ack needs one such write |
//! | round trip of a record and a small reply | and one such round trip |
//! | writes of 1 MiB | the most that full groups can bring to the disk |
//! | 64 KiB frames, echoed, and one way | the most that full windows can bring through QUIC |
//! | reads of 1 MiB, one for each reader | the most that the disk can bring to readers |
//! | 64 KiB frames that the star's end sends | the most that QUIC can bring them |

use crate::bare_reads::{Reads, VOLUME_BYTES_MAX, bare_reads};
use crate::bare_writes::{bare_writes, whole_blocks};
use crate::baselines::{Echo, FRAME_BYTES, FRAMES_IN_FLIGHT, REPLY_BYTES};
use crate::cpus::Cpus;
use crate::error::BenchError;
use crate::run::quantiles::Quantiles;
use crate::series::{Times, megabytes_per_second};
use crate::workload::{Shape, Workload};
use nova_quic::baseline::{pump, round_trips};
use serde::Serialize;
use std::path::Path;
use std::time::Duration;

/// A load of at least this gets the full numbers; a shorter one gets fewer.
const FULL_SECONDS: f64 = 10.0;
const COUNT_MIN: usize = 20;
const WRITES: usize = 1_000;
const LARGE_WRITES: usize = 64;
const LARGE_BYTES: usize = 1024 * 1024;
const ROUND_TRIPS: usize = 2_000;
const FRAMES: usize = 2_000;
/// More readers than this do not read more at once: it is more than a disk needs.
const READS_AT_ONCE_MAX: usize = 16;
/// What a frame adds to a record.
const FRAME_OVERHEAD_BYTES: usize = 64;

/// What was measured without a star.
#[derive(Debug, Clone, Serialize)]
pub struct Bare {
    /// Bytes of a small write.
    pub write_bytes: usize,
    /// Times of small writes.
    pub write: Quantiles,
    /// Rate of writes of 1 MiB.
    pub large_writes_mb_per_s: f64,
    /// Bytes of a request.
    pub request_bytes: usize,
    /// Times of round trips.
    pub round_trip: Quantiles,
    /// Times of round trips with a small write between request and reply.
    pub round_trip_with_write: Quantiles,
    /// Rate of 64 KiB frames that come back whole.
    pub echo_mb_per_s: f64,
    /// Rate of 64 KiB frames with a small reply.
    pub one_way_mb_per_s: f64,
    /// What reading is held against, beside a load that reads.
    pub reading: Option<BareReading>,
}

/// What disk and network can bring to readers.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct BareReading {
    /// Bytes of the file that is read.
    pub volume_bytes: u64,
    /// Reads of 1 MiB that are at the device at a time.
    pub at_once: usize,
    /// Rate of these reads.
    pub reads_mb_per_s: f64,
    /// Rate of 64 KiB frames that answer small requests.
    pub frames_mb_per_s: f64,
}

impl BareReading {
    /// The most that both together can bring.
    pub fn most_mb_per_s(&self) -> f64 {
        self.reads_mb_per_s.min(self.frames_mb_per_s)
    }
}

/// How many of each kind are measured.
#[derive(Debug, Clone, Copy)]
struct Counts {
    writes: usize,
    large_writes: usize,
    round_trips: usize,
    frames: usize,
}

impl Counts {
    fn beside(load: Duration) -> Counts {
        let share = (load.as_secs_f64() / FULL_SECONDS).min(1.0);
        let of = |full: usize| ((full as f64 * share) as usize).max(COUNT_MIN);
        Counts {
            writes: of(WRITES),
            large_writes: of(LARGE_WRITES),
            round_trips: of(ROUND_TRIPS),
            frames: of(FRAMES),
        }
    }
}

/// Measures below `folder`, so much as suits a load that lasts so long.
pub fn measure(
    folder: &Path,
    cpus: &Cpus,
    workload: &Workload,
    spin_us: u64,
) -> Result<Bare, BenchError> {
    let record_bytes = workload.record_bytes;
    let counts = Counts::beside(workload.duration);
    let write_bytes = whole_blocks(record_bytes + FRAME_OVERHEAD_BYTES);
    let write = bare_writes(folder, write_bytes, counts.writes, cpus.star)?;
    let large = bare_writes(folder, LARGE_BYTES, counts.large_writes, cpus.star)?;
    let seconds = large.mean_us() / 1e6;
    let large_writes_mb_per_s = LARGE_BYTES as f64 / 1e6 / seconds.max(f64::MIN_POSITIVE);
    let reads = (workload.shape == Shape::CatchUp).then(|| reads_beside(workload));
    let reads = match reads {
        Some(reads) => Some((reads, bare_reads(folder, reads, cpus.star)?)),
        None => None,
    };
    let request_bytes = record_bytes + FRAME_OVERHEAD_BYTES;
    let echo = Echo::start(&folder.join("echo"), cpus, spin_us)?;
    let (round_trip, echo_mb_per_s, one_way_mb_per_s) =
        cpus.run_client(async || network(&echo, request_bytes as u32, counts).await)?;
    let mut reading = None;
    if let Some((reads, reads_mb_per_s)) = reads {
        reading = Some(BareReading {
            volume_bytes: reads.volume,
            at_once: reads.at_once,
            reads_mb_per_s,
            frames_mb_per_s: cpus.run_client(async || frames_back(&echo, counts).await)?,
        });
    }
    echo.stop()?;
    let writing = Echo::writing(&folder.join("writing-echo"), cpus, spin_us, write_bytes)?;
    let with_write =
        cpus.run_client(async || trips(&writing, request_bytes as u32, counts.writes).await)?;
    writing.stop()?;
    Ok(Bare {
        write_bytes,
        write: Quantiles::of(&write),
        large_writes_mb_per_s,
        request_bytes,
        round_trip: Quantiles::of(&round_trip),
        round_trip_with_write: Quantiles::of(&with_write),
        echo_mb_per_s,
        one_way_mb_per_s,
        reading,
    })
}

/// The volume that readers are given, read as a core reads it: once, if they read the same.
fn reads_beside(workload: &Workload) -> Reads {
    let sessions = workload.producers.max(workload.streams) as u64;
    let records = workload.records_max.unwrap_or_default() * sessions;
    let volume = records * workload.record_bytes as u64;
    Reads {
        volume: volume.min(VOLUME_BYTES_MAX),
        at_once: workload.readers.clamp(1, READS_AT_ONCE_MAX),
    }
}

/// Frames from the star's end, after a few that find the path's datagram size.
async fn frames_back(echo: &Echo, counts: Counts) -> Result<f64, BenchError> {
    let link = echo.connect().await?;
    let mut rate = 0.0;
    for frames in [counts.frames / 4, counts.frames] {
        let (request, reply) = (REPLY_BYTES, FRAME_BYTES);
        let time = pump(&link.connection, request, reply, FRAMES_IN_FLIGHT, frames).await?;
        rate = megabytes_per_second(u64::from(FRAME_BYTES) * frames as u64, time);
    }
    link.close().await;
    Ok(rate)
}

/// Times of round trips on a connection of their own, behind a few that are not counted.
async fn trips(echo: &Echo, request_bytes: u32, count: usize) -> Result<Times, BenchError> {
    let link = echo.connect().await?;
    round_trips(&link.connection, request_bytes, REPLY_BYTES, count / 4).await?;
    let mut times = Times::default();
    times.extend(round_trips(&link.connection, request_bytes, REPLY_BYTES, count).await?);
    link.close().await;
    Ok(times)
}

async fn network(
    echo: &Echo,
    request_bytes: u32,
    counts: Counts,
) -> Result<(Times, f64, f64), BenchError> {
    let Counts {
        round_trips: trips,
        frames,
        ..
    } = counts;
    let link = echo.connect().await?;
    let connection = &link.connection;
    round_trips(connection, request_bytes, REPLY_BYTES, trips / 4).await?;
    let mut times = Times::default();
    times.extend(round_trips(connection, request_bytes, REPLY_BYTES, trips).await?);
    pump(
        connection,
        FRAME_BYTES,
        FRAME_BYTES,
        FRAMES_IN_FLIGHT,
        frames / 4,
    )
    .await?;
    let echoed = pump(
        connection,
        FRAME_BYTES,
        FRAME_BYTES,
        FRAMES_IN_FLIGHT,
        frames,
    )
    .await?;
    let one_way = pump(
        connection,
        FRAME_BYTES,
        REPLY_BYTES,
        FRAMES_IN_FLIGHT,
        frames,
    )
    .await?;
    link.close().await;
    let bytes = u64::from(FRAME_BYTES) * frames as u64;
    Ok((
        times,
        megabytes_per_second(bytes, echoed),
        megabytes_per_second(bytes, one_way),
    ))
}
