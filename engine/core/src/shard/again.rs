//! What failed is tried again: storing an index, recycling a file.
//!
//! Neither is waited for by anybody who appends or reads, so a try each time that the free space is
//! looked at is enough. Left undone it would keep all later segments of the log from going, too:
//! they go in order. A device that failed once may do the same the next time, since each try writes
//! a new file or takes up where the last one ended, and believes nothing of what failed.
//!
//! # Invariants
//! - An index's bytes are held until it is stored, or failed in a way that does not pass.
//! - A failure is told once, however often it is tried.
//!
//! # Not here
//! - Files for new segments, which the log asks for: [`crate::commit`].

use super::{OpOwner, Shard};
use crate::disk::{DiskError, DiskFailure, DiskOp, SegmentFile};
use crate::event::Event;
use bytes::Bytes;
use nova_model::Generation;
use std::collections::{BTreeMap, BTreeSet};

/// What is tried again.
#[derive(Default)]
pub(super) struct Again {
    /// Indexes that are not stored.
    indexes: BTreeMap<SegmentFile, Bytes>,
    /// Those of them that wait for another try.
    unstored: BTreeSet<SegmentFile>,
    /// Files of released or replaced segments that wait for another try.
    unrecycled: BTreeSet<(SegmentFile, Generation)>,
    told: BTreeSet<SegmentFile>,
}

impl Again {
    /// Nothing is left to do for a file.
    pub(super) fn done(&mut self, file: SegmentFile) {
        self.indexes.remove(&file);
        self.told.remove(&file);
    }
}

impl Shard {
    /// A segment is sealed: its index goes to the disk.
    pub(super) fn store_index(&mut self, file: SegmentFile, bytes: Bytes) {
        self.again.indexes.insert(file, bytes.clone());
        self.ask(OpOwner::Index(file), DiskOp::StoreIndex { file, bytes });
    }

    /// An index is not stored.
    pub(super) fn index_failed(&mut self, file: SegmentFile, error: DiskError) {
        match passes(&error) {
            true => drop(self.again.unstored.insert(file)),
            false => drop(self.again.indexes.remove(&file)),
        }
        if self.again.told.insert(file) {
            self.events.push_back(Event::IndexNotStored(file, error));
        }
    }

    /// The file of a released segment is still there. Whether it is tried again.
    pub(super) fn recycle_failed(
        &mut self,
        (file, generation): (SegmentFile, Generation),
        error: DiskError,
    ) -> bool {
        let is_tried = passes(&error);
        if is_tried {
            self.again.unrecycled.insert((file, generation));
        }
        if self.again.told.insert(file) {
            self.events.push_back(Event::NotRecycled(file, error));
        }
        is_tried
    }

    /// Asks once more for what failed.
    pub(super) fn try_again(&mut self) {
        for file in std::mem::take(&mut self.again.unstored) {
            if let Some(bytes) = self.again.indexes.get(&file).cloned() {
                self.ask(OpOwner::Index(file), DiskOp::StoreIndex { file, bytes });
            }
        }
        for (file, generation) in std::mem::take(&mut self.again.unrecycled) {
            let owner = OpOwner::Recycle(file, generation);
            self.ask(owner, DiskOp::Recycle { file, generation });
        }
    }
}

fn passes(error: &DiskError) -> bool {
    match error.failure {
        DiskFailure::NoSpace | DiskFailure::NoDescriptor | DiskFailure::Io => true,
        // A file that is gone is what a try before has left.
        DiskFailure::NotFound | DiskFailure::Short | DiskFailure::Locked => false,
    }
}
