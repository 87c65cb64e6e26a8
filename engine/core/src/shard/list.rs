//! Lists of streams and buckets, page by page.

use super::Shard;
use super::moves::between_homes;
use crate::planted::PlantedBug;
use crate::state::StreamState;
use nova_model::Refusal;
use nova_model::names::{BucketName, StreamKey};
use nova_model::request::{Answer, Arrivals, Page, StreamInfo};
use nova_model::settings::EffectiveSettings;
use std::collections::BTreeMap;

/// Least keys of one round, so that short pages do not make many rounds.
const ROUND_KEYS_MIN: usize = 64;

impl Shard {
    /// The live streams of a bucket that are here, led or at rest, as they are durable, and how
    /// many may have come so far. Refused while one of them is on its way from one core to another,
    /// or gets another home: nobody could tell it.
    pub(super) fn list_streams(
        &self,
        bucket: &BucketName,
        page: &Page,
        known: Option<Arrivals>,
    ) -> Result<Answer, Refusal> {
        if !self.buckets.known.contains_key(bucket) {
            return Err(Refusal::bucket_not_found(bucket));
        }
        let arrivals = self.arrivals_of(bucket);
        if known == Some(arrivals) {
            return Ok(Answer::StreamsAsBefore);
        }
        self.check_none_between(bucket)?;
        let limit = page.limit as usize;
        let mut items = self.live_streams(bucket, page, limit + 1, false)?;
        let has_more = items.len() > limit;
        items.truncate(limit);
        let items = items.into_iter().map(|state| self.info_of(state)).collect();
        Ok(Answer::Streams {
            items,
            has_more,
            arrivals,
        })
    }

    fn arrivals_of(&self, bucket: &BucketName) -> Arrivals {
        let is_counted = !self.config.planted.has(PlantedBug::ArrivalsNotCounted);
        Arrivals {
            incarnation: self.config.incarnation,
            count: if is_counted {
                self.buckets.arrivals.of(bucket)
            } else {
                0
            },
        }
    }

    /// Whether the bucket holds a live stream of this core, also one that is not durable yet.
    pub(super) fn has_streams(&self, bucket: &BucketName) -> Result<bool, Refusal> {
        let page = Page {
            limit: 1,
            ..Page::default()
        };
        Ok(!self.live_streams(bucket, &page, 1, true)?.is_empty())
    }

    fn live_streams(
        &self,
        bucket: &BucketName,
        page: &Page,
        wanted: usize,
        with_pending: bool,
    ) -> Result<Vec<StreamState>, Refusal> {
        let mut found = Vec::new();
        let mut after = page.start_after.clone();
        loop {
            let round = wanted.max(ROUND_KEYS_MIN);
            let mut listing = self.indexes.list(bucket, &page.prefix, &after, round)?;
            if with_pending {
                self.add_pending(bucket, &mut listing.streams);
            }
            let complete_to = listing.complete_to;
            let is_between = |state: &StreamState| {
                !with_pending && !state.deleted && self.places.changes_home(&state.name)
            };
            if listing.streams.values().any(is_between) {
                return Err(between_homes(bucket));
            }
            let is_listed = |key: &StreamKey| complete_to.as_ref().is_none_or(|to| key <= to);
            let is_here = |state: &StreamState| {
                let is_pending = with_pending && self.streams.find(&state.name).is_some();
                is_pending || self.is_here(&state.name)
            };
            let here = listing
                .streams
                .into_values()
                .filter(|state| is_listed(&state.name.key) && !state.deleted && is_here(state));
            found.extend(here.take(wanted - found.len()));
            match complete_to {
                Some(to) if found.len() < wanted => after = to.as_str().to_owned(),
                Some(_) | None => return Ok(found),
            }
        }
    }

    fn add_pending(&self, bucket: &BucketName, streams: &mut BTreeMap<StreamKey, StreamState>) {
        let pending = self.streams.all().map(|stream| &stream.assigned);
        for state in pending.filter(|state| state.name.bucket == *bucket) {
            streams.insert(state.name.key.clone(), state.clone());
        }
    }

    fn info_of(&self, state: StreamState) -> StreamInfo {
        let bucket = self.buckets.known.get(&state.name.bucket);
        let defaults = bucket
            .map(|info| info.settings.defaults)
            .unwrap_or_default();
        StreamInfo {
            id: state.id,
            settings: EffectiveSettings::resolve(&state.settings, &defaults),
            fence: state.fence,
            first: state.trimmed,
            tail: state.tail,
            epoch: state.epoch,
            created: state.created,
            name: state.name,
        }
    }

    pub(super) fn list_buckets(&self, page: &Page) -> Result<Answer, Refusal> {
        let limit = page.limit as usize;
        let after = |name: &str| name > page.start_after.as_str() || page.start_after.is_empty();
        let mut all = self
            .buckets
            .known
            .values()
            .filter(|info| {
                info.name.as_str().starts_with(&page.prefix) && after(info.name.as_str())
            })
            .cloned();
        let items: Vec<_> = all.by_ref().take(limit).collect();
        Ok(Answer::Buckets {
            items,
            has_more: all.next().is_some(),
        })
    }
}
