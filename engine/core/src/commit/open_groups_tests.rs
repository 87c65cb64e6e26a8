//! How many entries a group takes before the next one is opened.

use super::LogWriter;
use super::gate::Ticket;
use crate::config::ShardConfig;
use crate::segment::LogEnd;
use crate::segment::samples::{batch, stream};
use nova_model::ids::SegmentNumber;
use nova_model::limits::{BATCH_METERED_BYTES_MAX, GROUP_TARGET_BYTES};
use nova_model::{CoreId, Incarnation, StarId};

/// A batch of which a group takes many.
const SMALL: usize = 64 * 1024;

fn writer() -> LogWriter {
    let addresses = vec!["star:7400".to_owned()];
    let config = ShardConfig::new(StarId(1), Incarnation(1), CoreId(0), addresses);
    LogWriter::new(&config, LogEnd::default(), SegmentNumber(1))
}

/// The tickets of so many batches of one record each, pushed one behind the other.
fn tickets(count: usize, bytes: usize) -> Vec<u64> {
    let (mut writer, mut state) = (writer(), stream(1));
    (0..count)
        .map(|_| {
            let Ticket(ticket) = writer.push(batch(&mut state, bytes));
            ticket
        })
        .collect()
}

#[test]
fn two_batches_of_the_largest_size_share_a_group() {
    let largest = BATCH_METERED_BYTES_MAX - 64;
    assert_eq!(tickets(5, largest), [1, 1, 2, 2, 3]);
}

#[test]
fn a_group_takes_what_comes_until_it_holds_its_target() {
    let tickets = tickets(100, SMALL);
    let of_first = tickets.iter().filter(|ticket| **ticket == 1).count();
    let least = GROUP_TARGET_BYTES / (SMALL + 512);
    assert!((least..=GROUP_TARGET_BYTES / SMALL).contains(&of_first));
    assert!(tickets.is_sorted());
}
