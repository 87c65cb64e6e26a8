//! One producer, one 1 KiB record per durable ack, against a bare ping-pong and a bare write.
//!
//! ```text
//!   each round:  4 KiB writes | 128 B ping-pong | the same with a write in it | records, each
//!                after the ack before
//! ```
//! A closed loop, as the goal has it: there is no send time to be late for. The ratio is that of
//! the medians over the rounds.
//!
//! # Not here
//! - Latency under load.

use super::{Bench, RECORD_BYTES, connect};
use crate::baselines::{Echo, disk};
use crate::error::BenchError;
use crate::goals::load::{AckTimes, body, closed_loop, ensure_bucket, producer};
use crate::report::{Bound, Section, Verdict};
use crate::series::{Role, Series, Times, Unit};
use crate::star::Star;
use nova_quic::baseline::ping_pong;
use std::path::Path;

const RATIO_MAX: f64 = 1.3;
const PING_BYTES: u32 = 128;
/// What a round writes at most, with the space that the disk's baseline goes round in.
const SPACE_BYTES: u64 = 2 * 1024 * crate::folder::MIB;

struct Counts {
    writes: usize,
    pings: usize,
    records: usize,
}

struct Measured {
    write: Series,
    driver_write: Series,
    ping: Series,
    ping_with_write: Series,
    whole: Series,
    tails: [Series; 2],
    parts: [Series; 3],
}

impl Measured {
    fn new() -> Measured {
        let micros = |role, name| Series::new(role, name, Unit::Micros);
        let bare = |name| micros(Role::Baseline, name);
        let star = |name| micros(Role::Star, name);
        let beside = |name| micros(Role::Context, name);
        Measured {
            write: bare("write of 4 KiB, O_DIRECT|O_DSYNC, p50"),
            driver_write: beside("the same through the disk driver, p50"),
            ping: bare("quinn ping-pong of 128 B, p50"),
            ping_with_write: beside("the same ping-pong with such a write in it, p50"),
            whole: star("append to durable ack, p50"),
            tails: [
                star("append to durable ack, p99"),
                star("append to durable ack, p99.9"),
            ],
            parts: [
                beside("inside the star: until it was sent to the disk, p50"),
                beside("inside the star: until it was durable, p50"),
                beside("inside the star: in all, p50"),
            ],
        }
    }

    fn add(&mut self, times: &AckTimes) {
        self.whole.push(times.whole.quantile_us(0.5));
        let [p99, p999] = &mut self.tails;
        p99.push(times.whole.quantile_us(0.99));
        p999.push(times.whole.quantile_us(0.999));
        let [queued, written, inside] = &mut self.parts;
        queued.push(times.queued.quantile_us(0.5));
        written.push(times.written.quantile_us(0.5));
        inside.push(times.inside.quantile_us(0.5));
    }

    fn section(self, title: String) -> Section {
        let bare = self.write.median() + self.ping.median();
        let ratio = self.whole.median() / bare;
        let with_write = self.whole.median() / self.ping_with_write.median();
        let note = format!(
            "append p50 / a bare ping-pong with a write in it, p50: {with_write:.2}. Writes alone \
             and pings alone, as the bound has them, follow each other at once and take less time."
        );
        let what = "append p50 / (ping-pong p50 + bare write p50)";
        let mut series = vec![
            self.write,
            self.driver_write,
            self.ping,
            self.ping_with_write,
            self.whole,
        ];
        series.extend(self.tails);
        series.extend(self.parts);
        Section {
            name: "latency",
            title,
            series,
            verdicts: vec![Verdict::new(what, ratio, Bound::AtMost, RATIO_MAX)],
            notes: vec![note],
        }
    }
}

/// Measures it.
pub fn run(bench: &Bench) -> Result<Section, BenchError> {
    let options = &bench.options;
    let rounds = options.rounds();
    let counts = Counts {
        writes: options.pick(2_000, 300),
        pings: options.pick(5_000, 1_000),
        records: options.pick(3_000, 500),
    };
    let folder = bench.folder("latency", SPACE_BYTES)?;
    let star = bench.star(&folder.data("star"))?;
    let echo = Echo::start(&folder.data("echo"), &bench.cpus, options.spin_us)?;
    let write_bytes = nova_model::limits::BLOCK_BYTES;
    let writing = folder.data("writing-echo");
    let writing = Echo::writing(&writing, &bench.cpus, options.spin_us, write_bytes)?;
    let echoes = [&echo, &writing];
    let work = async || measure(bench, folder.path(), &star, echoes, &counts).await;
    let measured = bench.cpus.run_client(work)?;
    writing.stop()?;
    echo.stop()?;
    star.stop()?;
    let Counts {
        writes,
        pings,
        records,
    } = counts;
    let title = format!(
        "one producer, one 1 KiB record per durable ack, closed loop; {rounds} rounds of {writes} \
         writes, {pings} pings, {records} records"
    );
    Ok(measured.section(title))
}

async fn measure(
    bench: &Bench,
    folder: &Path,
    star: &Star,
    [echo, writing]: [&Echo; 2],
    counts: &Counts,
) -> Result<Measured, BenchError> {
    let client = connect(star)?;
    ensure_bucket(&client).await?;
    let producer = producer(&client, 0).await?;
    let link = echo.connect().await?;
    let writing = writing.connect().await?;
    let mut measured = Measured::new();
    for link in [&link, &writing] {
        ping_pong(&link.connection, PING_BYTES, counts.pings / 4).await?;
    }
    // The session and the first segment.
    closed_loop(&producer, &body(RECORD_BYTES), counts.records / 4).await?;
    for round in 1..=bench.options.rounds() {
        bench.progress(&format!("latency, round {round}"));
        let disk = disk(folder, &bench.cpus, counts.writes, 0)?;
        let micros = |time: std::time::Duration| time.as_secs_f64() * 1e6;
        measured
            .write
            .push(micros(disk.blocking_small.quantile(0.5)));
        measured
            .driver_write
            .push(micros(disk.driver_small.quantile(0.5)));
        let mut pings = Times::default();
        pings.extend(ping_pong(&link.connection, PING_BYTES, counts.pings).await?);
        measured.ping.push(pings.quantile_us(0.5));
        let mut pings = Times::default();
        pings.extend(ping_pong(&writing.connection, PING_BYTES, counts.writes).await?);
        measured.ping_with_write.push(pings.quantile_us(0.5));
        measured.add(&closed_loop(&producer, &body(RECORD_BYTES), counts.records).await?);
    }
    link.close().await;
    writing.close().await;
    producer
        .close()
        .await
        .map_err(BenchError::client("closing the producer"))?;
    client.close().await;
    Ok(measured)
}
