//! The set of released numbers against a plain set, for all short sequences of additions.

use super::*;
use std::collections::BTreeSet;

#[test]
fn ranges_say_what_a_plain_set_says() {
    let ranges: Vec<(u64, u64)> = (1..=6)
        .flat_map(|first| (first..=6).map(move |last| (first, last)))
        .collect();
    for a in &ranges {
        for b in &ranges {
            for c in &ranges {
                let (mut set, mut plain) = (Released::default(), BTreeSet::new());
                for &(first, last) in [a, b, c] {
                    set.add(NumberRange { first, last });
                    plain.extend(first..=last);
                    assert!(set.is_sound(), "{set:?}");
                    compare(&set, &plain);
                }
            }
        }
    }
}

fn compare(set: &Released, plain: &BTreeSet<u64>) {
    for first in 1..=7 {
        assert_eq!(
            set.last_below(first),
            plain.range(..first).next_back().copied()
        );
        for last in 0..=7 {
            let all = (first..=last).all(|number| plain.contains(&number));
            assert_eq!(set.covers(first, last), all, "{first} to {last} of {set:?}");
        }
    }
}

#[test]
fn a_set_from_a_disk_is_looked_at() {
    let range = |first, last| NumberRange { first, last };
    let touching = vec![range(1, 2), range(3, 4)];
    let backwards = vec![range(5, 4)];
    for ranges in [touching, backwards, vec![range(1, u64::MAX)]] {
        assert!(!Released { ranges }.is_sound());
    }
}
