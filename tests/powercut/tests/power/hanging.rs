//! A device that hangs for a while: nothing is acked meanwhile, and all goes on when it does.

use crate::scene::Scene;
use nova_e2e::calls::in_time;
use nova_e2e::load::{Load, setting};
use nova_e2e::small_disk::Kind as FileSystem;
use nova_powercut::order::Order;
use std::time::Duration;

/// Acks before and behind a hang.
const ACKS: u64 = 200;
/// No ack for so long, and no more are on their way.
const QUIET: Duration = Duration::from_millis(500);
/// How long the device hangs then.
const HANG: Duration = Duration::from_secs(2);
/// Quiet must come within so many waits that end by an ack: those of writes that were done when the
/// device began to hang, of all windows together.
const STRAGGLERS_MAX: u64 = 2000;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn while_the_device_hangs_nothing_is_acked() {
    let seed = setting("NOVA_POWERCUT_SEED", u64::from(std::process::id()));
    println!("hangs: NOVA_POWERCUT_SEED={seed}");
    let Some(mut scene) = Scene::of(FileSystem::Ext4, seed) else {
        return;
    };
    scene.start_first();
    let mut load = Load::begin_on(&scene.home, true).await;
    for goes_on in [true, false] {
        in_time("acks", load.run.wait_for_acks(ACKS)).await;
        scene.disk.order(Order::Hang);
        let mut stragglers = 0;
        let run = &load.run;
        while tokio::time::timeout(QUIET, run.wait_for_acks(1))
            .await
            .is_ok()
        {
            stragglers += 1;
            assert!(stragglers < STRAGGLERS_MAX, "acks go on without a device");
        }
        let acked = tokio::time::timeout(HANG, run.wait_for_acks(1)).await;
        assert!(acked.is_err(), "an ack while the device hangs");
        if !goes_on {
            // It never comes back: what hung is lost.
            scene.lose_cache_and_rise(&run.history);
        } else {
            scene.disk.order(Order::Resume);
        }
        println!("{stragglers} acks were on their way");
    }
    in_time("acks", load.run.wait_for_acks(ACKS)).await;
    assert!(!scene.star().process().has_ended());
    load.finish().await;
    scene.lose_cache_and_rise(&load.run.history);
    load.read_all().await;
    load.judge(&scene.home, "hanging", seed);
}
