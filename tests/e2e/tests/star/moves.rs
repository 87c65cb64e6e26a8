//! Contract 4.4: leadership moves between the cores of a star; nothing that was acked is lost,
//! nothing that was admitted is applied twice, and clients follow by themselves.

use crate::{SITE, all_bodies, in_time, make_stream, numbered, producer};
use nova_client::*;
use nova_e2e::home::Home;
use nova_e2e::http::Http;
use nova_model::placement::stream_home;
use std::time::{Duration, Instant};

const RECORDS: u64 = 4000;
const MOVES: u16 = 20;

/// A producer appends one record after the other while its stream is handed to and fro, and a
/// reader follows. The longest that one append took is printed with the rest.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_moves_under_load_and_is_whole_afterwards() {
    if std::thread::available_parallelism().map_or(1, usize::from) < 2 {
        println!("not run: a star of two cores needs two CPUs");
        return;
    }
    let home = Home::new(SITE).with_cores(2);
    let star = home.start();
    let client = home.client();
    let name = make_stream(&client, "moves").await;

    let appends = tokio::spawn(append_all(producer(&client, &name)));
    let mut open = read_from(name.clone(), 0);
    open.follow = true;
    open.limits.count = Some(RECORDS);
    let reader = in_time("a reader", client.read(open))
        .await
        .expect("a reader");
    let follows = tokio::spawn(read_all(reader));
    let first = stream_home(&name, 2).0;
    let mut epoch = 0;
    for round in 0..MOVES {
        let to = CoreId((first + 1 + round) % 2);
        let moved = in_time("a move", client.hand_off(name.clone(), to)).await;
        let leader = moved.expect("a move");
        assert_eq!(leader.core, to);
        assert!(leader.epoch.0 > epoch, "an epoch only grows");
        epoch = leader.epoch.0;
    }
    let longest = appends.await.expect("all appends");
    assert_eq!(follows.await.expect("all records"), RECORDS);
    let read = all_bodies(&client, &name).await;
    assert!(
        read.iter()
            .map(|body| body.to_vec())
            .eq((0..RECORDS).map(numbered))
    );
    println!("{RECORDS} appends over {MOVES} moves, the longest took {longest:?}");

    star.kill();
    let _again = home.start();
    let read = all_bodies(&home.client(), &name).await;
    assert!(
        read.iter()
            .map(|body| body.to_vec())
            .eq((0..RECORDS).map(numbered))
    );
}

/// One record after the other, each where the last one ended; the longest that one took.
async fn append_all(writer: Producer) -> Duration {
    let mut longest = Duration::ZERO;
    for n in 0..RECORDS {
        let begun = Instant::now();
        let appended = in_time("an append", writer.append(Record::new(numbered(n)))).await;
        assert_eq!(appended.expect("an append").start.sequence.0, n);
        longest = longest.max(begun.elapsed());
    }
    in_time("a close", writer.close()).await.expect("a close");
    longest
}

/// Each record once and in order; how many there were.
async fn read_all(mut reader: Reader) -> u64 {
    let mut next = 0;
    while let Some(item) = in_time("an item", reader.next_batch())
        .await
        .expect("an item")
    {
        if let ReadItem::Batch(batch) = item {
            batch.for_each(|position, record| {
                assert_eq!(position.sequence.0, next);
                assert_eq!(record.body(), numbered(next));
                next += 1;
            });
        }
    }
    next
}

/// A list left out a stream that moved, between the answers of two cores, to the one that had
/// answered already. A list that cannot be told, since streams move all the time, is refused.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_list_names_each_stream_once_while_streams_move() {
    const STREAMS: u16 = 6;
    if std::thread::available_parallelism().map_or(1, usize::from) < 2 {
        println!("not run: a star of two cores needs two CPUs");
        return;
    }
    let home = Home::new(SITE).with_cores(2).with_http();
    let star = home.start();
    let (client, http) = (home.client(), Http::of(&star));
    let mut names = Vec::new();
    for n in 0..STREAMS {
        names.push(make_stream(&client, &format!("listed-{n}")).await);
    }
    let (mover, moved) = (home.client(), names.clone());
    let moves = tokio::spawn(async move {
        for round in 0..MOVES * 4 {
            let name = moved[usize::from(round % STREAMS)].clone();
            let to = CoreId(round / STREAMS % 2);
            in_time("a move", mover.hand_off(name, to))
                .await
                .expect("a move");
        }
    });
    let page = Page {
        prefix: "listed-".to_owned(),
        limit: 100,
        ..Page::default()
    };
    let (mut listed, mut refused) = (0, 0);
    while !moves.is_finished() || listed == 0 {
        let listing = client.list_streams(names[0].bucket.clone(), page.clone());
        match in_time("a list", listing).await {
            Ok(found) => {
                let found = found.items.into_iter().map(|info| info.name);
                assert_eq!(found.collect::<Vec<_>>(), names);
                listed += 1;
            }
            Err(error) => {
                assert!(matches!(error, ClientError::Unavailable { .. }), "{error}");
                refused += 1;
            }
        }
        let reply = http.get("/v1/streams/tests?prefix=listed-");
        if reply.status == 200 {
            let told = reply.json()["streams"].as_array().map(Vec::len);
            assert_eq!(told, Some(usize::from(STREAMS)), "{}", reply.text());
        }
    }
    moves.await.expect("all moves");
    println!("{listed} lists, {refused} refused");
}

/// The command, and what it says of a core that is not there.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_command_hands_a_stream_over() {
    if std::thread::available_parallelism().map_or(1, usize::from) < 2 {
        println!("not run: a star of two cores needs two CPUs");
        return;
    }
    let home = Home::new(SITE).with_cores(2);
    let _star = home.start();
    let name = make_stream(&home.client(), "handed").await;
    let to = (1 - stream_home(&name, 2).0).to_string();
    let words = ["admin", "handoff", "tests/handed", "--to"];
    let said = home.nova(&[&words[..], &[&to]].concat(), b"").expect_done();
    assert!(
        said.text().contains(&format!("led by core-{to} at")),
        "{}",
        said.text()
    );
    let refused = home
        .nova(&[&words[..], &["2"]].concat(), b"")
        .expect_code(3);
    assert_eq!(refused.code(), Some(3));
}
