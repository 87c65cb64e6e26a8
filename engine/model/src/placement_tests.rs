//! Rendezvous placement spreads evenly and moves only what it must.

use super::*;

fn name(i: usize) -> StreamName {
    StreamName::parse(&format!("bucket/key-{i}")).expect("legal")
}

#[test]
fn streams_spread_evenly() {
    let mut counts = [0u32; 4];
    for i in 0..4000 {
        counts[usize::from(stream_home(&name(i), 4).0)] += 1;
    }
    assert!(counts.iter().all(|c| (900..1100).contains(c)), "{counts:?}");
}

#[test]
fn one_more_core_takes_streams_but_moves_none_between_the_others() {
    let moved: Vec<_> = (0..4000)
        .map(|i| (stream_home(&name(i), 3), stream_home(&name(i), 4)))
        .filter(|(before, after)| before != after)
        .collect();
    assert!(moved.iter().all(|(_, after)| *after == CoreId(3)));
    assert!((800..1200).contains(&moved.len()), "{}", moved.len());
}

#[test]
fn a_drain_moves_the_streams_of_the_drained_core_alone() {
    let all = Placement::new(4);
    let drained = all.with(CoreSet::One(CoreId(2)), true).expect("core 2");
    assert_eq!(drained.drained(), [CoreId(2)]);
    for i in 0..4000 {
        let (before, after) = (all.home(&name(i)), drained.home(&name(i)));
        assert_eq!(before, stream_home(&name(i), 4));
        assert_ne!(after, CoreId(2));
        assert!(before == after || before == CoreId(2));
    }
    let undrained = drained
        .with(CoreSet::One(CoreId(2)), false)
        .expect("core 2");
    assert_eq!(undrained, all);
    assert_eq!(all.with(CoreSet::One(CoreId(4)), true), None);
}

#[test]
fn a_star_with_all_cores_drained_is_closed_and_rests_on_all() {
    let one_left = Placement::new(2).with(CoreSet::One(CoreId(0)), true);
    let one_left = one_left.expect("core 0");
    assert!(!one_left.is_closed());
    let closed = one_left.with(CoreSet::All, true).expect("all");
    assert!(closed.is_closed());
    assert_eq!(closed.home(&name(1)), stream_home(&name(1), 2));
    let open = closed.with(CoreSet::All, false).expect("all");
    assert_eq!(open, Placement::new(2));
}
