//! The buckets as this core knows them: stored in the home's log, copied to every core.
//!
//! A change is decided by the home (core 0). Once its entry is durable the other cores are told,
//! and the client is answered when all have noted it, so a stream created right after on any core
//! finds its bucket as it is. Deleting asks first: every core stops creating streams in the bucket
//! and says whether it holds any. When none does, all are asked once more: a stream that moved from
//! core to core may have passed the first question by, which reached one core before it came and
//! the other one when it was gone. By the second question all cores have had the first one, and
//! each remembers whether a stream of the bucket has come to it since.
//!
//! # Invariants
//! - One change of a bucket at a time.

use super::arrivals::Arrivals;
use crate::entry::Entry;
use crate::event::Caller;
use nova_model::names::BucketName;
use nova_model::request::{Answer, BucketInfo};
use std::collections::BTreeMap;

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
    /// The cores are asked whether they hold streams of the bucket, for the first or second time.
    Closing { is_second: bool },
    /// The entry is on its way to the disk, then to the cores; this is the answer to the client.
    Telling(Box<Answer>),
}

/// The buckets of a core, and the home's changes.
#[derive(Default)]
pub(crate) struct Buckets {
    /// As they are durable.
    pub(crate) known: BTreeMap<BucketName, BucketInfo>,
    /// Those in which no stream may be created at the moment, and whether one has come to this core
    /// since from another one.
    pub(crate) closed: BTreeMap<BucketName, bool>,
    /// Changes in hand, at the home.
    pub(crate) changes: BTreeMap<u64, Change>,
    pub(crate) arrivals: Arrivals,
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
        changes.any(|change| matches!(change.step, Step::Closing { .. }))
    }

    /// No stream is created in a bucket from now on, until it is open again or gone.
    pub(crate) fn close(&mut self, name: &BucketName) {
        self.closed.entry(name.clone()).or_default();
    }

    /// A stream has come to this core from another one.
    pub(crate) fn note_come(&mut self, name: &BucketName) {
        self.arrivals.note(name);
        if let Some(has_come) = self.closed.get_mut(name) {
            *has_come = true;
        }
    }

    /// Whether a stream of a closed bucket has come to this core since it was closed.
    pub(crate) fn has_come(&self, name: &BucketName) -> bool {
        self.closed.get(name).is_some_and(|has_come| *has_come)
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
        self.arrivals.forget(name);
    }

    /// What the first group of a segment of the home's log names.
    pub(crate) fn preamble(&self) -> Vec<Entry> {
        self.known.values().cloned().map(Entry::BucketPut).collect()
    }
}
