//! Contract 4.4, 5.3: streams move between cores under load, a core is drained and undrained, the
//! star is told to end, killed in the middle of that, and started with other numbers of cores; the
//! history must keep the contract.
//!
//! ```text
//!   act: move streams | drain a core, acks, undrain it | SIGTERM, start
//!        | move or drain, and SIGKILL at once, start with 1 or 2 cores
//!   before each: a random number of acks
//! ```
//! The short form acts 16 times. A long one: `NOVA_E2E_ACTS=2000 cargo test -p nova-e2e upheaval::
//! -- --nocapture`. `NOVA_E2E_SEED` sets the seed, which decides what is done and not how threads
//! interleave.

use crate::load::{Load, Run, setting};
use crate::{SITE, in_time};
use nova_client::*;
use nova_e2e::chance::Chance;
use nova_e2e::history::Event;
use nova_e2e::home::{Home, Star};
use std::sync::Arc;
use tokio::task::JoinSet;

const ACTS_SHORT: u64 = 16;
/// Most acks between two acts.
const ACKS_MAX: u64 = 800;
/// Most streams that are on their way at once.
const MOVES_MAX: u64 = 3;

/// What is done to a star, and what it takes.
struct Upheaval<'a> {
    load: &'a Load,
    home: Home,
    operator: Client,
    chance: Chance,
    moves: JoinSet<()>,
}

impl Upheaval<'_> {
    /// Hands some streams to any core, each in a task of its own.
    fn move_some(&mut self) {
        for _ in 0..=self.chance.below(MOVES_MAX) {
            let streams = &self.load.streams;
            let name = streams[self.chance.below(streams.len() as u64) as usize].clone();
            let to = CoreId(self.chance.below(self.home.cores() as u64) as u16);
            let (run, operator) = (Arc::clone(&self.load.run), self.operator.clone());
            self.moves.spawn(hand_off(run, operator, name, to));
        }
    }

    async fn all_moved(&mut self) {
        while let Some(moved) = in_time("a move", self.moves.join_next()).await {
            moved.expect("no panic");
        }
    }

    async fn some_acks(&mut self) {
        let acks = 1 + self.chance.below(ACKS_MAX);
        in_time("acks", self.load.run.wait_for_acks(acks)).await;
    }

    /// Empties the second core, and lets it lead again after some acks.
    async fn drain_for_a_while(&mut self) {
        self.all_moved().await;
        if self.home.cores() < 2 {
            return;
        }
        let run = Arc::clone(&self.load.run);
        in_time("a drain", drain(run, self.operator.clone())).await;
        let status = in_time("a status", self.operator.status()).await;
        let drained = &status.expect("a status").cores[1];
        assert!(drained.is_drained, "{drained:?}");
        assert_eq!((drained.streams_led, drained.sessions), (0, 0));
        self.some_acks().await;
        let undrained = in_time("its end", self.operator.undrain(SECOND)).await;
        undrained.expect("nothing else is in hand");
    }

    async fn act(&mut self, star: Star) -> Star {
        self.some_acks().await;
        match self.chance.below(8) {
            0 => {
                // Those on their way when the star is told to end go on with the next one.
                self.move_some();
                star.stop().expect_done();
                self.load.run.history.note(Event::Stopped);
                self.home.start()
            }
            1 | 2 => {
                self.move_some();
                if self.chance.below(2) == 0 {
                    let (run, operator) = (Arc::clone(&self.load.run), self.operator.clone());
                    self.moves.spawn(drain(run, operator));
                }
                star.kill();
                self.load.run.history.note(Event::Killed);
                let cores = 1 + self.chance.below(2) as usize;
                self.home.set_cores(cores);
                self.home.start()
            }
            3 => {
                self.move_some();
                star
            }
            4 | 5 => {
                self.drain_for_a_while().await;
                star
            }
            _ => {
                self.move_some();
                self.all_moved().await;
                star
            }
        }
    }
}

const SECOND: CoreSet = CoreSet::One(CoreId(1));

/// Hands a stream over; a core that is drained or not there any more is a refusal, everything else
/// a mistake.
async fn hand_off(run: Arc<Run>, operator: Client, name: StreamName, to: CoreId) {
    match operator.hand_off(name.clone(), to).await {
        Ok(leader) => {
            assert_eq!(leader.core, to, "{name}");
            run.history.note(Event::Moved);
        }
        Err(error) => expect_no_such_core(&error),
    }
}

/// Drains the second core, unless there is none.
async fn drain(run: Arc<Run>, operator: Client) {
    match operator.drain(SECOND).await {
        Ok(_) => run.history.note(Event::Moved),
        Err(error) => expect_no_such_core(&error),
    }
}

#[track_caller]
fn expect_no_such_core(error: &ClientError) {
    let code = error.refusal().map(|refusal| refusal.code);
    assert_eq!(code, Some(Code::Invalid), "{error:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn moved_stopped_and_killed_under_load_the_star_keeps_every_promise() {
    if std::thread::available_parallelism().map_or(1, usize::from) < 2 {
        println!("not run: a star of two cores needs two CPUs");
        return;
    }
    let acts = setting("NOVA_E2E_ACTS", ACTS_SHORT);
    let seed = setting("NOVA_E2E_SEED", u64::from(std::process::id()));
    println!("upheaval: NOVA_E2E_SEED={seed} NOVA_E2E_ACTS={acts}");
    let home = Home::new(SITE).with_cores(2);
    let mut star = home.start();
    let load = Load::begin(&home).await;
    let mut upheaval = Upheaval {
        load: &load,
        operator: home.client(),
        home,
        chance: Chance(seed),
        moves: JoinSet::new(),
    };
    for _ in 0..acts {
        star = upheaval.act(star).await;
    }
    upheaval.all_moved().await;
    let home = upheaval.home;
    load.end(&home, star, "upheaval", seed).await;
}
