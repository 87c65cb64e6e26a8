//! All 64 combinations: exactly one case each, and what the table must mean.

use super::*;

fn all() -> impl Iterator<Item = Facts> {
    (0..64u32).map(|bits| {
        let bit = |n: u32| bits & (1 << n) != 0;
        Facts {
            header_ok: bit(0),
            checksum_ok: bit(1),
            number_fits: bit(2),
            chain_fits: bit(3),
            later_follows: bit(4),
            later_covers: bit(5),
        }
    })
}

#[test]
fn exactly_one_case_for_each_combination() {
    for facts in all() {
        let matching = CASES.iter().filter(|case| holds(case, &facts)).count();
        assert_eq!(matching, 1, "{facts:?}");
    }
}

#[test]
fn only_a_whole_group_in_its_place_is_kept() {
    for facts in all() {
        let whole = facts.header_ok && facts.checksum_ok && facts.number_fits && facts.chain_fits;
        assert_eq!(decide(&facts) == Decision::Keep, whole, "{facts:?}");
    }
}

#[test]
fn what_was_durable_is_never_cut() {
    for facts in all().filter(|facts| facts.later_follows && facts.later_covers) {
        assert_ne!(decide(&facts), Decision::CutTorn, "{facts:?}");
    }
}

#[test]
fn a_torn_end_never_keeps_a_star_from_starting() {
    let torn = |facts: &Facts| !(facts.header_ok && facts.checksum_ok);
    let unanswered = |facts: &Facts| !(facts.later_follows && facts.later_covers);
    for facts in all().filter(|facts| torn(facts) && unanswered(facts)) {
        assert_eq!(decide(&facts), Decision::CutTorn, "{facts:?}");
    }
}

#[test]
fn every_case_is_reached() {
    for case in &CASES {
        assert!(all().any(|facts| holds(case, &facts)), "{case:?}");
    }
}
