//! Contract 2.1, 2.7, 5.3, 6: what was told to anybody holds after any power cut.
//!
//! ```text
//!   a life   load > the power goes with a write or a flush drawn from the seed
//!            > often once or twice more, in the replay of the journal or in a start
//!            > the star is ready, and the same clients go on
//!   a run    an empty device, a first start that is cut, some lives, everything read, judgement
//! ```
//! The short form has a run of a few cuts on ext4 and one on XFS. A long one:
//! `NOVA_POWERCUT_RUNS=20 cargo test -p nova-powercut cuts:: -- --nocapture`. A run prints its
//! seed; `NOVA_POWERCUT_SEED` sets that of the first one, the next ones count up (a seed decides
//! when the power goes and what survives, not how threads interleave).

use crate::passing::Passing;
use crate::scene::Scene;
use nova_e2e::calls::in_time;
use nova_e2e::history::Event;
use nova_e2e::load::{Load, Run, setting};
use nova_e2e::small_disk::Kind as FileSystem;
use nova_powercut::device::Survivors;

/// Lives of a run.
const LIVES: u64 = 6;
/// Most acks before a cut is set, in one life of four and in the others.
const ACKS_MAX: [u64; 4] = [4000, 500, 500, 500];
/// Most writes and flushes from then to the cut.
const OPERATIONS_MAX: u64 = 200;
/// Most of them from the power to a cut on the way up.
const OPERATIONS_OF_A_START_MAX: u64 = 60;
/// The same for the first start, which makes the data directory.
const OPERATIONS_OF_THE_FIRST_MAX: u64 = 150;

/// A cut under load, some on the way up, and the star is there again.
async fn live(scene: &mut Scene, run: &Run) {
    let acks_max = ACKS_MAX[scene.chance.below(ACKS_MAX.len() as u64) as usize];
    let acks = 1 + scene.chance.below(acks_max);
    in_time("acks", run.wait_for_acks(acks)).await;
    let operations = 1 + scene.chance.below(OPERATIONS_MAX);
    let ordered = scene.set_cut(operations, Survivors::Some);
    let report = scene.disk.wait_for(ordered);
    println!("cut {} with operation {operations}: {report}", scene.cuts);
    scene.fall();
    run.history.note(Event::Killed);
    while scene.chance.hits(1, 3) {
        scene.rise_and_be_cut(OPERATIONS_OF_A_START_MAX);
        run.history.note(Event::Killed);
    }
    scene.rise();
}

async fn run(kind: FileSystem, seed: u64) {
    println!("cuts on {kind:?}: NOVA_POWERCUT_SEED={seed}");
    let Some(mut scene) = Scene::of(kind, seed) else {
        return;
    };
    while scene.chance.hits(1, 2) {
        scene.rise_and_be_cut(OPERATIONS_OF_THE_FIRST_MAX);
    }
    scene.start_first();
    let (_, flushes_before) = scene.disk.counts();
    let mut load = Load::begin_on(&scene.home, true).await;
    let mut passing = Passing::begin(scene.home.client()).await;
    for _ in 0..LIVES {
        live(&mut scene, &load.run).await;
    }
    in_time("acks", load.run.wait_for_acks(1)).await;
    passing.finish().await;
    load.finish().await;
    // All that was sent is acked now. Nothing else survives.
    scene.lose_cache_and_rise(&load.run.history);
    load.read_all().await;
    passing.check().await;
    let star = scene.star.take().expect("it is ready");
    star.stop().expect_done();
    let (writes, flushes) = scene.disk.counts();
    let (cuts, free) = (scene.cuts, scene.disk.free_mib());
    println!("{cuts} cuts, {writes} writes, {flushes} flushes, {free} MiB free");
    assert!(flushes > flushes_before, "no flush reaches the device");
    load.judge(&scene.home, &format!("cuts-{kind:?}"), seed);
}

async fn run_all(kind: FileSystem) {
    let runs = setting("NOVA_POWERCUT_RUNS", 1);
    let first = setting("NOVA_POWERCUT_SEED", u64::from(std::process::id()));
    for seed in first..first + runs {
        run(kind, seed).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_told_survives_power_cuts_on_ext4() {
    run_all(FileSystem::Ext4).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_told_survives_power_cuts_on_xfs() {
    run_all(FileSystem::Xfs).await;
}
