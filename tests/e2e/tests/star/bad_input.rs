//! Protocol 6: whoever breaks the protocol loses that lane or that connection, with the code that
//! says why; the star's memory and everybody else go on.

use crate::raw::{LaneEnd, Raw, RawLane};
use crate::{SITE, all_bodies, append_each, in_time, make_stream, numbered, producer};
use nova_client::*;
use nova_e2e::home::Home;
use nova_model::limits::{BATCH_ENCODED_BYTES_MAX, SESSION_WINDOW_BATCHES};
use nova_model::request::{AppendOpen, Request, SessionAppend};
use nova_model::{Checksum, EncodedBatch};
use nova_proto::client::{AppendEvent, AppendLane, ControlEvent, ReadLane};
use std::net::UdpSocket;
use std::time::Duration;

const OPEN_APPEND: u8 = 0x01;
const APPEND: u8 = 0x02;
const REQUEST: u8 = 0x05;
const APPEND_ONCE: u8 = 0x06;

/// A frame of these parts with the right checksum.
fn frame(kind: u8, version: u8, flags: u16, lengths: (u32, u32), head: &[u8]) -> Vec<u8> {
    let mut bytes = vec![kind, version];
    bytes.extend(flags.to_le_bytes());
    bytes.extend(lengths.0.to_le_bytes());
    bytes.extend(lengths.1.to_le_bytes());
    let checksum = Checksum::of(&[&bytes[..], head].concat());
    bytes.extend(checksum.0.to_le_bytes());
    bytes.extend(head);
    bytes
}

/// What is wrong with a first frame, its bytes, and how the lane must end.
fn wrong_first_frames() -> Vec<(&'static str, Vec<u8>, LaneEnd)> {
    let whole = frame(REQUEST, 1, 0, (120, 0), &[0; 120]);
    let mut damaged = whole.clone();
    damaged[20] ^= 1;
    vec![
        (
            "version",
            frame(REQUEST, 2, 0, (120, 0), &[0; 120]),
            LaneEnd::Closed(0x01),
        ),
        (
            "kind",
            frame(0x7f, 1, 0, (120, 0), &[0; 120]),
            LaneEnd::Reset(0x02),
        ),
        (
            "flags",
            frame(REQUEST, 1, 0x80, (120, 0), &[0; 120]),
            LaneEnd::Reset(0x03),
        ),
        (
            "a head of 4 GiB",
            frame(REQUEST, 1, 0, (u32::MAX, 0), &[0; 2]),
            LaneEnd::Reset(0x04),
        ),
        (
            "a batch of 3 GiB",
            frame(APPEND_ONCE, 1, 0, (120, 3 << 30), &[0; 2]),
            LaneEnd::Reset(0x04),
        ),
        (
            "a batch where none is",
            frame(REQUEST, 1, 0, (120, 100), &[0; 120]),
            LaneEnd::Reset(0x04),
        ),
        ("checksum", damaged, LaneEnd::Reset(0x05)),
        (
            "archive",
            frame(OPEN_APPEND, 1, 0, (120, 0), &[0xff; 120]),
            LaneEnd::Reset(0x06),
        ),
        ("request archive", whole_of(0xff), LaneEnd::Reset(0x06)),
        (
            "no open before",
            frame(APPEND, 1, 0, (24, 100), &[0; 24]),
            LaneEnd::Reset(0x09),
        ),
        (
            "an answer",
            frame(0x83, 1, 0, (61, 0), &[0; 61]),
            LaneEnd::Reset(0x09),
        ),
    ]
}

fn whole_of(byte: u8) -> Vec<u8> {
    frame(REQUEST, 1, 0, (120, 0), &[byte; 120])
}

async fn expect_well(raw: &mut Raw) {
    let mut control = raw.control().await;
    let event = control.ask(&Request::DescribeStar).await;
    assert!(
        matches!(event, ControlEvent::Answered(_, Ok(_))),
        "{event:?}"
    );
}

/// A wrong first frame ends its lane, or its connection, with its code; other lanes of the same
/// connection, other sessions and new connections go on.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wrong_frame_ends_its_lane_alone_with_its_code() {
    let home = Home::new(SITE);
    let star = home.start();
    let client = home.client();
    let name = make_stream(&client, "beside").await;
    let producer = producer(&client, &name);
    let cases = wrong_first_frames();
    for (n, (what, bytes, wanted)) in (0..).zip(&cases) {
        let mut raw = Raw::to(&home).await;
        expect_well(&mut raw).await;
        let mut lane = raw.lane().await;
        lane.write(bytes.clone()).await;
        assert_eq!(lane.end().await, *wanted, "{what}");
        if matches!(wanted, LaneEnd::Reset(_)) {
            expect_well(&mut raw).await;
        }
        let appended = in_time("an ack", producer.append(Record::new(numbered(n)))).await;
        assert_eq!(appended.expect("a session beside").start.sequence.0, n);
    }
    let mut raw = Raw::to(&home).await;
    let mut lane = raw.lane().await;
    lane.write(whole_of(0)[..30].to_vec()).await;
    lane.send.finish().expect("open");
    assert_eq!(
        lane.end().await,
        LaneEnd::Reset(0x0c),
        "an end inside a frame"
    );
    assert_eq!(all_bodies(&client, &name).await.len(), cases.len());
    star.stop().expect_done();
}

/// Memory grows with what arrived, not with what was declared.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn declared_lengths_cost_no_memory() {
    const LANES: usize = 200;
    const GROWTH_MAX: u64 = 48 << 20;
    let home = Home::new(SITE);
    let star = home.start();
    let mut raw = Raw::to(&home).await;
    expect_well(&mut raw).await;
    let before = star.memory_bytes();
    let mut lanes = Vec::new();
    for _ in 0..LANES {
        // 18 bytes that claim the largest legal batch.
        let lengths = (120, BATCH_ENCODED_BYTES_MAX as u32);
        let mut lane = raw.lane().await;
        lane.write(frame(APPEND_ONCE, 1, 0, lengths, &[0; 2])).await;
        lanes.push(lane);
    }
    expect_well(&mut raw).await;
    let grown = star.memory_bytes().saturating_sub(before);
    assert!(
        grown < GROWTH_MAX,
        "{grown} bytes for {LANES} frames of 18 bytes"
    );
    for lane in &mut lanes {
        lane.send.finish().expect("open");
        assert_eq!(lane.end().await, LaneEnd::Reset(0x0c));
    }
    star.stop().expect_done();
}

/// An append session opened by hand.
async fn open_session(raw: &mut Raw, name: &StreamName) -> (RawLane, AppendLane) {
    let mut lane = raw.lane().await;
    let open = AppendOpen {
        stream: name.clone(),
        fence: None,
        writer: None,
    };
    let mut rules = AppendLane::new(open);
    loop {
        while let Some(chunk) = rules.poll_output() {
            lane.write(chunk).await;
        }
        match rules.poll_event() {
            Some(AppendEvent::Opened(opened)) => {
                assert_eq!(opened.window_batches as usize, SESSION_WINDOW_BATCHES);
                return (lane, rules);
            }
            Some(event) => panic!("not opened: {event:?}"),
            None => {}
        }
        let read = in_time("an answer", lane.recv.read_chunk()).await;
        let bytes = read.expect("the lane is fine").expect("an answer");
        rules
            .handle_bytes(bytes)
            .expect("the star keeps to the protocol");
    }
}

/// The bytes of append frames of one record each.
fn appends(rules: &mut AppendLane, count: usize) -> Vec<u8> {
    let batch = EncodedBatch::encode(&[Record::new("x")]).expect("a legal batch");
    append_of(rules, &batch).repeat(count)
}

/// The bytes of an append frame.
fn append_of(rules: &mut AppendLane, batch: &EncodedBatch) -> Vec<u8> {
    let append = SessionAppend {
        writer_sequence: None,
        match_sequence: None,
    };
    rules.send(append, batch);
    let mut bytes = Vec::new();
    while let Some(chunk) = rules.poll_output() {
        bytes.extend_from_slice(&chunk);
    }
    bytes
}

/// Contract 2.4: a batch beyond the window closes that session alone.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_batch_beyond_the_window_closes_that_session_alone() {
    let home = Home::new(SITE);
    let star = home.start();
    let client = home.client();
    let name = make_stream(&client, "window").await;
    let other = make_stream(&client, "other").await;
    let producer = producer(&client, &other);
    let mut raw = Raw::to(&home).await;
    let (mut beside, mut rules) = open_session(&mut raw, &other).await;
    let (mut lane, mut own) = open_session(&mut raw, &name).await;
    let bytes = appends(&mut own, 4 * SESSION_WINDOW_BATCHES);
    lane.write(bytes).await;
    assert_eq!(lane.end().await, LaneEnd::Reset(0x08));
    let there = all_bodies(&client, &name).await.len();
    assert!(there <= 4 * SESSION_WINDOW_BATCHES, "{there}");
    beside.write(appends(&mut rules, 1)).await;
    beside.send.finish().expect("open");
    assert_eq!(
        beside.end().await,
        LaneEnd::Finished,
        "the session beside it is answered"
    );
    in_time("an ack", producer.append(Record::new("y")))
        .await
        .expect("others go on");
    assert_eq!(all_bodies(&client, &other).await, ["x", "y"]);
    star.stop().expect_done();
}

/// A batch that was damaged on the way closes its session; nothing of it is stored.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_damaged_batch_closes_its_session_and_is_not_stored() {
    let home = Home::new(SITE);
    let star = home.start();
    let client = home.client();
    let name = make_stream(&client, "damaged").await;
    let mut raw = Raw::to(&home).await;
    let (mut lane, mut rules) = open_session(&mut raw, &name).await;
    let mut bytes = appends(&mut rules, 1);
    *bytes.last_mut().expect("a frame") ^= 1;
    lane.write(bytes).await;
    assert_eq!(lane.end().await, LaneEnd::Reset(0x07));
    expect_well(&mut raw).await;
    assert_eq!(all_bodies(&client, &name).await.len(), 0);
    star.stop().expect_done();
}

/// Appends that have come in part hold more than all that may be admitted: they leave others half
/// of that, and are taken when they come to their end.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn appends_that_stop_half_way_leave_room_for_others() {
    const HALVES: usize = 24;
    const BODY_BYTES: usize = (1 << 20) - 100;
    let mut home = Home::new(SITE);
    home.add_flag("--ingress-bytes=16MiB");
    let star = home.start();
    let client = home.client();
    let (name, other) = (
        make_stream(&client, "halves").await,
        make_stream(&client, "other").await,
    );
    let mut raw = Raw::to(&home).await;
    let batch = EncodedBatch::encode(&[Record::new(vec![7; BODY_BYTES])]).expect("a legal batch");
    let mut halves = Vec::new();
    for _ in 0..HALVES {
        let (mut lane, mut rules) = open_session(&mut raw, &name).await;
        let mut bytes = append_of(&mut rules, &batch);
        let last = bytes.pop().expect("a frame");
        in_time("flow control", lane.write(bytes)).await;
        halves.push((lane, last));
    }
    let producer = producer(&client, &other);
    for n in 0..64 {
        let body = vec![n; BODY_BYTES];
        let acked = in_time("an ack", producer.append(Record::new(body))).await;
        acked.expect("others go on");
    }
    for (lane, last) in &mut halves {
        lane.write(vec![*last]).await;
        lane.send.finish().expect("open");
        assert_eq!(lane.end().await, LaneEnd::Finished);
    }
    let there = all_bodies(&client, &name).await;
    assert_eq!(there.len(), HALVES);
    assert!(there.iter().all(|body| body[..] == [7; BODY_BYTES]));
    star.stop().expect_done();
}

/// Handshakes that never go on, datagrams of nonsense and idle connections disturb nobody.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stalled_handshakes_and_idle_connections_disturb_nobody() {
    const STALLED: usize = 40;
    const IDLE: usize = 40;
    let home = Home::new(SITE);
    let star = home.start();
    let client = home.client();
    let name = make_stream(&client, "undisturbed").await;
    let producer = producer(&client, &name);

    // First flights that pass through here, and whose answers nobody forwards.
    let middle = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    middle
        .set_read_timeout(Some(Duration::from_secs(5)))
        .expect("a timeout");
    let forward = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    let target = ("127.0.0.1", home.port());
    let address = middle.local_addr().expect("bound").to_string();
    let mut stalled = tokio::task::JoinSet::new();
    for _ in 0..STALLED {
        let mut config = home.client_config();
        config.star.clone_from(&address);
        let client = Client::connect(config).expect("a client");
        stalled.spawn(async move { client.describe_star().await.map(drop) });
    }
    let mut datagram = [0; 2048];
    for _ in 0..STALLED {
        let length = middle.recv(&mut datagram).expect("a first flight");
        forward
            .send_to(&datagram[..length], target)
            .expect("it is sent");
        forward
            .send_to(&[0xc3; 1200], target)
            .expect("nonsense is sent");
    }
    let mut idle = Vec::new();
    for _ in 0..IDLE {
        idle.push(Raw::to(&home).await);
    }
    for n in 0..100 {
        let appended = in_time("an ack", producer.append(Record::new(numbered(n)))).await;
        assert_eq!(appended.expect("an ack").start.sequence.0, n);
    }
    let late = home.client();
    assert_eq!(all_bodies(&late, &name).await.len(), 100);
    stalled.shutdown().await;
    for raw in &idle {
        assert_eq!(raw.connection.close_reason(), None, "idle connections stay");
    }
    star.stop().expect_done();
}

/// Contract 6: readers that take nothing cost bounded memory, slow no writer and no other reader.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn readers_that_take_nothing_cost_bounded_memory_and_slow_nobody() {
    const READERS: usize = 8;
    const RECORDS: u64 = 64;
    // Output of each lane and a batch more, the newest batches, what waits for the disk, and as
    // much again for what is between them.
    const GROWTH_MAX: u64 = 2 * (READERS as u64 * 5 + 8 + 16) * (1 << 20);
    let mut home = Home::new(SITE);
    home.add_flag("--recent-bytes=8MiB");
    home.add_flag("--ingress-bytes=16MiB");
    let star = home.start();
    let client = home.client();
    let name = make_stream(&client, "slow").await;
    let mut raw = Raw::to(&home).await;
    let before = star.memory_bytes();
    let mut lanes = Vec::new();
    for _ in 0..READERS {
        let mut open = read_from(name.clone(), 0);
        open.follow = true;
        let mut rules = ReadLane::new(open);
        let mut lane = raw.lane().await;
        while let Some(chunk) = rules.poll_output() {
            lane.write(chunk).await;
        }
        lanes.push(lane);
    }
    let body = |n: u64| vec![n as u8; (1 << 20) - 100];
    append_each(&client, &name, (0..RECORDS).map(body)).await;
    let grown = star.memory_bytes().saturating_sub(before);
    assert!(grown < GROWTH_MAX, "{} MiB", grown >> 20);
    let read = all_bodies(&client, &name).await;
    assert!(
        (0..RECORDS)
            .zip(&read)
            .all(|(n, there)| body(n) == there[..])
    );
    assert_eq!(read.len() as u64, RECORDS);
    star.stop().expect_done();
}
