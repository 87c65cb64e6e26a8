//! One session, pipelined, 1 KiB records batched by the SDK, against bare frames and bare writes.
//!
//! ```text
//!   each round:  1 MiB writes | 64 KiB frames echoed | 64 KiB frames one way | records, pipelined
//! ```
//! The ratio is to the smaller of two: frames that come back whole ("quinn echo"), and writes. The
//! frames with a small reply carry data in one direction, as appends do; they are printed beside
//! it, with the ratio to them, because they are the harder measure where both directions share a
//! CPU.
//!
//! # Invariants
//! - Throughput counts the records' bodies only, in one direction, up to the last durable ack.

use super::{Bench, RECORD_BYTES, connect};
use crate::baselines::{Echo, FRAME_BYTES, FRAMES_IN_FLIGHT, REPLY_BYTES, disk};
use crate::error::BenchError;
use crate::goals::load::{body, ensure_bucket, pipeline, producer};
use crate::process::{cpu_percent, cpu_time};
use crate::report::{Bound, Section, Verdict};
use crate::series::megabytes_per_second;
use crate::series::{Role, Series, Unit};
use crate::star::Star;
use nova_client::Producer;
use nova_quic::baseline::pump;
use nova_quic::client::Connection;
use std::path::Path;

const RATIO_MIN: f64 = 0.6;
const MIB: u64 = crate::folder::MIB;

struct Counts {
    writes: usize,
    frames: usize,
    records: usize,
}

struct Measured {
    write: Series,
    driver_write: Series,
    echo: Series,
    one_way: Series,
    star: Series,
    star_cpu: Series,
    client_cpu: Series,
}

impl Measured {
    fn new() -> Measured {
        let rate = |role, name| Series::new(role, name, Unit::MegabytesPerSecond);
        let cpu = |name| Series::new(Role::Context, name, Unit::CpuPercent);
        Measured {
            write: rate(Role::Baseline, "writes of 1 MiB, O_DIRECT|O_DSYNC"),
            driver_write: rate(Role::Context, "the same through the disk driver"),
            echo: rate(
                Role::Baseline,
                "quinn echo of 64 KiB frames (whole frames come back)",
            ),
            one_way: rate(
                Role::Context,
                "quinn, 64 KiB frames one way (128 B replies)",
            ),
            star: rate(Role::Star, "1 KiB records, durably acked"),
            star_cpu: cpu("CPU of the star meanwhile"),
            client_cpu: cpu("CPU of the client meanwhile"),
        }
    }

    fn section(self, title: String) -> Section {
        let star = self.star.median();
        let ratio = star / self.echo.median().min(self.write.median());
        let one_way = star / self.one_way.median().min(self.write.median());
        let what = "records / the smaller of echoed frames and bare writes";
        let note = format!("{one_way:.2} of the smaller of frames one way and bare writes");
        Section {
            name: "pipelined",
            title,
            series: vec![
                self.write,
                self.driver_write,
                self.echo,
                self.one_way,
                self.star,
                self.star_cpu,
                self.client_cpu,
            ],
            verdicts: vec![Verdict::new(what, ratio, Bound::AtLeast, RATIO_MIN)],
            notes: vec![note],
        }
    }
}

/// Measures it.
pub fn run(bench: &Bench) -> Result<Section, BenchError> {
    let options = &bench.options;
    let rounds = options.rounds();
    let counts = Counts {
        writes: options.pick(256, 64),
        frames: options.pick(16 * 1024, 2 * 1024),
        records: options.pick(512 * 1024, 64 * 1024),
    };
    let record_bytes = (counts.records * RECORD_BYTES) as u64;
    let needed = (rounds as u64 + 1) * record_bytes * 5 / 4 + 1024 * MIB;
    let folder = bench.folder("pipelined", needed)?;
    let star = bench.star(&folder.data("star"))?;
    let echo = Echo::start(&folder.data("echo"), &bench.cpus, options.spin_us)?;
    let work = async || measure(bench, folder.path(), &star, &echo, &counts).await;
    let measured = bench.cpus.run_client(work)?;
    echo.stop()?;
    star.stop()?;
    let (frames, writes) = (counts.frames, counts.writes);
    let records_mib = record_bytes / MIB;
    let title = format!(
        "one session, 1 KiB records pipelined and batched by the SDK, acks durable; {rounds} \
         rounds of {writes} writes, {frames} frames, {records_mib} MiB of records"
    );
    Ok(measured.section(title))
}

async fn measure(
    bench: &Bench,
    folder: &Path,
    star: &Star,
    echo: &Echo,
    counts: &Counts,
) -> Result<Measured, BenchError> {
    let client = connect(star)?;
    ensure_bucket(&client).await?;
    let producer = producer(&client, 0).await?;
    let link = echo.connect().await?;
    let mut measured = Measured::new();
    frames(&link.connection, FRAME_BYTES, counts.frames / 4).await?;
    pipeline(&producer, &body(RECORD_BYTES), counts.records / 4).await?;
    for round in 1..=bench.options.rounds() {
        bench.progress(&format!("pipelined, round {round}"));
        let disk = disk(folder, &bench.cpus, 0, counts.writes)?;
        let writes = [&disk.blocking_large, &disk.driver_large];
        let [bare, driver] = writes.map(|figures| figures.megabytes_per_second());
        measured.write.push(bare);
        measured.driver_write.push(driver);
        let rate = frames(&link.connection, FRAME_BYTES, counts.frames).await?;
        measured.echo.push(rate);
        let rate = frames(&link.connection, REPLY_BYTES, counts.frames).await?;
        measured.one_way.push(rate);
        records(&mut measured, &producer, star, counts.records).await?;
    }
    link.close().await;
    let closed = producer.close().await;
    closed.map_err(BenchError::client("closing the producer"))?;
    client.close().await;
    Ok(measured)
}

async fn frames(
    connection: &Connection,
    reply_bytes: u32,
    count: usize,
) -> Result<f64, BenchError> {
    let time = pump(
        connection,
        FRAME_BYTES,
        reply_bytes,
        FRAMES_IN_FLIGHT,
        count,
    )
    .await?;
    Ok(megabytes_per_second(
        u64::from(FRAME_BYTES) * count as u64,
        time,
    ))
}

async fn records(
    measured: &mut Measured,
    producer: &Producer,
    star: &Star,
    count: usize,
) -> Result<(), BenchError> {
    let pids = [star.pid(), std::process::id()];
    let [star_before, client_before] = pids.map(cpu_time);
    let time = pipeline(producer, &body(RECORD_BYTES), count).await?;
    let [star_after, client_after] = pids.map(cpu_time);
    let bytes = (RECORD_BYTES * count) as u64;
    measured.star.push(megabytes_per_second(bytes, time));
    let used = star_after?.saturating_sub(star_before?);
    measured.star_cpu.push(cpu_percent(used, time));
    let used = client_after?.saturating_sub(client_before?);
    measured.client_cpu.push(cpu_percent(used, time));
    Ok(())
}
