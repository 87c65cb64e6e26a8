//! What a filter says of names that are there, and of others.

use super::*;

fn name(n: usize) -> NameHash {
    let name = StreamName::parse(&format!("bucket/device-{n}/temperature"));
    NameHash::of(&name.expect("a legal name"))
}

fn filter_of(names: usize) -> NameFilter {
    let mut filter = NameFilter::with_room(names);
    (0..names).for_each(|n| filter.add(name(n)));
    filter
}

fn wrong_in_10000(filter: &NameFilter) -> usize {
    let others = (1_000_000..1_010_000).map(name);
    others.filter(|other| filter.may_hold(*other)).count()
}

#[test]
fn a_filter_is_never_wrong_about_what_is_there() {
    for names in [0, 1, 2, 7, 100, 5_000, 100_000] {
        let filter = filter_of(names);
        assert!((0..names).all(|n| filter.may_hold(name(n))), "{names}");
        assert!(size_of_val::<[Block]>(&filter.blocks) <= NAME_FILTER_BYTES_MAX);
    }
}

#[test]
fn it_is_seldom_wrong_about_what_is_not() {
    assert_eq!(wrong_in_10000(&filter_of(0)), 0);
    for names in [50, 1_000, 20_000] {
        let wrong = wrong_in_10000(&filter_of(names));
        assert!(
            wrong < 200,
            "{wrong} in 10,000 are wrong with {names} names"
        );
    }
    assert_eq!(wrong_in_10000(&NameFilter::unknowing()), 10_000);
}

#[test]
fn the_parts_of_a_name_are_kept_apart() {
    let one = NameHash::of_parts(b"ab", b"c");
    let other = NameHash::of_parts(b"a", b"bc");
    assert_ne!(one, other);
    assert_ne!(
        NameHash::of_parts(b"a", b"b\0"),
        NameHash::of_parts(b"a", b"b")
    );
}
