//! Contract 1, 7: incarnations, streams that an append makes, settings and where they come from,
//! timestamps by mode.

use crate::{
    SITE, all_bodies, append_once, batches, in_time, make_stream, numbered, producer, refusal,
    stream,
};
use nova_client::*;
use nova_e2e::home::Home;
use nova_model::settings::{Origin, Retention, TimestampMode};
use std::time::{SystemTime, UNIX_EPOCH};

/// Contract 1: what was meant for a deleted stream never reaches one made anew under its name, and
/// whoever follows the deleted one is told.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_made_anew_gets_nothing_that_was_meant_for_the_old_one() {
    let home = Home::new(SITE);
    let star = home.start();
    let client = home.client();
    let name = make_stream(&client, "again").await;
    let old = producer(&client, &name);
    in_time("an ack", old.append(Record::new("old")))
        .await
        .expect("an ack");
    let mut open = read_from(name.clone(), 0);
    open.follow = true;
    let mut follower = in_time("a reader", client.read(open))
        .await
        .expect("a reader");
    let told = in_time("a stream", client.describe_stream(name.clone()))
        .await
        .expect("a stream");
    in_time("a delete", client.delete_stream(name.clone()))
        .await
        .expect("a delete");
    let made = client.create_stream(name.clone(), StreamSettings::default());
    let made = in_time("a stream", made).await.expect("a stream");
    assert_ne!(made.id, told.id);
    let late = in_time("an answer", old.append(Record::new("late"))).await;
    refusal(late, Code::StreamNotFound);
    let end = loop {
        match in_time("the end", follower.next_batch()).await {
            Ok(item) => assert!(item.is_some(), "a follower has no end"),
            Err(error) => break error,
        }
    };
    refusal::<()>(Err(end), Code::StreamNotFound);
    let with = AppendOnce {
        stream_id: Some(told.id),
        ..AppendOnce::default()
    };
    let records = [Record::new("late too")];
    let late = in_time(
        "an answer",
        client.append_once(name.clone(), &records, with),
    )
    .await;
    refusal(late, Code::StreamNotFound);
    append_once(&client, &name, Record::new("new"))
        .await
        .expect("an ack");
    star.kill();
    let _star = home.start();
    assert_eq!(all_bodies(&client, &name).await, ["new"]);
    let told = in_time("a stream", client.describe_stream(name))
        .await
        .expect("a stream");
    assert_eq!(told.id, made.id);
}

/// Contract 7: first appends that race make one stream and are all in it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn first_appends_that_race_make_one_stream() {
    const WRITERS: u64 = 16;
    let home = Home::new(SITE);
    let _star = home.start();
    let client = home.client();
    let bucket = BucketName::parse("auto").expect("a legal name");
    let settings = BucketSettings {
        create_stream_on_append: true,
        ..BucketSettings::default()
    };
    in_time("a bucket", client.create_bucket(bucket, settings))
        .await
        .expect("a bucket");
    for round in 0..4 {
        let name = StreamName::parse(&format!("auto/s{round}")).expect("a legal name");
        let mut writers = tokio::task::JoinSet::new();
        for n in 0..WRITERS {
            let (client, name) = (home.client(), name.clone());
            writers
                .spawn(async move { append_once(&client, &name, Record::new(numbered(n))).await });
        }
        let mut places = Vec::new();
        while let Some(appended) = in_time("a writer", writers.join_next()).await {
            let appended = appended.expect("no panic").expect("an ack");
            places.push(appended.start.sequence.0);
        }
        places.sort_unstable();
        assert!(places.into_iter().eq(0..WRITERS));
        let mut bodies = all_bodies(&client, &name).await;
        let mut wanted: Vec<Vec<u8>> = (0..WRITERS).map(numbered).collect();
        bodies.sort_unstable();
        wanted.sort_unstable();
        assert_eq!(bodies, wanted);
    }
}

/// Contract 7: each setting says where it came from, also after a restart.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn settings_say_where_they_come_from() {
    let home = Home::new(SITE);
    let star = home.start();
    let client = home.client();
    let bucket = BucketName::parse("tests").expect("a legal name");
    let retention = Retention {
        age_s: Some(3600),
        bytes: None,
    };
    let defaults = StreamSettings {
        retention: Some(retention),
        ..StreamSettings::default()
    };
    let settings = BucketSettings {
        defaults,
        ..BucketSettings::default()
    };
    in_time("a bucket", client.create_bucket(bucket, settings))
        .await
        .expect("a bucket");
    let own = StreamSettings {
        policy: Some(ProducerPolicy::Fenced),
        ..StreamSettings::default()
    };
    let made = in_time("a stream", client.create_stream(stream("set"), own)).await;
    let made = made.expect("a stream").settings;
    let change = StreamSettings {
        timestamps: Some(TimestampMode::Arrival),
        ..StreamSettings::default()
    };
    let changed = in_time("a change", client.reconfigure_stream(stream("set"), change)).await;
    let changed = changed.expect("a change").settings;
    assert_eq!(
        (made.policy.value, made.policy.origin),
        (ProducerPolicy::Fenced, Origin::Stream)
    );
    assert_eq!(
        (made.retention.value, made.retention.origin),
        (retention, Origin::Bucket)
    );
    assert_eq!(made.timestamps.origin, Origin::BuiltIn);
    assert_eq!(changed.timestamps.origin, Origin::Stream);
    star.kill();
    let _star = home.start();
    let told = in_time("a stream", client.describe_stream(stream("set"))).await;
    assert_eq!(told.expect("a stream").settings, changed);
}

fn now_us() -> u64 {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .expect("after 1970");
    u64::try_from(since.as_micros()).expect("before the year 586,000")
}

/// Contract 1: whose time counts, that it is capped at arrival, and that it never decreases.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn timestamps_follow_the_mode_and_never_decrease() {
    let home = Home::new(SITE);
    let _star = home.start();
    let client = home.client();
    make_stream(&client, "first").await;
    let future = Timestamp(now_us() + 3_600_000_000);
    let past = Timestamp(1_000_000);
    let times = async |key: &str, mode: TimestampMode, uncapped: bool| {
        let settings = StreamSettings {
            timestamps: Some(mode),
            timestamps_uncapped: Some(uncapped),
            ..StreamSettings::default()
        };
        let made = client.create_stream(stream(key), settings);
        in_time("a stream", made).await.expect("a stream");
        let missing = append_once(&client, &stream(key), Record::new("no time")).await;
        for time in [past, future, past] {
            let record = Record::new("x").with_timestamp(time);
            append_once(&client, &stream(key), record)
                .await
                .expect("an ack");
        }
        let read = batches(&client, read_from(stream(key), 0))
            .await
            .expect("a read");
        let mut times = Vec::new();
        for batch in &read {
            batch.for_each(|position, _| times.push(position.timestamp));
        }
        assert!(times.is_sorted(), "{key}: {times:?}");
        (missing, times)
    };
    let (missing, prefer) = times("prefer", TimestampMode::ClientPrefer, false).await;
    assert!(missing.is_ok() && prefer.iter().all(|time| *time > past && *time < future));
    let (missing, uncapped) = times("uncapped", TimestampMode::ClientPrefer, true).await;
    assert!(missing.is_ok());
    assert_eq!(uncapped[2..], [future, future]);
    let (missing, require) = times("require", TimestampMode::ClientRequire, false).await;
    refusal(missing, Code::Invalid);
    assert_eq!((require.len(), require[0]), (3, past));
    assert!(require[1] < future);
    let (missing, arrival) = times("arrival", TimestampMode::Arrival, true).await;
    assert!(missing.is_ok() && arrival.iter().all(|time| *time > past && *time < future));
}
