//! Contract 1, 2, 5, 6: what is appended is durable, in order, the producer's own bytes, and every
//! caller knows where its records are.

use crate::raw::Raw;
use crate::{
    SITE, all_bodies, append_once, batches, bodies_of, in_time, make_stream, numbered, producer,
    refusal, stream,
};
use nova_client::*;
use nova_e2e::home::Home;
use nova_model::EncodedBatch;
use nova_model::limits::RECORD_METERED_BYTES_MIN;
use nova_model::placement::stream_home;
use nova_model::request::Request;
use nova_proto::client::ControlEvent;
use std::sync::Arc;
use std::time::Duration;

const MIB: usize = 1024 * 1024;

fn sample_batch() -> Vec<Record> {
    vec![
        Record::new("first").with_timestamp(Timestamp(1_000_000)),
        Record::new(vec![0, 255, b'\n', 0])
            .with_header("name", "value")
            .with_header("name", "again")
            .with_header(vec![0xff], ""),
        Record::new(""),
    ]
}

/// Contract 2.1, 2.2; storage: the payload is the client's archive, byte for byte.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_batch_comes_back_as_the_producers_own_bytes() {
    let home = Home::new(SITE);
    let _star = home.start();
    let client = home.client();
    let name = make_stream(&client, "bytes").await;
    let producer = producer(&client, &name);
    let batch = sample_batch();
    let first = in_time("an ack", producer.append_batch(batch.clone()))
        .await
        .expect("an ack");
    let second = in_time("an ack", producer.append(Record::new("4")))
        .await
        .expect("an ack");
    assert_eq!((first.start.sequence.0, first.end.sequence.0), (0, 3));
    assert_eq!((second.start.sequence.0, second.end.sequence.0), (3, 4));
    assert!(second.tail.sequence.0 >= 4 && first.tail.sequence.0 >= 3);
    assert!(!first.duplicate && first.times.total_us >= first.times.written_us);
    assert_eq!(
        first.start.timestamp,
        Timestamp(1_000_000),
        "the client's own time"
    );

    let read = batches(&client, read_from(name.clone(), 0))
        .await
        .expect("a read");
    let sent = EncodedBatch::encode(&batch).expect("a legal batch");
    assert_eq!(read[0].stored().batch.bytes(), sent.bytes());
    assert_eq!(read[0].stored().batch.checksum(), sent.checksum());
    let records: Vec<Record> = read[0]
        .to_records()
        .into_iter()
        .map(|(_, record)| record)
        .collect();
    assert_eq!(records, batch);
    let tail = in_time("a tail", client.check_tail(name))
        .await
        .expect("a tail");
    assert_eq!(tail.sequence.0, 4);
    in_time("a close", producer.close())
        .await
        .expect("nothing failed");
}

/// Contract 5.2: every caller gets exactly its own records' range.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_caller_of_many_gets_its_own_range() {
    const CALLERS: u64 = 64;
    let home = Home::new(SITE);
    let _star = home.start();
    let client = home.client();
    let name = make_stream(&client, "callers").await;
    let producer = Arc::new(producer(&client, &name));
    let mut callers = tokio::task::JoinSet::new();
    for caller in 0..CALLERS {
        let producer = Arc::clone(&producer);
        callers.spawn(async move {
            let mut own = Vec::new();
            for round in 0..20 {
                let count = 1 + (caller + round) % 4;
                let body = |n| format!("{caller} {round} {n}");
                let records = (0..count).map(|n| Record::new(body(n))).collect();
                let appended = producer.append_batch(records).await.expect("an ack");
                assert_eq!(appended.end.sequence.0 - appended.start.sequence.0, count);
                own.extend((appended.start.sequence.0..).zip((0..count).map(body)));
            }
            own
        });
    }
    let mut all: Vec<(u64, String)> = Vec::new();
    while let Some(own) = in_time("a caller", callers.join_next()).await {
        all.extend(own.expect("no panic"));
    }
    all.sort_unstable();
    let told: Vec<String> = all.into_iter().map(|(_, body)| body).collect();
    let read = all_bodies(&client, &name).await;
    assert_eq!(told.len(), read.len());
    assert!(
        told.iter()
            .zip(&read)
            .all(|(told, read)| told.as_bytes() == read)
    );
}

/// Contract 5.1: what gathers rides together, a lowered batch size bounds it, linger waits.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn batches_gather_linger_and_stay_within_their_size() {
    let home = Home::new(SITE);
    let _star = home.start();
    let client = home.client();
    let lingering = ProducerConfig {
        linger: Duration::from_secs(1),
        ..ProducerConfig::default()
    };
    let bounded = ProducerConfig {
        batch_size: 1000,
        ..ProducerConfig::default()
    };
    let sizes = async |key: &str, config: ProducerConfig, count: u64| {
        let name = make_stream(&client, key).await;
        let producer = client
            .producer(name.clone(), config)
            .expect("legal settings");
        for n in 0..count {
            let record = Record::new(format!("{n:300}"));
            // Whoever drops a ticket still hears of a failure from the flush.
            drop(producer.append_async(record).await.expect("room"));
        }
        in_time("a flush", producer.flush())
            .await
            .expect("nothing failed");
        let read = batches(&client, read_from(name, 0)).await.expect("a read");
        let sizes = read
            .iter()
            .map(|batch| batch.stored().batch.metered_bytes());
        sizes.collect::<Vec<u32>>()
    };
    let gathered = sizes("lingering", lingering, 100).await;
    assert_eq!(
        gathered.len(),
        1,
        "linger gathers all that came within its time"
    );
    let natural = sizes("natural", ProducerConfig::default(), 2000).await;
    assert!(
        natural.len() < 2000 / 4,
        "under load records ride together: {}",
        natural.len()
    );
    let bounded = sizes("bounded", bounded, 200).await;
    assert!(bounded.iter().all(|&bytes| bytes <= 1000), "{bounded:?}");
    assert!(bounded.len() >= 200 / 3);
}

/// Contract 1: a record and a batch of 1 MiB are taken, larger ones refused by field and limit.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_mebibyte_is_taken_and_a_byte_more_is_refused() {
    let home = Home::new(SITE);
    let _star = home.start();
    let client = home.client();
    let name = make_stream(&client, "sizes").await;
    let producer = producer(&client, &name);
    let body_max = MIB - RECORD_METERED_BYTES_MIN;
    let largest = Record::new(vec![7; body_max]);
    in_time("an ack", producer.append(largest.clone()))
        .await
        .expect("1 MiB fits");
    append_once(&client, &name, largest)
        .await
        .expect("1 MiB fits");
    let limit = |field: &str| Facts::Field {
        field: field.to_owned(),
        limit: Some(MIB as u64),
    };
    let larger = Record::new(vec![7; body_max + 1]);
    let refused = in_time("an answer", producer.append(larger.clone())).await;
    assert_eq!(refusal(refused, Code::TooLarge).facts, limit("record"));
    let refused = append_once(&client, &name, larger).await;
    assert_eq!(refusal(refused, Code::TooLarge).facts, limit("record"));
    let many = vec![Record::new(vec![7; MIB / 2]); 2];
    let refused = in_time("an answer", producer.append_batch(many)).await;
    assert_eq!(refusal(refused, Code::TooLarge).facts, limit("batch"));
    let refused = in_time("an answer", producer.append_batch(Vec::new())).await;
    refusal(refused, Code::Invalid);
    let small = vec![Record::new(""); 100_000];
    let appended = in_time("an ack", producer.append_batch(small))
        .await
        .expect("no count cap");
    assert_eq!(appended.start.sequence.0, 2);
    let read = bodies_of(&client, read_from(name, 0))
        .await
        .expect("a read");
    assert_eq!(read.len(), 100_002);
    assert!(read[..2].iter().all(|(_, body)| body.len() == body_max));
}

/// Contract 4.2: each core leads its own streams, another one names the leader, and the client
/// follows below its caller's call; contract 7: a list is in order over all cores.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn streams_of_two_cores_are_reached_through_either() {
    if std::thread::available_parallelism().map_or(1, usize::from) < 2 {
        println!("not run: a star of two cores needs two CPUs");
        return;
    }
    let home = Home::new(SITE).with_cores(2);
    let _star = home.start();
    let client = home.client();
    let star = in_time("the star", client.describe_star())
        .await
        .expect("the star");
    assert_eq!(star.cores.len(), 2);
    let mut by_core = [Vec::new(), Vec::new()];
    for n in 0..24 {
        let name = make_stream(&client, &format!("s{n:02}")).await;
        by_core[usize::from(stream_home(&name, 2).0)].push(name.clone());
        let producer = producer(&client, &name);
        in_time("an ack", producer.append(Record::new(numbered(n))))
            .await
            .expect("an ack");
        in_time("a close", producer.close())
            .await
            .expect("nothing failed");
    }
    assert!(
        by_core.iter().all(|streams| !streams.is_empty()),
        "both cores lead some"
    );
    let page = Page {
        prefix: "s".to_owned(),
        start_after: "s03".to_owned(),
        limit: 10,
    };
    let bucket = BucketName::parse("tests").expect("a legal name");
    let listed = in_time("a list", client.list_streams(bucket, page))
        .await
        .expect("a list");
    let keys: Vec<String> = listed
        .items
        .iter()
        .map(|info| info.name.key.to_string())
        .collect();
    let wanted: Vec<String> = (4..14).map(|n| format!("s{n:02}")).collect();
    assert_eq!((keys, listed.has_more), (wanted, true));

    for (core, streams) in by_core.iter().enumerate() {
        let other = &star.cores[1 - core].address;
        let mut raw = Raw::connect(&home, other).await;
        let mut lane = raw.control().await;
        let request = Request::CheckTail {
            name: streams[0].clone(),
        };
        match lane.ask(&request).await {
            ControlEvent::Answered(_, Err(refusal)) => {
                assert_eq!(refusal.code, Code::NotOwner);
                let address = Some(star.cores[core].address.clone());
                let told = match refusal.facts {
                    Facts::Holder { address, .. } => address,
                    facts => panic!("no holder: {facts:?}"),
                };
                assert_eq!(told, address);
            }
            event => panic!("not refused: {event:?}"),
        }
        for name in streams {
            let read = all_bodies(&client, name).await;
            assert_eq!(read.len(), 1, "{name}");
        }
    }
}

/// Contract 1, 8: names that are none, buckets and streams that are not there.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_not_there_is_said_by_its_code() {
    let home = Home::new(SITE);
    let _star = home.start();
    let client = home.client();
    make_stream(&client, "there").await;
    let long = "x".repeat(513);
    for bad in [
        "tests",
        "tests/",
        "Tests/x",
        "-a/x",
        "tests/.",
        "tests/..",
        &format!("t/{long}"),
    ] {
        let refused = StreamName::parse(bad).expect_err("no legal name");
        assert_eq!(refused.code, Code::Invalid, "{bad}");
    }
    let no_bucket = StreamName::parse("nothere/x").expect("a legal name");
    for (name, code) in [
        (no_bucket, Code::BucketNotFound),
        (stream("absent"), Code::StreamNotFound),
    ] {
        let tail = in_time("an answer", client.check_tail(name.clone())).await;
        refusal(tail, code);
        let read = bodies_of(&client, read_from(name.clone(), 0)).await;
        refusal(read, code);
        let producer = producer(&client, &name);
        refusal(
            in_time("an answer", producer.append(Record::new("x"))).await,
            code,
        );
        refusal(append_once(&client, &name, Record::new("x")).await, code);
        refusal(in_time("an answer", client.delete_stream(name)).await, code);
    }
    let again = client.create_stream(stream("there"), StreamSettings::default());
    refusal(in_time("an answer", again).await, Code::AlreadyExists);
    let bucket = BucketName::parse("auto").expect("a legal name");
    let settings = BucketSettings {
        create_stream_on_append: true,
        ..BucketSettings::default()
    };
    in_time("a bucket", client.create_bucket(bucket, settings))
        .await
        .expect("a bucket");
    let name = StreamName::parse("auto/made").expect("a legal name");
    let producer = producer(&client, &name);
    in_time("an ack", producer.append(Record::new("x")))
        .await
        .expect("made by the append");
}

/// Contract 6: where reads start and end.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reads_start_and_end_where_they_are_told_to() {
    let home = Home::new(SITE);
    let _star = home.start();
    let client = home.client();
    let name = make_stream(&client, "limits").await;
    let producer = producer(&client, &name);
    for chunk in 0..5 {
        let record = |n: u64| Record::new(numbered(n)).with_timestamp(Timestamp(1000 + n));
        let records = (chunk * 4..chunk * 4 + 4).map(record).collect();
        in_time("an ack", producer.append_batch(records))
            .await
            .expect("an ack");
    }
    let open = |start, change: fn(&mut ReadOpen)| {
        let mut open = read_from(name.clone(), 0);
        open.start = start;
        change(&mut open);
        open
    };
    let from = |n| ReadStart::Sequence(SequenceNumber(n));
    let cases: [(ReadOpen, std::ops::Range<u64>); 8] = [
        (open(from(0), |_| {}), 0..20),
        (open(from(7), |open| open.limits.count = Some(3)), 7..10),
        (
            open(from(3), |open| {
                open.limits.until_sequence = Some(SequenceNumber(9))
            }),
            3..9,
        ),
        (open(ReadStart::TailOffset(5), |_| {}), 15..20),
        (open(ReadStart::Timestamp(Timestamp(1006)), |_| {}), 6..20),
        (
            open(from(0), |open| {
                open.limits.until_timestamp = Some(Timestamp(1006))
            }),
            0..6,
        ),
        (open(from(99), |open| open.clamp = true), 20..20),
        (open(from(20), |_| {}), 20..20),
    ];
    for (open, wanted) in cases {
        let read = bodies_of(&client, open.clone()).await.expect("a read");
        let numbers = read.iter().map(|(n, _)| *n);
        assert!(
            numbers.eq(wanted.clone()),
            "{open:?}: wanted {wanted:?}, got {read:?}"
        );
        assert!(read.iter().all(|(n, body)| *body == numbered(*n)));
    }
    let past = refusal(
        bodies_of(&client, read_from(name.clone(), 21)).await,
        Code::PastTail,
    );
    assert!(matches!(past.facts, Facts::Tail(tail) if tail.sequence.0 == 20));
    let trim = client.trim(name.clone(), SequenceNumber(6), Conditions::default());
    let (first, tail) = in_time("a trim", trim).await.expect("a trim");
    assert_eq!((first.0, tail.sequence.0), (6, 20));
    let trimmed = refusal(
        bodies_of(&client, read_from(name.clone(), 5)).await,
        Code::Trimmed,
    );
    assert_eq!(trimmed.facts, Facts::First(SequenceNumber(6)));
    let left = bodies_of(&client, read_from(name, 6))
        .await
        .expect("what is left");
    assert_eq!(left.len(), 14);
}

/// Contract 6: a follower is given new records as they become durable, and a caught-up mark.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_follower_is_given_what_becomes_durable() {
    let home = Home::new(SITE);
    let _star = home.start();
    let client = home.client();
    let name = make_stream(&client, "follow").await;
    let mut open = read_from(name.clone(), 0);
    open.follow = true;
    open.limits.count = Some(30);
    let mut reader = in_time("a reader", client.read(open))
        .await
        .expect("a reader");
    let first = in_time("a mark", reader.next_batch())
        .await
        .expect("no error");
    assert!(matches!(first, Some(ReadItem::CaughtUp(tail)) if tail.sequence.0 == 0));
    let producer = producer(&client, &name);
    let mut given = 0;
    for n in 0..30_u64 {
        in_time("an ack", producer.append(Record::new(numbered(n))))
            .await
            .expect("an ack");
        while given <= n {
            let item = in_time("a record", reader.next_batch())
                .await
                .expect("no error");
            if let Some(ReadItem::Batch(batch)) = item {
                given = batch.end().0;
            }
        }
    }
    let end = in_time("the end", reader.next_batch())
        .await
        .expect("no error");
    assert_eq!(end, None, "it ends with the count that was asked for");
}
