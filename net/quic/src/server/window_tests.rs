//! Tests of the shares of the window budget.

use super::*;

#[test]
fn shares_never_exceed_the_budget() {
    for budget in [
        128 * 1024,
        1_000_000,
        64 * 1024 * 1024,
        5 * 1024 * 1024 * 1024u64,
    ] {
        let params = ServerParams::new(budget);
        let most = connections_max(&params);
        assert!(most >= 1);
        for open in 1..=most {
            let share = u64::from(share(&params, step(open)));
            assert!(
                2 * share * open <= budget,
                "{open} connections of {budget} bytes"
            );
            assert!(share >= u64::from(params.connection_window_bytes_min));
        }
    }
}

#[test]
fn few_connections_have_the_largest_window() {
    let params = ServerParams::new(256 * 1024 * 1024);
    assert_eq!(share(&params, step(0)), params.connection_window_bytes_max);
    assert_eq!(share(&params, step(16)), params.connection_window_bytes_max);
    assert_eq!(
        share(&params, step(17)),
        params.connection_window_bytes_max / 2
    );
}
