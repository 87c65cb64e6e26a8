//! Contract 4.5: a stream that nobody leads costs no memory beyond its place in an index on disk.
//!
//! ```text
//!   create N --> all are let go --> clean stop, start --> lead 1,000 --> SIGKILL, start --> list
//!   how fast     memory             seconds, memory       memory         seconds, memory    all
//! ```
//! The short form makes 40,000 streams. The long one, with a release build:
//! `NOVA_E2E_STREAMS=1000000 cargo test --release -p nova-e2e many_streams:: -- --nocapture`.

use crate::leadership::nobody_leads;
use crate::{SITE, in_time, numbered, producer};
use nova_client::*;
use nova_e2e::home::{Home, Star};
use nova_model::placement::stream_home;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tokio::task::JoinSet;

const STREAMS_SHORT: u64 = 40_000;
/// Streams that are led at once, or all if there are fewer.
const LED_MAX: u64 = 1000;
/// Creations of one client on their way: as many as its control lane carries, and as many waiting.
const CREATIONS_IN_FLIGHT: usize = 128;
/// What a star of two cores may have in memory, whatever the number of streams on its disk.
const MEMORY_BYTES_MAX: u64 = 100 << 20;
/// Within which the star's allocator has given back to the system what the star no longer uses:
/// it keeps freed pages for about a second, in case they are wanted again.
const GIVEN_BACK_WITHIN: Duration = Duration::from_secs(10);
/// What a led stream may cost with its session.
const LED_BYTES_MAX: u64 = 64 << 10;

fn stream_count() -> u64 {
    let said = std::env::var("NOVA_E2E_STREAMS").ok();
    said.map_or(STREAMS_SHORT, |text| text.parse().expect("a number"))
}

fn name_of(n: u64) -> StreamName {
    crate::stream(&format!("account-{n:07}/movements"))
}

/// Makes streams, each asked for at the core that has it, many on their way.
async fn create_all(home: &Home, cores: u16, count: u64) {
    let bucket = BucketName::parse("tests").expect("a legal name");
    let client = home.client();
    let made = client.ensure_bucket(bucket, BucketSettings::default());
    in_time("a bucket", made).await.expect("a bucket");
    let mut tasks = JoinSet::new();
    for core in 0..cores {
        let mut config = home.client_config();
        config.star = format!("127.0.0.1:{}", home.port() + core);
        let client = Client::connect(config).expect("a client");
        let next = Arc::new(AtomicU64::new(0));
        for _ in 0..CREATIONS_IN_FLIGHT {
            let (client, next) = (client.clone(), Arc::clone(&next));
            tasks.spawn(async move {
                loop {
                    let n = next.fetch_add(1, Ordering::Relaxed);
                    if n >= count {
                        return;
                    }
                    let name = name_of(n);
                    if stream_home(&name, cores).0 != core {
                        continue;
                    }
                    let made = client.create_stream(name, StreamSettings::default());
                    in_time("a stream", made).await.expect("a stream");
                }
            });
        }
    }
    while let Some(done) = tasks.join_next().await {
        done.expect("no panic");
    }
}

/// Opens a producer on each of some streams spread over all, and appends a record to each.
async fn lead(client: &Client, count: u64, led: u64) -> Vec<Producer> {
    let mut tasks = JoinSet::new();
    for n in 0..led {
        let producer = producer(client, &name_of(n * (count / led)));
        tasks.spawn(async move {
            let appended = in_time("an append", producer.append(Record::new(numbered(n)))).await;
            assert_eq!(appended.expect("an append").start.sequence.0, 0);
            producer
        });
    }
    let mut producers = Vec::new();
    while let Some(done) = tasks.join_next().await {
        producers.push(done.expect("no panic"));
    }
    producers
}

/// Starts a star: how long until it was ready, and until it had looked up streams of each core.
async fn start(home: &Home, count: u64) -> (Star, Duration, Duration) {
    let begun = Instant::now();
    let star = home.start();
    let ready = begun.elapsed();
    let client = home.client();
    for n in 0..16 {
        let name = name_of(n * (count / 16));
        let tail = in_time("a tail", client.check_tail(name)).await;
        tail.expect("the stream is there");
    }
    (star, ready, begun.elapsed())
}

/// The star's memory once it is down to what is allowed, or what it still is at the deadline.
/// Nothing tells that by itself, so the star is asked for its status meanwhile.
async fn memory_at_rest(home: &Home, star: &Star) -> u64 {
    let client = home.client();
    let begun = Instant::now();
    loop {
        let bytes = star.memory_bytes();
        if bytes <= MEMORY_BYTES_MAX || begun.elapsed() > GIVEN_BACK_WITHIN {
            return bytes;
        }
        in_time("a status", client.status())
            .await
            .expect("a status");
    }
}

fn mib(bytes: u64) -> u64 {
    bytes >> 20
}

/// Names of all streams, page by page.
async fn list_all(client: &Client) -> u64 {
    let bucket = BucketName::parse("tests").expect("a legal name");
    let mut page = Page {
        limit: 1000,
        ..Page::default()
    };
    let mut listed = 0;
    loop {
        let got = client.list_streams(bucket.clone(), page.clone());
        let got = in_time("a page", got).await.expect("a page");
        for info in &got.items {
            assert_eq!(info.name, name_of(listed), "in order and without a gap");
            listed += 1;
        }
        match got.items.last() {
            Some(last) if got.has_more => page.start_after = last.name.key.as_str().to_owned(),
            _ => return listed,
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn streams_that_nobody_leads_cost_no_memory() {
    let count = stream_count();
    let led = LED_MAX.min(count);
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let cores = cores.min(2);
    let mut home = Home::new(SITE).with_cores(cores);
    home.add_flag("--idle-timeout=1s");
    let star = home.start();
    let empty = star.memory_bytes();
    println!("an empty star of {cores} cores: {} MiB", mib(empty));
    let begun = Instant::now();
    create_all(&home, cores as u16, count).await;
    let took = begun.elapsed();
    let rate = count as f64 / took.as_secs_f64();
    let created = mib(star.memory_bytes());
    println!("{count} streams created in {took:.1?} ({rate:.0}/s), then {created} MiB");
    nobody_leads(&home.client()).await;
    let let_go = memory_at_rest(&home, &star).await;
    println!("all are let go: {} MiB", mib(let_go));
    assert!(let_go <= MEMORY_BYTES_MAX, "{} MiB", mib(let_go));

    star.stop().expect_done();
    let (star, ready, looked) = start(&home, count).await;
    let at_rest = memory_at_rest(&home, &star).await;
    println!(
        "a start after a clean stop: ready in {ready:.1?}, streams found in {looked:.1?}, {} MiB",
        mib(at_rest)
    );
    let client = home.client();
    let begun = Instant::now();
    let producers = lead(&client, count, led).await;
    let with_led = star.memory_bytes();
    println!(
        "{led} streams led in {:.1?}, {} MiB",
        begun.elapsed(),
        mib(with_led)
    );
    assert!(at_rest <= MEMORY_BYTES_MAX, "{} MiB", mib(at_rest));
    let led_bytes = with_led.saturating_sub(at_rest);
    assert!(led_bytes <= led * LED_BYTES_MAX, "{} MiB", mib(led_bytes));

    star.kill();
    drop(producers);
    let (star, ready, looked) = start(&home, count).await;
    let after_kill = memory_at_rest(&home, &star).await;
    println!(
        "a start after SIGKILL: ready in {ready:.1?}, streams found in {looked:.1?}, {} MiB",
        mib(after_kill)
    );
    assert!(after_kill <= MEMORY_BYTES_MAX, "{} MiB", mib(after_kill));
    let begun = Instant::now();
    let client = home.client();
    assert_eq!(list_all(&client).await, count);
    println!("{count} streams listed in {:.1?}", begun.elapsed());
    for n in 0..led {
        let name = name_of(n * (count / led));
        let tail = in_time("a tail", client.check_tail(name)).await;
        assert_eq!(tail.expect("a tail").sequence.0, 1, "what was acked");
    }
    star.stop().expect_done();
}
