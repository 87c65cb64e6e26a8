//! Settings of streams and buckets as plain data, and where each one came from.
//!
//! A stream's own setting wins, then its bucket's default, then the built-in one (contract,
//! section 7). What was not said stays `None`, so that a later change of the bucket's defaults is
//! seen by the streams that never chose.

use crate::error::Refusal;
use rkyv::{Archive, Deserialize, Serialize};

/// Who may append to a stream (contract, section 3).
#[derive(Archive, Serialize, Deserialize, Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ProducerPolicy {
    /// Many sessions at once; their batches interleave.
    #[default]
    Any,
    /// One session at a time; an installed fencing token is mandatory.
    Fenced,
}

/// Where a record's timestamp comes from.
#[derive(Archive, Serialize, Deserialize, Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TimestampMode {
    /// The client's time where given, else the arrival time.
    #[default]
    ClientPrefer,
    /// The client's time; a record without one is refused.
    ClientRequire,
    /// The arrival time always.
    Arrival,
}

/// How long records are kept; what neither bound reaches is kept for ever.
#[derive(Archive, Serialize, Deserialize, Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Retention {
    /// Records that arrived longer ago than this many seconds may go.
    pub age_s: Option<u64>,
    /// Records before the newest this many metered bytes may go.
    pub bytes: Option<u64>,
}

/// A stream's settings as far as they were said.
#[derive(Archive, Serialize, Deserialize, Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StreamSettings {
    /// Who may append.
    pub policy: Option<ProducerPolicy>,
    /// How long records are kept.
    pub retention: Option<Retention>,
    /// Where timestamps come from.
    pub timestamps: Option<TimestampMode>,
    /// Whether a client's time may be later than the arrival.
    pub timestamps_uncapped: Option<bool>,
    /// Delete the stream once it has held no record for this many seconds; 0 means never.
    pub delete_on_empty_s: Option<u64>,
}

impl StreamSettings {
    /// These settings with those of `change` that were said laid over them.
    #[must_use]
    pub fn changed_by(&self, change: &StreamSettings) -> StreamSettings {
        StreamSettings {
            policy: change.policy.or(self.policy),
            retention: change.retention.or(self.retention),
            timestamps: change.timestamps.or(self.timestamps),
            timestamps_uncapped: change.timestamps_uncapped.or(self.timestamps_uncapped),
            delete_on_empty_s: change.delete_on_empty_s.or(self.delete_on_empty_s),
        }
    }

    /// Refuses settings that mean nothing: a retention of zero.
    pub fn check(&self) -> Result<(), Refusal> {
        let Some(retention) = self.retention else {
            return Ok(());
        };
        let zero = [
            ("retention.age", retention.age_s == Some(0)),
            ("retention.bytes", retention.bytes == Some(0)),
        ];
        match zero.into_iter().find(|(_, is_zero)| *is_zero) {
            None => Ok(()),
            Some((field, _)) => Err(Refusal::invalid(
                field,
                Some(1),
                format!("{field} is at least 1; leave it out to keep records for ever"),
            )),
        }
    }
}

/// A bucket's settings: the defaults of its streams and how streams come to be.
#[derive(Archive, Serialize, Deserialize, Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct BucketSettings {
    /// Defaults for streams that do not say otherwise.
    pub defaults: StreamSettings,
    /// An append to a stream that is not there creates it.
    pub create_stream_on_append: bool,
    /// A read of a stream that is not there creates it.
    pub create_stream_on_read: bool,
}

/// A change of a bucket's settings: what is said; the rest stays as it is.
#[derive(Archive, Serialize, Deserialize, Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct BucketChange {
    /// Defaults for streams that do not say otherwise.
    pub defaults: StreamSettings,
    /// Whether an append to a stream that is not there creates it.
    pub create_stream_on_append: Option<bool>,
    /// Whether a read of a stream that is not there creates it.
    pub create_stream_on_read: Option<bool>,
}

impl BucketSettings {
    /// These settings with what `change` says laid over them.
    #[must_use]
    pub fn changed_by(&self, change: &BucketChange) -> BucketSettings {
        let (on_append, on_read) = (change.create_stream_on_append, change.create_stream_on_read);
        BucketSettings {
            defaults: self.defaults.changed_by(&change.defaults),
            create_stream_on_append: on_append.unwrap_or(self.create_stream_on_append),
            create_stream_on_read: on_read.unwrap_or(self.create_stream_on_read),
        }
    }
}

/// Where a setting in force came from.
#[derive(Archive, Serialize, Deserialize, Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// The stream said it.
    Stream,
    /// Its bucket's default.
    Bucket,
    /// The built-in default.
    BuiltIn,
}

/// A value in force and where it came from.
#[derive(Archive, Serialize, Deserialize, Debug, Clone, Copy, PartialEq, Eq)]
pub struct InForce<T> {
    /// The value.
    pub value: T,
    /// Its origin.
    pub origin: Origin,
}

/// All settings of a stream as they are in force.
#[derive(Archive, Serialize, Deserialize, Debug, Clone, Copy, PartialEq, Eq)]
pub struct EffectiveSettings {
    /// Who may append.
    pub policy: InForce<ProducerPolicy>,
    /// How long records are kept.
    pub retention: InForce<Retention>,
    /// Where timestamps come from.
    pub timestamps: InForce<TimestampMode>,
    /// Whether a client's time may be later than the arrival.
    pub timestamps_uncapped: InForce<bool>,
    /// Seconds without a record after which the stream is deleted; 0 means never.
    pub delete_on_empty_s: InForce<u64>,
}

impl EffectiveSettings {
    /// The settings in force for a stream that said `stream` in a bucket with `bucket`.
    pub fn resolve(stream: &StreamSettings, bucket: &StreamSettings) -> EffectiveSettings {
        EffectiveSettings {
            policy: pick(stream.policy, bucket.policy),
            retention: pick(stream.retention, bucket.retention),
            timestamps: pick(stream.timestamps, bucket.timestamps),
            timestamps_uncapped: pick(stream.timestamps_uncapped, bucket.timestamps_uncapped),
            delete_on_empty_s: pick(stream.delete_on_empty_s, bucket.delete_on_empty_s),
        }
    }
}

fn pick<T: Default>(stream: Option<T>, bucket: Option<T>) -> InForce<T> {
    match (stream, bucket) {
        (Some(value), _) => InForce {
            value,
            origin: Origin::Stream,
        },
        (None, Some(value)) => InForce {
            value,
            origin: Origin::Bucket,
        },
        (None, None) => InForce {
            value: T::default(),
            origin: Origin::BuiltIn,
        },
    }
}
