//! What retention may have taken, by the least that anybody ever asked to be kept.
//!
//! # Invariants
//! - Only what is certain is demanded: by age no record goes that was sent later than the shortest
//!   age ago; by bytes a stream is never emptied.
//!
//! # Not here
//! - Which settings are in force: [`crate::settings`].

use crate::history::History;
use nova_model::settings::StreamSettings;
use nova_model::{BucketName, StreamId, StreamName};

/// Seconds and bytes that no run comes to.
pub(crate) const KEPT_MIN: u64 = 1 << 40;

/// The least that was ever asked to be kept.
#[derive(Debug, Clone, Copy, Default)]
pub struct Kept {
    age_us: Option<u64>,
    is_short: bool,
}

impl Kept {
    fn note(&mut self, settings: &StreamSettings) {
        let Some(retention) = settings.retention else {
            return;
        };
        let age_us = retention.age_s.map(|age| age.saturating_mul(1_000_000));
        self.note_all(Kept {
            age_us,
            is_short: retention.bytes.is_some_and(|bytes| bytes < KEPT_MIN),
        });
    }

    fn note_all(&mut self, other: Kept) {
        let ages = [self.age_us, other.age_us].into_iter().flatten();
        self.age_us = ages.min();
        self.is_short |= other.is_short;
    }
}

impl History {
    /// Somebody wants a stream to be kept like this.
    pub(crate) fn keep_stream(&mut self, name: &StreamName, settings: &StreamSettings) {
        self.kept.entry(name.clone()).or_default().note(settings);
    }

    /// Somebody wants the streams of a bucket to be kept like this.
    pub(crate) fn keep_bucket(&mut self, name: &BucketName, defaults: &StreamSettings) {
        let kept = self.kept_by_default.entry(name.clone()).or_default();
        kept.note(defaults);
    }

    fn kept(&self, id: StreamId) -> Kept {
        let mut names = self.names.iter();
        let Some((name, _)) = names.find(|(_, named)| named.alive.contains_key(&id)) else {
            // Nobody was told of it: nobody knows what was asked.
            return Kept {
                age_us: Some(0),
                is_short: true,
            };
        };
        let own = self.kept.get(name).copied();
        let mut kept = own.unwrap_or_default();
        let defaults = self.kept_by_default.get(&name.bucket).copied();
        kept.note_all(defaults.unwrap_or_default());
        kept
    }

    /// Whether retention may have taken all records before `first`.
    pub(crate) fn may_have_expired(&self, id: StreamId, first: u64) -> bool {
        let kept = self.kept(id);
        kept.is_short || self.may_be_too_old(id, kept, first)
    }

    /// The same of a stream of which nothing is left.
    pub(crate) fn may_be_empty(&self, id: StreamId, tail: u64) -> bool {
        self.may_be_too_old(id, self.kept(id), tail)
    }

    fn may_be_too_old(&self, id: StreamId, kept: Kept, first: u64) -> bool {
        let last = first.checked_sub(1);
        let told = self.accounts.get(&id).zip(last);
        let told = told.and_then(|(account, last)| account.records.get(&last));
        let sent_at = told.map_or(0, |told| self.sent[told.record.0 as usize].at);
        kept.age_us
            .is_some_and(|age| sent_at.saturating_add(age) <= self.clock)
    }
}
