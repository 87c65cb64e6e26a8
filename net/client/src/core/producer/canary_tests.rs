//! Mistakes of a star that the oracle of the random tests must notice.

use super::*;

#[test]
fn the_oracle_notices_a_star_that_does_not_recognise_repeats() {
    let (has_writer, repeats_apply) = (true, true);
    must_be_noticed(Kind {
        has_writer,
        repeats_apply,
        ..Kind::default()
    });
}

#[test]
fn the_oracle_notices_a_clean_notice_that_overtakes_answers() {
    for has_writer in [false, true] {
        must_be_noticed(Kind {
            has_writer,
            is_orderly: true,
            notices_overtake: true,
            ..Kind::default()
        });
    }
}

fn must_be_noticed(kind: Kind) {
    use proptest::test_runner::{Config, TestRunner};
    let config = Config {
        cases: 2_000,
        max_shrink_iters: 0,
        failure_persistence: None,
        ..Config::default()
    };
    let found = TestRunner::new(config).run(&steps(), |steps| {
        World::run(kind, steps);
        Ok(())
    });
    assert!(found.is_err(), "the canary sang for nobody: {kind:?}");
}
