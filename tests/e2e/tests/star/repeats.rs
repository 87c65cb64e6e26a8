//! Contract 2.7: what a writer sends again is answered with its original positions, whatever
//! happened in between; what only looks like it, and what leaves a gap, is refused.

use crate::raw::{Raw, RawSession};
use crate::{SITE, all_bodies, append_open, fence, make_stream};
use nova_client::*;
use nova_e2e::home::Home;
use nova_model::WriterId;
use nova_model::limits::{SESSION_WINDOW_BATCHES, WRITER_BATCHES_MAX};
use nova_model::request::{Ack, AppendOpen, SessionAppend};

fn numbered(writer_sequence: u64) -> SessionAppend {
    SessionAppend {
        writer_sequence: Some(writer_sequence),
        match_sequence: None,
    }
}

async fn session(raw: &mut Raw, name: &StreamName, writer: u128) -> RawSession {
    let open = AppendOpen {
        writer: Some(WriterId(writer)),
        ..append_open(name, None)
    };
    raw.session(open).await.0
}

async fn acked(session: &mut RawSession, sequence: u64, body: &str) -> Ack {
    session.send(numbered(sequence), body);
    session.acked().await
}

async fn expect_repeat(session: &mut RawSession, sequence: u64, body: &str, original: &Ack) {
    let again = acked(session, sequence, body).await;
    assert!(again.duplicate, "{sequence}");
    assert_eq!((again.start, again.end), (original.start, original.end));
    assert!(again.tail >= original.end);
}

async fn expect_gap(session: &mut RawSession, sequence: u64, expected: u64) {
    session.send(numbered(sequence), "never");
    let gap = session.rejected(Code::WriterGap).await;
    assert_eq!(gap.facts, Facts::Expected(expected));
    assert!(gap.clean && !gap.retry);
    session.resume();
}

async fn expect_mismatch(session: &mut RawSession, sequence: u64) {
    session.send(numbered(sequence), "other");
    let refused = session.rejected(Code::DuplicateMismatch).await;
    assert!(refused.clean && !refused.retry);
    session.resume();
}

/// The same number again: in the same session, in another one of another connection, and after a
/// kill.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn repeats_get_their_original_positions_in_any_session() {
    let home = Home::new(SITE);
    let mut star = home.start();
    let client = home.client();
    let name = make_stream(&client, "again").await;
    let mut raw = Raw::to(&home).await;
    let mut own = session(&mut raw, &name, 7).await;
    let mut originals = vec![acked(&mut own, 0, "a").await, acked(&mut own, 1, "b").await];
    assert!(originals.iter().all(|ack| !ack.duplicate));
    let mut other = session(&mut raw, &name, 8).await;
    expect_gap(&mut other, 1, 0).await;
    assert_eq!(acked(&mut other, 0, "z").await.start.sequence.0, 2);
    for (kills, next) in [(0, "c"), (0, "d"), (1, "e"), (1, "f")] {
        if kills > 0 {
            star.kill();
            star = home.start();
        }
        let mut raw = Raw::to(&home).await;
        let mut own = session(&mut raw, &name, 7).await;
        let known = originals.len() as u64;
        for (n, body) in [(1, "b"), (0, "a"), (1, "b")] {
            expect_repeat(&mut own, n, body, &originals[n as usize]).await;
        }
        expect_mismatch(&mut own, 1).await;
        expect_gap(&mut own, known + 1, known).await;
        expect_gap(&mut own, u64::MAX, known).await;
        originals.push(acked(&mut own, known, next).await);
        expect_repeat(&mut own, known, next, &originals[known as usize]).await;
        // Two of the same number amid others that are all under way at once.
        let known = originals.len() as u64;
        own.send(numbered(known - 1), next);
        own.send(numbered(known), "twice");
        own.send(numbered(known), "twice");
        own.send(numbered(known + 1), "behind");
        assert!(own.acked().await.duplicate);
        let (first, second) = (own.acked().await, own.acked().await);
        assert!(!first.duplicate && second.duplicate);
        assert_eq!((first.start, first.end), (second.start, second.end));
        originals.extend([first, own.acked().await]);
    }
    let wanted = [
        "a", "b", "z", "c", "twice", "behind", "d", "twice", "behind", "e", "twice", "behind", "f",
        "twice", "behind",
    ];
    assert_eq!(all_bodies(&client, &name).await, wanted);
    star.stop().expect_done();
}

/// A repeat is known before anything else may refuse it: a condition that holds no more, a token
/// that is gone.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_repeat_is_known_before_its_condition_is_judged() {
    let home = Home::new(SITE);
    let star = home.start();
    let client = home.client();
    let name = make_stream(&client, "first").await;
    let mut raw = Raw::to(&home).await;
    let mut own = session(&mut raw, &name, 7).await;
    let conditional = SessionAppend {
        writer_sequence: Some(0),
        match_sequence: Some(SequenceNumber(0)),
    };
    own.send(conditional, "a");
    let original = own.acked().await;
    let plain = acked(&mut own, 1, "b").await;
    own.send(conditional, "a");
    let again = own.acked().await;
    assert!(again.duplicate);
    assert_eq!((again.start, again.end), (original.start, original.end));
    fence(&client, &name, "new").await;
    own.send(conditional, "a");
    assert!(own.acked().await.duplicate);
    let failed = SessionAppend {
        writer_sequence: Some(2),
        match_sequence: Some(SequenceNumber(0)),
    };
    own.send(failed, "c");
    own.rejected(Code::SeqMismatch).await;
    own.resume();
    let next = acked(&mut own, 2, "c").await;
    assert!(!next.duplicate, "a number that was refused is free");
    assert_eq!(next.start.sequence.0, plain.end.sequence.0);
    star.stop().expect_done();
}

/// The last batches of a writer are known, and no older ones; also after a kill.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_writers_last_batches_are_known_and_no_older_ones() {
    const BATCHES: usize = WRITER_BATCHES_MAX + SESSION_WINDOW_BATCHES;
    let home = Home::new(SITE);
    let star = home.start();
    let client = home.client();
    let name = make_stream(&client, "last").await;
    let mut raw = Raw::to(&home).await;
    let mut own = session(&mut raw, &name, 7).await;
    let mut originals = Vec::new();
    for begin in (0..BATCHES).step_by(SESSION_WINDOW_BATCHES) {
        for n in begin..begin + SESSION_WINDOW_BATCHES {
            own.send(numbered(n as u64), &format!("{n}"));
        }
        for _ in 0..SESSION_WINDOW_BATCHES {
            originals.push(own.acked().await);
        }
    }
    star.kill();
    let star = home.start();
    let mut raw = Raw::to(&home).await;
    let mut own = session(&mut raw, &name, 7).await;
    let oldest = BATCHES - WRITER_BATCHES_MAX;
    for n in [0, oldest - 1] {
        expect_gap(&mut own, n as u64, BATCHES as u64).await;
    }
    for (n, original) in (0..).zip(&originals).skip(oldest) {
        expect_repeat(&mut own, n, &format!("{n}"), original).await;
    }
    assert_eq!(all_bodies(&client, &name).await.len(), BATCHES);
    star.stop().expect_done();
}
