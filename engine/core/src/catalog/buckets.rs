//! The buckets as this core knows them: stored in the home's log, copied to every core.
//!
//! A change is decided by the home (core 0). Once its entry is durable the other cores are told,
//! and the client is answered when all have noted it, so a stream created right after on any core
//! finds its bucket as it is. Deleting asks first: every core stops creating streams in the bucket
//! and says whether it holds any.
//!
//! # Invariants
//! - One change of a bucket at a time.

use crate::entry::Entry;
use crate::event::Caller;
use nova_model::names::BucketName;
use nova_model::request::{Answer, BucketInfo};
use std::collections::{BTreeMap, BTreeSet};

/// A change that the home has in hand.
pub(crate) struct Change {
    pub(crate) name: BucketName,
    pub(crate) caller: Caller,
    pub(crate) waiting_for: u16,
    pub(crate) has_streams: bool,
    pub(crate) step: Step,
}

/// Where a change is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Step {
    /// The cores are asked whether they hold streams of the bucket.
    Closing,
    /// The entry is on its way to the disk, then to the cores; this is the answer to the client.
    Telling(Box<Answer>),
}

/// The buckets of a core, and the home's changes.
#[derive(Default)]
pub(crate) struct Buckets {
    /// As they are durable.
    pub(crate) known: BTreeMap<BucketName, BucketInfo>,
    /// Those in which no stream may be created at the moment.
    pub(crate) closed: BTreeSet<BucketName>,
    /// Changes in hand, at the home.
    pub(crate) changes: BTreeMap<u64, Change>,
    last_change: u64,
}

impl Buckets {
    pub(crate) fn new(known: BTreeMap<BucketName, BucketInfo>) -> Buckets {
        Buckets {
            known,
            ..Buckets::default()
        }
    }

    /// Whether a change of this bucket is in hand.
    pub(crate) fn is_changing(&self, name: &BucketName) -> bool {
        self.changes.values().any(|change| change.name == *name)
    }

    /// Whether it is being asked if a bucket is empty, so that it can go.
    pub(crate) fn is_closing(&self) -> bool {
        let mut changes = self.changes.values();
        changes.any(|change| change.step == Step::Closing)
    }

    pub(crate) fn begin(&mut self, change: Change) -> u64 {
        self.last_change += 1;
        self.changes.insert(self.last_change, change);
        self.last_change
    }

    pub(crate) fn put(&mut self, info: BucketInfo) {
        self.known.insert(info.name.clone(), info);
    }

    pub(crate) fn remove(&mut self, name: &BucketName) {
        self.known.remove(name);
        self.closed.remove(name);
    }

    /// What the first group of a segment of the home's log names.
    pub(crate) fn preamble(&self) -> Vec<Entry> {
        self.known.values().cloned().map(Entry::BucketPut).collect()
    }
}
