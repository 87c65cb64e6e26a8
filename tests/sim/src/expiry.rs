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
        let Some(age) = kept.age_us else {
            return false;
        };
        let asked = self.accounts.get(&id).map_or(0, |told| told.first_asked);
        let last = self.surely_dated(id, first).checked_sub(1);
        let Some(last) = last.filter(|last| *last >= asked) else {
            return true;
        };
        let sent_at = self.sent_at(id, last).unwrap_or(0);
        sent_at.saturating_add(age) <= self.clock
    }

    /// The end of those records before `first` that did not arrive while the clock was behind, and
    /// so count as being as old as they are: they go no earlier for what arrived behind them.
    fn surely_dated(&self, id: StreamId, first: u64) -> u64 {
        let Some(behind) = &self.behind else {
            return first;
        };
        let before = behind.tails.get(&id).copied().unwrap_or(0);
        let last_sent = first.checked_sub(1).and_then(|last| self.sent_at(id, last));
        let is_later = behind
            .until
            .is_some_and(|until| last_sent.is_some_and(|at| at > until));
        if is_later { first } else { first.min(before) }
    }

    /// When the record at a place was given to the client, if it is known which that is.
    fn sent_at(&self, id: StreamId, sequence: u64) -> Option<u64> {
        let told = self.accounts.get(&id)?.records.get(&sequence)?;
        Some(self.sent[told.record.0 as usize].at)
    }
}
