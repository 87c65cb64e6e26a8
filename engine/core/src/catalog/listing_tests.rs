//! Pages out of several indexes, and how much of each index a page looks at.
//!
//! The story: a page of 1,000 took 1,000 statements of each index, whatever it told of them. With
//! 16 indexes of a million streams a page held its core for tens of milliseconds.

use super::Merge;
use crate::state::StreamState;
use nova_model::ids::{Epoch, StreamId};
use nova_model::settings::StreamSettings;
use nova_model::{Code, Refusal, StreamName, Timestamp};
use std::cell::Cell;

fn state(key: &str, epoch: u64, id: u128) -> StreamState {
    let name = StreamName::parse(&format!("b/{key}")).unwrap();
    let settings = StreamSettings::default();
    let mut state = StreamState::new(StreamId(id), name, Timestamp(1), settings);
    state.epoch = Epoch(epoch);
    state
}

/// Keys, ids and where the page ends.
fn page(indexes: &[&[(&str, u64, u128)]], limit: usize) -> (Vec<(String, u128)>, Option<String>) {
    let mut merge = Merge::default();
    for index in indexes {
        let states = index
            .iter()
            .map(|&(key, epoch, id)| Ok(state(key, epoch, id)));
        merge.add(states).unwrap();
    }
    let listing = merge.take(limit).unwrap();
    let told = listing.streams.into_iter();
    let told = told.map(|(key, state)| (key.as_str().to_owned(), state.id.0));
    let end = listing.complete_to.map(|key| key.as_str().to_owned());
    (told.collect(), end)
}

#[test]
fn the_highest_epoch_counts_and_of_equal_ones_the_newer_index() {
    let newest: &[(&str, u64, u128)] = &[("b", 2, 1), ("d", 1, 2)];
    let middle: &[(&str, u64, u128)] = &[("a", 1, 3), ("b", 2, 4), ("c", 5, 5)];
    let oldest: &[(&str, u64, u128)] = &[("b", 1, 6), ("c", 4, 7), ("d", 2, 8)];
    let all = [newest, middle, oldest];
    let told = [("a", 3), ("b", 1), ("c", 5), ("d", 8)].map(|(key, id)| (key.to_owned(), id));
    assert_eq!(page(&all, 9), (told.to_vec(), None));
    assert_eq!(page(&all, 4), (told.to_vec(), None));
    let ends = [None, Some("a"), Some("b"), Some("c")].map(|key| key.map(str::to_owned));
    for (limit, end) in ends.into_iter().enumerate() {
        assert_eq!(page(&all, limit), (told[..limit].to_vec(), end), "{limit}");
    }
    assert_eq!(page(&[], 3), (Vec::new(), None));
    assert_eq!(page(&[&[], newest, &[]], 1).1, Some("b".to_owned()));
}

#[test]
fn a_page_looks_at_what_it_tells_and_one_statement_more_of_each_index() {
    const INDEXES: usize = 50;
    const LIMIT: usize = 100;
    let looks = Cell::new(0);
    let mut merge = Merge::default();
    for index in 0..INDEXES {
        let looks = &looks;
        let states = (0..).map(move |n| {
            looks.set(looks.get() + 1);
            Ok(state(&format!("{n:06}-{index:03}"), 1, n))
        });
        merge.add(states).unwrap();
    }
    let listing = merge.take(LIMIT).unwrap();
    assert_eq!(listing.streams.len(), LIMIT);
    assert!(looks.get() <= LIMIT + INDEXES, "{}", looks.get());
}

#[test]
fn damage_that_a_page_comes_to_is_told() {
    let corrupt = || Err(Refusal::new(Code::Corrupt, "a row"));
    let of = |limit| {
        let mut merge = Merge::default();
        let states = [Ok(state("a", 1, 1)), Ok(state("b", 1, 2)), corrupt()];
        merge.add(states.into_iter()).unwrap();
        merge.take(limit).map(|listing| listing.streams.len())
    };
    assert_eq!(of(1), Ok(1));
    assert_eq!(of(3).map_err(|refusal| refusal.code), Err(Code::Corrupt));
    let mut merge = Merge::default();
    assert!(merge.add([corrupt()].into_iter()).is_err());
}
