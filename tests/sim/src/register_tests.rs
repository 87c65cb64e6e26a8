//! What a register holds possible, step by step.

use super::*;

fn candidates(register: &Register<u8>, from: u64, to: u64) -> Vec<u8> {
    register.candidates(Mark(from), Mark(to)).collect()
}

#[test]
fn a_value_is_possible_until_another_one_is_certain() {
    let mut register = Register::default();
    register.begin(1, Mark(1), Mark(2));
    register.ask(2, Mark(5));
    assert_eq!(candidates(&register, 3, 4), [1], "before it was asked for");
    assert_eq!(candidates(&register, 6, 9), [1, 2], "without an answer");
    register.end(Mark(5), Mark(10), true);
    assert_eq!(
        candidates(&register, 7, 12),
        [1, 2],
        "asked before the answer"
    );
    assert_eq!(candidates(&register, 11, 12), [2]);
}

#[test]
fn a_refused_wish_never_was() {
    let mut register = Register::default();
    register.begin(1, Mark(1), Mark(2));
    register.ask(2, Mark(5));
    register.end(Mark(5), Mark(6), false);
    assert_eq!(candidates(&register, 7, 8), [1]);
}

#[test]
fn what_was_seen_was_done() {
    let mut register = Register::default();
    register.begin(1, Mark(1), Mark(2));
    register.ask(2, Mark(5));
    register.told(2, Mark(8));
    assert_eq!(candidates(&register, 9, 10), [2]);
}

#[test]
fn two_wishes_at_once_may_be_done_in_any_order() {
    let mut register = Register::default();
    register.begin(1, Mark(1), Mark(2));
    register.ask(2, Mark(5));
    register.ask(3, Mark(6));
    register.end(Mark(5), Mark(7), true);
    register.end(Mark(6), Mark(8), true);
    assert_eq!(candidates(&register, 9, 10), [2, 3]);
    let besides = register.candidates_besides(Some(Mark(6)), Mark(9), Mark(10));
    assert_eq!(besides.collect::<Vec<_>>(), [2]);
}

#[test]
fn after_a_start_nothing_older_comes_true() {
    let mut register = Register::default();
    register.begin(1, Mark(1), Mark(2));
    register.ask(2, Mark(5));
    register.reset(1, Mark(9));
    assert_eq!(candidates(&register, 10, 11), [1]);
    assert!(!register.is_judged(Mark(8)) && register.is_judged(Mark(10)));
}
