//! SIGKILL under load, again and again; the history must keep the contract (2.1, 2.7, 3, 5.3, 5.7,
//! 6).
//!
//! Records of one producer are large, so that segments are full and followed by others under load.
//!
//! The short form kills 24 times. A long one, for a night:
//! `NOVA_E2E_KILLS=2000 cargo test -p nova-e2e kill:: -- --nocapture`. A run prints its seed;
//! `NOVA_E2E_SEED` sets it (the seed decides when the star is killed, not how threads interleave).

use crate::load::{Load, Run, setting};
use crate::{SITE, in_time};
use nova_e2e::chance::Chance;
use nova_e2e::history::Event;
use nova_e2e::home::{Home, Star};

const KILLS_SHORT: u64 = 24;
/// Most acks between two kills.
const ACKS_MAX: u64 = 1500;

/// Kills the star again and again; the one that runs at the end.
async fn kill_again(run: &Run, home: &Home, mut star: Star, kills: u64, seed: u64) -> Star {
    let mut chance = Chance(seed);
    for kill in 0..kills {
        if kill % 4 == 3 {
            // Inside a start: before, in or after recovery.
            let words = ["data directory", "log-", "ready"];
            star.kill();
            run.history.note(Event::Killed);
            star = home.begin();
            let word = words[chance.below(3) as usize];
            let process = star.process();
            match word {
                "ready" => process.wait_for_line(|line| line == word),
                _ => process.wait_for_error_line(|line| line.contains(word)),
            };
        } else {
            let acks = 1 + chance.below(ACKS_MAX);
            in_time("acks", run.wait_for_acks(acks)).await;
        }
        star.kill();
        run.history.note(Event::Killed);
        star = home.start();
    }
    in_time("acks", run.wait_for_acks(1)).await;
    star
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_under_load_the_star_keeps_every_promise() {
    let kills = setting("NOVA_E2E_KILLS", KILLS_SHORT);
    let seed = setting("NOVA_E2E_SEED", u64::from(std::process::id()));
    println!("kill: NOVA_E2E_SEED={seed} NOVA_E2E_KILLS={kills}");
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let home = Home::new(SITE).with_cores(cores.min(2));
    let star = home.start();
    let load = Load::begin(&home).await;
    let star = kill_again(&load.run, &home, star, kills, seed).await;
    load.end(&home, star, "kill", seed).await;
}
