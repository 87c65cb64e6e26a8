//! A device that fails under load (docs/DURABILITY.md, "A commit"): the star says so and ends, what
//! was not durable was not acked, and a start on the repaired device goes on. Where only reads fail
//! the star goes on, and readers are told which records are not to be had.

use crate::numbers;
use crate::scene::Scene;
use nova_client::{ClientError, Code, Facts, SequenceNumber, read_from};
use nova_e2e::calls::{bodies_of, in_time};
use nova_e2e::load::{Load, setting};
use nova_e2e::small_disk::Kind as FileSystem;
use nova_powercut::device::Kind;
use nova_powercut::order::Order;

/// How a star ends that cannot trust its disk any more.
const CANNOT_TRUST_DISK: i32 = 15;
/// Acks before the device fails, and behind it.
const ACKS: u64 = 200;

async fn fails_and_ends(kinds: [Kind; 2], file_system: FileSystem) {
    let seed = setting("NOVA_POWERCUT_SEED", u64::from(std::process::id()));
    println!("failures on {file_system:?}: NOVA_POWERCUT_SEED={seed}");
    let Some(mut scene) = Scene::of(file_system, seed) else {
        return;
    };
    scene.start_first();
    let mut load = Load::begin_on(&scene.home, true).await;
    for kind in kinds {
        in_time("acks", load.run.wait_for_acks(ACKS)).await;
        scene.disk.order(Order::Fail(kind, u64::MAX));
        let star = scene.star.take().expect("it runs");
        let ended = star.wait_for_end().expect_code(CANNOT_TRUST_DISK);
        let why = ended.stderr.lines().find(|line| line.contains("why:"));
        println!("{kind:?} fails, {}", why.expect("a reason").trim());
        scene.lose_cache_and_rise(&load.run.history);
    }
    in_time("acks", load.run.wait_for_acks(ACKS)).await;
    load.finish().await;
    load.read_all().await;
    load.judge(&scene.home, &format!("failing-{file_system:?}"), seed);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failing_device_ends_the_star_and_nothing_else_ext4() {
    fails_and_ends([Kind::Flush, Kind::Write], FileSystem::Ext4).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failing_device_ends_the_star_and_nothing_else_xfs() {
    fails_and_ends([Kind::Write, Kind::Flush], FileSystem::Xfs).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failing_read_names_its_records_and_ends_nothing() {
    let seed = setting("NOVA_POWERCUT_SEED", u64::from(std::process::id()));
    println!("reads fail: NOVA_POWERCUT_SEED={seed}");
    let Some(mut scene) = Scene::of(FileSystem::Ext4, seed) else {
        return;
    };
    scene.start_first();
    let client = scene.home.client();
    let stream = numbers::write(&client, "unreadable").await;
    // Started again, the star has nothing in its memory.
    scene.star.take().expect("it runs").stop().expect_done();
    scene.star = Some(scene.home.start());
    scene.disk.order(Order::Fail(Kind::Read, u64::MAX));
    let failed = bodies_of(&client, read_from(stream.clone(), 0)).await;
    let refusal = match failed.expect_err("no read succeeds") {
        ClientError::Refused(refusal) => refusal,
        error => panic!("{error:?}"),
    };
    assert_eq!(
        (refusal.code, refusal.retry),
        (Code::Corrupt, false),
        "{refusal:?}"
    );
    let (from, to) = (SequenceNumber(0), SequenceNumber(numbers::RECORDS));
    assert_eq!(refusal.facts, Facts::Range { from, to }, "{refusal:?}");
    scene.disk.order(Order::Fail(Kind::Read, 0));
    let read = bodies_of(&client, read_from(stream, 0)).await;
    numbers::assert_all(read.expect("the device reads again"));
    assert!(!scene.star().process().has_ended());
}
