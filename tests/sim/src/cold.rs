//! Damage in cold data: a bit turns in a segment that nobody writes any more.
//!
//! The star must start all the same, tell each record of the damaged group as `CORRUPT`, and serve
//! every other one as before.
//!
//! # Invariants
//! - The disk of the run is not touched; a segment that a start reads anew is left alone, since
//!   damage there is refused, which scenarios test.

use crate::desk::{self, Contents, Found};
use crate::disk::SimDisk;
use crate::node::BootPlan;
use crate::oracle::Oracle;
use crate::rng::Rng;
use nova_core::disk::SegmentFile;
use nova_core::entry::Entry;
use nova_core::segment::{SegmentHeader, decode_group};
use nova_model::limits::BLOCK_BYTES;
use nova_model::{StreamId, StreamName};
use std::collections::BTreeMap;

/// Records that a group holds, of each stream.
type Held = BTreeMap<StreamId, Vec<u64>>;

/// Turns a bit in a cold segment and compares what is served with what was.
pub fn check(
    oracle: &mut Oracle,
    disk: &SimDisk,
    plan: &BootPlan,
    names: &[StreamName],
    now: u64,
    rng: &mut Rng,
) -> Result<(), String> {
    let before = desk::contents(disk, plan, names, now)?;
    let Some((file, at)) = place(disk, rng) else {
        return Ok(());
    };
    let held = held_at(disk, file, at);
    let mut damaged = disk.copy();
    damaged.flip_bit(file, at, rng.below(8) as u8);
    let after = desk::contents(&damaged, plan, names, now)
        .map_err(|error| format!("a bit of {file} at {at} keeps the star down: {error}"))?;
    for (name, found) in &before.streams {
        compare(oracle, name, found, &after, &held);
    }
    Ok(())
}

/// A byte behind the header of a segment that is sealed and has its index.
fn place(disk: &SimDisk, rng: &mut Rng) -> Option<(SegmentFile, usize)> {
    let all: Vec<(SegmentFile, usize)> = disk
        .segments()
        .map(|(file, bytes)| (file, bytes.len()))
        .collect();
    let is_cold = |file: SegmentFile| {
        let is_last = !all
            .iter()
            .any(|(other, _)| other.log == file.log && other.number > file.number);
        disk.has_index(file) && !is_last
    };
    let cold: Vec<_> = all
        .iter()
        .filter(|(file, length)| is_cold(*file) && *length > BLOCK_BYTES)
        .collect();
    if cold.is_empty() {
        return None;
    }
    let (file, length) = **rng.pick(&cold);
    let at = rng.between(BLOCK_BYTES as u64, length as u64 - 1);
    Some((file, at as usize))
}

/// What the group at a byte of a segment holds.
fn held_at(disk: &SimDisk, file: SegmentFile, at: usize) -> Held {
    let mut held = Held::new();
    let segment = disk.segments().find(|(found, _)| *found == file);
    let bytes = segment.map(|(_, bytes)| bytes::Bytes::copy_from_slice(bytes));
    let bytes = bytes.expect("the segment is there");
    let Ok(Some(header)) = SegmentHeader::decode(&bytes[..BLOCK_BYTES]) else {
        return held;
    };
    let mut offset = BLOCK_BYTES;
    while let Ok(group) = decode_group(&bytes.slice(offset..), &header.id) {
        if (offset..offset + group.length).contains(&at) {
            for entry in &group.entries {
                if let Entry::Batch(batch) = entry {
                    let records = batch.stored.first.0..batch.stored.end().0;
                    held.entry(batch.stream).or_default().extend(records);
                }
            }
        }
        offset += group.length;
    }
    held
}

fn compare(oracle: &mut Oracle, name: &StreamName, before: &Found, after: &Contents, held: &Held) {
    let none = Vec::new();
    let may_go = held.get(&before.info.id).unwrap_or(&none);
    let after = after.streams.get(name);
    let is_same = after.is_some_and(|after| after.info == before.info);
    oracle.check(is_same, || {
        format!("{name}: a turned bit changes its description")
    });
    let Some(after) = after else { return };
    oracle.check(after.failure.is_none(), || {
        format!("{name}: after damage a read fails: {:?}", after.failure)
    });
    let (old, new) = (bodies(before), bodies(after));
    for (sequence, body) in &old {
        let is_told = after.damaged.iter().any(|range| range.contains(sequence));
        let fits = match new.get(sequence) {
            Some(found) => found == body,
            None => is_told && may_go.contains(sequence),
        };
        oracle.check(fits, || {
            let told = &after.damaged;
            format!("{name}: {sequence} is lost to damage of {may_go:?}, told {told:?}")
        });
    }
}

fn bodies(found: &Found) -> BTreeMap<u64, Vec<u8>> {
    let mut bodies = BTreeMap::new();
    for batch in &found.batches {
        batch.for_each(|position, record| {
            if position.sequence >= found.info.first {
                bodies.insert(position.sequence.0, record.body().to_vec());
            }
        });
    }
    bodies
}
