//! What was told about buckets, and what must follow from it.
//!
//! # Invariants
//! - Only what is certain is demanded: while somebody's wish to make or delete a bucket may still
//!   come true, it may be there or not.
//!
//! # Not here
//! - Streams in them: [`crate::oracle`].

use crate::desk::Contents;
use crate::history::Mark;
use crate::oracle::Oracle;
use nova_model::names::BucketName;
use std::collections::BTreeSet;

/// What was told about one bucket.
#[derive(Debug, Clone, Default)]
pub struct Bucket {
    /// When somebody asked who was then told that it is there.
    there_asked: Option<Mark>,
    /// When that was told.
    there_told: Option<Mark>,
    /// When somebody asked to delete it who was then told that it is gone.
    gone_asked: Option<Mark>,
    /// The last answer to somebody who wanted to delete it, whatever it was.
    delete_ended: Option<Mark>,
    /// Wishes to make it that have no answer, by the time they were asked.
    makes_open: BTreeSet<Mark>,
    /// The last answer to somebody who wanted to make it, whatever it was.
    make_ended: Option<Mark>,
    /// Wishes to delete it that have no answer.
    deletes_open: u64,
}

impl Bucket {
    fn must_be_there(&self) -> bool {
        self.deletes_open == 0
            && self
                .there_asked
                .is_some_and(|at| Some(at) > self.delete_ended)
    }

    fn must_be_gone(&self) -> bool {
        let is_gone = |asked| self.makes_open.is_empty() && self.make_ended < Some(asked);
        self.gone_asked.is_some_and(is_gone)
    }
}

impl Oracle {
    /// Somebody wants to make a bucket.
    pub fn bucket_wanted(&mut self, name: &BucketName, asked: Mark) {
        self.bucket(name).makes_open.insert(asked);
    }

    /// That wish was answered.
    pub fn bucket_make_ended(&mut self, name: &BucketName, asked: Mark) {
        let mark = self.history.mark();
        let bucket = self.bucket(name);
        bucket.makes_open.remove(&asked);
        bucket.make_ended = Some(mark);
    }

    /// The star has started anew: what was asked of the process before does not come true any more.
    pub(crate) fn bucket_wishes_over(&mut self, audited: Mark) {
        for bucket in self.history.buckets.values_mut() {
            bucket.makes_open.clear();
            bucket.make_ended = bucket.make_ended.max(Some(audited));
        }
    }

    /// Somebody wants to delete a bucket.
    pub fn bucket_unwanted(&mut self, name: &BucketName) {
        self.bucket(name).deletes_open += 1;
    }

    /// The wish to delete it was answered; it is gone if `is_gone`.
    pub fn bucket_delete_ended(&mut self, name: &BucketName, asked: Mark, is_gone: bool) {
        let mark = self.history.mark();
        let bucket = self.bucket(name);
        bucket.deletes_open -= 1;
        bucket.delete_ended = Some(mark);
        if is_gone {
            bucket.gone_asked = bucket.gone_asked.max(Some(asked));
        }
    }

    /// It is there, says the answer to somebody who asked at `asked`.
    pub fn bucket_there(&mut self, name: &BucketName, asked: Mark) {
        let mark = self.history.mark();
        if self.bucket(name).there_told.is_none() {
            self.defaults_begin(name);
        }
        let bucket = self.bucket(name);
        bucket.there_asked = bucket.there_asked.max(Some(asked));
        bucket.there_told.get_or_insert(mark);
    }

    /// It is not there, says the answer to somebody who asked at `asked`.
    pub fn bucket_not_there(&mut self, name: &BucketName, asked: Mark) {
        let bucket = self.bucket(name);
        let was_told = bucket.there_told.is_some_and(|told| told < asked);
        let is_lost = bucket.must_be_there() && was_told;
        let facts = bucket.clone();
        self.check(!is_lost, || format!("{name} is not there: {facts:?}"));
    }

    /// Holds the buckets on the disk against what was told.
    pub fn audit_buckets(&mut self, contents: &Contents) {
        for (name, bucket) in self.history.buckets.clone() {
            let is_there = contents.buckets.contains_key(&name);
            self.check(is_there || !bucket.must_be_there(), || {
                format!("bucket {name} is lost: {bucket:?}")
            });
            self.check(!is_there || !bucket.must_be_gone(), || {
                format!("bucket {name} is there again: {bucket:?}")
            });
        }
    }

    fn bucket(&mut self, name: &BucketName) -> &mut Bucket {
        self.history.buckets.entry(name.clone()).or_default()
    }
}
