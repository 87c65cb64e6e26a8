//! Reads: where they begin and end, and what becomes of one whose star breaks, moves or loses it.

mod star;

use nova_client::*;
use star::TestStar;
use std::future::poll_fn;
use std::pin::Pin;

fn name(key: &str) -> StreamName {
    StreamName::parse(&format!("bucket/{key}")).expect("a legal name")
}

/// A client and a stream of `batches` batches of two records, the n-th of them at the time n + 1.
async fn filled(star: &TestStar, key: &str, batches: u64) -> (Client, StreamName) {
    let client = Client::connect(star.config()).expect("a client");
    let name = name(key);
    let made = client.ensure_stream(name.clone(), StreamSettings::default());
    made.await.expect("a stream");
    fill(&client, &name, batches).await;
    (client, name)
}

async fn fill(client: &Client, name: &StreamName, batches: u64) {
    for _ in 0..batches {
        let records = [Record::new("a"), Record::new("b")];
        let with = AppendOnce::default();
        let placed = client.append_once(name.clone(), &records, with).await;
        placed.expect("appended");
    }
}

fn following(name: &StreamName) -> ReadOpen {
    let mut open = read_from(name.clone(), 0);
    open.follow = true;
    open
}

async fn next(reader: &mut Reader) -> ReadItem {
    let item = reader.next_batch().await.expect("no error");
    item.expect("a following read does not end")
}

/// The sequence numbers that are given until the read ends.
async fn all(client: &Client, open: ReadOpen) -> Vec<u64> {
    let mut reader = client.read(open).await.expect("a reader");
    let mut given = Vec::new();
    while let Some(item) = reader.next_batch().await.expect("no error") {
        if let ReadItem::Batch(batch) = item {
            given.extend(batch.first().0..batch.end().0);
        }
    }
    given
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reads_begin_and_end_where_they_are_told() {
    let star = TestStar::start();
    let (client, name) = filled(&star, "ranges", 5).await;
    let from = |start, limits| ReadOpen {
        start,
        limits,
        ..read_from(name.clone(), 0)
    };
    let none = ReadLimits::default();
    let (count, bytes) = (Some(3), Some(27));
    let (sequence, time) = (Some(SequenceNumber(5)), Some(Timestamp(3)));
    let starts = [
        (ReadStart::Sequence(SequenceNumber(3)), 3),
        (ReadStart::TailOffset(4), 6),
        (ReadStart::TailOffset(99), 0),
        (ReadStart::Timestamp(Timestamp(4)), 6),
    ];
    for (start, first) in starts {
        let expected: Vec<u64> = (first..10).collect();
        assert_eq!(all(&client, from(start, none)).await, expected, "{start:?}");
    }
    let ends = [
        (ReadLimits { count, ..none }, 1..4),
        (ReadLimits { bytes, ..none }, 1..4),
        (
            ReadLimits {
                until_sequence: sequence,
                ..none
            },
            1..5,
        ),
        (
            ReadLimits {
                until_timestamp: time,
                ..none
            },
            1..4,
        ),
        (
            ReadLimits {
                count: Some(0),
                ..none
            },
            1..1,
        ),
    ];
    for (limits, expected) in ends {
        let open = from(ReadStart::Sequence(SequenceNumber(1)), limits);
        let expected: Vec<u64> = expected.collect();
        assert_eq!(all(&client, open).await, expected, "{limits:?}");
    }
    let mut past = from(ReadStart::Sequence(SequenceNumber(11)), none);
    let error = client.read(past.clone()).await.expect_err("past the tail");
    let facts = error.refusal().map(|refusal| refusal.facts.clone());
    assert!(
        matches!(facts, Some(Facts::Tail(tail)) if tail.sequence.0 == 10),
        "{facts:?}"
    );
    past.clamp = true;
    assert!(all(&client, past).await.is_empty());
    client.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_gives_what_a_reader_gives() {
    let star = TestStar::start();
    let (client, name) = filled(&star, "stream", 3).await;
    let reader = client.read(read_from(name, 1)).await.expect("a reader");
    let mut stream = reader.into_stream();
    let mut given = Vec::new();
    while let Some(item) =
        poll_fn(|context| futures_core::Stream::poll_next(Pin::new(&mut stream), context)).await
    {
        if let ReadItem::Batch(batch) = item.expect("no error") {
            given.extend(batch.first().0..batch.end().0);
        }
    }
    assert_eq!(given, [1, 2, 3, 4, 5]);
    assert!(futures_core::stream::FusedStream::is_terminated(&stream));
    client.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_given_is_not_given_again_over_breaks_and_moves() {
    const BATCHES: u64 = 60;
    let star = TestStar::start();
    let (client, name) = filled(&star, "moving", BATCHES / 2).await;
    star.knobs().break_reads_every = Some(3);
    let mut open = following(&name);
    open.limits.count = Some(2 * BATCHES - 1);
    let mut reader = client.read(open).await.expect("a reader");
    let (mut given, mut items) = (Vec::new(), 0);
    let writer = Client::connect(star.config()).expect("a client");
    while let Some(item) = reader.next_batch().await.expect("no error") {
        items += 1;
        if items % 7 == 0 {
            let leader = star.knobs().leader.unwrap_or(0);
            star.knobs().leader = Some(1 - leader);
        }
        match item {
            ReadItem::Batch(batch) => given.extend(batch.first().0..batch.end().0),
            ReadItem::CaughtUp(tail) => assert_eq!(tail.sequence.0, given.len() as u64),
        }
        if items < BATCHES / 2 {
            fill(&writer, &name, 1).await;
        }
        if items == BATCHES / 2 {
            fill(&writer, &name, 1).await;
        }
    }
    assert_eq!(given, (0..2 * BATCHES - 1).collect::<Vec<u64>>());
    assert!(star.knobs().reads > 20, "it was opened again and again");
    writer.close().await;
    client.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_made_again_is_never_read_on() {
    let star = TestStar::start();
    let (client, name) = filled(&star, "again", 2).await;
    let mut reader = client.read(following(&name)).await.expect("a reader");
    while !matches!(next(&mut reader).await, ReadItem::CaughtUp(_)) {}
    client.delete_stream(name.clone()).await.expect("deleted");
    let error = loop {
        match reader.next_batch().await {
            Ok(item) => assert!(matches!(item, Some(ReadItem::CaughtUp(_))), "{item:?}"),
            Err(error) => break error,
        }
    };
    assert_eq!(
        error.refusal().map(|refusal| refusal.code),
        Some(Code::StreamNotFound)
    );
    assert_eq!(reader.next_batch().await, Ok(None), "it is over");

    // The same while the reader was away: it asks for the incarnation that it read.
    let (client, name) = filled(&star, "away", 2).await;
    star.knobs().break_reads_every = Some(1);
    let mut reader = client.read(following(&name)).await.expect("a reader");
    assert!(matches!(next(&mut reader).await, ReadItem::Batch(_)));
    let client = Client::connect(star.config()).expect("a client that keeps its connection");
    client.delete_stream(name.clone()).await.expect("deleted");
    let made = client.ensure_stream(name.clone(), StreamSettings::default());
    made.await.expect("made again");
    fill(&client, &name, 5).await;
    let error = loop {
        match reader.next_batch().await {
            Ok(item) => {
                let is_old = match &item {
                    Some(ReadItem::Batch(batch)) => batch.end().0 <= 4,
                    _ => true,
                };
                assert!(is_old, "{item:?} is of another stream");
            }
            Err(error) => break error,
        }
    };
    assert_eq!(
        error.refusal().map(|refusal| refusal.code),
        Some(Code::StreamNotFound)
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_gone_or_damaged_is_told_with_facts() {
    let star = TestStar::start();
    let (client, name) = filled(&star, "damaged", 5).await;
    star.knobs().corrupt_from = Some(6);
    let mut reader = client.read(following(&name)).await.expect("a reader");
    let mut given = Vec::new();
    let error = loop {
        match reader.next_batch().await {
            Ok(Some(ReadItem::Batch(batch))) => given.extend(batch.first().0..batch.end().0),
            Ok(item) => panic!("{item:?}"),
            Err(error) => break error,
        }
    };
    assert_eq!(given, [0, 1, 2, 3, 4, 5], "all before the damage");
    let refusal = error.refusal().expect("the star said so");
    let (from, to) = (SequenceNumber(6), SequenceNumber(8));
    assert_eq!(
        (refusal.code, &refusal.facts),
        (Code::Corrupt, &Facts::Range { from, to })
    );
    assert_eq!(reader.next_sequence(), Some(from), "nothing was skipped");
    let trim = client.trim(name.clone(), SequenceNumber(3), Conditions::default());
    trim.await.expect("trimmed");
    let error = client.read(read_from(name, 2)).await.expect_err("trimmed");
    let facts = error.refusal().map(|refusal| refusal.facts.clone());
    assert_eq!(facts, Some(Facts::First(SequenceNumber(3))));
    client.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn heartbeats_tell_that_nothing_is_new() {
    let star = TestStar::start();
    let (client, quiet) = filled(&star, "quiet", 1).await;
    let mut reader = client.read(following(&quiet)).await.expect("a reader");
    assert!(matches!(next(&mut reader).await, ReadItem::Batch(_)));
    for beat in 0..3 {
        let item = next(&mut reader).await;
        assert!(
            matches!(item, ReadItem::CaughtUp(tail) if tail.sequence.0 == 2),
            "{beat}"
        );
        // The test's star sends a heartbeat when something else has changed.
        filled(&star, "other", 1).await;
    }
    assert_eq!(reader.tail().sequence.0, 2);
    client.close().await;
}
