//! The threads that make the load: each has a CPU, a runtime and a share of sessions and readers.
//!
//! ```text
//!   conductor                         worker (one of several)
//!      | --------- share -------------> connect, open sessions, first record of each
//!      | <-------- Ready --------------
//!      | --------- start (a moment) --> load, until the end
//!      | <-------- Done ---------------  what each session came to
//! ```
//! # Invariants
//! - Nothing is counted before every session of every worker is open.
//! - A worker that fails tells it once and ends; the others are told by `is_over`.

use crate::error::BenchError;
use crate::run::bodies::{Bodies, Digest};
use crate::run::pacer::Pacer;
use crate::run::reading::{follow, follower, read_all};
use crate::run::recorder::Shared;
use crate::run::schedule::Schedule;
use crate::run::session::{Drive, SessionEnd, closed_loop, open_loop};
use crate::workload::{Pace, Session, Workload};
use nova_client::{Client, ClientConfig, Producer, ProducerConfig, Record, StreamName};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::SyncSender;
use std::time::{Duration, Instant};
use tokio::runtime::LocalOptions;
use tokio::sync::{Semaphore, watch};
use tokio::task::{JoinHandle, JoinSet};

/// Sessions that share a client; a connection has room for 1,024 lanes.
const SESSIONS_PER_CLIENT: usize = 500;

/// Streams that a worker reads from the start at a time.
const READERS_AT_ONCE: usize = 64;

/// What a worker does.
#[derive(Debug, Clone)]
pub struct Share {
    /// How the star is entered.
    pub config: ClientConfig,
    /// The load.
    pub workload: Workload,
    /// Names of all streams.
    pub streams: Arc<Vec<StreamName>>,
    /// Its sessions.
    pub sessions: Vec<Session>,
    /// Streams that it follows, by number.
    pub follows: Vec<usize>,
    /// Streams that it reads from the start, by number; there are no sessions then.
    pub reads: Vec<usize>,
    /// What is sent.
    pub bodies: Arc<Bodies>,
    /// Where times go.
    pub recorder: Shared,
    /// Ends the load early.
    pub is_over: Arc<AtomicBool>,
}

/// What a worker says.
#[derive(Debug)]
pub enum Event {
    /// Everything is open.
    Ready,
    /// It has ended.
    Done(Result<Ended, BenchError>),
}

/// What a worker's sessions, or its readers, came to.
#[derive(Debug, Default)]
pub struct Ended {
    /// By the number of the stream: what was acked, or what was read.
    pub digests: Vec<(usize, Digest)>,
    /// Appends without a result.
    pub failed: u64,
    /// Why the first of them has none.
    pub first_failure: Option<String>,
    /// Answers that named another address.
    pub redirects: u64,
}

/// Does a share on the thread that calls.
pub fn work(
    share: Share,
    cpu: usize,
    start: watch::Receiver<Option<Instant>>,
    events: &SyncSender<Event>,
) {
    let is_over = Arc::clone(&share.is_over);
    // Where the system refuses, the scheduler decides: slower, not wrong.
    let _held = core_affinity::set_for_current(core_affinity::CoreId { id: cpu });
    // Not a `LocalSet` in an ordinary runtime: its tasks run in turn with those of the SDK, and
    // between the two the reactor is asked, for each record, without anything having come.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build_local(LocalOptions::default());
    let done = match runtime {
        Ok(runtime) => runtime.block_on(load(share, start, events)),
        Err(error) => Err(BenchError::io("making the client's runtime")(error)),
    };
    if done.is_err() {
        is_over.store(true, Ordering::Relaxed);
    }
    // The conductor has gone if it failed itself.
    let _gone = events.send(Event::Done(done));
}

async fn load(
    share: Share,
    mut start: watch::Receiver<Option<Instant>>,
    events: &SyncSender<Event>,
) -> Result<Ended, BenchError> {
    let mut clients = BTreeMap::new();
    let mut ended = Ended::default();
    let producers = open(&share, &mut clients, &mut ended).await?;
    let reading = Client::connect(share.config.clone());
    let reading = reading.map_err(BenchError::client("connecting"))?;
    let mut followers = Vec::new();
    for &stream in &share.follows {
        let reader = follower(&reading, share.streams[stream].clone()).await?;
        let recorder = share.recorder.clone();
        followers.push(tokio::task::spawn_local(async move {
            follow(reader, &recorder).await
        }));
    }
    if events.send(Event::Ready).is_err() {
        return Ok(ended);
    }
    let Ok(at) = start.wait_for(Option::is_some).await.map(|at| *at) else {
        return Ok(ended);
    };
    let at = at.unwrap_or_else(Instant::now);
    if share.reads.is_empty() {
        drive(&share, producers, at, &mut ended).await?;
    } else {
        read(&share, &reading, at, &mut ended).await?;
    }
    for follower in followers {
        if follower.is_finished() {
            joined(follower).await?;
        } else {
            follower.abort();
        }
    }
    ended.redirects = clients.values().map(Client::redirects).sum();
    // All at once: each waits for its star to hear of it.
    let mut closing = JoinSet::new();
    for client in clients.into_values().chain([reading]) {
        closing.spawn_local(client.close());
    }
    closing.join_all().await;
    Ok(ended)
}

/// Opens all sessions; the first record of each is its proof.
async fn open(
    share: &Share,
    clients: &mut BTreeMap<(usize, usize), Client>,
    ended: &mut Ended,
) -> Result<Vec<(Session, Producer)>, BenchError> {
    let mut producers = Vec::with_capacity(share.sessions.len());
    let mut counts: BTreeMap<usize, usize> = BTreeMap::new();
    for &session in &share.sessions {
        let count = counts.entry(session.client).or_default();
        let place = (session.client, *count / SESSIONS_PER_CLIENT);
        *count += 1;
        let client = match clients.entry(place) {
            Entry::Occupied(there) => there.into_mut(),
            Entry::Vacant(free) => {
                let client = Client::connect(share.config.clone());
                free.insert(client.map_err(BenchError::client("connecting"))?)
            }
        };
        let name = share.streams[session.stream].clone();
        let producer = client.producer(name, ProducerConfig::default());
        let producer = producer.map_err(BenchError::client("opening a producer"))?;
        producers.push((session, producer));
    }
    let mut first = Vec::with_capacity(producers.len());
    for (session, producer) in &producers {
        let (body, hash) = share.bodies.get(u64::MAX - session.number as u64);
        let ticket = producer.append_async(Record::new(body)).await;
        let ticket = ticket.map_err(BenchError::client("appending a first record"))?;
        first.push((session.stream, hash, ticket));
    }
    for (stream, hash, ticket) in first {
        let appended = ticket.await;
        let appended = appended.map_err(BenchError::client("appending a first record"))?;
        let mut digest = Digest::default();
        digest.add(appended.start.sequence.0, hash);
        ended.digests.push((stream, digest));
    }
    Ok(producers)
}

async fn drive(
    share: &Share,
    producers: Vec<(Session, Producer)>,
    start: Instant,
    ended: &mut Ended,
) -> Result<(), BenchError> {
    let workload = &share.workload;
    let drive = Rc::new(Drive {
        start,
        warm_up: workload.warm_up,
        end: workload.warm_up + workload.duration,
        records_max: workload.records_max.unwrap_or(u64::MAX),
        recorder: share.recorder.clone(),
        bodies: Arc::clone(&share.bodies),
        pacer: Pacer::start()?,
        is_over: Arc::clone(&share.is_over),
    });
    let sessions = workload.producers.max(workload.streams);
    let mut tasks = Vec::with_capacity(producers.len());
    for (session, producer) in producers {
        let (drive, pace) = (Rc::clone(&drive), workload.pace);
        tasks.push(tokio::task::spawn_local(async move {
            drive.pacer.until(drive.start).await;
            let end = match pace {
                Pace::Open { per_second } => {
                    let schedule = Schedule::new(per_second, sessions, session.number);
                    open_loop(&producer, schedule, &drive).await?
                }
                Pace::Closed { in_flight } => closed_loop(&producer, in_flight, &drive).await?,
            };
            // Appends without a result were counted one by one.
            let _counted = producer.close().await;
            Ok((session.stream, end))
        }));
    }
    for task in tasks {
        let (stream, end): (usize, SessionEnd) = joined(task).await?;
        ended.digests.push((stream, end.digest));
        ended.failed += end.failed;
        if ended.first_failure.is_none() {
            ended.first_failure = end.first_failure;
        }
    }
    Ok(())
}

async fn read(
    share: &Share,
    client: &Client,
    start: Instant,
    ended: &mut Ended,
) -> Result<(), BenchError> {
    let wait = start.saturating_duration_since(Instant::now());
    tokio::time::sleep(wait.max(Duration::from_millis(1))).await;
    let room = Rc::new(Semaphore::new(READERS_AT_ONCE));
    let tasks: Vec<_> = share
        .reads
        .iter()
        .map(|&stream| {
            let (client, recorder) = (client.clone(), share.recorder.clone());
            let (name, room) = (share.streams[stream].clone(), Rc::clone(&room));
            tokio::task::spawn_local(async move {
                let _place = room.acquire().await;
                let digest = read_all(&client, name, &recorder).await?;
                Ok((stream, digest))
            })
        })
        .collect();
    for task in tasks {
        ended.digests.push(joined(task).await?);
    }
    Ok(())
}

async fn joined<T>(task: JoinHandle<Result<T, BenchError>>) -> Result<T, BenchError> {
    match task.await {
        Ok(result) => result,
        Err(error) => std::panic::resume_unwind(error.into_panic()),
    }
}
