//! Contract 2.1, 2.7, 4.1, 5.3, 6: what was acked is there after any end of the star, numbers go
//! on, epochs grow, and clients go on by themselves.
//!
//! What these tests have found: a SIGTERM right behind the line "ready" ended the star without its
//! orderly stop; clients waited 5 s for each stream of a core that was there no more; calls that
//! were given up before that came back to such a core for ever.

use crate::{SITE, all_bodies, append_each, in_time, make_stream, numbered, producer, stream};
use nova_client::*;
use nova_e2e::home::{Home, Star};
use nova_model::placement::stream_home;
use std::time::Duration;

/// How a star ends.
#[derive(Debug, Clone, Copy)]
enum End {
    Stop,
    Kill,
}

fn end(star: Star, how: End) {
    match how {
        End::Stop => drop(star.stop().expect_done()),
        End::Kill => star.kill(),
    }
}

/// All acked data is there, positions continue and epochs grow.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn data_positions_and_epochs_go_on_after_a_stop_and_after_a_kill() {
    for sync in ["dsync", "fdatasync"] {
        go_on(sync).await;
    }
}

/// With writes that become durable in this way.
async fn go_on(sync: &str) {
    let mut home = Home::new(SITE);
    home.add_flag(&format!("--sync={sync}"));
    let mut star = home.start();
    let client = home.client();
    let name = make_stream(&client, "restart").await;
    let mut epoch = None;
    for (round, how) in (0..).zip([End::Stop, End::Kill, End::Kill, End::Stop, End::Kill]) {
        append_each(&client, &name, (round * 10..round * 10 + 10).map(numbered)).await;
        let told = in_time("a stream", client.describe_stream(name.clone())).await;
        let told = told.expect("a stream");
        assert_eq!(told.tail.sequence.0, round * 10 + 10);
        assert!(
            epoch < Some(told.epoch),
            "{epoch:?} grows: {:?}",
            told.epoch
        );
        epoch = Some(told.epoch);
        end(star, how);
        star = home.start();
        let read = all_bodies(&client, &name).await;
        let wanted = (0..round * 10 + 10).map(numbered);
        assert!(
            wanted.eq(read.iter().map(|body| body.to_vec())),
            "after {how:?}"
        );
    }
}

/// A large stream over several segments, read back after a kill.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn several_segments_of_data_are_there_after_a_kill() {
    const RECORDS: u64 = 48;
    let home = Home::new(SITE);
    let star = home.start();
    let client = home.client();
    let name = make_stream(&client, "large").await;
    let body = |n: u64| {
        let word = n.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes();
        word.repeat(128 * 1024 - 16)
    };
    let producer = producer(&client, &name);
    for n in 0..RECORDS {
        drop(
            producer
                .append_async(Record::new(body(n)))
                .await
                .expect("room"),
        );
    }
    in_time("a close", producer.close())
        .await
        .expect("all was appended");
    star.kill();
    let star = home.start();
    let read = all_bodies(&client, &name).await;
    assert_eq!(read.len() as u64, RECORDS);
    assert!(
        (0..RECORDS)
            .zip(&read)
            .all(|(n, there)| body(n) == there[..])
    );
    let segments = nova_e2e::segments::segments(&crate::log_folder(&home, 0));
    assert!(
        segments.len() >= 3,
        "48 MiB fill several segments: {segments:?}"
    );
    star.stop().expect_done();
}

/// Contract 5.3: a producer with a writer id goes on over restarts, and neither loses nor doubles.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_producer_and_a_follower_go_on_over_restarts() {
    const RECORDS: u64 = 4000;
    let home = Home::new(SITE);
    let mut star = home.start();
    let client = home.client();
    let name = make_stream(&client, "goes-on").await;
    let follower = tokio::spawn(follow(client.clone(), name.clone(), RECORDS));
    let producer = producer(&client, &name);
    let mut tickets = Vec::new();
    for n in 0..RECORDS {
        let ticket = in_time("room", producer.append_async(Record::new(numbered(n)))).await;
        tickets.push(ticket.expect("the producer goes on"));
        if n % 1000 == 500 {
            let how = if n % 2000 == 500 {
                End::Kill
            } else {
                End::Stop
            };
            end(star, how);
            star = home.start();
        }
    }
    for (n, ticket) in (0..).zip(tickets) {
        let appended = in_time("an ack", ticket).await.expect("nothing is lost");
        assert_eq!(appended.start.sequence.0, n, "nothing is doubled");
    }
    let followed = in_time("the follower", follower).await.expect("no panic");
    assert!((0..RECORDS).map(numbered).eq(followed));
    assert_eq!(all_bodies(&client, &name).await.len() as u64, RECORDS);
    in_time("a close", producer.close())
        .await
        .expect("nothing failed");
}

async fn follow(client: Client, name: StreamName, count: u64) -> Vec<Vec<u8>> {
    let mut open = read_from(name, 0);
    open.follow = true;
    open.limits.count = Some(count);
    let mut reader = client.read(open).await.expect("a reader");
    let mut bodies = Vec::new();
    while let Some(item) = reader.next_batch().await.expect("breaks are no errors") {
        if let ReadItem::Batch(batch) = item {
            batch.for_each(|_, record| bodies.push(record.body().to_vec()));
        }
    }
    bodies
}

/// Contract 7, storage: a log that no core owns any more is adopted; none is lost on the way back.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_cores_then_one_then_two_keep_every_stream() {
    if std::thread::available_parallelism().map_or(1, usize::from) < 2 {
        println!("not run: a star of two cores needs two CPUs");
        return;
    }
    const STREAMS: u64 = 12;
    let mut home = Home::new(SITE).with_cores(2);
    let mut star = home.start();
    let client = home.client();
    let mut names = Vec::new();
    for n in 0..STREAMS {
        names.push(make_stream(&client, &format!("moving-{n:02}")).await);
    }
    for (round, cores) in (0..).zip([1, 2, 1, 1, 2]) {
        for name in &names {
            append_each(&client, name, (round * 2..round * 2 + 2).map(numbered)).await;
        }
        end(star, if round % 2 == 0 { End::Kill } else { End::Stop });
        home.set_cores(cores);
        star = home.start();
        for name in &names {
            let read = all_bodies(&client, name).await;
            let wanted = (0..round * 2 + 2).map(numbered);
            assert!(
                wanted.eq(read.iter().map(|body| body.to_vec())),
                "{name}, {cores} cores"
            );
        }
        let bucket = BucketName::parse("tests").expect("a legal name");
        let page = Page {
            prefix: String::new(),
            start_after: String::new(),
            limit: 1000,
        };
        let listed = in_time("a list", client.list_streams(bucket, page))
            .await
            .expect("a list");
        assert_eq!(listed.items.len() as u64, STREAMS);
    }
}

/// Callers with less patience than an attempt to connect takes find a stream whose core is gone.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn impatient_callers_find_a_stream_whose_core_is_gone() {
    if std::thread::available_parallelism().map_or(1, usize::from) < 2 {
        println!("not run: a star of two cores needs two CPUs");
        return;
    }
    const PATIENCE: Duration = Duration::from_secs(1);
    let mut home = Home::new(SITE).with_cores(2);
    let star = home.start();
    let client = home.client();
    let far = (0..).map(|n| stream(&format!("far-{n}")));
    let far = far.into_iter().find(|name| stream_home(name, 2).0 == 1);
    let name = make_stream(&client, far.expect("one of them is there").key.as_str()).await;
    append_each(&client, &name, [numbered(0)].into_iter()).await;
    star.kill();
    home.set_cores(1);
    let star = home.start();
    let first = tokio::time::timeout(PATIENCE, client.check_tail(name.clone())).await;
    let again = tokio::time::timeout(PATIENCE, client.check_tail(name.clone())).await;
    let tail = first.or(again).expect("the second call enters elsewhere");
    assert_eq!(tail.expect("a tail").sequence.0, 1);
    star.stop().expect_done();
    home.set_cores(2);
    let star = home.start();
    append_each(&client, &name, [numbered(1)].into_iter()).await;
    star.kill();
    home.set_cores(1);
    let star = home.start();
    let open = || client.read(read_from(name.clone(), 0));
    let first = tokio::time::timeout(PATIENCE, open()).await;
    let again = tokio::time::timeout(PATIENCE, open()).await;
    let reader = first.or(again).expect("the second call enters elsewhere");
    assert_eq!(reader.expect("a reader").tail().sequence.0, 2);
    star.stop().expect_done();
}

/// A first start that is killed anywhere can be made again: nothing half made is in its way.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_first_start_that_is_killed_anywhere_can_be_made_again() {
    for round in 0..12 {
        let home = Home::new(SITE);
        let star = home.begin();
        let process = star.process();
        match round % 6 {
            0 => {}
            1 => drop(process.wait_for_error_line(|line| line.contains("data directory"))),
            2 => drop(process.wait_for_error_line(|line| line.contains("authority"))),
            3 => drop(process.wait_for_error_line(|line| line.contains("log-0"))),
            4 => drop(process.wait_for_line(|line| line.contains("listening"))),
            _ => drop(process.wait_for_line(|line| line == "ready")),
        }
        star.kill();
        let star = home.start();
        let client = home.client();
        let name = make_stream(&client, "first").await;
        append_each(&client, &name, (0..2).map(numbered)).await;
        star.kill();
        let star = home.start();
        assert_eq!(all_bodies(&client, &name).await.len(), 2);
        star.stop().expect_done();
    }
}
