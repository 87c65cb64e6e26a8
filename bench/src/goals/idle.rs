//! CPU time of a star that has nothing to do: alone, and with idle sessions and readers open.
//!
//! # Invariants
//! - The time is that of all its threads, from the kernel's own counters.

use super::{Bench, connect};
use crate::error::BenchError;
use crate::folder::MIB;
use crate::goals::load::{body, closed_loop, ensure_bucket, producer, stream_name};
use crate::process::{cpu_percent, cpu_time};
use crate::report::{Bound, Section, Verdict};
use crate::series::{Role, Series, Unit};
use crate::star::Star;
use nova_client::{ReadItem, Reader, read_from};
use std::time::{Duration, Instant};

const CPU_PERCENT_MAX: f64 = 1.0;
/// Sessions and readers that are open and idle.
const HANDLES: usize = 16;
/// Between the last work and the measurement.
const SETTLING: Duration = Duration::from_secs(1);

/// Measures it.
pub fn run(bench: &Bench) -> Result<Section, BenchError> {
    let window = Duration::from_secs(bench.options.pick(10, 3));
    let folder = bench.folder("idle", 512 * MIB)?;
    let star = bench.star(&folder.data("star"))?;
    bench.progress("idle, alone");
    let alone = bench
        .cpus
        .run_client(async || cpu_of(&star, window).await)?;
    bench.progress("idle, with handles");
    let with_handles = bench
        .cpus
        .run_client(async || beside(&star, window).await)?;
    star.stop()?;
    let series = |name, value| Series::once(Role::Star, name, Unit::CpuPercent, value);
    let verdict = |what, value| Verdict::new(what, value, Bound::AtMost, CPU_PERCENT_MAX);
    let seconds = window.as_secs();
    Ok(Section {
        name: "idle",
        title: format!("CPU time of a star of one core with nothing to do, over {seconds} s"),
        series: vec![
            series("no connection", alone),
            series("16 sessions and 16 following readers, idle", with_handles),
        ],
        verdicts: vec![
            verdict("hundredths of a CPU, no connection", alone),
            verdict("hundredths of a CPU, idle handles", with_handles),
        ],
        notes: Vec::new(),
    })
}

async fn cpu_of(star: &Star, window: Duration) -> Result<f64, BenchError> {
    tokio::time::sleep(SETTLING).await;
    let begun = Instant::now();
    let before = cpu_time(star.pid())?;
    tokio::time::sleep(window).await;
    let used = cpu_time(star.pid())?.saturating_sub(before);
    Ok(cpu_percent(used, begun.elapsed()))
}

async fn beside(star: &Star, window: Duration) -> Result<f64, BenchError> {
    let client = connect(star)?;
    ensure_bucket(&client).await?;
    let mut producers = Vec::new();
    let mut readers = Vec::new();
    for number in 0..HANDLES {
        let producer = producer(&client, number).await?;
        closed_loop(&producer, &body(1), 1).await?;
        producers.push(producer);
        let mut open = read_from(stream_name(number), 0);
        open.follow = true;
        let reader = client.read(open).await;
        let mut reader = reader.map_err(BenchError::client("opening a reader"))?;
        catch_up(&mut reader).await?;
        readers.push(reader);
    }
    let percent = cpu_of(star, window).await?;
    drop(readers);
    for producer in producers {
        let closed = producer.close().await;
        closed.map_err(BenchError::client("closing a producer"))?;
    }
    client.close().await;
    Ok(percent)
}

/// Reads up to the tail.
async fn catch_up(reader: &mut Reader) -> Result<(), BenchError> {
    loop {
        let item = reader.next_batch().await;
        match item.map_err(BenchError::client("reading"))? {
            Some(ReadItem::Batch(_)) => {}
            Some(ReadItem::CaughtUp(_)) | None => return Ok(()),
        }
    }
}
