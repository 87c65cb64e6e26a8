//! Contract 5.3, 6: those with nothing to do notice that their star is gone, and go on by
//! themselves; every call on a dead star ends.
//!
//! ```text
//!   caught up, idle -- kill -9 -- start -- append --> reader has it     within the silence
//!                                     ---- append --> producer is acked
//! ```

use crate::{SITE, all_bodies, in_time, make_stream, numbered, producer};
use nova_client::*;
use nova_e2e::home::Home;
use nova_model::limits::CLIENT_SILENCE_US;
use std::time::{Duration, Instant};
use tokio::task::JoinSet;

/// What one attempt to connect takes when nobody answers.
const CONNECT: Duration = Duration::from_secs(5);
/// What a busy test machine may add.
const SLACK: Duration = Duration::from_secs(4);

/// The numbers of the next batch of a follower, and how long it took.
async fn next_batch(reader: &mut Reader) -> std::ops::Range<u64> {
    loop {
        let item = in_time("an item", reader.next_batch()).await;
        match item.expect("breaks are no errors") {
            Some(ReadItem::Batch(batch)) => return batch.first().0..batch.end().0,
            Some(ReadItem::CaughtUp(_)) => {}
            None => panic!("a follower does not end"),
        }
    }
}

/// With the default settings, killed twice: the first time the producer is woken by its own
/// append, the second time the reader by somebody else's.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_idle_reader_and_an_idle_producer_go_on_after_a_kill() {
    let silence = Duration::from_micros(CLIENT_SILENCE_US);
    let home = Home::new(SITE);
    let mut star = home.start();
    let client = home.client();
    let name = make_stream(&client, "idle").await;
    let producer = producer(&client, &name);
    let appended = in_time("an ack", producer.append(Record::new(numbered(0)))).await;
    appended.expect("an ack");
    let mut open = read_from(name.clone(), 0);
    open.follow = true;
    let reading = home.client();
    let reader = in_time("a reader", reading.read(open)).await;
    let mut reader = reader.expect("a reader");
    assert_eq!(next_batch(&mut reader).await, 0..1);

    let mut next = 1;
    for is_own in [true, false] {
        star.kill();
        star = home.start();
        let begun = Instant::now();
        let record = Record::new(numbered(next));
        let appended = match is_own {
            true => in_time("an ack", producer.append(record)).await,
            false => crate::append_once(&home.client(), &name, record).await,
        };
        let appended = appended.expect("an ack");
        assert_eq!(
            (appended.start.sequence.0, appended.duplicate),
            (next, false)
        );
        let acked = begun.elapsed();
        assert_eq!(next_batch(&mut reader).await, next..next + 1);
        let seen = begun.elapsed();
        println!(
            "after a kill: acked in {acked:?} (own: {is_own}), seen by a follower in {seen:?}"
        );
        assert!(acked < silence + SLACK && seen < silence + SLACK);
        next += 1;
    }
    let appended = in_time("an ack", producer.append(Record::new(numbered(next)))).await;
    assert_eq!(appended.expect("an ack").start.sequence.0, next);
    assert_eq!(next_batch(&mut reader).await, next..next + 1);
    let there = all_bodies(&client, &name).await;
    let wanted = (0..=next).map(numbered);
    assert!(wanted.eq(there.iter().map(|body| body.to_vec())));
    star.stop().expect_done();
}

type Call = std::pin::Pin<Box<dyn Future<Output = Result<(), ClientError>> + Send>>;

fn call<T>(what: impl Future<Output = Result<T, ClientError>> + Send + 'static) -> Call {
    Box::pin(async move { what.await.map(drop) })
}

macro_rules! calls {
    ($client:expr, $($name:ident ( $($argument:expr),* )),* $(,)?) => {
        vec![$((stringify!($name), {
            let client = $client.clone();
            call(async move { client.$name($($argument),*).await })
        })),*]
    };
}

/// One of each call of the SDK.
fn every_call(client: &Client, name: &StreamName) -> Vec<(&'static str, Call)> {
    let stream = || name.clone();
    let (a, b, c, d, e) = (stream(), stream(), stream(), stream(), stream());
    let (f, g, h, i, j) = (stream(), stream(), stream(), stream(), stream());
    let bucket = || BucketName::parse("tests").expect("a legal name");
    let (bucket_a, bucket_b, bucket_c, bucket_d) = (bucket(), bucket(), bucket(), bucket());
    let new = BucketName::parse("other").expect("a legal name");
    let settings = StreamSettings::default();
    let page = Page {
        limit: 10,
        ..Page::default()
    };
    let (page_a, page_b) = (page.clone(), page);
    let one = CoreSet::One(CoreId(0));
    let records = [Record::new("x")];
    calls!(
        client,
        check_tail(a),
        describe_stream(b),
        create_stream(c, settings),
        ensure_stream(d, settings),
        delete_stream(e),
        reconfigure_stream(f, settings),
        fence(g, crate::token("t"), Conditions::default()),
        trim(h, SequenceNumber(1), Conditions::default()),
        append_once(i, &records, AppendOnce::default()),
        read(read_from(j, 0)),
        create_bucket(new, BucketSettings::default()),
        describe_bucket(bucket_a),
        reconfigure_bucket(bucket_b, BucketChange::default()),
        delete_bucket(bucket_c),
        list_buckets(page_a),
        list_streams(bucket_d, page_b),
        status(),
        describe_star(),
        drain(one),
        undrain(one),
        rebalance(),
    )
}

/// On connections that were alive a moment ago, and then on none: each call ends with an error
/// that says so, and what they leave is not in the way of the next star.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_call_on_a_dead_star_ends_within_silence_and_budget() {
    const SILENCE: Duration = Duration::from_millis(1_500);
    const BUDGET: Duration = Duration::from_secs(2);
    let home = Home::new(SITE);
    let star = home.start();
    let mut config = home.client_config();
    (config.silence_max, config.retry_budget) = (SILENCE, BUDGET);
    let client = Client::connect(config).expect("a client");
    let name = make_stream(&client, "dead").await;
    let idle = producer(&client, &name);
    let appended = in_time("an ack", idle.append(Record::new(numbered(0)))).await;
    appended.expect("an ack");
    star.kill();

    let mut calls = JoinSet::new();
    for (what, call) in every_call(&client, &name) {
        let begun = Instant::now();
        calls.spawn(async move { (what, call.await, begun.elapsed()) });
    }
    let begun = Instant::now();
    let append = in_time("an end", idle.append(Record::new(numbered(1)))).await;
    let mut ends = vec![("append", append.map(drop), begun.elapsed())];
    while let Some(ended) = in_time("an end", calls.join_next()).await {
        ends.push(ended.expect("no panic"));
    }
    assert_eq!(ends.len(), 22);
    for (what, result, took) in ends {
        let error = result.expect_err(what);
        let is_told = matches!(
            error,
            ClientError::Unavailable { .. } | ClientError::Ambiguous(_)
        );
        assert!(is_told, "{what}: {error:?}");
        // Two looks and a sending, each with an attempt to connect that had begun in time.
        let most = SILENCE + BUDGET + 2 * CONNECT + SLACK;
        assert!(took < most, "{what} took {took:?}");
        println!("{what}: {took:?}, clean: {}", error.is_clean());
    }
    let star = home.start();
    let tail = in_time("a tail", client.check_tail(name.clone())).await;
    assert_eq!(
        tail.expect("a tail").sequence.0,
        1,
        "nothing came to the star"
    );
    star.stop().expect_done();
}
