//! What TLC says, as it says it, and what is made of it.

use super::*;

const HOLDS: &str = "Progress(17) at 2026-01-01 00:00:00: 3,736,137 states generated \
    (3,699,567 s/min), 989,465 distinct states found (975,206 ds/min), 502,457 states left.\n\
    Model checking completed. No error has been found.\n\
    299050 states generated, 46086 distinct states found, 0 states left on queue.\n\
    The depth of the complete state graph search is 21.\n";

const BROKEN: &str = "Error: Invariant AppliedOnce is violated.\n\
    Error: The behavior up to this point is:\n\
    2321 states generated, 889 distinct states found, 433 states left on queue.\n";

#[test]
fn both_outcomes_are_read_with_their_states() {
    let holds = understand(Some(0), HOLDS).expect("understood");
    assert_eq!((holds.outcome, holds.states), (Outcome::Holds, 46086));
    let broken = understand(Some(12), BROKEN).expect("understood");
    let name = "AppliedOnce".to_owned();
    assert_eq!(
        (broken.outcome, broken.states),
        (Outcome::Broken(name), 889)
    );
}

#[test]
fn what_contradicts_itself_is_no_outcome() {
    let parse_error = "***Parse Error***\nEncountered \"=\" at line 3\n";
    for (code, output) in [
        (Some(12), HOLDS),
        (Some(0), BROKEN),
        (Some(150), parse_error),
        (Some(0), ""),
        (Some(1), HOLDS),
        (None, HOLDS),
    ] {
        let error = understand(code, output).expect_err("not understood");
        assert!(error.to_string().contains(output), "{error}");
    }
}
