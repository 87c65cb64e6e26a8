//! How often a core may have begun to speak for streams that were there before, by bucket.
//!
//! Whoever lists the streams of a bucket asks every core. A core that has had no arrival between
//! two answers speaks for no stream at the second one that it did not speak for at the first one,
//! but for new ones.
//!
//! # Invariants
//! - A count never shrinks while its bucket is there.
//! - Buckets without an arrival of their own take no memory.

use nova_model::names::BucketName;
use std::collections::BTreeMap;

/// The counts of a core.
#[derive(Debug, Default)]
pub(crate) struct Arrivals {
    last: u64,
    /// The count at the last arrival that may have been of any bucket.
    of_any: u64,
    by_bucket: BTreeMap<BucketName, u64>,
}

impl Arrivals {
    /// A stream of this bucket comes.
    pub(crate) fn note(&mut self, bucket: &BucketName) {
        self.last += 1;
        self.by_bucket.insert(bucket.clone(), self.last);
    }

    /// Streams of any bucket may have got their home here.
    pub(crate) fn note_any(&mut self) {
        self.last += 1;
        self.of_any = self.last;
        self.by_bucket.clear();
    }

    /// The count of a bucket.
    pub(crate) fn of(&self, bucket: &BucketName) -> u64 {
        let own = self.by_bucket.get(bucket).copied();
        own.unwrap_or(self.of_any)
    }

    /// The bucket is gone, with all its streams.
    pub(crate) fn forget(&mut self, bucket: &BucketName) {
        self.by_bucket.remove(bucket);
    }
}

#[cfg(test)]
#[path = "arrivals_tests.rs"]
mod tests;
