//! Memory of a star: idle, under a stalled reader, under 64 producers that never stop.
//!
//! ```text
//!   star 1   idle                                              VmRSS
//!   star 2   a stream that does not fit the memory for readers; a reader opened at 0 that takes
//!            nothing; a producer that goes on                  VmHWM, and VmRSS all along
//!   star 3   64 clients with a connection and a producer each  VmHWM, and VmRSS all along
//! ```
//! "Bounded" is judged twice: by what the settings of the star add up to, and by whether the last
//! third of the time takes more than the middle one. In the first third caches fill.
//!
//! # Invariants
//! - Each part has a fresh star, since memory once taken may stay with the process.

use super::{Bench, connect};
use crate::baselines::WINDOWS_BYTES;
use crate::error::BenchError;
use crate::folder::MIB;
use crate::goals::load::{
    Leash, append_until, body, ensure_bucket, pipeline, producer, stream_name,
};
use crate::process::memory;
use crate::report::{Bound, Section, Verdict};
use crate::series::{Role, Series, Unit};
use crate::star::Star;
use nova_client::{Client, read_from};
use nova_model::limits::{GROUP_BYTES_MAX, INGRESS_BYTES_DEFAULT, RECENT_BYTES_DEFAULT};
use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;
use tokio::task::LocalSet;

const IDLE_MIB_MAX: f64 = 100.0;
const PRODUCERS: usize = 64;
/// Larger than the goal's records elsewhere: it is the star that has to be pressed, not the client.
const RECORD_BYTES: usize = 16 * 1024;
const SAMPLE_PERIOD: Duration = Duration::from_millis(50);
const SETTLING: Duration = Duration::from_secs(2);
/// How much more the last third of the time may take, in hundredths: the noise of an allocator.
const GROWTH_PERCENT_MAX: f64 = 10.0;

/// What a core may hold: idle, the newest batches, appends on their way, windows of connections,
/// and one group being laid out while another is copied for the device.
fn mib_max() -> f64 {
    let bytes = RECENT_BYTES_DEFAULT + INGRESS_BYTES_DEFAULT + 2 * GROUP_BYTES_MAX;
    IDLE_MIB_MAX + mib(bytes as u64 + WINDOWS_BYTES)
}

fn mib(bytes: u64) -> f64 {
    bytes as f64 / MIB as f64
}

/// Memory of a star over some time, in MiB.
struct Watched {
    peak: f64,
    growth_percent: f64,
}

/// Measures it.
pub fn run(bench: &Bench) -> Result<Section, BenchError> {
    let options = &bench.options;
    let time = Duration::from_secs(options.pick(20, 8));
    let bytes_max = options.pick(12 * 1024, 3 * 1024) * MIB;
    let filled = options.pick(1024, 256) * MIB;
    let folder = bench.folder("memory", 2 * bytes_max * 5 / 4 + filled * 2 + 1024 * MIB)?;
    bench.progress("memory, idle");
    let star = bench.star(&folder.data("idle"))?;
    std::thread::sleep(SETTLING);
    let idle = mib(memory(star.pid())?.resident);
    star.stop()?;

    bench.progress("memory, a stalled reader");
    let star = bench.star(&folder.data("stalled"))?;
    let leash = (time, bytes_max);
    let stalled = bench
        .cpus
        .run_client(async || stalled(&star, filled, leash).await)?;
    star.kill()?;

    bench.progress("memory, 64 producers");
    let star = bench.star(&folder.data("producers"))?;
    let (pressed, rate) = bench
        .cpus
        .run_client(async || pressed(&star, leash).await)?;
    star.kill()?;
    let seconds = time.as_secs();
    let title = format!("resident memory of a star of one core; under load for {seconds} s");
    Ok(section(title, idle, &stalled, &pressed, rate))
}

fn section(title: String, idle: f64, stalled: &Watched, pressed: &Watched, rate: f64) -> Section {
    let series = |name, value| Series::once(Role::Star, name, Unit::Mebibytes, value);
    let at_most = |what, value, limit| Verdict::new(what, value, Bound::AtMost, limit);
    let growth = "hundredths that the last third of the time took more than the middle one";
    Section {
        name: "memory",
        title,
        series: vec![
            series("idle", idle),
            series("a stalled reader and a producer, most", stalled.peak),
            series("64 producers that never stop, most", pressed.peak),
            Series::once(
                Role::Context,
                "what the 64 producers appended durably",
                Unit::MegabytesPerSecond,
                rate,
            ),
        ],
        verdicts: vec![
            at_most("MiB per core, idle".to_owned(), idle, IDLE_MIB_MAX),
            at_most(
                "MiB under a stalled reader".to_owned(),
                stalled.peak,
                mib_max(),
            ),
            at_most(
                format!("stalled reader: {growth}"),
                stalled.growth_percent,
                GROWTH_PERCENT_MAX,
            ),
            at_most("MiB under 64 producers".to_owned(), pressed.peak, mib_max()),
            at_most(
                format!("64 producers: {growth}"),
                pressed.growth_percent,
                GROWTH_PERCENT_MAX,
            ),
        ],
        notes: Vec::new(),
    }
}

async fn stalled(star: &Star, filled: u64, leash: (Duration, u64)) -> Result<Watched, BenchError> {
    let client = connect(star)?;
    ensure_bucket(&client).await?;
    let producer = producer(&client, 0).await?;
    let body = body(RECORD_BYTES);
    pipeline(&producer, &body, (filled / RECORD_BYTES as u64) as usize).await?;
    let readers = connect(star)?;
    let mut open = read_from(stream_name(0), 0);
    open.follow = true;
    let reader = readers.read(open).await;
    let reader = reader.map_err(BenchError::client("opening a reader"))?;
    let leash = Leash::new(leash.0, leash.1);
    let append = append_until(producer, &body, &leash);
    let (watched, appended) = tokio::join!(watch(star, &leash), append);
    appended?;
    drop(reader);
    readers.close().await;
    client.close().await;
    watched
}

/// Appends from 64 clients; also gives the rate in MB/s.
async fn pressed(star: &Star, leash: (Duration, u64)) -> Result<(Watched, f64), BenchError> {
    let mut clients: Vec<Client> = Vec::new();
    let mut producers = Vec::new();
    for number in 0..PRODUCERS {
        let client = connect(star)?;
        if number == 0 {
            ensure_bucket(&client).await?;
        }
        producers.push(producer(&client, number).await?);
        clients.push(client);
    }
    let leash = Rc::new(Leash::new(leash.0, leash.1));
    let bytes = Rc::new(Cell::new(0));
    let tasks = LocalSet::new();
    let handles: Vec<_> = producers
        .into_iter()
        .map(|producer| {
            let (leash, bytes) = (Rc::clone(&leash), Rc::clone(&bytes));
            tasks.spawn_local(async move {
                let appended = append_until(producer, &body(RECORD_BYTES), &leash).await?;
                bytes.set(bytes.get() + appended);
                Ok::<_, BenchError>(())
            })
        })
        .collect();
    let begun = std::time::Instant::now();
    let watched = tasks.run_until(watch(star, &leash)).await?;
    tasks.await;
    let rate = crate::series::megabytes_per_second(bytes.get(), begun.elapsed());
    for handle in handles {
        match handle.await {
            Ok(result) => result?,
            Err(error) => std::panic::resume_unwind(error.into_panic()),
        }
    }
    for client in clients {
        client.close().await;
    }
    Ok((watched, rate))
}

/// Looks at a star's memory until the leash ends.
async fn watch(star: &Star, leash: &Leash) -> Result<Watched, BenchError> {
    let mut samples = Vec::new();
    while !leash.is_over(RECORD_BYTES) {
        samples.push(mib(memory(star.pid())?.resident));
        tokio::time::sleep(SAMPLE_PERIOD).await;
    }
    let most = |part: &[f64]| part.iter().copied().fold(0.0, f64::max);
    let third = samples.len() / 3;
    let (middle, last) = samples[third..].split_at(third);
    let growth = most(last) / most(middle).max(1.0) - 1.0;
    Ok(Watched {
        peak: mib(memory(star.pid())?.peak),
        growth_percent: 100.0 * growth,
    })
}
