//! Which segments of a log were given up because nothing in them is needed any more.
//!
//! A recovery that misses a segment must know whether it was given up or lost. So a log states the
//! numbers of those given up: before a file goes, again at the head of each later segment, and in
//! the index of each. Numbers grow, and the oldest segments go first as a rule, so that the set is
//! a range and a few numbers.
//!
//! ```text
//!   numbers   1 2 3 4 5 6 7 8 9      released 1..4 and 6
//!   files             5   7 8 9
//! ```
//! # Invariants
//! - Ranges ascend and do not touch.
//! - A number that was released stays so: the log's numbers are not given out again.

use nova_model::limits::RELEASED_RANGES_MAX;
use rkyv::{Archive, Deserialize, Serialize};

/// Numbers from the first to the last, both included.
#[derive(Archive, Serialize, Deserialize, Debug, Clone, Copy, PartialEq, Eq)]
pub struct NumberRange {
    /// The first.
    pub first: u64,
    /// The last.
    pub last: u64,
}

/// Numbers of released segments of one log, and of those between that never had a group.
#[derive(Archive, Serialize, Deserialize, Debug, Clone, PartialEq, Eq, Default)]
pub struct Released {
    ranges: Vec<NumberRange>,
}

impl Released {
    /// Whether every number from `first` to `last` is in it; so of none at all.
    pub fn covers(&self, first: u64, last: u64) -> bool {
        let holds = |range: &NumberRange| range.first <= first && last <= range.last;
        first > last || self.ranges.iter().any(holds)
    }

    /// Whether the number is in it.
    pub fn contains(&self, number: u64) -> bool {
        self.covers(number, number)
    }

    /// Whether no number is.
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// The ranges.
    pub fn ranges(&self) -> &[NumberRange] {
        &self.ranges
    }

    /// The highest number below `number` that is in it.
    pub fn last_below(&self, number: u64) -> Option<u64> {
        let below = self.ranges.iter().rev().find(|range| range.first < number);
        below.map(|range| range.last.min(number - 1))
    }

    /// Adds a range.
    pub fn add(&mut self, added: NumberRange) {
        let NumberRange {
            mut first,
            mut last,
        } = added;
        self.ranges.retain(|range| {
            let is_apart = range.last + 1 < first || last + 1 < range.first;
            if !is_apart {
                first = first.min(range.first);
                last = last.max(range.last);
            }
            is_apart
        });
        let at = self.ranges.partition_point(|range| range.first < first);
        self.ranges.insert(at, NumberRange { first, last });
    }

    /// Adds all of another set.
    pub fn add_all(&mut self, other: &Released) {
        other.ranges.iter().for_each(|range| self.add(*range));
    }

    /// Whether another range would be one too many.
    pub fn is_full(&self) -> bool {
        self.ranges.len() >= RELEASED_RANGES_MAX
    }

    /// Whether the ranges are in order and within bounds; for those from a disk.
    pub(crate) fn is_sound(&self) -> bool {
        let is_range = |range: &NumberRange| range.first <= range.last && range.last < u64::MAX;
        let apart = |pair: &[NumberRange]| pair[0].last + 1 < pair[1].first;
        self.ranges.len() <= RELEASED_RANGES_MAX
            && self.ranges.iter().all(is_range)
            && self.ranges.windows(2).all(apart)
    }
}

#[cfg(test)]
#[path = "released_tests.rs"]
mod tests;
