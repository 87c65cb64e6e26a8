//! Random worlds: losses, delays beyond every timeout, throttling, crashes, changes of route and
//! updates given to two processes at once, from a seed that a failure names.
//!
//! After twenty seconds of virtual time the faults end, and everything has to come to rest with
//! every update stored once, in order, and answered truly. The canaries are the variants without a
//! safeguard: over the same seeds each of them has to be found out.

use super::Safeguard;
use super::dice_tests::Dice;
use super::world_tests::{Fate, Plan, Request, World};
use nova_model::{Code, Facts, Refusal};

const SEEDS: u64 = 400;
const ENTITIES: usize = 3;
const PROCESSES: usize = 3;
const UPDATES: u64 = 25;
const FAULTS_END_US: u64 = 20_000_000;

/// A fault in about one of five requests.
fn fate(dice: &mut Dice, request: Request) -> Fate {
    let mut fate = Fate {
        request_us: Some(200 + dice.below(3_000)),
        answer_us: Some(200 + dice.below(3_000)),
        refuse: None,
    };
    if request.now_us > FAULTS_END_US {
        return fate;
    }
    // Every third second some core throttles.
    if request.now_us / 1_000_000 % 3 == 2 && dice.below(2) == 0 {
        let refusal = Refusal::new(Code::RateLimited, "slower");
        fate.refuse = Some(refusal.with(Facts::After(dice.below(300_000))));
        return fate;
    }
    match dice.below(25) {
        0 => fate.request_us = None,
        1 => fate.request_us = Some(dice.below(5_000_000)),
        2 => fate.answer_us = None,
        3 => fate.answer_us = Some(dice.below(5_000_000)),
        4 => fate.refuse = Some(Refusal::new(Code::Unavailable, "who knows")),
        5 => fate.refuse = Some(Refusal::new(Code::DiskFull, "no space")),
        _ => {}
    }
    fate
}

fn world(seed: u64, without: Option<Safeguard>, overlaps: bool) -> World {
    let mut world = World::new(Plan {
        seed,
        processes: PROCESSES,
        entities: ENTITIES,
        without,
        overlaps,
        fate: Box::new(fate),
        ..Plan::default()
    });
    let mut dice = Dice(seed ^ 0x5eed);
    for entity in 0..ENTITIES {
        world.routes[entity] = vec![entity % PROCESSES, dice.below(PROCESSES as u64) as usize];
        world.routes[entity].dedup();
        for _ in 0..UPDATES {
            let us = dice.below(FAULTS_END_US);
            world.at(us, move |world| world.feed(entity));
        }
        for _ in 0..4 {
            let (us, to) = (
                dice.below(FAULTS_END_US),
                dice.below(PROCESSES as u64) as usize,
            );
            world.at(us, move |world| reroute(world, entity, to));
        }
    }
    for _ in 0..6 {
        let (us, process) = (
            dice.below(FAULTS_END_US),
            dice.below(PROCESSES as u64) as usize,
        );
        world.at(us, move |world| crash(world, process));
    }
    // The clients' last word: all that has no answer is sent again when the faults are over.
    world.at(FAULTS_END_US + 1, |world| {
        for entity in 0..ENTITIES {
            let process = world.routes[entity][0];
            world.feed_again(entity, process);
        }
    });
    world
}

/// One of the routes of an entity leads elsewhere; the old process keeps what it has.
fn reroute(world: &mut World, entity: usize, to: usize) {
    world.routes[entity][0] = to;
    world.routes[entity].dedup();
    world.feed_again(entity, to);
}

fn crash(world: &mut World, process: usize) {
    world.crash(process);
    for entity in 0..ENTITIES {
        if world.routes[entity].contains(&process) {
            world.feed_again(entity, process);
        }
    }
}

#[test]
fn every_update_is_stored_once_in_order_and_answered_truly() {
    for seed in 0..SEEDS {
        let mut world = world(seed, None, false);
        world.run();
        if let Err(finding) = world.check() {
            panic!("seed {seed}: {finding}; replay it with world({seed}, None, false)");
        }
    }
}

#[test]
fn the_same_seed_is_the_same_run() {
    let trace = |seed| {
        let mut world = world(seed, None, false);
        world.run();
        (world.answers, world.requests, world.now_us)
    };
    assert_eq!(trace(7), trace(7));
    assert_ne!(trace(7), trace(8));
}

#[test]
fn the_checker_notices_each_safeguard_that_is_missing() {
    let is_found = |without, overlaps| {
        (0..SEEDS).any(|seed| {
            let mut world = world(seed, without, overlaps);
            world.run();
            world.check().is_err()
        })
    };
    for safeguard in [
        Safeguard::LeaveOut,
        Safeguard::Match,
        Safeguard::ReadAgain,
        Safeguard::Durable,
    ] {
        assert!(
            is_found(Some(safeguard), false),
            "nobody missed {safeguard:?}"
        );
    }
    assert!(
        is_found(None, true),
        "nobody missed the one batch at a time"
    );
}
