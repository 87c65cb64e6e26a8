//! Tests of the shares of the window budget.

use super::*;

#[test]
fn shares_never_exceed_the_budget_whatever_comes_and_goes() {
    for budget in [
        128 * 1024,
        1_000_000,
        64 * 1024 * 1024,
        5 * 1024 * 1024 * 1024u64,
    ] {
        let params = ServerParams::new(budget);
        let most = connections_max(&params);
        assert!(most >= 1);
        let mut step = STEP_FIRST;
        for open in (1..=most).chain((0..most).rev()).chain(1..=most) {
            step = next_step(step, open);
            let share = u64::from(share(&params, step));
            assert!(
                2 * share * open <= budget,
                "{open} connections of {budget} bytes"
            );
            assert!(share >= u64::from(params.connection_window_bytes_min));
        }
    }
}

/// Seen before: 512, beyond which clients were refused for as long as they tried.
#[test]
fn a_core_takes_two_thousand_connections() {
    assert_eq!(connections_max(&ServerParams::new(64 * 1024 * 1024)), 2_048);
}

#[test]
fn few_connections_have_the_largest_window() {
    let params = ServerParams::new(256 * 1024 * 1024);
    assert_eq!(
        share(&params, STEP_FIRST),
        params.connection_window_bytes_max
    );
    assert_eq!(
        share(&params, next_step(STEP_FIRST, 16)),
        params.connection_window_bytes_max
    );
    assert_eq!(
        share(&params, next_step(16, 17)),
        params.connection_window_bytes_max / 2
    );
}

#[test]
fn coming_and_going_around_a_step_moves_nothing() {
    let above = next_step(16, 17);
    for open in 9..=32 {
        assert_eq!(next_step(above, open), above);
    }
    assert_eq!(next_step(above, 8), 16);
    assert_eq!(next_step(16, 0), 2);
}
