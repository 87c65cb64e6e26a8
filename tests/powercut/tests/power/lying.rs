//! The canary of the power cuts: a device that answers flushes and does nothing loses what was
//! acked, and the checker says so. The same run on a device that tells the truth loses nothing.

use crate::scene::Scene;
use nova_e2e::calls::in_time;
use nova_e2e::checker::{Counts, check};
use nova_e2e::history::Event;
use nova_e2e::load::{Load, setting};
use nova_e2e::small_disk::Kind as FileSystem;
use nova_powercut::device::Survivors;
use nova_powercut::order::Order;

/// Acks before the device begins to lie, so that there is something to start from.
const ACKS_BEFORE: u64 = 50;
/// Acks that are lies.
const ACKS_OF_LIES: u64 = 300;

/// What the checker says of a life on a device, which ends in a cut that only what is on the medium
/// survives; nothing where the machine lacks something.
async fn verdict(kind: FileSystem, seed: u64, lies: bool) -> Option<Result<Counts, Vec<String>>> {
    let mut scene = Scene::of(kind, seed)?;
    scene.start_first();
    let mut load = Load::begin_on(&scene.home, true).await;
    in_time("acks", load.run.wait_for_acks(ACKS_BEFORE)).await;
    if lies {
        scene.disk.order(Order::Lie);
    }
    in_time("acks", load.run.wait_for_acks(ACKS_OF_LIES)).await;
    scene.cut_now(Survivors::None);
    // Clients that hold on to what they were told would ask for it for ever.
    load.abandon().await;
    load.run.history.note(Event::Killed);
    scene.fall();
    scene.rise();
    load.read_all().await;
    Some(check(&load.run.history.events()))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_device_that_lies_is_found_out() {
    let seed = setting("NOVA_POWERCUT_SEED", u64::from(std::process::id()));
    for (seed, kind) in (seed..).zip([FileSystem::Ext4, FileSystem::Xfs]) {
        println!("lies on {kind:?}: NOVA_POWERCUT_SEED={seed}");
        let Some(findings) = verdict(kind, seed, true).await else {
            continue;
        };
        let findings = findings.expect_err("a loss");
        println!("{} findings, the first: {}", findings.len(), findings[0]);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_same_on_a_device_that_tells_the_truth_loses_nothing() {
    let seed = setting("NOVA_POWERCUT_SEED", u64::from(std::process::id()));
    println!("no lies: NOVA_POWERCUT_SEED={seed}");
    if let Some(verdict) = verdict(FileSystem::Ext4, seed, false).await {
        let counts = verdict.expect("no loss");
        println!("{counts:?}");
    }
}
