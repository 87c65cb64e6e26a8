//! Contract 8; storage, forgetting: a full disk refuses appends and nothing else. It neither ends
//! the star nor keeps it from starting, and appends go on by themselves when there is space.
//!
//! ```text
//!   four producers, batches of several records, many on their way  --> the disk is full
//!     once by the star's own data, once because another file takes what is left, at once
//!   refused: what is free and the floor are told      reads, tails, fences go on
//!   SIGKILL, a start without a block to be had        the same; nothing that was acked is lost
//!   SIGTERM, start                                    the same
//!   a trim and a deletion, or that file goes          a producer that has waited goes on
//! ```
//! On ext4 and on XFS. `NOVA_E2E_FULL_ROUNDS` sets how often (one round of each kind by default):
//! `NOVA_E2E_FULL_ROUNDS=20 cargo test -p nova-e2e full_disk:: -- --nocapture`.
//!
//! What this test has found: a start on a full disk waited for a whole segment without a word; a
//! star that had started with a small segment took no appends again, however much space there was;
//! a start without a free block failed at what it tries and at its small files.

use crate::raw::Raw;
use crate::{SITE, append_open, bodies_of, in_time, make_stream, numbered};
use nova_client::*;
use nova_e2e::home::{Home, Star};
use nova_e2e::process::PATIENCE;
use nova_e2e::small_disk::{Kind, SmallDisk};
use nova_model::request::{OneShotAppend, Request, SessionAppend};
use nova_proto::client::ControlEvent;
use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::task::{JoinHandle, JoinSet};

const MIB: u64 = 1 << 20;
const IMAGE_BYTES: u64 = 320 * MIB;
/// What the star has of it at first.
const ROOM_BYTES: u64 = 160 * MIB;
/// A segment of these tests.
const SEGMENT_BYTES: u64 = 16 * MIB;
/// More than a start can find free after [`START_BYTES`] were: it cuts two segments.
const FLOOR_BYTES: u64 = 40 * MIB;
/// Batches of one producer on their way: more than its window.
const IN_FLIGHT: usize = 24;
/// Not one block: what a start writes before it has cut the last segments goes into blocks that it
/// has.
const START_BYTES: u64 = 0;
/// What another file leaves while producers write: less than the floor, and enough for the next
/// segment and for all that was admitted, which is four windows of [`BATCH_BYTES`].
const TAKEN_TO_BYTES: u64 = 36 * MIB;
/// A wire batch, and the most that one append of these tests has.
const BATCH_BYTES: usize = 256 * 1024;
/// Batches that are acked before another file takes what is left.
const ACKS_BEFORE: u64 = 16;
/// How long a producer waits for a full disk and a star that is down.
const LONG: Duration = Duration::from_secs(600);
/// Batches of the producer that waits.
const PATIENT_BATCHES: u64 = 48;

/// How the disk gets full.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum How {
    /// The star writes until it comes to its floor.
    ByItself,
    /// Another file takes all that is left while producers write.
    Taken,
}

/// What became of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    Acked(u64),
    /// It is certain that it was not applied.
    Refused,
    Unknown,
}

/// A batch of a stream that was sent.
#[derive(Debug)]
struct Sent {
    id: u64,
    outcome: Outcome,
}

/// One disk, its star's home, and what was sent.
struct Filled {
    home: Home,
    disk: SmallDisk,
    /// What another file takes of it all the time.
    taken: u64,
    sent: BTreeMap<String, Vec<Sent>>,
    next_id: u64,
}

fn records_of(id: u64) -> u32 {
    1 + (id % 4) as u32
}

/// Names the batch and the record's place in it; 1 to 62 KiB.
fn body(id: u64, at: u32) -> Vec<u8> {
    let words = 64 * (1 + id.wrapping_mul(7919) % 62) as usize;
    let mut body = Vec::with_capacity(16 * words);
    for word in 0..words as u64 {
        body.extend_from_slice(&id.to_le_bytes());
        body.extend_from_slice(&(word ^ u64::from(at)).to_le_bytes());
    }
    body
}

fn word(body: &[u8], at: usize) -> u64 {
    let bytes = body[8 * at..8 * at + 8].try_into();
    bytes.map(u64::from_le_bytes).expect("eight bytes")
}

fn batch(id: u64) -> Vec<Record> {
    let bodies = (0..records_of(id)).map(|at| Record::new(body(id, at)));
    bodies.collect()
}

/// Appends batches, many on their way, until the star has said no or there were enough.
async fn produce(
    client: Client,
    name: StreamName,
    mut ids: Range<u64>,
    wait: Duration,
    acks: Arc<Acks>,
) -> Produced {
    let (mut sent, mut last): (Vec<Sent>, Option<ClientError>) = (Vec::new(), None);
    let is_told = |last: &Option<ClientError>| last.as_ref().is_some_and(|e| e.refusal().is_some());
    // On a busy machine a producer may break before it was told why; the next one goes on.
    while !ids.is_empty() && !is_told(&last) {
        last = None;
        let config = ProducerConfig {
            batch_size: BATCH_BYTES,
            ..ProducerConfig::default()
        };
        let producer = client.producer(name.clone(), config);
        let producer = producer.expect("legal settings");
        let mut waiting: VecDeque<(u64, Ticket)> = VecDeque::new();
        while last.is_none()
            && let Some(id) = ids.next()
        {
            match producer.append_batch_async(batch(id)).await {
                Ok(ticket) => waiting.push_back((id, ticket)),
                Err(error) => {
                    let outcome = Outcome::Refused;
                    sent.push(Sent { id, outcome });
                    last = Some(error);
                }
            }
            if waiting.len() == IN_FLIGHT
                && let Some((id, ticket)) = waiting.pop_front()
            {
                let outcome = outcome(result(ticket, wait).await, &mut last);
                acks.note(outcome);
                sent.push(Sent { id, outcome });
            }
        }
        for (id, ticket) in waiting {
            let outcome = outcome(result(ticket, wait).await, &mut last);
            sent.push(Sent { id, outcome });
        }
    }
    let key = name.key.as_str().to_owned();
    Produced { key, sent, last }
}

async fn result(ticket: Ticket, wait: Duration) -> Result<Appended, ClientError> {
    let result = tokio::time::timeout(wait, ticket).await;
    result.unwrap_or_else(|_| panic!("no result within {wait:?}"))
}

/// Counts the batches of all producers that are acked.
#[derive(Default)]
struct Acks {
    count: AtomicU64,
    changed: Notify,
    is_taken: AtomicBool,
}

impl Acks {
    fn note(&self, outcome: Outcome) {
        if matches!(outcome, Outcome::Acked(_)) {
            self.count.fetch_add(1, Ordering::Relaxed);
            self.changed.notify_waiters();
        }
    }

    async fn reached(&self, count: u64) {
        loop {
            let mut changed = std::pin::pin!(self.changed.notified());
            changed.as_mut().enable();
            if self.count.load(Ordering::Relaxed) >= count {
                return;
            }
            changed.await;
        }
    }

    fn take(&self) {
        self.is_taken.store(true, Ordering::Relaxed);
    }

    fn is_taken(&self) -> bool {
        self.is_taken.load(Ordering::Relaxed)
    }
}

struct Produced {
    key: String,
    sent: Vec<Sent>,
    last: Option<ClientError>,
}

fn outcome(result: Result<Appended, ClientError>, last: &mut Option<ClientError>) -> Outcome {
    match result {
        Ok(appended) => Outcome::Acked(appended.start.sequence.0),
        Err(error) => {
            let outcome = match error.is_clean() {
                true => Outcome::Refused,
                false => Outcome::Unknown,
            };
            last.get_or_insert(error);
            outcome
        }
    }
}

impl Filled {
    fn client(&self, star: &Star, budget: Duration) -> Client {
        let mut config = self.home.client_config_inside(star);
        config.retry_budget = budget;
        Client::connect(config).expect("a client")
    }

    /// A client that does not wait long for a disk to have room again.
    fn impatient(&self, star: &Star) -> Client {
        self.client(star, Duration::from_secs(2))
    }

    fn ids(&mut self, count: u64) -> Range<u64> {
        let first = self.next_id;
        self.next_id += count;
        first..self.next_id
    }

    fn note(&mut self, produced: Produced) {
        let sent = self.sent.entry(produced.key).or_default();
        sent.extend(produced.sent);
    }

    /// Facts of a full disk.
    #[track_caller]
    fn expect_full(&self, refused: &Refusal) {
        let bits = (refused.code, refused.retry, refused.clean);
        assert_eq!(bits, (Code::DiskFull, true, true), "{refused:?}");
        let Facts::Space { free, floor } = refused.facts else {
            panic!("{refused:?}");
        };
        assert_eq!(floor, FLOOR_BYTES);
        assert!(free < floor + SEGMENT_BYTES, "{free} free, floor {floor}");
    }

    /// Producers write until the disk is full.
    async fn fill(&mut self, star: &Star, how: How) {
        let acks = Arc::new(Acks::default());
        let mut producers = JoinSet::new();
        for key in ["kept", "gone", "kept", "gone"] {
            let ids = self.ids(u64::from(u32::MAX));
            let stream = crate::stream(key);
            let producing = produce(self.impatient(star), stream, ids, PATIENCE, acks.clone());
            producers.spawn(producing);
        }
        let mut ended = Vec::new();
        while !producers.is_empty() {
            tokio::select! {
                () = acks.reached(ACKS_BEFORE), if how == How::Taken && !acks.is_taken() => {
                    self.disk.leave(TAKEN_TO_BYTES);
                    acks.take();
                }
                Some(produced) = producers.join_next() => ended.push(produced.expect("no panic")),
            }
        }
        for produced in ended {
            let error = produced.last.as_ref().expect("the disk is full some time");
            let told = error.refusal().unwrap_or_else(|| panic!("{error:?}"));
            self.expect_full(told);
            self.note(produced);
        }
        let acked = |sent: &&Sent| matches!(sent.outcome, Outcome::Acked(_));
        let all = self.sent.values().flatten();
        let acked = all.filter(acked).count() as u64;
        assert!(acked >= ACKS_BEFORE, "{acked} batches are acked");
    }

    /// Appends are refused, and what a session has behind the first; all else goes on.
    async fn all_but_appends_goes_on(&mut self, star: &Star) {
        let client = self.impatient(star);
        let name = crate::stream("kept");
        let mut raw = Raw::inside(&self.home, &self.disk.path("tls/ca.pem")).await;
        let mut control = raw.control().await;
        let once = OneShotAppend {
            stream: name.clone(),
            stream_id: None,
            conditions: Conditions::default(),
            writer: None,
        };
        let told = control.append_once(&once, "alone").await;
        self.expect_full(&told.expect_err("a full disk"));
        let create = Request::CreateStream {
            name: crate::stream("new"),
            settings: StreamSettings::default(),
            exclusive: true,
        };
        match control.ask(&create).await {
            ControlEvent::Answered(_, Err(told)) => self.expect_full(&told),
            answer => panic!("not refused: {answer:?}"),
        }
        let (mut session, _) = raw.session(append_open(&name, None)).await;
        let plain = SessionAppend {
            writer_sequence: None,
            match_sequence: None,
        };
        session.send(plain, "first");
        session.send(plain, "behind it");
        let told = session.rejected(Code::DiskFull).await;
        self.expect_full(&told);
        session.rejected(Code::BehindRejected).await;
        crate::fence(&client, &crate::stream("small"), "held").await;
        let info = client.describe_stream(crate::stream("small"));
        in_time("a description", info).await.expect("a description");
        let trim = client.trim(
            crate::stream("small"),
            SequenceNumber(1),
            Conditions::default(),
        );
        in_time("a trim", trim).await.expect("trims go on");
    }

    /// What is free, and the files of the log.
    fn on_disk(&self) -> String {
        let folder = std::fs::read_dir(self.disk.path("core-000"));
        let files = folder.expect("the log is there").flatten();
        let files = files.map(|file| {
            let bytes = file.metadata().map_or(0, |found| found.len());
            format!("{} {bytes}", file.file_name().display())
        });
        let files: Vec<String> = files.collect();
        format!(
            "{} bytes free: {}",
            self.disk.free_bytes(),
            files.join(", ")
        )
    }

    async fn check_all(&self, star: &Star) {
        let client = self.client(star, PATIENCE);
        for key in ["kept", "gone"] {
            self.check(&client, key).await;
        }
    }

    /// Every record from the first one kept on: what was acked, at its place; of the rest, whole
    /// batches that nobody was told to be refused.
    async fn check(&self, client: &Client, key: &str) {
        let name = crate::stream(key);
        let info = client.describe_stream(name.clone());
        let info = in_time("a description", info).await.expect("a description");
        let read = bodies_of(client, read_from(name, info.first.0)).await;
        let read = read.expect("a read");
        let mut found: BTreeMap<u64, (u64, u32)> = BTreeMap::new();
        for (next, (sequence, there)) in (info.first.0..).zip(&read) {
            assert_eq!(*sequence, next, "a gap in {key}");
            let (id, at) = (word(there, 0), word(there, 1));
            let (start, count) = found.entry(id).or_insert((next - at, at as u32));
            assert_eq!(*start + u64::from(*count), next, "batch {id} is whole");
            assert!(body(id, *count) == there[..], "record {next} of {key}");
            *count += 1;
        }
        let no_batch = Vec::new();
        let sent = self.sent.get(key).unwrap_or(&no_batch);
        for Sent { id, outcome } in sent {
            let there = found.remove(id);
            match *outcome {
                Outcome::Acked(start) if start < info.first.0 => {}
                Outcome::Acked(start) => {
                    assert_eq!(there, Some((start, records_of(*id))), "{key} {id}");
                }
                Outcome::Refused => assert_eq!(there, None, "{key} {id} was refused"),
                Outcome::Unknown => {
                    let count = there.map(|(_, count)| count);
                    assert!(count.is_none_or(|count| count == records_of(*id)));
                }
            }
        }
        // A trim may have cut a batch in two.
        let strange = found.values().filter(|(start, _)| *start >= info.first.0);
        assert_eq!(strange.count(), 0, "batches of nobody: {found:?}");
    }

    /// Space is given back, and the producer that has waited goes on.
    async fn appends_resume(&mut self, star: &Star, how: How, waiting: JoinHandle<Produced>) {
        let client = self.client(star, Duration::from_secs(30));
        let name = crate::stream("kept");
        let tail = client.check_tail(name.clone());
        let tail = in_time("a tail", tail).await.expect("a tail").sequence;
        let last = SequenceNumber(tail.0 - 1);
        let trim = client.trim(name, last, Conditions::default());
        in_time("a trim", trim).await.expect("trims go on");
        let delete = client.delete_stream(crate::stream("gone"));
        in_time("a deletion", delete)
            .await
            .expect("deletions go on");
        self.sent.remove("gone");
        if how == How::Taken {
            self.disk.shrink(self.taken);
        }
        let produced = tokio::time::timeout(PATIENCE, waiting).await;
        let produced = produced.unwrap_or_else(|_| panic!("no appends with {}", self.on_disk()));
        let produced = produced.expect("no panic");
        assert_eq!(produced.last, None, "appends resume");
        self.note(produced);
        self.check(&client, "kept").await;
    }
}

async fn is_filled_and_goes_on(kind: Kind) {
    let mut home = Home::new(SITE);
    let disk = match SmallDisk::of(&mut home, kind, IMAGE_BYTES) {
        Ok(disk) => disk,
        Err(missing) => return println!("not run: {missing}"),
    };
    disk.leave(ROOM_BYTES);
    let mut filled = Filled {
        home,
        taken: disk.taken_bytes(),
        disk,
        sent: BTreeMap::new(),
        next_id: 0,
    };
    filled
        .home
        .add_flag(&format!("--floor-bytes={FLOOR_BYTES}"));
    let mut star = filled.home.start();
    let client = filled.impatient(&star);
    let small = make_stream(&client, "small").await;
    crate::append_each(&client, &small, (0..2).map(numbered)).await;
    make_stream(&client, "kept").await;
    for _ in 0..crate::load::setting("NOVA_E2E_FULL_ROUNDS", 1) {
        for how in [How::ByItself, How::Taken] {
            make_stream(&filled.impatient(&star), "gone").await;
            filled.fill(&star, how).await;
            let patient = filled.client(&star, LONG);
            let ids = filled.ids(PATIENT_BATCHES);
            let waiting = tokio::spawn(produce(
                patient,
                crate::stream("kept"),
                ids,
                LONG,
                Arc::default(),
            ));
            filled.check_all(&star).await;
            filled.all_but_appends_goes_on(&star).await;
            star.kill();
            filled.disk.leave(START_BYTES);
            star = filled.home.start();
            filled.check_all(&star).await;
            filled.all_but_appends_goes_on(&star).await;
            let ended = star.stop().expect_done();
            assert!(!ended.stderr.contains("panicked"), "{}", ended.stderr);
            star = filled.home.start();
            filled.all_but_appends_goes_on(&star).await;
            assert!(!waiting.is_finished(), "the disk is still full");
            let free = filled.disk.free_bytes();
            filled.appends_resume(&star, how, waiting).await;
            filled.disk.shrink(filled.taken);
            let batches: usize = filled.sent.values().map(Vec::len).sum();
            println!("{kind:?}, {how:?}: {free} bytes free, {batches} batches so far");
        }
    }
    star.stop().expect_done();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_ext4_refuses_appends_and_nothing_else() {
    is_filled_and_goes_on(Kind::Ext4).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_xfs_refuses_appends_and_nothing_else() {
    is_filled_and_goes_on(Kind::Xfs).await;
}
