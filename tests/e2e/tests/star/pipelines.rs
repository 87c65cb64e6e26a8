//! Contract 2.3, 2.5: chains of conditional appends, what a rejection stops, and how the client
//! goes on behind one.

use crate::raw::Raw;
use crate::{SITE, all_bodies, append_open, in_time, make_stream, numbered, producer, refusal};
use nova_client::*;
use nova_e2e::home::Home;
use nova_model::request::SessionAppend;

fn on(match_sequence: u64) -> SessionAppend {
    SessionAppend {
        writer_sequence: None,
        match_sequence: Some(SequenceNumber(match_sequence)),
    }
}

const PLAIN: SessionAppend = SessionAppend {
    writer_sequence: None,
    match_sequence: None,
};

/// A chain holds link by link; the first that does not names the tail, and all behind it stay out
/// until `resume`, whether their own condition would hold or not.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rejection_stops_what_is_behind_it_until_resume() {
    let home = Home::new(SITE);
    let star = home.start();
    let client = home.client();
    let name = make_stream(&client, "chain").await;
    let mut raw = Raw::to(&home).await;
    let (mut session, _) = raw.session(append_open(&name, None)).await;
    session.send(on(0), "a");
    session.send(on(1), "b");
    session.send(PLAIN, "c");
    session.send(on(3), "d");
    session.send(on(3), "wrong");
    session.send(PLAIN, "behind");
    session.send(on(4), "behind");
    for n in 0..4 {
        assert_eq!(session.acked().await.start.sequence.0, n);
    }
    let refused = session.rejected(Code::SeqMismatch).await;
    assert!(refused.clean && !refused.retry);
    assert!(matches!(refused.facts, Facts::Tail(tail) if tail.sequence.0 == 4));
    for _ in 0..2 {
        let behind = session.rejected(Code::BehindRejected).await;
        assert!(behind.clean && behind.retry);
    }
    session.send(on(4), "still behind");
    session.rejected(Code::BehindRejected).await;
    session.resume();
    session.send(on(4), "e");
    session.send(PLAIN, "f");
    session.send(on(7), "wrong");
    assert_eq!(session.acked().await.start.sequence.0, 4);
    assert_eq!(session.acked().await.start.sequence.0, 5);
    let refused = session.rejected(Code::SeqMismatch).await;
    assert!(matches!(refused.facts, Facts::Tail(tail) if tail.sequence.0 == 6));
    session.resume();
    session.send(on(6), "g");
    session.acked().await;
    let read = all_bodies(&client, &name).await;
    assert_eq!(read, ["a", "b", "c", "d", "e", "f", "g"]);
    star.stop().expect_done();
}

/// The tail that a refusal names is durable: it is there after a kill.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_tail_that_a_refusal_names_survives_a_kill() {
    let home = Home::new(SITE);
    let star = home.start();
    let client = home.client();
    let name = make_stream(&client, "named").await;
    let (mut raw, mut other) = (Raw::to(&home).await, Raw::to(&home).await);
    let (mut session, _) = raw.session(append_open(&name, None)).await;
    let (mut asking, _) = other.session(append_open(&name, None)).await;
    for n in 0..10 {
        session.send(on(n), "x");
    }
    // The writer is not heard: what the other one is told must do.
    asking.send(on(1_000_000), "never");
    let (ack, refused) = tokio::join!(session.acked(), asking.rejected(Code::SeqMismatch));
    star.kill();
    assert_eq!(ack.start.sequence.0, 0);
    let Facts::Tail(named) = refused.facts else {
        panic!("no tail: {refused:?}");
    };
    let star = home.start();
    let there = all_bodies(&client, &name).await.len() as u64;
    assert!(
        there >= named.sequence.0 && there <= 10,
        "{there}, {named:?}"
    );
    star.stop().expect_done();
}

/// The client behind a rejection: plain appends are sent again in their order, conditional ones
/// are reported to their callers, also those that would hold by now. On one thread, so that all
/// are staged before the first one leaves.
#[tokio::test]
async fn behind_a_rejection_plain_appends_go_on_and_conditional_ones_are_reported() {
    let home = Home::new(SITE);
    let star = home.start();
    let client = home.client();
    let name = make_stream(&client, "behind").await;
    let producer = producer(&client, &name);
    let one = |body: &'static str| vec![Record::new(body)];
    let on = |n, body| producer.append_if_async(SequenceNumber(n), one(body));
    let plain = |body| producer.append_batch_async(one(body));
    let held = on(0, "0").await.expect("room");
    let wrong = on(50, "wrong").await.expect("room");
    let first = plain("1").await.expect("room");
    let behind = on(2, "behind").await.expect("room");
    let second = plain("2").await.expect("room");
    let also_behind = on(51, "behind").await.expect("room");
    let third = plain("3").await.expect("room");
    let held = in_time("an ack", held).await.expect("it holds");
    assert_eq!(held.start.sequence.0, 0);
    let wrong = refusal(in_time("an answer", wrong).await, Code::SeqMismatch);
    assert!(matches!(wrong.facts, Facts::Tail(tail) if tail.sequence.0 == 1));
    for behind in [behind, also_behind] {
        let told = refusal(in_time("an answer", behind).await, Code::BehindRejected);
        assert!(told.clean && told.retry);
    }
    for (n, ticket) in (1..).zip([first, second, third]) {
        let appended = in_time("an ack", ticket).await.expect("sent again");
        assert_eq!(appended.start.sequence.0, n);
    }
    let next = in_time("an ack", on(4, "4").await.expect("room")).await;
    next.expect("the session goes on");
    assert_eq!(all_bodies(&client, &name).await, ["0", "1", "2", "3", "4"]);
    star.stop().expect_done();
}

/// Many rejections amid more appends than a window holds: no plain one is lost, doubled or out of
/// order, and every conditional one is told that nothing of it was applied.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_rejections_leave_the_plain_appends_whole() {
    const PLAIN_COUNT: u64 = 300;
    let home = Home::new(SITE);
    let star = home.start();
    let client = home.client();
    let name = make_stream(&client, "many").await;
    let producer = producer(&client, &name);
    let (mut plain, mut conditional) = (Vec::new(), Vec::new());
    for n in 0..PLAIN_COUNT {
        let record = Record::new(numbered(n));
        let ticket = in_time("room", producer.append_async(record)).await;
        plain.push(ticket.expect("room"));
        if n % 7 == 0 {
            let never = SequenceNumber(1_000_000);
            let record = vec![Record::new("never")];
            let ticket = in_time("room", producer.append_if_async(never, record)).await;
            conditional.push(ticket.expect("room"));
        }
    }
    for (n, ticket) in (0..).zip(plain) {
        let appended = in_time("an ack", ticket).await.expect("sent again");
        assert_eq!(appended.start.sequence.0, n);
    }
    for ticket in conditional {
        let error = in_time("an answer", ticket).await.expect_err("none holds");
        let code = error.refusal().map(|refusal| refusal.code);
        let is_told = matches!(code, Some(Code::SeqMismatch | Code::BehindRejected));
        assert!(is_told && error.is_clean(), "{error:?}");
    }
    let read = all_bodies(&client, &name).await;
    let wanted = (0..PLAIN_COUNT).map(numbered);
    assert!(wanted.eq(read.iter().map(|body| body.to_vec())));
    star.stop().expect_done();
}
