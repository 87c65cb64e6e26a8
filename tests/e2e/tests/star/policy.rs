//! Contract 3: who may append at once, and what a change of the policy does to those who do.

use crate::raw::Raw;
use crate::{
    SITE, all_bodies, append_once, append_open, in_time, make_stream, make_with_policy, numbered,
    producer,
};
use nova_client::*;
use nova_e2e::home::Home;
use nova_model::request::{OneShotAppend, SessionAppend};
use nova_proto::client::AppendEvent;
use std::sync::Arc;

const PLAIN: SessionAppend = SessionAppend {
    writer_sequence: None,
    match_sequence: None,
};

fn one_shot(name: &StreamName) -> OneShotAppend {
    OneShotAppend {
        stream: name.clone(),
        stream_id: None,
        conditions: Conditions::default(),
        writer: None,
    }
}

#[track_caller]
fn expect_busy(refusal: &Refusal) {
    assert_eq!(refusal.code, Code::PolicyBusy, "{refusal:?}");
    assert!(refusal.retry && refusal.clean);
}

/// `fenced`: while one session is open, another one and a one-shot are busy; when it closes, or
/// its connection is lost, the next one is in.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_fenced_the_one_handle_is_busy_until_it_is_closed() {
    let home = Home::new(SITE);
    let star = home.start();
    let client = home.client();
    make_stream(&client, "first").await;
    let name = make_with_policy(&client, "busy", ProducerPolicy::Fenced).await;
    let (mut raw, mut other) = (Raw::to(&home).await, Raw::to(&home).await);
    let mut control = raw.control().await;
    for round in 0..3 {
        let (mut first, _) = raw.session(append_open(&name, None)).await;
        let mut second = other.ask_session(append_open(&name, None)).await;
        match second.event().await {
            AppendEvent::OpenRefused(refusal) => expect_busy(&refusal),
            event => panic!("not busy: {event:?}"),
        }
        let once = control.append_once(&one_shot(&name), "never").await;
        expect_busy(&once.expect_err("the handle is taken"));
        first.send(PLAIN, "session");
        assert_eq!(first.acked().await.start.sequence.0, 2 * round);
        first.close().await;
        let once = control.append_once(&one_shot(&name), "once").await;
        let once = once.expect("it takes the handle for the call");
        assert_eq!(once.start.sequence.0, 2 * round + 1);
    }
    let (_lost, _) = other.session(append_open(&name, None)).await;
    other.connection.close(0, "gone");
    let waits = append_once(&client, &name, Record::new("last")).await;
    assert_eq!(waits.expect("the handle is free").start.sequence.0, 6);
    star.stop().expect_done();
}

/// `fenced` through the client: producers and one-shots that wait for the handle get it in turn.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_fenced_producers_take_turns() {
    const WRITERS: u64 = 4;
    const EACH: u64 = 3;
    let home = Home::new(SITE);
    let star = home.start();
    let client = home.client();
    make_stream(&client, "first").await;
    let name = make_with_policy(&client, "turns", ProducerPolicy::Fenced).await;
    let mut writers = tokio::task::JoinSet::new();
    for writer in 0..WRITERS {
        let (client, name) = (client.clone(), name.clone());
        writers.spawn(async move {
            if writer == 0 {
                for n in 0..EACH {
                    let record = Record::new(numbered(n));
                    append_once(&client, &name, record).await.expect("an ack");
                }
                return;
            }
            let producer = producer(&client, &name);
            for n in 0..EACH {
                let record = Record::new(numbered(writer * EACH + n));
                producer.append(record).await.expect("its turn comes");
            }
            producer.close().await.expect("nothing failed");
        });
    }
    while let Some(done) = in_time("a writer", writers.join_next()).await {
        done.expect("no panic");
    }
    let mut read = all_bodies(&client, &name).await;
    let sessions = |body: &[u8]| (EACH..WRITERS * EACH).position(|n| numbered(n) == body);
    let order: Vec<usize> = read.iter().filter_map(|body| sessions(body)).collect();
    let is_whole = |turn: &[usize]| turn.windows(2).all(|pair| pair[1] == pair[0] + 1);
    assert!(
        order.chunks(EACH as usize).all(is_whole),
        "no session is amid another one: {order:?}"
    );
    read.sort_unstable();
    let mut wanted: Vec<Vec<u8>> = (0..WRITERS * EACH).map(numbered).collect();
    wanted.sort_unstable();
    assert_eq!(read, wanted);
    star.stop().expect_done();
}

/// `any`: sessions and one-shots interleave in one sequence, each in its own order; the stream
/// stays led between them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_any_sessions_and_one_shots_interleave() {
    const WRITERS: u64 = 4;
    const EACH: u64 = 60;
    let home = Home::new(SITE);
    let star = home.start();
    let client = home.client();
    let name = make_stream(&client, "interleave").await;
    let (mut raw, mut other) = (Raw::to(&home).await, Raw::to(&home).await);
    let mut control = raw.control().await;
    let (mut first, opened) = raw.session(append_open(&name, None)).await;
    let (mut second, _) = other.session(append_open(&name, None)).await;
    for round in 0..5 {
        first.send(PLAIN, "first");
        assert_eq!(first.acked().await.start.sequence.0, 3 * round);
        second.send(PLAIN, "second");
        assert_eq!(second.acked().await.start.sequence.0, 3 * round + 1);
        let once = control.append_once(&one_shot(&name), "once").await;
        assert_eq!(once.expect("an ack").start.sequence.0, 3 * round + 2);
    }
    first.close().await;
    second.close().await;
    let (again, warm) = raw.session(append_open(&name, None)).await;
    assert_eq!(warm.epoch, opened.epoch, "the leadership is warm");
    again.close().await;

    let name = make_stream(&client, "many").await;
    let mut writers = tokio::task::JoinSet::new();
    for writer in 0..WRITERS {
        let (client, name) = (client.clone(), name.clone());
        writers.spawn(async move {
            let producer = producer(&client, &name);
            for n in 0..EACH {
                let record = Record::new(format!("{writer} {n}"));
                producer.append(record).await.expect("an ack");
            }
            producer.close().await.expect("nothing failed");
        });
    }
    while let Some(done) = in_time("a writer", writers.join_next()).await {
        done.expect("no panic");
    }
    let read = all_bodies(&client, &name).await;
    for writer in 0..WRITERS {
        let prefix = format!("{writer} ");
        let own = read
            .iter()
            .filter(|body| body.starts_with(prefix.as_bytes()));
        let wanted = (0..EACH).map(|n| format!("{writer} {n}").into_bytes());
        assert!(wanted.eq(own.map(|body| body.to_vec())), "{writer}");
    }
    assert_eq!(read.len() as u64, WRITERS * EACH);
    star.stop().expect_done();
}

/// A bucket's default holds for streams that say nothing themselves, also after it changed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_buckets_policy_holds_for_streams_that_have_none() {
    use ProducerPolicy::{Any, Fenced};
    let home = Home::new(SITE);
    let star = home.start();
    let client = home.client();
    let name = make_stream(&client, "default").await;
    let own = make_with_policy(&client, "own", Any).await;
    let mut raw = Raw::to(&home).await;
    for policy in [Fenced, Any, Fenced] {
        let defaults = StreamSettings {
            policy: Some(policy),
            ..StreamSettings::default()
        };
        let change = BucketChange {
            defaults,
            ..BucketChange::default()
        };
        let changed = client.reconfigure_bucket(name.bucket.clone(), change);
        in_time("a change", changed).await.expect("a change");
        for (name, in_force) in [(&name, policy), (&own, Any)] {
            let (first, _) = raw.session(append_open(name, None)).await;
            let mut second = raw.ask_session(append_open(name, None)).await;
            match (second.event().await, in_force) {
                (AppendEvent::Opened(_), Any) => second.close().await,
                (AppendEvent::OpenRefused(refusal), Fenced) => expect_busy(&refusal),
                (event, _) => panic!("{name} under {in_force:?}: {event:?}"),
            }
            first.close().await;
        }
    }
    star.stop().expect_done();
}

async fn set_policy(client: &Client, name: &StreamName, policy: ProducerPolicy) {
    let change = StreamSettings {
        policy: Some(policy),
        ..StreamSettings::default()
    };
    let changed = client.reconfigure_stream(name.clone(), change);
    let changed = in_time("a change", changed).await.expect("a change");
    assert_eq!(changed.settings.policy.value, policy);
}

/// A change of the policy ends the sessions with the place to open them again; one that changes
/// nothing leaves them alone; producers go on by themselves and lose nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_change_of_policy_ends_sessions_that_open_again_without_loss() {
    const RECORDS: u64 = 3000;
    use ProducerPolicy::{Any, Fenced};
    let home = Home::new(SITE);
    let star = home.start();
    let client = home.client();
    let name = make_stream(&client, "raw").await;
    let mut raw = Raw::to(&home).await;
    let (mut session, _) = raw.session(append_open(&name, None)).await;
    set_policy(&client, &name, Any).await;
    session.send(PLAIN, "a");
    assert_eq!(session.acked().await.start.sequence.0, 0, "no change");
    set_policy(&client, &name, Fenced).await;
    let told = session.broken(Code::Draining).await;
    assert!(told.retry && told.clean);
    let here = format!("127.0.0.1:{}", home.port());
    match told.facts {
        Facts::Holder { address, .. } => assert_eq!(address, Some(here)),
        facts => panic!("no holder: {facts:?}"),
    }
    let (_session, _) = raw.session(append_open(&name, None)).await;
    let mut second = raw.ask_session(append_open(&name, None)).await;
    match second.event().await {
        AppendEvent::OpenRefused(refusal) => expect_busy(&refusal),
        event => panic!("the new policy does not hold: {event:?}"),
    }

    let name = make_stream(&client, "go-on").await;
    let producer = Arc::new(producer(&client, &name));
    let mut tickets = Vec::new();
    for n in 0..RECORDS {
        let ticket = in_time("room", producer.append_async(Record::new(numbered(n)))).await;
        tickets.push(ticket.expect("the producer goes on"));
        if n % 300 == 299 {
            let policy = if n % 600 == 299 { Fenced } else { Any };
            set_policy(&client, &name, policy).await;
        }
    }
    for (n, ticket) in (0..).zip(tickets) {
        let appended = in_time("an ack", ticket).await.expect("nothing is lost");
        assert_eq!(appended.start.sequence.0, n, "nothing is doubled");
    }
    assert_eq!(all_bodies(&client, &name).await.len() as u64, RECORDS);
    star.stop().expect_done();
}
