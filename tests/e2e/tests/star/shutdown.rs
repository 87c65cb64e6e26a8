//! Operations: a star that is told to stop answers what it admitted, says goodbye and ends soon.

use crate::{SITE, all_bodies, in_time, make_stream, numbered, producer};
use nova_client::*;
use nova_e2e::home::Home;
use rustix::process::Signal;
use std::time::{Duration, Instant};

/// How long a star may take to stop.
const STOP_MAX: Duration = Duration::from_secs(3);

/// SIGTERM under load loses nothing that was acked, and ends within a second or two.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_star_told_to_stop_under_load_loses_nothing_and_ends_soon() {
    let home = Home::new(SITE);
    let star = home.start();
    let client = home.client();
    let name = make_stream(&client, "stopping").await;
    let producer = producer(&client, &name);
    let mut tickets = Vec::new();
    for n in 0..500 {
        tickets.push(
            producer
                .append_async(Record::new(numbered(n)))
                .await
                .expect("room"),
        );
    }
    let begun = Instant::now();
    let ended = star.stop().expect_done();
    assert!(begun.elapsed() < STOP_MAX, "{:?}", begun.elapsed());
    assert!(ended.stderr.contains("stopping"), "{}", ended.stderr);
    assert!(
        !home.data().join("address").exists(),
        "a star that is gone has no address"
    );
    for n in 500..600 {
        tickets.push(
            producer
                .append_async(Record::new(numbered(n)))
                .await
                .expect("room"),
        );
    }
    let star = home.start();
    for (n, ticket) in (0..).zip(tickets) {
        let appended = in_time("an ack", ticket).await.expect("nothing is lost");
        assert_eq!(appended.start.sequence.0, n);
    }
    assert_eq!(all_bodies(&client, &name).await.len(), 600);
    star.stop().expect_done();
}

/// Readers that follow, idle connections and none at all do not hold a stop up.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn neither_followers_nor_idle_connections_hold_a_stop_up() {
    let home = Home::new(SITE);
    let star = home.start();
    let begun = Instant::now();
    star.stop().expect_done();
    assert!(
        begun.elapsed() < STOP_MAX,
        "without connections: {:?}",
        begun.elapsed()
    );
    let star = home.start();
    let client = home.client();
    let name = make_stream(&client, "held").await;
    let mut open = read_from(name.clone(), 0);
    open.follow = true;
    let mut reader = in_time("a reader", client.read(open))
        .await
        .expect("a reader");
    let mark = in_time("a mark", reader.next_batch())
        .await
        .expect("no error");
    assert!(matches!(mark, Some(ReadItem::CaughtUp(_))));
    let _idle = crate::raw::Raw::to(&home).await;
    let begun = Instant::now();
    star.stop().expect_done();
    assert!(
        begun.elapsed() < STOP_MAX,
        "with a follower: {:?}",
        begun.elapsed()
    );
}

/// A second signal ends the star at once, and what was acked is there.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_signal_ends_the_star_at_once() {
    let home = Home::new(SITE);
    let star = home.start();
    let client = home.client();
    let name = make_stream(&client, "twice").await;
    let producer = producer(&client, &name);
    for n in 0..20 {
        let appended = in_time("an ack", producer.append(Record::new(numbered(n)))).await;
        appended.expect("an ack");
    }
    star.process().signal(Signal::TERM);
    star.process()
        .wait_for_error_line(|line| line.contains("stopping"));
    star.process().signal(Signal::TERM);
    let begun = Instant::now();
    let ended = star.wait_for_end();
    assert!(begun.elapsed() < STOP_MAX);
    // It may have been through with the first one before the second came.
    assert!(matches!(ended.code(), Some(0 | 130)), "{ended:?}");
    let _star = home.start();
    assert_eq!(all_bodies(&client, &name).await.len(), 20);
}

/// A star whose words nobody takes any more serves and stops all the same. (It ended with a panic.)
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_star_that_nobody_listens_to_serves_and_stops() {
    let mut home = Home::new(SITE);
    let star = home.start();
    let client = home.client();
    let name = make_stream(&client, "unheard").await;
    star.stop().expect_done();
    home.wrap(&["sh", "-c", "exec \"$0\" \"$@\" > /dev/full 2>&1"]);
    let star = home.begin();
    let producer = producer(&client, &name);
    let appended = in_time("an ack", producer.append(Record::new("x"))).await;
    appended.expect("an ack");
    star.stop().expect_done();
}
