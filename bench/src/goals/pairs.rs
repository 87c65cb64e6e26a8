//! What a guarantee costs: the same pipelined load with it and without, in pairs that take turns.
//!
//! ```text
//!   pair 1:  with | without      pair 2:  without | with      pair 3:  with | without ...
//!   cost of a pair = 1 - rate with / rate without;  the result is the median over the pairs
//! ```
//! A machine changes from second to second by more than these guarantees cost. Two short runs next
//! to each other see nearly the same machine, and which goes first changes, so that a drift hits
//! both sides alike. Where others use the disk, the rates still differ by more than a guarantee
//! costs; the star's CPU time hardly does, and is shown beside them.
//!
//! # Invariants
//! - Both sides of a pair have the same star, connection, core, bodies and number of records.
//!
//! # Not here
//! - A star without epochs: there is none. The third pair shows what many of them cost; what one
//!   costs at admission is in the micro-benchmarks.

use super::{Bench, RECORD_BYTES, connect};
use crate::error::BenchError;
use crate::folder::MIB;
use crate::goals::load::{body, ensure_bucket, ensure_stream, pipeline, stream_name};
use crate::process::cpu_time;
use crate::report::{Bound, Section, Verdict};
use crate::series::megabytes_per_second;
use crate::series::{Role, Series, Unit};
use crate::star::Star;
use nova_client::{Client, Conditions, CoreId, FencingToken, Producer, ProducerConfig, StreamName};
use nova_model::placement::stream_home;

/// What a guarantee may cost of the throughput, in hundredths.
const COST_PERCENT_MAX: f64 = 3.0;
/// Pairs for each round that was asked for: single pairs vary.
const PAIRS_PER_ROUND: usize = 6;
/// Moves there and back that the stream of many epochs has behind it.
const MOVES_THERE_AND_BACK: usize = 50;
const TOKEN: &str = "writer-1";

/// One guarantee, with it and without.
struct Pair {
    names: [&'static str; 2],
    cost: &'static str,
    cpu: &'static str,
    with: Producer,
    without: Producer,
}

/// Measures all pairs.
pub fn run(bench: &Bench) -> Result<Section, BenchError> {
    let options = &bench.options;
    let pairs = options.rounds() * PAIRS_PER_ROUND;
    let records = options.pick(32 * 1024, 8 * 1024);
    let bytes = (records * RECORD_BYTES) as u64;
    let needed = 3 * 2 * (pairs as u64 + 1) * bytes * 5 / 4 + 1024 * MIB;
    let folder = bench.folder("pairs", needed)?;
    let cores = bench.cpus.there.min(2);
    let star = bench.star_of(&folder.data("star"), cores)?;
    let work = async || measure(bench, &star, cores, (pairs, records)).await;
    let mut section = bench.cpus.run_client(work)?;
    star.stop()?;
    if cores < 2 {
        let note = "no pair for epochs: to move a stream takes two CPUs";
        section.notes.push(note.to_owned());
    }
    Ok(section)
}

async fn measure(
    bench: &Bench,
    star: &Star,
    cores: usize,
    (count, records): (usize, usize),
) -> Result<Section, BenchError> {
    let client = connect(star)?;
    ensure_bucket(&client).await?;
    let mib = (records * RECORD_BYTES) as u64 / MIB;
    let mut section = Section {
        name: "pairs",
        title: format!(
            "one session, 1 KiB records pipelined; {count} pairs of {mib} MiB with and without a \
             guarantee, in turns"
        ),
        series: Vec::new(),
        verdicts: Vec::new(),
        notes: Vec::new(),
    };
    for pair in pairs(&client, cores).await? {
        bench.progress(pair.cost);
        take_turns(star, pair, (count, records), &mut section).await?;
    }
    client.close().await;
    Ok(section)
}

/// The pairs, each on two streams of the star's first core.
async fn pairs(client: &Client, cores: usize) -> Result<Vec<Pair>, BenchError> {
    let mut names = (0..)
        .map(stream_name)
        .filter(|name| stream_home(name, cores as u16) == CoreId(0));
    let mut next = || names.next().expect("there is no end of names");
    let plain = || ProducerConfig {
        recognise_repeats: false,
        ..ProducerConfig::default()
    };
    let mut pairs = vec![
        Pair {
            names: ["numbered batches", "batches without numbers"],
            cost: "cost of recognising duplicates",
            cpu: "the same in CPU time of the star: recognising duplicates",
            with: open(client, next(), ProducerConfig::default()).await?,
            without: open(client, next(), plain()).await?,
        },
        Pair {
            names: ["a session with a fencing token", "a session without one"],
            cost: "cost of a fencing token",
            cpu: "the same in CPU time of the star: a fencing token",
            with: fenced(client, next()).await?,
            without: open(client, next(), ProducerConfig::default()).await?,
        },
    ];
    if cores > 1 {
        let moved = next();
        ensure_stream(client, moved.clone()).await?;
        for _ in 0..MOVES_THERE_AND_BACK {
            for to in [CoreId(1), CoreId(0)] {
                let done = client.hand_off(moved.clone(), to).await;
                done.map_err(BenchError::client("moving a stream"))?;
            }
        }
        pairs.push(Pair {
            names: ["a stream in its 100th epoch", "a stream in its first epoch"],
            cost: "cost of many epochs",
            cpu: "the same in CPU time of the star: many epochs",
            with: open(client, moved, ProducerConfig::default()).await?,
            without: open(client, next(), ProducerConfig::default()).await?,
        });
    }
    Ok(pairs)
}

async fn open(
    client: &Client,
    name: StreamName,
    config: ProducerConfig,
) -> Result<Producer, BenchError> {
    ensure_stream(client, name.clone()).await?;
    client
        .producer(name, config)
        .map_err(BenchError::client("opening a producer"))
}

async fn fenced(client: &Client, name: StreamName) -> Result<Producer, BenchError> {
    ensure_stream(client, name.clone()).await?;
    let token = FencingToken::parse(TOKEN).expect("a short text is a legal token");
    client
        .fence(name.clone(), token.clone(), Conditions::default())
        .await
        .map_err(BenchError::client("installing a fencing token"))?;
    let config = ProducerConfig {
        fence: Some(token),
        ..ProducerConfig::default()
    };
    open(client, name, config).await
}

async fn take_turns(
    star: &Star,
    pair: Pair,
    (count, records): (usize, usize),
    section: &mut Section,
) -> Result<(), BenchError> {
    let rate = |role, name| Series::new(role, name, Unit::MegabytesPerSecond);
    let [with_name, without_name] = pair.names;
    let mut with = rate(Role::Star, with_name);
    let mut without = rate(Role::Context, without_name);
    let mut cost = Series::new(Role::Context, pair.cost, Unit::Percent);
    let mut cpu = Series::new(Role::Context, pair.cpu, Unit::Percent);
    once(star, &pair.with, records).await?;
    once(star, &pair.without, records).await?;
    for number in 0..count {
        let (fast, slow);
        if number % 2 == 0 {
            slow = once(star, &pair.with, records).await?;
            fast = once(star, &pair.without, records).await?;
        } else {
            fast = once(star, &pair.without, records).await?;
            slow = once(star, &pair.with, records).await?;
        }
        with.push(slow.rate);
        without.push(fast.rate);
        cost.push(100.0 * (1.0 - slow.rate / fast.rate));
        cpu.push(100.0 * (slow.cpu / fast.cpu - 1.0));
    }
    for producer in [pair.with, pair.without] {
        let closed = producer.close().await;
        closed.map_err(BenchError::client("closing a producer"))?;
    }
    let what = format!("% of the throughput, median over the pairs: {}", pair.cost);
    section.verdicts.push(Verdict::new(
        what,
        cost.median(),
        Bound::AtMost,
        COST_PERCENT_MAX,
    ));
    let [low, high] = cost.quartiles();
    section.notes.push(format!(
        "{}: half of the pairs are between {low:.1} and {high:.1} %",
        pair.cost
    ));
    section.series.extend([with, without, cost, cpu]);
    Ok(())
}

/// One side of a pair.
struct Once {
    /// Megabytes a second.
    rate: f64,
    /// Seconds of CPU time of the star.
    cpu: f64,
}

async fn once(star: &Star, producer: &Producer, records: usize) -> Result<Once, BenchError> {
    let before = cpu_time(star.pid())?;
    let time = pipeline(producer, &body(RECORD_BYTES), records).await?;
    let cpu = cpu_time(star.pid())?.saturating_sub(before);
    Ok(Once {
        rate: megabytes_per_second((RECORD_BYTES * records) as u64, time),
        cpu: cpu.as_secs_f64(),
    })
}
