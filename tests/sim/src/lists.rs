//! What a page of a list of streams over all cores must hold.
//!
//! # Invariants
//! - Only streams that nobody ever asked to delete are demanded.
//!
//! # Not here
//! - What a list says of each stream: [`crate::oracle`].

use crate::oracle::Oracle;
use nova_model::request::{Page, StreamInfo};
use nova_model::{BucketName, Epoch, StreamId, StreamName};
use std::collections::BTreeMap;

impl Oracle {
    /// The streams of a bucket that were told to be there and stay, with the tail and the epoch
    /// that were told of them.
    pub fn lasting_of(&self, bucket: &BucketName) -> BTreeMap<StreamName, (StreamId, u64, Epoch)> {
        let names = self.history.names.keys();
        let lasting = names.filter(|name| name.bucket == *bucket && self.is_lasting(name));
        let known = lasting.filter_map(|name| {
            let id = self.history.current(name)?;
            let (floor, epoch) = (self.history.floor(id), self.history.epoch_floor(id));
            Some((name.clone(), (id, floor, epoch)))
        });
        known.collect()
    }

    /// A page was told to somebody who had known these streams when he asked.
    pub fn listed<'a>(
        &mut self,
        page: &Page,
        known: impl Iterator<Item = &'a StreamName>,
        items: &[StreamInfo],
        has_more: bool,
    ) {
        let is_ascending = items.is_sorted_by(|a, b| a.name.key < b.name.key);
        self.check(is_ascending, || {
            format!("the streams of a page are out of order or told twice: {items:?}")
        });
        let last = items.last().map(|info| &info.name).filter(|_| has_more);
        for name in known {
            let key = name.key.as_str();
            let is_meant = key.starts_with(&page.prefix) && *key > *page.start_after;
            let is_listed = items.iter().any(|info| info.name == *name);
            let is_behind = last.is_some_and(|last| name.key > last.key);
            let is_lasting = self.is_lasting(name);
            self.check(is_listed || is_behind || !is_meant || !is_lasting, || {
                let told: Vec<_> = items.iter().map(|info| info.name.key.as_str()).collect();
                format!("{name} is left out of a list: {told:?}, more: {has_more}")
            });
        }
    }
}
