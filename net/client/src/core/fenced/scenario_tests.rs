//! What the fenced write is for, one case each: a late retry, a lost answer, two processes that
//! both believe they own an entity, throttling, a re-created stream, an id with other content.
//!
//! Each runs the real rules on virtual time, and once more without the safeguard that the case
//! needs: then the checker has to find something.

use super::model_tests::entity;
use super::outcome::{Applied, UpdateError};
use super::world_tests::{Fate, Plan, World, ids};
use super::{Safeguard, WriteRules};
use nova_model::{Code, Facts, FencingToken, Record, Refusal, SequenceNumber};

/// Runs a case with all safeguards, and without each of those named.
fn needs(case: impl Fn(Option<Safeguard>) -> Result<(), String>, safeguards: &[Safeguard]) {
    assert_eq!(case(None), Ok(()));
    for &safeguard in safeguards {
        let found = case(Some(safeguard));
        assert!(found.is_err(), "nobody missed {safeguard:?}");
    }
}

fn expect(holds: bool, finding: &str) -> Result<(), String> {
    holds.then_some(()).ok_or_else(|| finding.to_owned())
}

fn ms(ms: u64) -> Option<u64> {
    Some(ms * 1_000)
}

/// The answer of the first write gets lost; the writer finds its update by reading.
#[test]
fn a_lost_answer_does_not_store_twice() {
    needs(
        |without| {
            let mut is_lost = false;
            let mut world = World::new(Plan {
                without,
                fate: Box::new(move |_, request| {
                    let answer_us = (is_lost || !request.is_write).then_some(1_000);
                    is_lost |= request.is_write;
                    Fate {
                        answer_us,
                        ..Fate::default()
                    }
                }),
                ..Plan::default()
            });
            world.at(0, |world| world.feed(0));
            world.run();
            expect(world.answers.len() == 1, "one call has one answer")?;
            let applied = world.answers[0].result.clone();
            expect(applied.is_ok_and(|it| it.duplicate), "found by its read")?;
            world.check()
        },
        &[Safeguard::LeaveOut],
    );
}

/// The first write is so late that its process gives it up, crashes, and the client's retry goes
/// to another process before it lands.
#[test]
fn a_late_append_of_a_dead_process_changes_nothing() {
    needs(
        |without| {
            let mut world = World::new(Plan {
                without,
                fate: Box::new(|_, request| Fate {
                    request_us: if request.process == 0 && request.is_write {
                        ms(5_000)
                    } else {
                        ms(1)
                    },
                    ..Fate::default()
                }),
                ..Plan::default()
            });
            world.at(0, |world| world.feed(0));
            world.at(500_000, |world| world.crash(0));
            world.at(600_000, |world| {
                world.routes[0] = vec![1];
                world.feed_again(0, 1);
            });
            world.at(700_000, |world| world.feed(0));
            world.run();
            world.check()
        },
        &[Safeguard::Match],
    );
}

/// A client sends an update again, long after, to a process that has never seen it.
#[test]
fn a_late_retry_elsewhere_is_answered_with_what_is_stored() {
    needs(
        |without| {
            let mut world = World::new(Plan {
                without,
                ..Plan::default()
            });
            world.at(0, |world| world.feed(0));
            world.at(100_000, |world| world.feed(0));
            world.at(9_000_000, |world| {
                world.submit(1, 0);
                world.submit(0, 0);
            });
            world.run();
            let all: Vec<_> = world.answers.iter().map(|answer| &answer.result).collect();
            let retries = &all[2..];
            let first = Applied {
                at: SequenceNumber(0),
                duplicate: true,
            };
            expect(retries.len() == 2, "both retries are answered")?;
            expect(
                retries.iter().all(|it| **it == Ok(first)),
                "with the place of the first",
            )?;
            world.check()
        },
        &[Safeguard::LeaveOut],
    );
}

/// Two processes get the same update at the same moment, and both have just read an empty stream.
#[test]
fn of_two_owners_that_read_the_same_tail_one_writes() {
    needs(
        |without| {
            let mut world = World::new(Plan {
                without,
                ..Plan::default()
            });
            world.routes[0] = vec![0, 1];
            for round in 0..5 {
                world.at(round * 100_000, |world| world.feed(0));
            }
            world.run();
            expect(world.answers.len() == 10, "each process answers each call")?;
            world.check()
        },
        &[Safeguard::Match, Safeguard::ReadAgain, Safeguard::LeaveOut],
    );
}

/// An owner is replaced: the new one installs its token. The old one still has calls.
#[test]
fn an_owner_that_was_fenced_out_writes_nothing_more() {
    needs(
        |without| {
            let token = |text| FencingToken::parse(text).expect("a short token");
            let mut plan = Plan {
                without,
                ..Plan::default()
            };
            plan.rules.fence = Some(token("old"));
            let mut world = World::new(plan);
            world.star.stream(&entity(0)).fence = token("old");
            world.at(0, |world| world.feed(0));
            world.at(100_000, move |world| {
                world.star.stream(&entity(0)).fence = token("new");
            });
            world.at(200_000, |world| {
                for id in ["late 1", "late 2"] {
                    let update = world.update(0, id, "from the old owner");
                    world.submit(0, update);
                }
            });
            world.run();
            let told = |update| {
                let mut answers = world.answers.iter().filter(|it| it.update == update);
                let fenced = |result: &Result<_, UpdateError>| {
                    result
                        .as_ref()
                        .is_err_and(|e| e.is_fenced() && e.is_clean())
                };
                answers.all(|it| fenced(&it.result)) && world.answers.len() == 3
            };
            expect(told(1) && told(2), "the old owner's callers are told")?;
            world.check()
        },
        &[Safeguard::Fence],
    );
}

/// The star refuses everything for ten seconds: few requests reach it, and then all is stored.
#[test]
fn a_throttled_star_is_not_hammered() {
    for (code, facts) in [
        (Code::RateLimited, Facts::After(700_000)),
        (Code::DiskFull, Facts::Space { free: 1, floor: 2 }),
        (Code::Unavailable, Facts::None),
    ] {
        let refusal = Refusal::new(code, "not at the moment").with(facts);
        needs(
            |without| {
                let refusal = refusal.clone();
                let mut world = World::new(Plan {
                    without,
                    fate: Box::new(move |_, request| Fate {
                        refuse: (request.now_us < 10_000_000).then(|| refusal.clone()),
                        answer_us: if request.now_us < 10_000_000 && !request.is_write {
                            ms(1)
                        } else {
                            ms(2)
                        },
                        ..Fate::default()
                    }),
                    ..Plan::default()
                });
                for _ in 0..10 {
                    world.at(0, |world| world.feed(0));
                }
                world.run();
                let requests = world.requests;
                expect(
                    requests < 40,
                    &format!("{requests} requests in ten seconds"),
                )?;
                world.check()
            },
            if refusal.clean {
                &[Safeguard::Backoff]
            } else {
                &[Safeguard::LeaveOut]
            },
        );
    }
}

/// The stream is deleted and made again, and another process has written the update to the new
/// one. A write from memory must not take the new one for the old.
#[test]
fn a_memory_of_an_earlier_incarnation_is_not_used_for_a_later_one() {
    needs(
        |without| {
            let mut world = World::new(Plan {
                without,
                ..Plan::default()
            });
            world.at(0, |world| {
                let update = world.update(0, "of the first incarnation", "");
                world.submit(0, update);
            });
            world.at(100_000, |world| world.star.create(&entity(0)));
            world.at(200_000, |world| {
                world.routes[0] = vec![1];
                world.feed(0);
            });
            world.at(300_000, |world| world.feed_again(0, 0));
            world.at(300_000, |world| world.submit(0, 1));
            world.run();
            world.check()
        },
        &[Safeguard::Incarnation],
    );
}

/// The same id with other content: that caller is told, the others of its batch are not held up.
#[test]
fn an_id_with_other_content_is_a_conflict_of_its_caller_alone() {
    needs(
        |without| {
            let mut world = World::new(Plan {
                without,
                ..Plan::default()
            });
            world.at(0, |world| world.feed(0));
            world.at(100_000, |world| {
                // A batch that runs, so that the next ones ride together behind it.
                world.feed(0);
                let other = world.update(0, "0", "another body");
                world.submit(0, other);
                world.feed(0);
                let twin = world.update(0, "2", "another body");
                world.submit(0, twin);
            });
            world.run();
            let conflicts: Vec<_> = world
                .answers
                .iter()
                .filter_map(|it| match it.result {
                    Err(UpdateError::Conflict { at }) => Some((it.update, at.0)),
                    _ => None,
                })
                .collect();
            expect(conflicts == [(2, 0), (4, 2)], &format!("{conflicts:?}"))?;
            world.check()
        },
        &[Safeguard::Compare],
    );
}

/// An answer comes only when the update is durable: the checker looks at the star at that moment.
#[test]
fn an_answer_waits_until_its_update_is_durable() {
    needs(
        |without| {
            let mut world = World::new(Plan {
                without,
                ..Plan::default()
            });
            world.at(0, |world| world.feed(0));
            world.run();
            world.check()
        },
        &[Safeguard::Durable],
    );
}

/// The same updates in another run, at other times, by other processes, are the same bytes.
#[test]
fn nothing_stored_depends_on_the_time_or_place_of_its_dispatch() {
    let records = |seed, process: usize, start_us: u64| -> Vec<Record> {
        let mut world = World::new(Plan {
            seed,
            ..Plan::default()
        });
        world.routes[0] = vec![process];
        for round in 0..10 {
            world.at(start_us + round * 500, |world| world.feed(0));
        }
        world.run();
        world.check().expect("all is stored");
        world.star.records(&entity(0))
    };
    assert_eq!(records(1, 0, 0), records(2, 1, 77_777_777));
}

/// One caller's updates are stored in the order it issued them, also when a batch is tried again;
/// with two batches of an entity under way the second would overtake the first.
#[test]
fn one_batch_of_an_entity_at_a_time_keeps_the_order() {
    let case = |overlaps| {
        let mut writes = 0;
        let mut world = World::new(Plan {
            overlaps,
            fate: Box::new(move |_, request| {
                writes += u64::from(request.is_write);
                let is_first = request.is_write && writes == 1;
                Fate {
                    refuse: is_first.then(|| Refusal::new(Code::RateLimited, "slower")),
                    ..Fate::default()
                }
            }),
            ..Plan::default()
        });
        world.at(0, |world| world.feed(0));
        world.at(100, |world| world.feed(0));
        world.run();
        world.check()
    };
    assert_eq!(case(false), Ok(()));
    assert!(case(true).is_err(), "nobody missed the one batch at a time");
}

/// An update that is older than all known records is written again: there the guarantee ends.
#[test]
fn the_guarantee_ends_with_the_known_records() {
    let stored = |between: usize| {
        let mut world = World::new(Plan {
            rules: WriteRules {
                known_records: 8,
                ..WriteRules::default()
            },
            ..Plan::default()
        });
        for round in 0..=between as u64 {
            world.at(round * 100_000, |world| world.feed(0));
        }
        world.at(90_000_000, |world| world.submit(1, 0));
        world.run();
        let all = ids(&world.star.records(&entity(0)));
        all.iter().filter(|id| *id == "0").count()
    };
    assert_eq!(stored(7), 1, "among the newest eight");
    assert_eq!(stored(8), 2, "the ninth newest");
}

/// The budget is spent: the caller is told, with what is certain, and may write again.
#[test]
fn a_spent_budget_says_whether_the_update_may_be_stored() {
    for (loses_writes, is_clean) in [(false, true), (true, false)] {
        let mut world = World::new(Plan {
            fate: Box::new(move |_, request| Fate {
                request_us: (request.is_write != loses_writes || request.now_us > 70_000_000)
                    .then_some(1_000),
                ..Fate::default()
            }),
            ..Plan::default()
        });
        world.at(0, |world| world.feed(0));
        world.at(80_000_000, |world| world.feed_again(0, 0));
        world.run();
        let first = world.answers[0]
            .result
            .clone()
            .expect_err("the budget is spent");
        assert!(
            matches!(first, UpdateError::Unavailable { .. }),
            "{first:?}"
        );
        assert_eq!(first.is_clean(), is_clean, "lost writes: {loses_writes}");
        world.check().expect("written again, stored once");
    }
}
