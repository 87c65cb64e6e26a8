//! Contract 6: a slow reader costs bounded memory and never slows a writer. A hundred readers stop
//! reading while a producer goes on.
//!
//! ```text
//!   a producer alone           --> throughput, latency, memory of a star at work
//!   50 readers of the SDK, 50 of events over HTTP: each takes a record and stops
//!   the producer beside them   --> throughput, latency; memory stays within its bound
//!   all read on                --> everything, byte for byte
//! ```
//! `NOVA_E2E_STALLED_MIB` sets how much is written each time (32 by default); the long form:
//! `NOVA_E2E_STALLED_MIB=1024 cargo test --release -p nova-e2e stalled:: -- --nocapture`.
//! Every tenth reader reads all of it, the others the first 2 MiB. What the producer does with
//! readers and without is printed; noise of the machine is in it, so no bound is asked of it.

use crate::{SITE, in_time, make_stream};
use nova_client::*;
use nova_e2e::home::{Home, Star};
use nova_e2e::http::{Http, Lines};
use nova_model::limits::{READ_AHEAD_BYTES_MAX, READ_CHUNK_BYTES};
use serde_json::Value;
use std::collections::VecDeque;
use std::time::{Duration, Instant};
use tokio::task::JoinSet;

const MIB: u64 = 1 << 20;
/// Readers of the SDK, and as many of events.
const READERS: usize = 50;
/// Readers of the SDK that share a connection.
const READERS_OF_CONNECTION: usize = 10;
const RECORD_BYTES: u64 = 32 * 1024;
/// A wire batch. With a window of 16 of them a group has 1 MiB at most, as has a read from disk.
const BATCH_BYTES: usize = 64 * 1024;
/// Records of the producer on their way.
const IN_FLIGHT: usize = 64;
/// Records that warm the star up.
const WARM_RECORDS: u64 = 8 * MIB / RECORD_BYTES;
/// How often so many are written, at most, until the readers stand still: until then they, the
/// connections and the kernel take some.
const WARM_TIMES_MAX: u64 = 32;
/// Records that most readers read in the end.
const FEW_RECORDS: u64 = 2 * MIB / RECORD_BYTES;
/// What all connections of a core together may have on their way.
const WINDOWS_BYTES: u64 = 64 * MIB;
/// Reads from disk that a reader that stands still can hold: the batches at hand are of one; those
/// that its last credit brought, on their way to lane or gateway, are of the one before; those that
/// wait in the connection, or as text, of a third. The bytes of a batch hold the whole read.
const READS_OF_READER: u64 = 3;
/// Memory that the readers may add.
const MEMORY_BYTES_MAX: u64 = READ_AHEAD_BYTES_MAX as u64
    + WINDOWS_BYTES
    + 2 * READERS as u64 * READS_OF_READER * READ_CHUNK_BYTES as u64;

fn body(n: u64) -> String {
    let word = format!("{:016x}", n.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    word.repeat(RECORD_BYTES as usize / 16)
}

/// How the producer fared.
struct Written {
    rate: f64,
    latencies: Vec<Duration>,
    memory_most: u64,
}

impl Written {
    fn quantile(&self, part: f64) -> f64 {
        let at = ((self.latencies.len() - 1) as f64 * part) as usize;
        self.latencies[at].as_secs_f64() * 1e3
    }
}

/// Appends records, many on their way.
async fn write(star: &Star, client: &Client, name: &StreamName, from: u64, to: u64) -> Written {
    let config = ProducerConfig {
        batch_size: BATCH_BYTES,
        ..ProducerConfig::default()
    };
    let producer = client.producer(name.clone(), config);
    let producer = producer.expect("legal settings");
    let mut waiting: VecDeque<(u64, Instant, Ticket)> = VecDeque::new();
    let (mut latencies, mut memory_most) = (Vec::new(), star.memory_bytes());
    let begun = Instant::now();
    let mut next = from;
    while next < to || !waiting.is_empty() {
        if next < to && waiting.len() < IN_FLIGHT {
            let sent = Instant::now();
            let ticket = producer.append_async(Record::new(body(next))).await;
            waiting.push_back((next, sent, ticket.expect("room for a record")));
            next += 1;
            continue;
        }
        let (n, sent, ticket) = waiting.pop_front().expect("some are on their way");
        let appended = in_time("an append", ticket).await.expect("an append");
        assert_eq!(appended.start.sequence.0, n);
        latencies.push(sent.elapsed());
        if n % 32 == 0 {
            memory_most = memory_most.max(star.memory_bytes());
        }
    }
    let rate = ((to - from) * RECORD_BYTES) as f64 / MIB as f64 / begun.elapsed().as_secs_f64();
    latencies.sort_unstable();
    Written {
        rate,
        latencies,
        memory_most,
    }
}

/// A reader of the SDK that has taken some records.
struct Slow {
    reader: Reader,
    next: u64,
}

impl Slow {
    async fn open(client: &Client, name: &StreamName) -> Slow {
        let mut open = read_from(name.clone(), 0);
        open.follow = true;
        let reader = in_time("a reader", client.read(open)).await;
        let reader = reader.expect("a reader");
        let mut slow = Slow { reader, next: 0 };
        slow.read_to(1).await;
        slow
    }

    async fn read_to(&mut self, goal: u64) {
        while self.next < goal {
            let item = in_time("a batch", self.reader.next_batch()).await;
            let Some(ReadItem::Batch(batch)) = item.expect("breaks are no errors") else {
                continue;
            };
            for (position, record) in batch.to_records() {
                assert_eq!(position.sequence.0, self.next);
                assert!(record.body == body(self.next), "record {}", self.next);
                self.next += 1;
            }
        }
    }
}

/// The same of events. A connection that stands still for long is closed by the star; the next one
/// goes on behind the last event, as a browser would.
struct SlowEvents {
    http: Http,
    lines: Lines,
    last: String,
    next: u64,
}

const TARGET: &str = "/v1/streams/tests/beside/records?seq=0";
const EVENTS: (&str, &str) = ("accept", "text/event-stream");

impl SlowEvents {
    fn open(http: Http) -> SlowEvents {
        let mut slow = SlowEvents {
            http,
            lines: http.follow(TARGET, &[EVENTS]),
            last: String::new(),
            next: 0,
        };
        slow.read_to(1);
        slow
    }

    fn read_to(&mut self, goal: u64) {
        while self.next < goal {
            let Some(line) = self.lines.next_line() else {
                let target = TARGET.trim_end_matches("?seq=0");
                let headers = [EVENTS, ("last-event-id", self.last.as_str())];
                self.lines = self.http.follow(target, &headers);
                continue;
            };
            if let Some(id) = line.strip_prefix("id: ") {
                let data = self.lines.next_line();
                let Some(data) = data.as_deref().and_then(|data| data.strip_prefix("data: "))
                else {
                    continue;
                };
                let record: Value = serde_json::from_str(data).expect("JSON");
                assert_eq!(record["seq"], self.next);
                assert!(record["body"] == body(self.next), "record {}", self.next);
                id.clone_into(&mut self.last);
                self.next += 1;
            }
        }
    }
}

/// Bytes of batches that the star has handed to readers so far.
async fn sent_bytes(http: Http) -> f64 {
    let text = tokio::task::spawn_blocking(move || http.get("/metrics").expect(200).text());
    let text = text.await.expect("no panic");
    let line = text
        .lines()
        .find(|line| line.starts_with("nova_sent_bytes_total{"));
    let value = line.and_then(|line| line.rsplit(' ').next()?.parse().ok());
    value.expect("a figure of the only core")
}

/// What each reader reads in the end.
fn goal(reader: usize, records: u64) -> u64 {
    match reader % 10 {
        0 => records,
        _ => FEW_RECORDS.min(records),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn readers_that_stop_reading_cost_bounded_memory_and_no_writer() {
    let records = crate::load::setting("NOVA_E2E_STALLED_MIB", 32) * MIB / RECORD_BYTES;
    let mut home = Home::new(SITE).with_http();
    home.add_flag("--recent-bytes=8MiB");
    let star = home.start();
    let client = home.client();
    let alone = make_stream(&client, "alone").await;
    let beside = make_stream(&client, "beside").await;
    write(&star, &client, &alone, 0, WARM_RECORDS).await;
    let without = write(&star, &client, &alone, WARM_RECORDS, WARM_RECORDS + records).await;
    let before = star.memory_bytes();

    write(&star, &client, &beside, 0, 1).await;
    let mut slow = Vec::new();
    for _ in 0..READERS / READERS_OF_CONNECTION {
        let client = home.client();
        for _ in 0..READERS_OF_CONNECTION {
            slow.push(Slow::open(&client, &beside).await);
        }
    }
    let http = Http::of(&star);
    let slow_events = tokio::task::spawn_blocking(move || {
        let opened = (0..READERS).map(|_| SlowEvents::open(http));
        opened.collect::<Vec<_>>()
    });
    let slow_events = slow_events.await.expect("no panic");
    let (mut next, mut most, mut sent) = (1, 0, 0.0);
    for _ in 0..WARM_TIMES_MAX {
        let warm = write(&star, &client, &beside, next, next + WARM_RECORDS).await;
        next += WARM_RECORDS;
        most = warm.memory_most.max(most);
        let sent_before = std::mem::replace(&mut sent, sent_bytes(http).await);
        if sent_before == sent {
            break;
        }
    }
    let all = next + records;
    let with = write(&star, &client, &beside, next, all).await;
    let more = with.memory_most.max(most).saturating_sub(before);
    println!(
        "{} MiB, {} readers standing still after {} MiB: {:.0} MiB/s, p50 {:.1} ms, p99 {:.1} ms; \
         without: {:.0} MiB/s, p50 {:.1} ms, p99 {:.1} ms; throughput {:.2} of that",
        records * RECORD_BYTES / MIB,
        2 * READERS,
        next * RECORD_BYTES / MIB,
        with.rate,
        with.quantile(0.5),
        with.quantile(0.99),
        without.rate,
        without.quantile(0.5),
        without.quantile(0.99),
        with.rate / without.rate,
    );
    println!(
        "memory {} MiB before, {} more at most, bound {}",
        before / MIB,
        more / MIB,
        MEMORY_BYTES_MAX / MIB
    );
    assert!(more <= MEMORY_BYTES_MAX, "{} MiB more", more / MIB);
    read_on(slow, slow_events, all).await;
    star.stop().expect_done();
}

/// All readers read on, at once.
async fn read_on(slow: Vec<Slow>, slow_events: Vec<SlowEvents>, records: u64) {
    let mut reading = JoinSet::new();
    for (at, mut slow) in slow.into_iter().enumerate() {
        reading.spawn(async move { slow.read_to(goal(at, records)).await });
    }
    for (at, mut slow) in slow_events.into_iter().enumerate() {
        reading.spawn_blocking(move || slow.read_to(goal(at, records)));
    }
    while let Some(read) = reading.join_next().await {
        read.expect("every record comes");
    }
}
