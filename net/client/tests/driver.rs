//! The driver against a star in memory: real QUIC, real lanes, faults on demand.

mod star;

use nova_client::*;
use star::TestStar;
use std::sync::Arc;
use std::time::Duration;

fn stream(key: &str) -> StreamName {
    StreamName::parse(&format!("bucket/{key}")).expect("a legal name")
}

async fn with_stream(star: &TestStar, key: &str) -> (Client, StreamName) {
    let client = Client::connect(star.config()).expect("a client");
    let name = stream(key);
    let made = client
        .ensure_stream(name.clone(), StreamSettings::default())
        .await;
    assert!(made.expect("a stream").1);
    (client, name)
}

fn numbered(n: u32) -> Record {
    Record::new(n.to_string())
}

/// Reads all there is: (sequence number, body as a number).
async fn read_all(client: &Client, name: &StreamName) -> Vec<(u64, u32)> {
    let mut reader = client
        .read(read_from(name.clone(), 0))
        .await
        .expect("a reader");
    let mut all = Vec::new();
    while let Some(item) = reader.next_batch().await.expect("no error") {
        if let ReadItem::Batch(batch) = item {
            all.extend(numbers(&batch));
        }
    }
    all
}

fn numbers(batch: &ReadBatch) -> Vec<(u64, u32)> {
    let parse = |record: &Record| std::str::from_utf8(&record.body).ok()?.parse().ok();
    let records = batch.to_records();
    let pair = |(at, record): &(Position, Record)| Some((at.sequence.0, parse(record)?));
    records
        .iter()
        .map(|record| pair(record).expect("a number"))
        .collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_callers_get_their_own_positions() {
    let star = TestStar::start();
    let (client, name) = with_stream(&star, "many").await;
    let producer = client
        .producer(name.clone(), ProducerConfig::default())
        .expect("a producer");
    let producer = Arc::new(producer);
    let mut callers = tokio::task::JoinSet::new();
    for caller in 0..8 {
        let producer = Arc::clone(&producer);
        callers.spawn(async move {
            let mut own = Vec::new();
            for n in 0..200 {
                let number = caller * 1000 + n;
                let placed = producer.append(numbered(number)).await.expect("appended");
                assert_eq!(placed.end.sequence.0, placed.start.sequence.0 + 1);
                own.push((placed.start.sequence.0, number));
            }
            own
        });
    }
    let mut told: Vec<_> = callers.join_all().await.into_iter().flatten().collect();
    told.sort_unstable();
    assert_eq!(read_all(&client, &name).await, told);
    Arc::into_inner(producer)
        .expect("the callers are gone")
        .close()
        .await
        .expect("closed");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tickets_resolve_in_order_and_close_waits_for_all() {
    let star = TestStar::start();
    let (client, name) = with_stream(&star, "tickets").await;
    let producer = client
        .producer(name.clone(), ProducerConfig::default())
        .expect("a producer");
    let mut tickets = Vec::new();
    for n in 0..5_000 {
        tickets.push(producer.append_async(numbered(n)).await.expect("staged"));
    }
    producer.flush().await.expect("all are durable");
    for (n, ticket) in tickets.into_iter().enumerate() {
        let placed = ticket.try_result().expect("flushed").expect("appended");
        assert_eq!(placed.start.sequence.0, n as u64);
    }
    let last = producer
        .append_async(numbered(5_000))
        .await
        .expect("staged");
    producer.close().await.expect("closed");
    assert_eq!(last.await.expect("appended").start.sequence.0, 5_000);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn broken_connections_neither_lose_nor_double() {
    let star = TestStar::start();
    let (client, name) = with_stream(&star, "broken").await;
    star.knobs().break_every = Some(23);
    star.knobs().break_reads_every = Some(11);
    let config = ProducerConfig {
        batch_size: 64,
        ..ProducerConfig::default()
    };
    let producer = client.producer(name.clone(), config).expect("a producer");
    let mut open = read_from(name.clone(), 0);
    open.follow = true;
    let mut reader = client.read(open).await.expect("a reader");
    let reading = tokio::spawn(async move {
        let mut all = Vec::new();
        while all.len() < 600 {
            if let Some(ReadItem::Batch(batch)) = reader.next_batch().await.expect("no error") {
                all.extend(numbers(&batch));
            }
        }
        all
    });
    let mut tickets = Vec::new();
    for n in 0..600 {
        tickets.push(producer.append_async(numbered(n)).await.expect("staged"));
    }
    for (n, ticket) in tickets.into_iter().enumerate() {
        assert_eq!(ticket.await.expect("appended").start.sequence.0, n as u64);
    }
    let all: Vec<(u64, u32)> = (0..600).map(|n| (u64::from(n), n)).collect();
    assert_eq!(reading.await.expect("no panic"), all);
    assert!(star.knobs().connections > 10, "they did break");
    star.knobs().break_every = None;
    producer.close().await.expect("closed");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn redirects_are_followed_below_the_call() {
    let star = TestStar::start();
    let (client, name) = with_stream(&star, "moved").await;
    star.knobs().leader = Some(1);
    let producer = client
        .producer(name.clone(), ProducerConfig::default())
        .expect("a producer");
    producer.append(numbered(0)).await.expect("appended");
    assert_eq!(
        client
            .check_tail(name.clone())
            .await
            .expect("a tail")
            .sequence
            .0,
        1
    );
    assert_eq!(read_all(&client, &name).await, [(0, 0)]);
    let with = AppendOnce::default();
    let placed = client
        .append_once(name.clone(), &[numbered(1)], with)
        .await
        .expect("appended");
    assert_eq!(placed.start.sequence.0, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_holder_that_does_not_resolve_fails_at_once() {
    let star = TestStar::start();
    let (client, name) = with_stream(&star, "nowhere").await;
    star.knobs().holder = Some("no-such-host.invalid:4433".to_owned());
    let unresolvable = |error: ClientError| match error {
        ClientError::HolderUnresolvable { address } => assert!(address.starts_with("no-such")),
        other => panic!("{other:?}"),
    };
    let producer = client
        .producer(name.clone(), ProducerConfig::default())
        .expect("a producer");
    unresolvable(producer.append(numbered(0)).await.expect_err("nowhere"));
    unresolvable(client.check_tail(name.clone()).await.expect_err("nowhere"));
    unresolvable(client.read(read_from(name, 0)).await.expect_err("nowhere"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn refusals_reach_their_caller_and_the_rest_goes_on() {
    let star = TestStar::start();
    let (client, name) = with_stream(&star, "refused").await;
    let producer = client
        .producer(name.clone(), ProducerConfig::default())
        .expect("a producer");
    let wrong = producer
        .append_if_async(SequenceNumber(5), vec![numbered(9)])
        .await;
    let right = producer.append_async(numbered(0)).await.expect("staged");
    let error = wrong.expect("staged").await.expect_err("a mismatch");
    let refusal = error.refusal().expect("a refusal");
    assert_eq!(
        (refusal.code, &refusal.facts),
        (Code::SeqMismatch, &Facts::Tail(Position::default()))
    );
    assert!(error.is_clean() && !error.is_retryable());
    assert_eq!(right.await.expect("appended").start.sequence.0, 0);
    star.knobs().refuse = vec![Refusal::new(Code::DiskFull, "full"); 3];
    let placed = producer.append(numbered(1)).await.expect("after a while");
    assert_eq!(placed.start.sequence.0, 1);
    let placed = producer
        .append_if(SequenceNumber(2), vec![numbered(2)])
        .await;
    assert_eq!(placed.expect("a match").end.sequence.0, 3);
    let flushed = producer.flush().await.expect_err("the mismatch is told");
    assert_eq!(
        flushed.refusal().map(|refusal| refusal.code),
        Some(Code::SeqMismatch)
    );
    producer.close().await.expect("nothing failed since");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dropped_producer_tells_every_ticket() {
    let star = TestStar::start();
    let (client, name) = with_stream(&star, "dropped").await;
    let producer = client
        .producer(name.clone(), ProducerConfig::default())
        .expect("a producer");
    producer.append(numbered(0)).await.expect("appended");
    star.knobs().is_silent = true;
    let batches = star.knobs().batches;
    let sent = producer.append_async(numbered(1)).await.expect("staged");
    while star.knobs().batches == batches {
        tokio::task::yield_now().await;
    }
    drop(producer);
    let error = sent.await.expect_err("nobody waits any more");
    let ambiguity = error.ambiguity().expect("it was sent");
    star.knobs().is_silent = false;
    let placed = client
        .settle_append(&name, ambiguity, None, &[numbered(1)])
        .await;
    assert_eq!(placed.expect("it is there").start.sequence.0, 1);
    let absent = client
        .settle_append(&name, ambiguity, None, &[numbered(2)])
        .await;
    assert_eq!(absent.expect("done again").start.sequence.0, 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn authorities_that_cannot_be_used_fail_before_anything_is_sent() {
    let star = TestStar::start();
    let mut config = star.config();
    let address = star.address(0);
    drop(star);
    config.star = address;
    let authorities = ClientConfig::with_pem("localhost:1", "no certificate");
    assert!(matches!(
        Client::connect(authorities),
        Err(ClientError::Config(ConfigError::Ca(_)))
    ));
    assert!(matches!(
        Client::connect(config),
        Err(ClientError::Config(ConfigError::CaFile { .. }))
    ));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn past_the_budget_a_producer_is_broken_for_good() {
    let star = TestStar::start();
    let mut config = star.config();
    // A port that is bound and never answers.
    let silent = std::net::UdpSocket::bind("127.0.0.1:0").expect("a port");
    config.star = silent.local_addr().expect("an address").to_string();
    let budget = Duration::from_millis(300);
    config.retry_budget = budget;
    config.transport.connect_timeout = Duration::from_millis(100);
    let client = Client::connect(config).expect("a client");
    let producer = client
        .producer(stream("none"), ProducerConfig::default())
        .expect("a producer");
    let begun = std::time::Instant::now();
    for _ in 0..2 {
        let error = producer
            .append(numbered(0))
            .await
            .expect_err("nobody there");
        assert!(
            matches!(error, ClientError::Unavailable { .. }),
            "{error:?}"
        );
        assert!(error.is_clean());
        assert!(begun.elapsed() >= budget, "not before the budget is spent");
    }
    let error = client
        .check_tail(stream("none"))
        .await
        .expect_err("nobody there");
    assert!(
        matches!(error, ClientError::Unavailable { .. }),
        "{error:?}"
    );
    let error = client
        .read(read_from(stream("none"), 0))
        .await
        .expect_err("nobody there");
    assert!(
        matches!(error, ClientError::Unavailable { .. }),
        "{error:?}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reads_keep_to_what_was_asked_and_tell_what_is_gone() {
    let star = TestStar::start();
    let (client, name) = with_stream(&star, "reads").await;
    let records: Vec<Record> = (0..10).map(numbered).collect();
    for part in records.chunks(4) {
        let with = AppendOnce::default();
        client
            .append_once(name.clone(), part, with)
            .await
            .expect("appended");
    }
    let mut open = read_from(name.clone(), 2);
    open.limits.count = Some(5);
    let mut reader = client.read(open.clone()).await.expect("a reader");
    let mut given = Vec::new();
    while let Some(item) = reader.next_batch().await.expect("no error") {
        if let ReadItem::Batch(batch) = item {
            given.extend(numbers(&batch));
        }
    }
    assert_eq!(given, [(2, 2), (3, 3), (4, 4), (5, 5), (6, 6)]);
    assert_eq!(reader.tail().sequence.0, 10);
    let past = client
        .read(read_from(name.clone(), 11))
        .await
        .expect_err("past the tail");
    assert_eq!(
        past.refusal().map(|refusal| refusal.code),
        Some(Code::PastTail)
    );
    let trimmed = client
        .trim(name.clone(), SequenceNumber(4), Conditions::default())
        .await;
    assert_eq!(trimmed.expect("trimmed").0, SequenceNumber(4));
    let gone = client.read(open).await.expect_err("trimmed");
    let facts = gone.refusal().map(|refusal| refusal.facts.clone());
    assert_eq!(facts, Some(Facts::First(SequenceNumber(4))));
    let missing = client
        .read(read_from(stream("missing"), 0))
        .await
        .expect_err("not there");
    assert_eq!(
        missing.refusal().map(|refusal| refusal.code),
        Some(Code::StreamNotFound)
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn streams_of_all_cores_are_listed_in_key_order() {
    let star = TestStar::start();
    let client = Client::connect(star.config()).expect("a client");
    let bucket = BucketName::parse("bucket").expect("a legal name");
    let made = client
        .ensure_bucket(bucket.clone(), BucketSettings::default())
        .await;
    assert!(made.expect("a bucket").1);
    let keys = ["a", "bb", "c", "dd", "e"];
    for key in keys {
        client
            .create_stream(stream(key), StreamSettings::default())
            .await
            .expect("a stream");
    }
    let again = client
        .create_stream(stream("a"), StreamSettings::default())
        .await;
    let again = again.expect_err("it is there");
    assert_eq!(
        again.refusal().map(|refusal| refusal.code),
        Some(Code::AlreadyExists)
    );
    let mut page = Page {
        limit: 2,
        ..Page::default()
    };
    let mut listed = Vec::new();
    loop {
        let part = client
            .list_streams(bucket.clone(), page.clone())
            .await
            .expect("a page");
        assert!(part.items.len() <= 2);
        listed.extend(part.items.iter().map(|info| info.name.key.to_string()));
        if !part.has_more {
            break;
        }
        page.start_after = listed.last().expect("more follows something").clone();
    }
    assert_eq!(listed, keys);
    client.close().await;
}
