//! Bad networks (contract 2.1, 2.7, 3, 5.3, 5.7, 6): a load of all kinds through a hop that loses,
//! doubles, damages and delays datagrams, cuts one direction or both, or gives clients other
//! addresses; the history must keep the contract.
//!
//! The long form: `NOVA_E2E_NETWORK_ACKS=200000 NOVA_E2E_CUTS=500 cargo test -p nova-e2e network::
//! -- --nocapture`. `NOVA_E2E_SEED` sets the seed, which decides what happens to a datagram and not
//! how threads interleave.

use crate::load::{Load, setting};
use crate::{SITE, append_each, in_time, make_stream, numbered};
use bytes::Bytes;
use nova_client::{ReadItem, Reader, read_from};
use nova_e2e::chance::Chance;
use nova_e2e::home::{Home, Star};
use nova_e2e::network::{Cut, Hop, Weather};
use std::time::Instant;

/// Acks of all producers together in bad weather.
const ACKS_SHORT: u64 = 4000;
const CUTS_SHORT: u64 = 12;
/// Datagrams that a cut takes at most.
const CUT_DATAGRAMS_MAX: u64 = 60;
/// Acks that are waited for in bad weather at a time.
const ACKS_BETWEEN: u64 = 150;
/// Acks until all clients of the load have dialled, those that take the fenced stream as well.
const ACKS_OF_ALL: u64 = 2000;
const REBINDS: u64 = 8;

/// A path through the internet on a bad day: datagrams of an Ethernet frame, a few ms, some chaos.
const BAD: Weather = Weather {
    lost: 20,
    doubled: 10,
    damaged: 10,
    delay_us: 500..4000,
    bytes_max: 1452,
};

/// A star behind a hop, with a load.
struct Scene {
    home: Home,
    star: Star,
    hop: Hop,
    load: Load,
    seed: u64,
}

impl Scene {
    async fn begin(what: &str) -> Scene {
        let seed = setting("NOVA_E2E_SEED", u64::from(std::process::id()));
        println!("{what}: NOVA_E2E_SEED={seed}");
        let mut home = Home::new(SITE);
        let star = home.start();
        let hop = Hop::start(home.port(), seed);
        home.dial(hop.port());
        let load = Load::begin(&home).await;
        in_time("acks of all", load.run.wait_for_acks(ACKS_OF_ALL)).await;
        Scene {
            home,
            star,
            hop,
            load,
            seed,
        }
    }

    /// Fair weather again: the load ends, and its history is judged.
    async fn end(self, what: &str) {
        self.hop.set_weather(Weather::fair());
        self.hop.set_cut(Cut::default());
        println!("{what}: {:?}", self.hop.counts());
        self.load.end(&self.home, self.star, what, self.seed).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_lost_doubled_damaged_or_late_changes_nothing() {
    let scene = Scene::begin("network-bad").await;
    let acks = setting("NOVA_E2E_NETWORK_ACKS", ACKS_SHORT);
    scene.hop.set_weather(BAD);
    let mut left = acks;
    while left > 0 {
        let some = left.min(ACKS_BETWEEN);
        in_time("acks in bad weather", scene.load.run.wait_for_acks(some)).await;
        left -= some;
    }
    let counts = scene.hop.counts();
    for (what, count) in [
        ("lost", counts.lost),
        ("doubled", counts.doubled),
        ("damaged", counts.damaged),
        ("too large", counts.too_large),
        ("overtaken", counts.overtaken),
    ] {
        assert!(count >= 10, "the weather was not bad: {count} {what}");
    }
    scene.end("network-bad").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cut_of_one_direction_or_both_is_survived() {
    let scene = Scene::begin("network-cut").await;
    let mut chance = Chance(scene.seed);
    for _ in 0..setting("NOVA_E2E_CUTS", CUTS_SHORT) {
        let way = chance.below(3);
        let cut = Cut {
            to_star: way != 1,
            to_clients: way != 0,
        };
        let before = scene.hop.counts();
        let datagrams = 1 + chance.below(CUT_DATAGRAMS_MAX);
        scene.hop.set_cut(cut);
        let is_enough = scene.hop.until(|counts| {
            let to_star = counts.cut_to_star - before.cut_to_star;
            let to_clients = counts.cut_to_clients - before.cut_to_clients;
            to_star + to_clients >= datagrams
        });
        in_time("datagrams that are cut off", is_enough).await;
        scene.hop.set_cut(Cut::default());
        // Enough for every connection to be heard again: none is cut off for all of a budget.
        let acks = scene.load.run.wait_for_acks(ACKS_OF_ALL);
        in_time("acks behind a cut", acks).await;
    }
    scene.end("network-cut").await;
}

/// Clients hear nothing until they give their connections up and dial again; what they sent
/// without an answer is sent again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_silent_star_is_dialled_again() {
    let scene = Scene::begin("network-silent").await;
    let before = scene.hop.counts().initials;
    scene.hop.set_cut(Cut {
        to_star: false,
        to_clients: true,
    });
    let dialled = scene.hop.until(|counts| counts.initials > before);
    in_time("a client that dials again", dialled).await;
    scene.hop.set_cut(Cut::default());
    let acks = scene.load.run.wait_for_acks(10 * ACKS_BETWEEN);
    in_time("acks on new connections", acks).await;
    scene.end("network-silent").await;
}

/// As behind a NAT that forgets. No client dials again, and none has to wait for its own silence.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_outlive_a_change_of_address() {
    let scene = Scene::begin("network-rebind").await;
    let before = scene.hop.counts().initials;
    for _ in 0..REBINDS {
        in_time("other addresses", scene.hop.rebind()).await;
        let acks = scene.load.run.wait_for_acks(ACKS_OF_ALL / 2);
        in_time("acks from another address", acks).await;
    }
    let dialled = scene.hop.counts().initials - before;
    assert_eq!(dialled, 0, "no connection was given up");
    scene.end("network-rebind").await;
}

/// A reader sends hardly anything by which the star could learn its new address.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reader_outlives_a_change_of_address() {
    let mut home = Home::new(SITE);
    let star = home.start();
    let writing = home.client();
    let name = make_stream(&writing, "read").await;
    let hop = Hop::start(home.port(), 0);
    home.dial(hop.port());
    let reading = home.client();
    let mut open = read_from(name.clone(), 0);
    open.follow = true;
    let mut reader = in_time("a reader", reading.read(open))
        .await
        .expect("a reader");
    let initials = hop.counts().initials;
    for round in 0..3 {
        let begun = Instant::now();
        append_each(&writing, &name, [numbered(round)].into_iter()).await;
        let read = in_time("a record", next_body(&mut reader)).await;
        assert_eq!(read, numbered(round));
        println!("network-reader: a record in {:?}", begun.elapsed());
        in_time("other addresses", hop.rebind()).await;
    }
    let dialled = hop.counts().initials - initials;
    assert_eq!(dialled, 0, "no connection was given up");
    star.stop().expect_done();
}

/// The next record that a reader gets.
async fn next_body(reader: &mut Reader) -> Bytes {
    loop {
        let item = reader.next_batch().await.expect("breaks are no errors");
        if let Some(ReadItem::Batch(batch)) = item {
            return batch.to_records().swap_remove(0).1.body;
        }
    }
}
