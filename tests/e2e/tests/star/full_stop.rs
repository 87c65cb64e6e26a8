//! Contract 8: a stop does not wait for space. A disk that others fill at a stroke may leave no
//! place for what was admitted by then: it is never acked, and a star that is told to end ends.
//!
//! ```text
//!   four producers, many records on their way --> another file takes all that is left
//!   an append is refused DISK_FULL            --> SIGTERM: the star ends, with code 0
//!   that file goes, a start                   --> what was acked is there, each once
//! ```

use crate::{SITE, bodies_of, make_stream};
use nova_client::*;
use nova_e2e::home::{Home, Star};
use nova_e2e::process::PATIENCE;
use nova_e2e::small_disk::{Kind, SmallDisk};
use std::collections::VecDeque;
use std::time::Duration;
use tokio::sync::mpsc::{Sender, channel};
use tokio::task::JoinSet;

const MIB: u64 = 1 << 20;
const IMAGE_BYTES: u64 = 320 * MIB;
/// What the star has of it at first.
const ROOM_BYTES: u64 = 160 * MIB;
const RECORD_BYTES: usize = 64 * 1024;
/// Records of one producer on their way: as many bytes as a segment of these tests has.
const IN_FLIGHT: usize = 256;
/// Acks before the disk is taken.
const ACKS_BEFORE: usize = 64;

/// Acks that nobody has looked at: more records than the disk has room for.
const ACKS_MAX: usize = (IMAGE_BYTES as usize) / RECORD_BYTES;

/// A record's producer and its number there, and where it was acked.
type Acked = (u64, u64, u64);

fn body(producer: u64, number: u64) -> Vec<u8> {
    let mut body = [producer.to_le_bytes(), number.to_le_bytes()].concat();
    body.resize(RECORD_BYTES, number as u8);
    body
}

/// Appends until there is an error, and tells of every ack.
async fn produce(client: Client, stream: StreamName, id: u64, acks: Sender<Acked>) {
    let producer = client.producer(stream, ProducerConfig::default());
    let producer = producer.expect("legal settings");
    let mut waiting: VecDeque<(u64, Ticket)> = VecDeque::new();
    for number in 0.. {
        let record = Record::new(body(id, number));
        let Ok(ticket) = producer.append_async(record).await else {
            break;
        };
        waiting.push_back((number, ticket));
        if waiting.len() < IN_FLIGHT {
            continue;
        }
        let Some((number, ticket)) = waiting.pop_front() else {
            continue;
        };
        let Ok(appended) = ticket.await else { break };
        let _test_is_over = acks.send((id, number, appended.start.sequence.0)).await;
    }
    for (number, ticket) in waiting {
        if let Ok(appended) = ticket.await {
            let _test_is_over = acks.send((id, number, appended.start.sequence.0)).await;
        }
    }
}

/// Appends one record after the other until the star says that its disk is full.
async fn is_told_full(home: &Home, star: &Star) {
    let mut config = home.client_config_inside(star);
    config.retry_budget = Duration::ZERO;
    let client = Client::connect(config).expect("a client");
    let asking = async {
        loop {
            let name = crate::stream("asked");
            let records = [Record::new(body(9, 9))];
            let asked = client.append_once(name, &records, AppendOnce::default());
            let told = asked.await.err().and_then(|error| error.refusal().cloned());
            if told.is_some_and(|refusal| refusal.code == Code::DiskFull) {
                return;
            }
        }
    };
    // An append that is admitted before the disk is known to be full waits with the others.
    let _waits = tokio::time::timeout(Duration::from_secs(5), asking).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_star_ends_though_what_it_admitted_has_no_place() {
    let mut home = Home::new(SITE);
    let disk = match SmallDisk::of(&mut home, Kind::Ext4, IMAGE_BYTES) {
        Ok(disk) => disk,
        Err(missing) => return println!("not run: {missing}"),
    };
    disk.leave(ROOM_BYTES);
    let taken = disk.taken_bytes();
    // No floor: nothing is refused before the disk is full.
    home.add_flag("--floor-bytes=0");
    let star = home.start();
    let client = Client::connect(home.client_config_inside(&star)).expect("a client");
    make_stream(&client, "asked").await;
    let written = make_stream(&client, "written").await;

    let (acks, mut acked_by) = channel(ACKS_MAX);
    let mut producers = JoinSet::new();
    for id in 0..4 {
        producers.spawn(produce(client.clone(), written.clone(), id, acks.clone()));
    }
    drop(acks);
    let mut acked: Vec<Acked> = Vec::new();
    while acked.len() < ACKS_BEFORE {
        acked.push(acked_by.recv().await.expect("producers write"));
    }
    disk.leave(0);
    is_told_full(&home, &star).await;
    let ended = star.stop().expect_done();
    assert!(!ended.stderr.contains("panicked"), "{}", ended.stderr);
    producers.shutdown().await;
    while let Some(ack) = acked_by.recv().await {
        acked.push(ack);
    }

    disk.shrink(taken);
    let star = home.start();
    let client = Client::connect(home.client_config_inside(&star)).expect("a client");
    let read = tokio::time::timeout(PATIENCE, bodies_of(&client, read_from(written, 0))).await;
    let read = read.expect("a read in time").expect("a read");
    for (producer, number, at) in &acked {
        let (sequence, found) = &read[*at as usize];
        assert_eq!(sequence, at);
        assert!(*found == body(*producer, *number), "{producer} {number}");
    }
    let mut names: Vec<&[u8]> = read.iter().map(|(_, body)| &body[..16]).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), read.len(), "no record is there twice");
    println!("{} records acked, {} there", acked.len(), read.len());
    star.stop().expect_done();
}
