//! SIGKILL under load, again and again; the history must keep the contract (2.1, 2.7, 5.3, 6).
//!
//! ```text
//!   producers (numbered, plain, conditional)  --+
//!   followers, one for each stream            --+-> history --> lines --> checker
//!   kill after some acks, or inside a start   --+
//! ```
//! Records of one producer are large, so that segments are full and followed by others under load.
//!
//! The short form kills 24 times. A long one, for a night:
//! `NOVA_E2E_KILLS=2000 cargo test -p nova-e2e kill:: -- --nocapture`. A run prints its seed;
//! `NOVA_E2E_SEED` sets it (the seed decides when the star is killed, not how threads interleave).

use crate::{SITE, all_bodies, in_time, make_stream};
use nova_client::*;
use nova_e2e::checker::{LAST_READER, check};
use nova_e2e::history::{self, Event, History, Promise};
use nova_e2e::home::{Home, Star};
use std::fs::File;
use std::io::{BufReader, BufWriter};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use tokio::sync::{Notify, mpsc};
use tokio::task::JoinSet;

const KILLS_SHORT: u64 = 24;
/// Records of one producer on their way.
const IN_FLIGHT: usize = 64;
/// Conditional records of one producer on their way.
const CONDITIONAL_IN_FLIGHT: usize = 8;
/// Most acks between two kills.
const ACKS_MAX: u64 = 1500;

/// What all tasks of a run share.
struct Run {
    history: History,
    is_over: AtomicBool,
    acks: AtomicU64,
    acked: Notify,
}

impl Run {
    fn note_result(&self, stream: &StreamName, id: (&str, u64), result: Outcome) {
        let (producer, id) = (id.0.to_owned(), id.1);
        let stream = stream.to_string();
        match result {
            Ok(appended) => {
                let sequence = appended.start.sequence.0;
                self.history.note(Event::Acked {
                    stream,
                    producer,
                    id,
                    sequence,
                });
                self.acks.fetch_add(1, Ordering::Relaxed);
                self.acked.notify_waiters();
            }
            Err(error) => {
                let clean = error.is_clean();
                self.history.note(Event::Failed {
                    stream,
                    producer,
                    id,
                    clean,
                });
            }
        }
    }

    fn send(&self, stream: &StreamName, producer: &str, id: u64) -> Record {
        let (stream, producer) = (stream.to_string(), producer.to_owned());
        let body = history::body(&producer, id);
        self.history.note(Event::Sent {
            stream,
            producer,
            id,
        });
        Record::new(body)
    }

    fn begin(&self, stream: &StreamName, producer: &str, promise: Promise) {
        let (stream, producer) = (stream.to_string(), producer.to_owned());
        self.history.note(Event::Producer {
            stream,
            producer,
            promise,
        });
    }

    fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }

    async fn wait_for_acks(&self, count: u64) {
        let target = self.acks.load(Ordering::Relaxed) + count;
        loop {
            let mut acked = std::pin::pin!(self.acked.notified());
            acked.as_mut().enable();
            if self.acks.load(Ordering::Relaxed) >= target {
                return;
            }
            acked.await;
        }
    }
}

type Outcome = Result<Appended, ClientError>;

/// Appends plain records until the run is over, many on their way.
async fn produce(run: Arc<Run>, client: Client, stream: StreamName, name: String, numbered: bool) {
    let promise = if numbered {
        Promise::Once
    } else {
        Promise::AtLeastOnce
    };
    run.begin(&stream, &name, promise);
    let config = ProducerConfig {
        recognise_repeats: numbered,
        ..ProducerConfig::default()
    };
    let producer = client
        .producer(stream.clone(), config)
        .expect("legal settings");
    let (to, mut tickets) = mpsc::channel::<(u64, Ticket)>(IN_FLIGHT);
    let collect = async {
        while let Some((id, ticket)) = tickets.recv().await {
            let result = ticket.await;
            assert!(result.is_ok(), "{name} {id} has no positions: {result:?}");
            run.note_result(&stream, (&name, id), result);
        }
    };
    let send = async {
        let to = to;
        for id in 0.. {
            if run.is_over() {
                break;
            }
            let ticket = producer.append_async(run.send(&stream, &name, id)).await;
            let ticket = ticket.unwrap_or_else(|e| panic!("{name} is broken: {e}"));
            to.send((id, ticket)).await.expect("results are collected");
        }
    };
    tokio::join!(send, collect);
    let closed = producer.close().await;
    assert!(closed.is_ok(), "{name}: {closed:?}");
}

/// Appends each record on condition of its place, some on their way; after a failure it begins
/// again from the tail.
async fn produce_if(run: Arc<Run>, client: Client, stream: StreamName, name: String) {
    run.begin(&stream, &name, Promise::Once);
    let config = ProducerConfig {
        recognise_repeats: false,
        ..ProducerConfig::default()
    };
    let mut id = 0;
    while !run.is_over() {
        let producer = client
            .producer(stream.clone(), config.clone())
            .expect("legal settings");
        let tail = client.check_tail(stream.clone()).await.expect("a tail");
        let sequence = tail.sequence.0;
        run.history.note(Event::Tail {
            stream: stream.to_string(),
            sequence,
        });
        let mut next = tail.sequence;
        let mut tickets = std::collections::VecDeque::new();
        let mut has_failed = false;
        loop {
            while tickets.len() < CONDITIONAL_IN_FLIGHT && !has_failed && !run.is_over() {
                let records = vec![run.send(&stream, &name, id)];
                let ticket = producer.append_if_async(next, records).await;
                tickets.push_back((id, ticket.expect("room for a record")));
                (id, next) = (id + 1, next.plus(1));
            }
            let Some((id, ticket)) = tickets.pop_front() else {
                break;
            };
            let result = ticket.await;
            has_failed |= result.is_err();
            run.note_result(&stream, (&name, id), result);
        }
        // Its failures are in the history.
        let _failed = producer.close().await;
    }
}

/// Follows a stream from its beginning for as long as the task lives.
async fn follow(run: Arc<Run>, client: Client, name: StreamName) {
    let mut open = read_from(name.clone(), 0);
    open.follow = true;
    let mut reader = client.read(open).await.expect("a reader");
    loop {
        let item = reader.next_batch().await.expect("breaks are no errors");
        if let Some(ReadItem::Batch(batch)) = item {
            batch.for_each(|position, record| {
                let event = read_event(&name, "follower", position.sequence.0, record.body());
                run.history.note(event);
            });
        }
    }
}

fn read_event(stream: &StreamName, reader: &str, sequence: u64, body: &[u8]) -> Event {
    let (stream, reader) = (stream.to_string(), reader.to_owned());
    match history::whose(body) {
        Some((producer, id)) => Event::Read {
            stream,
            reader,
            sequence,
            producer,
            id,
        },
        None => Event::Unknown {
            stream,
            reader,
            sequence,
        },
    }
}

/// Numbers that follow from a seed (splitmix64).
struct Chance(u64);

impl Chance {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % bound
    }
}

fn setting(name: &str, default: u64) -> u64 {
    let said = std::env::var(name).ok();
    said.map_or(default, |text| {
        text.parse().unwrap_or_else(|_| panic!("{name}: {text}"))
    })
}

/// Kills the star again and again; the one that runs at the end.
async fn kill_again(run: &Run, home: &Home, mut star: Star, kills: u64, seed: u64) -> Star {
    let mut chance = Chance(seed);
    for kill in 0..kills {
        if kill % 4 == 3 {
            // Inside a start: before, in or after recovery.
            let words = ["data directory", "log-", "ready"];
            star.kill();
            run.history.note(Event::Killed);
            star = home.begin();
            let word = words[chance.below(3) as usize];
            let process = star.process();
            match word {
                "ready" => process.wait_for_line(|line| line == word),
                _ => process.wait_for_error_line(|line| line.contains(word)),
            };
        } else {
            let acks = 1 + chance.below(ACKS_MAX);
            in_time("acks", run.wait_for_acks(acks)).await;
        }
        star.kill();
        run.history.note(Event::Killed);
        star = home.start();
    }
    in_time("acks", run.wait_for_acks(1)).await;
    star
}

/// Writes the history as lines, checks what they say, prints what they hold.
fn judge(events: &[Event], path: &Path, seed: u64) {
    let file = File::create(path).expect("the scratch folder is writable");
    history::write(events, BufWriter::new(file)).expect("the disk has room");
    let file = File::open(path).expect("it was just written");
    let lines = history::read(BufReader::new(file)).expect("lines of events");
    match check(&lines) {
        Ok(counts) => {
            println!("kill, seed {seed}: {counts:?}");
            std::fs::remove_file(path).expect("it is there");
        }
        Err(findings) => panic!(
            "seed {seed}, {} findings in {}, the first:\n{}",
            findings.len(),
            path.display(),
            findings[..findings.len().min(20)].join("\n")
        ),
    }
}

/// The producers of plain records: the place of their stream, name, whether they are numbered.
fn begin_producers(run: &Arc<Run>, client: &Client, streams: &[StreamName]) -> JoinSet<()> {
    let kinds = [
        (0, "n0", true),
        (0, "n1", true),
        (1, "p0", false),
        (2, "n2", true),
        (2, "p1", false),
        (4, history::LARGE, true),
    ];
    let mut producers = JoinSet::new();
    for (stream, name, numbered) in kinds {
        let (run, stream) = (Arc::clone(run), streams[stream].clone());
        let client = client.clone();
        producers.spawn(produce(run, client, stream, name.to_owned(), numbered));
    }
    producers
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_under_load_the_star_keeps_every_promise() {
    let kills = setting("NOVA_E2E_KILLS", KILLS_SHORT);
    let seed = setting("NOVA_E2E_SEED", u64::from(std::process::id()));
    println!("kill: NOVA_E2E_SEED={seed} NOVA_E2E_KILLS={kills}");
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let home = Home::new(SITE).with_cores(cores.min(2));
    let star = home.start();
    let run = Arc::new(Run {
        history: History::default(),
        is_over: AtomicBool::new(false),
        acks: AtomicU64::new(0),
        acked: Notify::new(),
    });
    let (writing, reading) = (home.client(), home.client());
    let mut streams = Vec::new();
    for key in ["numbered", "plain", "mixed", "conditional", "large"] {
        streams.push(make_stream(&writing, key).await);
    }
    let mut producers = begin_producers(&run, &writing, &streams);
    producers.spawn(produce_if(
        Arc::clone(&run),
        home.client(),
        streams[3].clone(),
        "c0".to_owned(),
    ));
    let mut followers = JoinSet::new();
    for stream in &streams {
        followers.spawn(follow(Arc::clone(&run), reading.clone(), stream.clone()));
    }
    let star = kill_again(&run, &home, star, kills, seed).await;
    run.is_over.store(true, Ordering::Relaxed);
    while let Some(ended) = in_time("a producer", producers.join_next()).await {
        ended.expect("no panic");
    }
    assert!(
        followers.try_join_next().is_none(),
        "followers follow to the end"
    );
    followers.shutdown().await;
    star.kill();
    let star = home.start();
    for stream in &streams {
        let bodies = all_bodies(&reading, stream).await;
        for (sequence, body) in (0..).zip(&bodies) {
            run.history
                .note(read_event(stream, LAST_READER, sequence, body));
        }
    }
    star.stop().expect_done();
    let path: PathBuf = [SITE.scratch, &format!("kill-{seed}.jsonl")]
        .iter()
        .collect();
    judge(&run.history.events(), &path, seed);
}
