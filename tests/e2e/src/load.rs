//! Load of all kinds on a star, noted as a history: what clients asked and were told.
//!
//! ```text
//!   producers: numbered, plain, conditional, with large records     --+
//!   two that take a `fenced` stream from one another, by tokens     --+-> history --> lines
//!   two entity writers that write the same updates                  --+               checker
//!   followers, one for each stream                                  --+
//! ```
//! # Not here
//! - What is done to the star meanwhile: the tests `kill`, `upheaval`, `network`, and those of
//!   `tests/powercut`.

use crate::calls::{all_bodies, in_time, make_stream, make_with_policy, token, with_fence};
use crate::checker::{Counts, LAST_READER, check};
use crate::history::{self, Event, History, Promise, read_event};
use crate::home::{Home, Star};
use nova_client::*;
use std::collections::VecDeque;
use std::convert::Infallible;
use std::fs::File;
use std::io::{BufReader, BufWriter};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use tokio::sync::{Notify, mpsc};
use tokio::task::JoinSet;

/// Records of one producer on their way.
const IN_FLIGHT: usize = 64;
/// Conditional records of one producer on their way, or those of one under a token.
const FEW_IN_FLIGHT: usize = 8;
/// Large records that are sent as fast as may be, and acks of anybody for each further one: what is
/// acked stays, and a device of some tests is small. A fast machine would fill it with them.
const LARGE_AT_ONCE: u64 = 256;
const ACKS_OF_A_LARGE_ONE: u64 = 64;
/// Acks of anybody between two takings of a stream.
const ACKS_OF_A_TAKING: u64 = 400;

/// The load of a run, from its beginning to the judgement.
#[derive(Debug)]
pub struct Load {
    /// What its tasks share.
    pub run: Arc<Run>,
    /// Where they append.
    pub streams: Vec<StreamName>,
    reading: Client,
    producers: JoinSet<()>,
    followers: JoinSet<()>,
}

impl Load {
    /// Makes the streams; all producers and followers begin.
    pub async fn begin(home: &Home) -> Load {
        Load::begin_on(home, false).await
    }

    /// The same on a device that may fail. Who reads is told CORRUPT then, and begins again.
    pub async fn begin_on(home: &Home, failing_device: bool) -> Load {
        let run = Arc::new(Run {
            failing_device,
            history: History::default(),
            is_over: AtomicBool::new(false),
            acks: AtomicU64::new(0),
            acked: Notify::new(),
        });
        let (writing, reading) = (home.client(), home.client());
        let mut streams = Vec::new();
        for key in [
            "numbered",
            "plain",
            "mixed",
            "conditional",
            "large",
            "entity",
        ] {
            streams.push(make_stream(&writing, key).await);
        }
        streams.push(make_with_policy(&writing, "fenced", ProducerPolicy::Fenced).await);
        let mut producers = begin_producers(&run, &writing, &streams);
        let name = || streams[3].clone();
        producers.spawn(produce_if(run.clone(), home.client(), name(), "c0".into()));
        let clients = [writing.clone(), home.client()];
        let entity = streams[5].clone();
        producers.spawn(write_entity(run.clone(), clients, entity, "e0".into()));
        for taker in ["f0", "f1"] {
            let client = home.client();
            let stream = streams[6].clone();
            producers.spawn(take_over(run.clone(), client, stream, taker.into()));
        }
        let mut followers = JoinSet::new();
        for stream in &streams {
            followers.spawn(follow(run.clone(), reading.clone(), stream.clone()));
        }
        Load {
            run,
            streams,
            reading,
            producers,
            followers,
        }
    }

    /// Ends the load, kills the star once more, reads everything and judges the history.
    pub async fn end(mut self, home: &Home, star: Star, what: &str, seed: u64) {
        self.finish().await;
        star.kill();
        let star = home.start();
        self.read_all().await;
        star.stop().expect_done();
        self.judge(home, what, seed);
    }

    /// All that is on its way is answered, and nothing more is sent or followed.
    pub async fn finish(&mut self) {
        self.run.is_over.store(true, Ordering::Relaxed);
        self.run.acked.notify_waiters();
        while let Some(ended) = in_time("a producer", self.producers.join_next()).await {
            ended.expect("no panic");
        }
        assert!(
            self.followers.try_join_next().is_none(),
            "followers follow to the end"
        );
        self.followers.shutdown().await;
    }

    /// Nothing more is sent or followed; what becomes of what is on its way nobody is told.
    pub async fn abandon(&mut self) {
        self.producers.shutdown().await;
        self.followers.shutdown().await;
    }

    /// Reads everything, which ends the history.
    pub async fn read_all(&self) {
        for stream in &self.streams {
            let bodies = all_bodies(&self.reading, stream).await;
            for (sequence, body) in (0..).zip(&bodies) {
                let event = read_event(stream, LAST_READER, sequence, body);
                self.run.history.note(event);
            }
        }
    }

    /// Fails, and leaves the history beside the homes, unless the contract was kept.
    pub fn judge(&self, home: &Home, what: &str, seed: u64) -> Counts {
        let file = format!("{what}-{seed}.jsonl");
        let path: PathBuf = [home.site().scratch, &file].iter().collect();
        let counts = judge(&self.run.history.events(), &path, what, seed);
        println!("{what}, seed {seed}: {counts:?}");
        counts
    }
}

/// What all tasks of a run share.
#[derive(Debug)]
pub struct Run {
    /// What clients asked and were told.
    pub history: History,
    failing_device: bool,
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
                self.note_ack(stream, producer, id, sequence);
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

    fn note_ack(&self, stream: String, producer: String, id: u64, sequence: u64) {
        self.history.note(Event::Acked {
            stream,
            producer,
            id,
            sequence,
        });
        self.acks.fetch_add(1, Ordering::Relaxed);
        self.acked.notify_waiters();
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

    /// Waits for so many further acks, or the end of the run.
    pub async fn wait_for_acks(&self, count: u64) {
        let target = self.acks.load(Ordering::Relaxed) + count;
        loop {
            let mut acked = std::pin::pin!(self.acked.notified());
            acked.as_mut().enable();
            if self.is_over() || self.acks.load(Ordering::Relaxed) >= target {
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
            if name == history::LARGE && id >= LARGE_AT_ONCE {
                run.wait_for_acks(ACKS_OF_A_LARGE_ONE).await;
            }
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
        let mut tickets = VecDeque::new();
        let mut has_failed = false;
        loop {
            while tickets.len() < FEW_IN_FLIGHT && !has_failed && !run.is_over() {
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

/// Takes a stream again and again: installs a token of its own and appends under it until another
/// one has taken the stream.
async fn take_over(run: Arc<Run>, client: Client, stream: StreamName, name: String) {
    for life in 0.. {
        run.wait_for_acks(ACKS_OF_A_TAKING).await;
        if run.is_over() {
            return;
        }
        let name = format!("{name}-{life}");
        run.begin(&stream, &name, Promise::Once);
        let fence = client.fence(stream.clone(), token(&name), Conditions::default());
        let tail = match fence.await {
            Ok(tail) => tail,
            // Its answer was lost, and the other one came in between: both are as out as before.
            Err(ClientError::Ambiguous(_)) => continue,
            Err(error) => panic!("a fence without conditions: {error:?}"),
        };
        run.history.note(Event::Fenced {
            stream: stream.to_string(),
            producer: name.clone(),
            sequence: tail.sequence.0,
        });
        append_until_fenced(&run, &client, &stream, &name).await;
    }
}

async fn append_until_fenced(run: &Run, client: &Client, stream: &StreamName, name: &str) {
    let producer = client.producer(stream.clone(), with_fence(name));
    let producer = producer.expect("legal settings");
    let mut tickets: VecDeque<(u64, Ticket)> = VecDeque::new();
    let mut is_out = false;
    for id in 0.. {
        if is_out || run.is_over() {
            break;
        }
        match producer.append_async(run.send(stream, name, id)).await {
            Ok(ticket) => tickets.push_back((id, ticket)),
            Err(error) => {
                run.note_result(stream, (name, id), Err(error));
                break;
            }
        }
        if tickets.len() == FEW_IN_FLIGHT
            && let Some((id, ticket)) = tickets.pop_front()
        {
            let result = ticket.await;
            is_out = result.is_err();
            run.note_result(stream, (name, id), result);
        }
    }
    for (id, ticket) in tickets {
        run.note_result(stream, (name, id), ticket.await);
    }
    // Its failures are in the history.
    let _failed = producer.close().await;
}

/// Gives each update to two entity writers at once, some on their way.
async fn write_entity(run: Arc<Run>, clients: [Client; 2], stream: StreamName, name: String) {
    run.begin(&stream, &name, Promise::Once);
    let writers = clients.map(|client| {
        let writer = client.entity_writer(EntityWriterConfig::default());
        writer.expect("legal settings")
    });
    let mut waiting: VecDeque<(u64, [UpdateTicket; 2])> = VecDeque::new();
    for id in 0.. {
        let is_over = run.is_over();
        if waiting.len() == FEW_IN_FLIGHT || is_over {
            let Some((id, tickets)) = waiting.pop_front() else {
                break;
            };
            for ticket in tickets {
                let applied = ticket.await;
                let applied = applied.unwrap_or_else(|e| panic!("{name} {id}: {e}"));
                run.note_ack(stream.to_string(), name.clone(), id, applied.at.0);
            }
        }
        if !is_over {
            let record = run.send(&stream, &name, id);
            let update = Update::new(id.to_string(), record).expect("a legal update");
            let write = |writer: &EntityWriter| {
                let ticket = writer.write_async(stream.clone(), update.clone());
                ticket.expect("room for an update")
            };
            waiting.push_back((id, [write(&writers[0]), write(&writers[1])]));
        }
    }
    for writer in writers {
        writer.close().await;
    }
}

/// Follows a stream from its beginning for as long as the task lives.
async fn follow(run: Arc<Run>, client: Client, name: StreamName) {
    let mut next = 0;
    loop {
        let Err(error) = follow_from(&run, &client, &name, &mut next).await;
        let is_corrupt = error.refusal().is_some_and(|r| r.code == Code::Corrupt);
        let may_be = run.failing_device && is_corrupt;
        assert!(may_be, "breaks are no errors, at {name} {next}: {error}");
    }
}

async fn follow_from(
    run: &Run,
    client: &Client,
    name: &StreamName,
    next: &mut u64,
) -> Result<Infallible, ClientError> {
    let mut open = read_from(name.clone(), *next);
    open.follow = true;
    let mut reader = client.read(open).await?;
    loop {
        if let Some(ReadItem::Batch(batch)) = reader.next_batch().await? {
            batch.for_each(|position, record| {
                let sequence = position.sequence.0;
                let event = read_event(name, "follower", sequence, record.body());
                run.history.note(event);
                *next = sequence + 1;
            });
        }
    }
}

/// A number that the environment sets, or its default.
pub fn setting(name: &str, default: u64) -> u64 {
    let said = std::env::var(name).ok();
    said.map_or(default, |text| {
        text.parse().unwrap_or_else(|_| panic!("{name}: {text}"))
    })
}

/// Writes the history as lines and checks what they say.
fn judge(events: &[Event], path: &Path, what: &str, seed: u64) -> Counts {
    let file = File::create(path).expect("the scratch folder is writable");
    history::write(events, BufWriter::new(file)).expect("the disk has room");
    let file = File::open(path).expect("it was just written");
    let lines = history::read(BufReader::new(file)).expect("lines of events");
    let counts = check(&lines).unwrap_or_else(|findings| {
        panic!(
            "{what}, seed {seed}, {} findings in {}, the first:\n{}",
            findings.len(),
            path.display(),
            findings[..findings.len().min(20)].join("\n")
        )
    });
    std::fs::remove_file(path).expect("it is there");
    counts
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
