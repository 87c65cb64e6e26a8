//! Operations: a star that may open no further file says so in a way that can be tried again, lives
//! on, and takes everything up by itself once it may.
//!
//! ```text
//!   sessions, readers          need no descriptor, however many
//!   connections of HTTP        stay within their quarter
//!   none left (prlimit)        the next segment cannot be made: RATE_LIMITED, clean
//!                              an older segment is not read: UNAVAILABLE
//!                              a connection of HTTP waits; tails, newest records, trims go on
//!   the limit is raised        what waited goes on
//! ```
//! What this test has found: a segment could not be finished without a descriptor, which ended the
//! star; an index that was not stored was not tried again, and kept all later segments.

use crate::raw::Raw;
use crate::{SITE, append_once, append_open, bodies_of, in_time, make_stream};
use nova_client::*;
use nova_e2e::home::{Home, Star};
use nova_e2e::http::Http;
use nova_e2e::segments::segments;
use nova_model::request::OneShotAppend;
use rustix::process::{Pid, Resource, Rlimit, prlimit};
use std::collections::BTreeSet;

/// The least that a star starts with.
const DESCRIPTORS: u64 = 256;
/// Sessions and readers of one connection, and connections: more of them than descriptors.
const SESSIONS: usize = 40;
const CONNECTIONS: usize = 10;
const RECORD_BYTES: usize = 512 * 1024;
const SEGMENT_BYTES: usize = 16 << 20;

fn body(n: u64) -> Vec<u8> {
    let word = n.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes();
    word.repeat(RECORD_BYTES / 8)
}

/// A home whose stars have few descriptors and keep few records in memory.
fn home() -> Home {
    let mut home = Home::new(SITE).with_http();
    home.add_flag("--recent-bytes=1MiB");
    let limited = format!("ulimit -n {DESCRIPTORS} && exec \"$0\" \"$@\"");
    home.wrap(&["sh", "-c", &limited]);
    home
}

/// Sets how many descriptors a star may have from now on.
fn limit(star: &Star, most: u64) {
    let pid = Pid::from_raw(star.process().id() as i32);
    let limit = Rlimit {
        current: Some(most),
        maximum: Some(DESCRIPTORS),
    };
    prlimit(pid, Resource::Nofile, limit).expect("our own child");
}

/// Leaves a star no free descriptor.
fn exhaust(star: &Star) {
    let folder = format!("/proc/{}/fd", star.process().id());
    let entries = std::fs::read_dir(folder).expect("the star runs");
    let open: BTreeSet<u64> = entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .collect();
    let lowest = (0..).find(|number| !open.contains(number));
    limit(star, lowest.expect("there is an end"));
}

/// Appends records one after the other, without a client that tries again, until one is refused.
async fn append_until_refused(
    (home, star): (&Home, &Star),
    name: &StreamName,
    count: &mut u64,
) -> Refusal {
    let mut raw = Raw::to(home).await;
    let mut control = raw.control().await;
    let once = OneShotAppend {
        stream: name.clone(),
        stream_id: None,
        conditions: Conditions::default(),
        writer: None,
    };
    let most = *count + 4 * (SEGMENT_BYTES / RECORD_BYTES) as u64;
    while *count < most {
        // What was open for a moment at the last look may be free by now.
        exhaust(star);
        match control.append_once(&once, body(*count)).await {
            Ok(ack) => assert_eq!(ack.start.sequence.0, *count),
            Err(refusal) => return refusal,
        }
        *count += 1;
    }
    panic!("four segments were filled without a descriptor");
}

/// Appends until there is this number of segments.
async fn append_until(home: &Home, name: &StreamName, count: &mut u64, files: usize) {
    let client = home.client();
    while segments(&crate::log_folder(home, 0)).len() < files {
        let appended = append_once(&client, name, Record::new(body(*count))).await;
        assert_eq!(appended.expect("an append").start.sequence.0, *count);
        *count += 1;
    }
}

async fn check(client: &Client, name: &StreamName, from: u64, to: u64) {
    let mut open = read_from(name.clone(), from);
    open.limits.count = Some(to - from);
    let read = bodies_of(client, open).await.expect("a read");
    let numbers = read.iter().map(|(sequence, _)| *sequence);
    assert!(numbers.eq(from..to), "{} records", read.len());
    assert!(read.iter().all(|(n, there)| body(*n) == there[..]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sessions_and_connections_leave_descriptors_alone() {
    let home = home();
    let star = home.start();
    let name = make_stream(&home.client(), "busy").await;
    let before = star.descriptors();
    let mut held = Vec::new();
    for _ in 0..CONNECTIONS {
        let mut raw = Raw::to(&home).await;
        let mut sessions = Vec::new();
        for _ in 0..SESSIONS {
            sessions.push(raw.session(append_open(&name, None)).await);
        }
        held.push((raw, sessions));
    }
    assert_eq!(star.descriptors(), before, "sessions need none");
    let http = Http::of(&star);
    let share = DESCRIPTORS / 4;
    let idle: Vec<_> = (0..2 * share).map(|_| http.connect()).collect();
    let target = "/v1/streams/tests/busy/tail";
    http.get(target).expect(200);
    // One that was told to go may not have gone yet.
    let most = before + share + idle.len() as u64 / 2;
    assert!(star.descriptors() <= most, "{} open", star.descriptors());
    drop((idle, held));
    http.get(target).expect(200);
    star.stop().expect_done();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_star_without_descriptors_refuses_what_needs_one_and_recovers() {
    let home = home();
    let star = home.start();
    let client = home.client();
    let name = make_stream(&client, "long").await;
    let mut count = 0;
    // The file of the third segment is there; it is begun without a free descriptor.
    append_until(&home, &name, &mut count, 3).await;
    exhaust(&star);
    let refusal = append_until_refused((&home, &star), &name, &mut count).await;
    let bits = (refusal.code, refusal.retry, refusal.clean);
    assert_eq!(bits, (Code::RateLimited, true, true), "{refusal:?}");
    assert!(matches!(refusal.facts, Facts::After(1..)), "{refusal:?}");
    assert!(refusal.message.contains("descriptor"), "{refusal:?}");

    exhaust(&star);
    let tail = in_time("a tail", client.check_tail(name.clone())).await;
    assert_eq!(tail.expect("a tail").sequence.0, count);
    check(&client, &name, count - 1, count).await;
    let http = Http::of(&star);
    let target = "/v1/streams/tests/long/tail";
    let waiting = tokio::task::spawn_blocking(move || http.get(target));
    let old = tokio::spawn({
        let (client, name) = (home.client(), name.clone());
        async move { check(&client, &name, 0, 1).await }
    });
    let patient = crate::producer(&client, &name);
    let ticket = patient.append_async(Record::new(body(count))).await;
    let ticket = ticket.expect("room for a record");
    let small = make_stream_refused(&home).await;
    assert_eq!(small.code, Code::RateLimited, "{small:?}");
    star_lives(&star);

    limit(&star, DESCRIPTORS);
    let appended = in_time("an append", ticket).await.expect("appends resume");
    assert_eq!(appended.start.sequence.0, count);
    count += 1;
    in_time("a read", old).await.expect("reads resume");
    let page = in_time("a page", waiting).await.expect("no panic");
    page.expect(200);
    check(&client, &name, 0, count).await;
    segments_go(&home, &client, &name, &mut count).await;
    star.stop().expect_done();
}

fn star_lives(star: &Star) {
    assert!(!star.process().has_ended(), "{}", star.process().errors());
}

/// A creation is refused as appends are.
async fn make_stream_refused(home: &Home) -> Refusal {
    let mut config = home.client_config();
    config.retry_budget = std::time::Duration::from_secs(2);
    let client = Client::connect(config).expect("a client");
    let made = client.create_stream(crate::stream("new"), StreamSettings::default());
    let error = in_time("a refusal", made).await.expect_err("no descriptor");
    error.refusal().cloned().expect("the star says why")
}

/// What was sealed in want of descriptors is given back like everything else.
async fn segments_go(home: &Home, client: &Client, name: &StreamName, count: &mut u64) {
    for _ in 0..4 {
        let trim = client.trim(name.clone(), SequenceNumber(*count), Conditions::default());
        in_time("a trim", trim).await.expect("a trim");
        for _ in 0..SEGMENT_BYTES / RECORD_BYTES {
            let appended = append_once(client, name, Record::new(body(*count))).await;
            assert_eq!(appended.expect("an append").start.sequence.0, *count);
            *count += 1;
        }
    }
    let left = segments(&crate::log_folder(home, 0));
    // The one that is written, the one made ahead, one whose index is on its way, and one more that
    // was sealed since forgetting had last caught up.
    assert!(left.len() <= 4, "{left:?}");
}
