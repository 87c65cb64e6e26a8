//! Contract 3, 4.1, 4.5: when leadership ends. On `any` after the idle timeout, on `fenced` with
//! the last handle; whoever comes next leads under a higher epoch.

use crate::raw::Raw;
use crate::{SITE, all_bodies, append_open, in_time, make_stream, make_with_policy, producer};
use nova_client::*;
use nova_e2e::home::Home;
use nova_model::placement::stream_home;
use nova_model::request::SessionAppend;
use nova_proto::client::AppendEvent;
use std::time::{Duration, Instant};

const PLAIN: SessionAppend = SessionAppend {
    writer_sequence: None,
    match_sequence: None,
};

/// Streams that all cores lead together.
async fn led(client: &Client) -> u64 {
    let status = in_time("a status", client.status()).await;
    let cores = status.expect("a status").cores;
    cores.iter().map(|core| core.streams_led).sum()
}

/// Asks until no core leads a stream; nothing tells that by itself.
pub async fn nobody_leads(client: &Client) {
    let asking = async { while led(client).await > 0 {} };
    in_time("the end of all leadership", asking).await;
}

async fn epoch_of(client: &Client, name: &StreamName) -> u64 {
    let info = in_time("a stream", client.describe_stream(name.clone())).await;
    info.expect("a stream").epoch.0
}

/// `any`: warm for the idle timeout, so that the same epoch goes on; then let go.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_any_the_leadership_stays_warm_for_the_idle_timeout() {
    const IDLE: Duration = Duration::from_secs(1);
    let mut home = Home::new(SITE);
    home.add_flag("--idle-timeout=1s");
    let star = home.start();
    let client = home.client();
    let name = make_stream(&client, "warm").await;
    let mut raw = Raw::to(&home).await;
    let (mut first, opened) = raw.session(append_open(&name, None)).await;
    first.send(PLAIN, "a");
    first.acked().await;
    let closed = Instant::now();
    first.close().await;
    let (second, again) = raw.session(append_open(&name, None)).await;
    if closed.elapsed() < IDLE {
        assert_eq!(again.epoch, opened.epoch, "it was warm");
    }
    let closed = Instant::now();
    second.close().await;
    nobody_leads(&client).await;
    assert!(closed.elapsed() >= IDLE, "{:?}", closed.elapsed());
    let (mut third, later) = raw.session(append_open(&name, None)).await;
    assert!(later.epoch > again.epoch, "it was let go");
    third.send(PLAIN, "b");
    assert_eq!(third.acked().await.start.sequence.0, 1);
    star.stop().expect_done();
}

/// `fenced`: given up as soon as the last handle closes, by a session as by a one-shot.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_fenced_the_leadership_ends_with_the_last_handle() {
    let home = Home::new(SITE);
    let star = home.start();
    let client = home.client();
    make_stream(&client, "first").await;
    let name = make_with_policy(&client, "given-up", ProducerPolicy::Fenced).await;
    let mut raw = Raw::to(&home).await;
    let mut epoch = 0;
    for round in 0..4 {
        let (mut session, opened) = raw.session(append_open(&name, None)).await;
        assert!(opened.epoch.0 > epoch, "round {round}: a new leadership");
        epoch = opened.epoch.0;
        session.send(PLAIN, "a");
        assert_eq!(session.acked().await.start.sequence.0, 2 * round);
        assert_eq!(epoch_of(&client, &name).await, epoch, "it is held");
        session.close().await;
        let once = crate::append_once(&client, &name, Record::new("once")).await;
        assert_eq!(once.expect("an ack").start.sequence.0, 2 * round + 1);
    }
    star.stop().expect_done();
}

/// `fenced`, led away from its home: it is at home again as soon as its producer has closed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_fenced_stream_goes_home_with_its_last_handle() {
    if std::thread::available_parallelism().map_or(1, usize::from) < 2 {
        println!("not run: a star of two cores needs two CPUs");
        return;
    }
    let home = Home::new(SITE).with_cores(2);
    let star = home.start();
    let client = home.client();
    make_stream(&client, "first").await;
    let name = make_with_policy(&client, "guest", ProducerPolicy::Fenced).await;
    let own = stream_home(&name, 2);
    let other = CoreId(1 - own.0);
    let writer = producer(&client, &name);
    let appended = in_time("an ack", writer.append(Record::new("at home"))).await;
    appended.expect("an ack");
    let moved = in_time("a move", client.hand_off(name.clone(), other)).await;
    let leader = moved.expect("a move");
    assert_eq!(leader.core, other);
    let appended = in_time("an ack", writer.append(Record::new("away"))).await;
    assert_eq!(appended.expect("it follows").start.sequence.0, 1);
    let closed = in_time("a close", writer.close()).await;
    closed.expect("nothing failed");

    let next = producer(&client, &name);
    let appended = in_time("an ack", next.append(Record::new("home again"))).await;
    assert_eq!(appended.expect("an ack").start.sequence.0, 2);
    assert!(epoch_of(&client, &name).await > leader.epoch.0);
    let address = |core: CoreId| format!("127.0.0.1:{}", home.port() + core.0);
    let mut raw = Raw::connect(&home, &address(other)).await;
    match raw
        .ask_session(append_open(&name, None))
        .await
        .event()
        .await
    {
        AppendEvent::OpenRefused(refusal) => {
            assert_eq!(refusal.code, Code::NotOwner, "{refusal:?}");
            let told = matches!(&refusal.facts, Facts::Holder { address: Some(at), .. }
                if *at == address(own));
            assert!(told, "{refusal:?}");
        }
        event => panic!("the other core leads it still: {event:?}"),
    }
    let bodies = all_bodies(&client, &name).await;
    assert_eq!(bodies, ["at home", "away", "home again"]);
    star.stop().expect_done();
}
