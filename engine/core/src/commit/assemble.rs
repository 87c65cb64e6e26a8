//! Lays an open group into the bytes of one group: the statements that its segment lacks, then its
//! entries.
//!
//! # Invariants
//! - The first entry of a stream in a segment states the stream in full.
//! - Statements that would make the group too large go ahead in a group of their own.

use super::gate::Ticket;
use crate::disk::SegmentFile;
use crate::entry::Entry;
use crate::segment::GroupBuilder;
use crate::state::StreamState;
use nova_model::ids::StreamId;
use nova_model::limits::{
    BLOCK_BYTES, GROUP_BYTES_MAX, GROUP_ENTRIES_MAX, GROUP_TARGET_BYTES, WRITER_BATCHES_MAX,
};
use std::collections::BTreeSet;

/// What the log asks about streams when it assembles a group.
pub(crate) trait Statements {
    /// The durable state of a stream that `segment` does not know yet; none if it knows it.
    fn unstated(&self, stream: StreamId, segment: SegmentFile) -> Option<StreamState>;
    /// The segment before `segment` that holds records of the stream of a statement.
    fn previous(&self, statement: &StreamState, segment: SegmentFile) -> Option<SegmentFile>;
    /// What the first group of `segment` names besides: what was released, and the buckets, in
    /// their home's log.
    fn preamble(&self, segment: SegmentFile) -> Vec<Entry>;
}

/// A group that entries are still added to, or that waits for the disk.
pub(super) struct OpenGroup {
    pub(super) ticket: Ticket,
    pub(super) entries: Vec<Entry>,
    /// The most that its entries can take.
    pub(super) bytes: usize,
}

/// A group ready to be sealed.
pub(super) struct Assembled {
    pub(super) builder: GroupBuilder,
    pub(super) entries: Vec<Entry>,
    /// Whether the open group is in it, and not only statements that go ahead.
    pub(super) whole: bool,
}

/// Lays the statements that `segment` lacks and the group's entries into one group.
pub(super) fn assemble(
    segment: SegmentFile,
    group: &OpenGroup,
    statements: &dyn Statements,
) -> Assembled {
    let mut builder = GroupBuilder::new();
    let mut entries = Vec::new();
    let mut whole = true;
    for statement in missing_statements(segment, group, statements) {
        builder.push(&statement);
        entries.push(statement);
        let is_much = builder.bytes() + group.bytes > GROUP_BYTES_MAX - BLOCK_BYTES
            || builder.entries() + group.entries.len() > GROUP_ENTRIES_MAX;
        whole = whole && !is_much;
        if !whole && builder.bytes() >= GROUP_TARGET_BYTES {
            break;
        }
    }
    if whole {
        for entry in &group.entries {
            let entry = with_previous(entry, segment, statements);
            builder.push(&entry);
            entries.push(entry);
        }
    }
    Assembled {
        builder,
        entries,
        whole,
    }
}

fn missing_statements(
    segment: SegmentFile,
    group: &OpenGroup,
    statements: &dyn Statements,
) -> Vec<Entry> {
    let mut missing = statements.preamble(segment);
    let mut seen = BTreeSet::new();
    for entry in &group.entries {
        let Some(stream) = entry.stream() else {
            continue;
        };
        if seen.insert(stream)
            && !matches!(entry, Entry::Led(_))
            && let Some(mut state) = statements.unstated(stream, segment)
        {
            state.previous = statements.previous(&state, segment);
            missing.push(Entry::Led(Box::new(state)));
        }
    }
    missing
}

/// A statement made at admission did not know its segment yet.
fn with_previous(entry: &Entry, segment: SegmentFile, statements: &dyn Statements) -> Entry {
    let mut entry = entry.clone();
    if let Entry::Led(state) = &mut entry {
        state.previous = statements.previous(state, segment);
    }
    entry
}

/// The most that an entry can take in a group.
pub(super) fn entry_bytes_most(entry: &Entry) -> usize {
    const FIXED: usize = 256;
    match entry {
        Entry::Batch(batch) => FIXED + batch.stored.batch.bytes().len(),
        Entry::Led(state) => 16 * FIXED + state.writers.len() * WRITER_BATCHES_MAX * 64,
        Entry::BucketPut(_) => 2 * FIXED,
        Entry::Released { numbers, .. } => FIXED + numbers.ranges().len() * 16,
        Entry::Fence { .. }
        | Entry::Trim { .. }
        | Entry::Settings { .. }
        | Entry::Deleted { .. }
        | Entry::BucketDeleted(_) => FIXED,
    }
}
