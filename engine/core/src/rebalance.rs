//! Which streams to move so that the cores are evenly busy: a pure function.
//!
//! Greedy: from the busiest core to the least busy one, the stream that brings the two nearest to
//! each other, until all lie within a tenth of their mean, or nothing helps any more.
//!
//! ```text
//!   core 0  ####a####b##c      gap 8: a stream of about 4 fits best      core 0  ####a##c
//!   core 1  ##d                ------------------------------------>     core 1  ####b##d
//! ```
//!
//! # Invariants
//! - A stream moves once, and only if it makes the greater of the two loads smaller.
//! - The same loads give the same plan.
//!
//! # Not here
//! - Measuring: [`crate::load`]. Moving: `shard`.

use nova_model::StreamId;
use nova_model::ids::CoreId;

/// The load of one core.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CoreLoad {
    pub(crate) core: CoreId,
    /// All of it, also that of streams which are not named.
    pub(crate) weight: u64,
    /// The busiest streams that it leads and may give away, each with its load.
    pub(crate) streams: Vec<(StreamId, u64)>,
}

/// One stream to move.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Order {
    pub(crate) stream: StreamId,
    pub(crate) from: CoreId,
    pub(crate) to: CoreId,
}

/// The moves that make `cores` evenly busy, at most `most`; whether more would help.
pub(crate) fn plan(mut cores: Vec<CoreLoad>, most: usize) -> (Vec<Order>, bool) {
    let mut orders = Vec::new();
    let mean = cores
        .iter()
        .map(|core| core.weight / cores.len() as u64)
        .sum::<u64>();
    for core in &mut cores {
        core.streams.sort_by_key(|(id, weight)| (*weight, *id));
    }
    // Cores from which nothing can be moved that helps.
    let mut stuck: Vec<CoreId> = Vec::new();
    loop {
        let givers = cores.iter().filter(|core| !stuck.contains(&core.core));
        let from = givers.max_by_key(|core| (core.weight, core.core));
        let to = cores.iter().min_by_key(|core| (core.weight, core.core));
        let (Some(from), Some(to)) = (from, to) else {
            return (orders, false);
        };
        let gap = from.weight.saturating_sub(to.weight);
        if gap <= mean / 10 {
            return (orders, false);
        }
        let Some(at) = best_of(from, gap) else {
            stuck.push(from.core);
            continue;
        };
        if orders.len() == most {
            return (orders, true);
        }
        let (from, to) = (from.core, to.core);
        let (stream, weight) = take(&mut cores, from, at);
        for core in &mut cores {
            if core.core == from {
                core.weight -= weight.min(core.weight);
            } else if core.core == to {
                core.weight += weight;
            }
        }
        orders.push(Order { stream, from, to });
    }
}

/// The stream whose move leaves the smallest difference behind: its load is nearest to half the
/// gap, and within it.
fn best_of(from: &CoreLoad, gap: u64) -> Option<usize> {
    let helps = |weight: u64| weight > 0 && weight < gap;
    let behind = from
        .streams
        .partition_point(|(_, weight)| *weight <= gap / 2);
    let near = [behind.checked_sub(1), Some(behind)];
    let near = near.into_iter().flatten().filter_map(|at| {
        let (_, weight) = from.streams.get(at)?;
        helps(*weight).then_some((at, weight.abs_diff(gap / 2)))
    });
    near.min_by_key(|(_, distance)| *distance).map(|(at, _)| at)
}

fn take(cores: &mut [CoreLoad], from: CoreId, at: usize) -> (StreamId, u64) {
    let giver = cores.iter_mut().find(|core| core.core == from);
    giver.expect("it was found before").streams.remove(at)
}

#[cfg(test)]
#[path = "rebalance_tests.rs"]
mod tests;
