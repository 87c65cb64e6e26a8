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
