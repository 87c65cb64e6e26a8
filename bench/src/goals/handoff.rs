//! How long a producer is interrupted when its stream moves, and how many redirects an open costs.
//!
//! ```text
//!   acks:     | | | | | |              | | | | | |
//!                     ^ hand_off begins  ^ it returned, and an ack came behind it
//!                      <---- longest ---->
//! ```
//! The interruption of a move is the longest time without an ack between the begin of the move and
//! the first ack behind its end. It holds the wait for all that was admitted, the statement of the
//! new leader, the redirect, the new session and what the producer sends again.
//!
//! # Invariants
//! - A move that nobody appended under is no move under load: each waits for an ack in front of it
//!   and one behind it.
//! - Moves follow each other with a pause, so that each finds a producer and cores at their usual
//!   work, as one that an operator or a load makes does.

use super::{Bench, RECORD_BYTES, connect};
use crate::error::BenchError;
use crate::folder::MIB;
use crate::goals::load::{body, ensure_bucket, ensure_stream, stream_name};
use crate::report::{Bound, Section, Verdict};
use crate::series::{Role, Series, Times, Unit};
use crate::star::Star;
use bytes::Bytes;
use nova_client::{Client, ClientConfig, CoreId, Producer, ProducerConfig, Record, StreamName};
use nova_model::placement::stream_home;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::Future;
use std::time::{Duration, Instant};
use tokio::sync::Notify;

const INTERRUPTION_MS_MAX: f64 = 50.0;
const REDIRECTS_MAX: f64 = 1.0;
const CORES: usize = 2;
/// Time from the end of one move to the begin of the next: the producer is at its usual pace again,
/// and the cores are done with what a move leaves to do.
const PAUSE: Duration = Duration::from_millis(20);
/// Records of the pipelined load that are unanswered at a time.
const IN_FLIGHT: usize = 4096;
/// What the pipelined load appends at most within one move.
const BYTES_PER_MOVE: u64 = 32 * MIB;

/// What the appends see.
struct Acks {
    last: Cell<Instant>,
    longest: Cell<Duration>,
    count: Cell<u64>,
    came: Notify,
    is_over: Cell<bool>,
}

impl Acks {
    fn new() -> Acks {
        Acks {
            last: Cell::new(Instant::now()),
            longest: Cell::default(),
            count: Cell::default(),
            came: Notify::new(),
            is_over: Cell::default(),
        }
    }

    fn note(&self) {
        let now = Instant::now();
        let gap = now - self.last.replace(now);
        self.longest.set(self.longest.get().max(gap));
        self.count.set(self.count.get() + 1);
        self.came.notify_waiters();
    }

    async fn next(&self) {
        let before = self.count.get();
        while self.count.get() == before && !self.is_over.get() {
            self.came.notified().await;
        }
    }
}

/// Measures it.
pub fn run(bench: &Bench) -> Result<Section, BenchError> {
    if bench.cpus.there < CORES {
        return Ok(not_run());
    }
    let moves = bench.options.pick(400, 20);
    let opens = bench.options.pick(200, 20);
    let folder = bench.folder("handoff", moves as u64 * BYTES_PER_MOVE + 1024 * MIB)?;
    let star = bench.star_of(&folder.data("star"), CORES)?;
    let work = async || measure(bench, &star, moves, opens).await;
    let section = bench.cpus.run_client(work)?;
    star.stop()?;
    Ok(section)
}

fn not_run() -> Section {
    Section {
        name: "handoff",
        title: "not run".to_owned(),
        series: Vec::new(),
        verdicts: Vec::new(),
        notes: vec!["a star of two cores takes two CPUs".to_owned()],
    }
}

async fn measure(
    bench: &Bench,
    star: &Star,
    moves: usize,
    opens: usize,
) -> Result<Section, BenchError> {
    let client = connect(star)?;
    ensure_bucket(&client).await?;
    bench.progress("handoff, one record per ack");
    let closed = interruptions(&client, 0, moves, Load::OneByOne).await?;
    bench.progress("handoff, pipelined");
    let piped = interruptions(&client, 1, moves, Load::Pipelined).await?;
    bench.progress("handoff, first opens");
    let redirects = first_opens(&client, star, opens).await?;
    client.close().await;
    let mut series = Vec::new();
    let mut verdicts = Vec::new();
    for (times, [half, most, worst]) in [(&closed, CLOSED_NAMES), (&piped, PIPED_NAMES)] {
        let ms = |share| times.quantile_us(share) / 1e3;
        let once = |role, name, value| Series::once(role, name, Unit::Millis, value);
        series.push(once(Role::Star, half, ms(0.5)));
        series.push(once(Role::Star, most, ms(0.99)));
        series.push(once(Role::Context, worst, ms(1.0)));
        verdicts.push(Verdict::new(
            format!("ms, {most}"),
            ms(0.99),
            Bound::AtMost,
            INTERRUPTION_MS_MAX,
        ));
    }
    let most = redirects.iter().copied().max().unwrap_or_default() as f64;
    let what = format!("redirects of a first open, the most of {}", redirects.len());
    verdicts.push(Verdict::new(what, most, Bound::AtMost, REDIRECTS_MAX));
    let total: u64 = redirects.iter().sum();
    Ok(Section {
        name: "handoff",
        title: format!("a stream is handed between two cores {moves} times under a producer"),
        series,
        verdicts,
        notes: vec![format!(
            "{} first opens, at either core, of streams at home and away: {total} redirects",
            redirects.len()
        )],
    })
}

const CLOSED_NAMES: [&str; 3] = [
    "interruption, one record per ack, p50",
    "interruption, one record per ack, p99",
    "interruption, one record per ack, longest",
];
const PIPED_NAMES: [&str; 3] = [
    "interruption, pipelined, p50",
    "interruption, pipelined, p99",
    "interruption, pipelined, longest",
];

#[derive(Clone, Copy)]
enum Load {
    OneByOne,
    Pipelined,
}

async fn interruptions(
    client: &Client,
    number: usize,
    moves: usize,
    load: Load,
) -> Result<Times, BenchError> {
    let name = stream_name(number);
    ensure_stream(client, name.clone()).await?;
    let producer = client.producer(name.clone(), ProducerConfig::default());
    let producer = producer.map_err(BenchError::client("opening a producer"))?;
    let acks = Acks::new();
    let body = body(RECORD_BYTES);
    let moving = async {
        let moved = move_on(client, &name, &acks, moves).await;
        acks.is_over.set(true);
        moved
    };
    let appended: std::pin::Pin<Box<dyn Future<Output = Result<(), BenchError>>>> = match load {
        Load::OneByOne => Box::pin(one_by_one(&producer, &body, &acks)),
        Load::Pipelined => Box::pin(pipelined(&producer, &body, &acks)),
    };
    // A producer that fails ends the moves, too, since they wait for its acks.
    let appending = async {
        let appended = appended.await;
        acks.is_over.set(true);
        acks.came.notify_waiters();
        appended
    };
    let (times, appended) = tokio::join!(moving, appending);
    appended?;
    let closed = producer.close().await;
    closed.map_err(BenchError::client("closing a producer"))?;
    times
}

async fn move_on(
    client: &Client,
    name: &StreamName,
    acks: &Acks,
    moves: usize,
) -> Result<Times, BenchError> {
    let mut times = Times::default();
    let first = stream_home(name, CORES as u16).0;
    for round in 0..moves {
        tokio::time::sleep(PAUSE).await;
        acks.next().await;
        acks.longest.set(Duration::ZERO);
        let to = CoreId((first + 1 + round as u16) % CORES as u16);
        let moved = client.hand_off(name.clone(), to).await;
        moved.map_err(BenchError::client("moving a stream"))?;
        acks.next().await;
        times.record(acks.longest.get());
        if acks.is_over.get() {
            break;
        }
    }
    Ok(times)
}

async fn one_by_one(producer: &Producer, body: &Bytes, acks: &Acks) -> Result<(), BenchError> {
    let failed = BenchError::client("appending a record");
    while !acks.is_over.get() {
        let appended = producer.append(Record::new(body.clone())).await;
        appended.map_err(&failed)?;
        acks.note();
    }
    Ok(())
}

/// Keeps `IN_FLIGHT` records unanswered; results come in the order of the appends.
async fn pipelined(producer: &Producer, body: &Bytes, acks: &Acks) -> Result<(), BenchError> {
    let failed = BenchError::client("appending a record");
    let tickets = RefCell::new(VecDeque::new());
    while !acks.is_over.get() {
        while tickets.borrow().len() < IN_FLIGHT {
            let staged = producer.append_async(Record::new(body.clone())).await;
            tickets.borrow_mut().push_back(staged.map_err(&failed)?);
        }
        let next = tickets.borrow_mut().pop_front();
        if let Some(ticket) = next {
            ticket.await.map_err(&failed)?;
            acks.note();
        }
    }
    for ticket in tickets.into_inner() {
        ticket.await.map_err(&failed)?;
    }
    Ok(())
}

/// Redirects that fresh clients were given until their first ack. Every other stream was moved
/// away from its home, every other client enters at the second core.
async fn first_opens(client: &Client, star: &Star, opens: usize) -> Result<Vec<u64>, BenchError> {
    let told = client.describe_star().await;
    let told = told.map_err(BenchError::client("asking for the star's cores"))?;
    let mut redirects = Vec::with_capacity(opens);
    for number in 0..opens {
        let name = stream_name(100 + number);
        ensure_stream(client, name.clone()).await?;
        if number % 2 == 1 {
            let away = CoreId((stream_home(&name, CORES as u16).0 + 1) % CORES as u16);
            let moved = client.hand_off(name.clone(), away).await;
            moved.map_err(BenchError::client("moving a stream"))?;
        }
        let entry = &told.cores[number / 2 % told.cores.len()].address;
        let config = ClientConfig {
            star: entry.clone(),
            ..star.client_config()
        };
        let fresh = Client::connect(config).map_err(BenchError::client("connecting"))?;
        let producer = fresh.producer(name, ProducerConfig::default());
        let producer = producer.map_err(BenchError::client("opening a producer"))?;
        let appended = producer.append(Record::new("first")).await;
        appended.map_err(BenchError::client("appending a record"))?;
        redirects.push(fresh.redirects());
        let closed = producer.close().await;
        closed.map_err(BenchError::client("closing a producer"))?;
        fresh.close().await;
    }
    Ok(redirects)
}
