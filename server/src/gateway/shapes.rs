//! The JSON of answers, typed: what is sent is what the OpenAPI document describes.
//!
//! # Invariants
//! - They are the shapes of the command line's `--json` (`cli::shapes`), which a test holds.

use super::object::Object;
use super::whole::Whole;
use nova_model::Position;
use nova_model::request::{Ack, BucketInfo, StreamInfo};
use nova_model::settings::{
    InForce, Origin, ProducerPolicy, Retention, StreamSettings, TimestampMode,
};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A sequence number with its timestamp. As an end or tail: one past the last record, and that
/// record's timestamp.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Position)]
pub(crate) struct PositionShape {
    /// The sequence number.
    seq: Whole,
    /// Microseconds since 1970.
    timestamp: Whole,
}

impl From<Position> for PositionShape {
    fn from(position: Position) -> PositionShape {
        PositionShape {
            seq: Whole(position.sequence.0),
            timestamp: Whole(position.timestamp.0),
        }
    }
}

/// The durable result of an append.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Appended)]
pub(crate) struct AppendedShape {
    /// The first record.
    start: PositionShape,
    /// One past the last record.
    end: PositionShape,
    /// The committed tail as of this answer.
    tail: PositionShape,
    /// Whether the batch had been applied before; `start` and `end` are then the original ones.
    duplicate: bool,
    /// The star's own times.
    times: TimesShape,
}

/// The star's own times for an append, in microseconds.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Times)]
pub(crate) struct TimesShape {
    /// From arrival until its group was sent to the disk.
    queued_us: u32,
    /// From then until the group was durable.
    written_us: u32,
    /// From arrival until the answer.
    total_us: u32,
}

impl From<Ack> for AppendedShape {
    fn from(ack: Ack) -> AppendedShape {
        AppendedShape {
            start: ack.start.into(),
            end: ack.end.into(),
            tail: ack.tail.into(),
            duplicate: ack.duplicate,
            times: TimesShape {
                queued_us: ack.times.queued_us,
                written_us: ack.times.written_us,
                total_us: ack.times.total_us,
            },
        }
    }
}

/// Who may append.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
#[schema(as = Policy)]
pub(crate) enum PolicyShape {
    /// Any number of producers; their batches interleave.
    Any,
    /// One at a time; a fencing token that is installed is mandatory.
    Fenced,
}

/// Where timestamps come from.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
#[schema(as = Timestamps)]
pub(crate) enum TimestampsShape {
    /// The client's where given, else the arrival.
    ClientPrefer,
    /// The client's; a record without one is refused.
    ClientRequire,
    /// The arrival.
    Arrival,
}

/// How long records are kept; what neither bound reaches is kept for ever.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Retention)]
pub(crate) struct RetentionShape {
    /// Records that arrived longer ago than this many seconds may go.
    #[schema(value_type = Option<i64>, minimum = 1)]
    age_s: Option<Whole>,
    /// Records before the newest of this many metered bytes may go.
    #[schema(value_type = Option<i64>, minimum = 1)]
    bytes: Option<Whole>,
}

/// Settings as far as they are said. What is left out, or null, comes from the bucket, and what
/// the bucket leaves out is built in.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
#[schema(as = Settings)]
pub(crate) struct SettingsShape {
    policy: Option<PolicyShape>,
    #[schema(value_type = Option<RetentionShape>)]
    retention: Option<Object<RetentionShape>>,
    timestamps: Option<TimestampsShape>,
    /// Whether a client's time may be later than the arrival.
    timestamps_uncapped: Option<bool>,
    /// Delete a stream that has held no record for this many seconds; 0 means never.
    delete_on_empty_s: Option<Whole>,
}

impl SettingsShape {
    /// As the star has them.
    pub(crate) fn settings(self) -> StreamSettings {
        StreamSettings {
            policy: self.policy.map(|policy| match policy {
                PolicyShape::Any => ProducerPolicy::Any,
                PolicyShape::Fenced => ProducerPolicy::Fenced,
            }),
            retention: self.retention.map(|Object(retention)| Retention {
                age_s: retention.age_s.map(|whole| whole.0),
                bytes: retention.bytes.map(|whole| whole.0),
            }),
            timestamps: self.timestamps.map(|mode| match mode {
                TimestampsShape::ClientPrefer => TimestampMode::ClientPrefer,
                TimestampsShape::ClientRequire => TimestampMode::ClientRequire,
                TimestampsShape::Arrival => TimestampMode::Arrival,
            }),
            timestamps_uncapped: self.timestamps_uncapped,
            delete_on_empty_s: self.delete_on_empty_s.map(|whole| whole.0),
        }
    }
}

impl From<StreamSettings> for SettingsShape {
    fn from(settings: StreamSettings) -> SettingsShape {
        SettingsShape {
            policy: settings.policy.map(policy),
            retention: settings.retention.map(|kept| Object(retention(kept))),
            timestamps: settings.timestamps.map(timestamps),
            timestamps_uncapped: settings.timestamps_uncapped,
            delete_on_empty_s: settings.delete_on_empty_s.map(Whole),
        }
    }
}

fn policy(policy: ProducerPolicy) -> PolicyShape {
    match policy {
        ProducerPolicy::Any => PolicyShape::Any,
        ProducerPolicy::Fenced => PolicyShape::Fenced,
    }
}

fn timestamps(mode: TimestampMode) -> TimestampsShape {
    match mode {
        TimestampMode::ClientPrefer => TimestampsShape::ClientPrefer,
        TimestampMode::ClientRequire => TimestampsShape::ClientRequire,
        TimestampMode::Arrival => TimestampsShape::Arrival,
    }
}

fn retention(retention: Retention) -> RetentionShape {
    RetentionShape {
        age_s: retention.age_s.map(Whole),
        bytes: retention.bytes.map(Whole),
    }
}

/// A value in force, and where it came from.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct InForceShape<T> {
    value: T,
    from: OriginShape,
}

/// Where a setting in force came from.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
#[schema(as = Origin)]
pub(crate) enum OriginShape {
    Stream,
    Bucket,
    BuiltIn,
}

fn in_force<T: Copy, S>(setting: InForce<T>, show: impl Fn(T) -> S) -> InForceShape<S> {
    InForceShape {
        value: show(setting.value),
        from: match setting.origin {
            Origin::Stream => OriginShape::Stream,
            Origin::Bucket => OriginShape::Bucket,
            Origin::BuiltIn => OriginShape::BuiltIn,
        },
    }
}

/// All settings of a stream as they are in force.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = SettingsInForce)]
pub(crate) struct InForceSettings {
    policy: InForceShape<PolicyShape>,
    retention: InForceShape<RetentionShape>,
    timestamps: InForceShape<TimestampsShape>,
    timestamps_uncapped: InForceShape<bool>,
    delete_on_empty_s: InForceShape<Whole>,
}

/// A stream as it is.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Stream)]
pub(crate) struct StreamShape {
    /// BUCKET/KEY.
    stream: String,
    /// Its incarnation.
    id: String,
    /// When it was made, in microseconds since 1970.
    created: Whole,
    /// First record that is left.
    first: Whole,
    /// The committed tail.
    tail: PositionShape,
    /// Epoch of its last leadership.
    epoch: Whole,
    /// The fencing token installed; empty if there is none.
    fence: String,
    settings: InForceSettings,
}

impl From<&StreamInfo> for StreamShape {
    fn from(info: &StreamInfo) -> StreamShape {
        let settings = &info.settings;
        StreamShape {
            stream: info.name.to_string(),
            id: info.id.to_string(),
            created: Whole(info.created.0),
            first: Whole(info.first.0),
            tail: info.tail.into(),
            epoch: Whole(info.epoch.0),
            fence: info.fence.as_str().to_owned(),
            settings: InForceSettings {
                policy: in_force(settings.policy, policy),
                retention: in_force(settings.retention, retention),
                timestamps: in_force(settings.timestamps, timestamps),
                timestamps_uncapped: in_force(settings.timestamps_uncapped, |value| value),
                delete_on_empty_s: in_force(settings.delete_on_empty_s, Whole),
            },
        }
    }
}

/// A bucket as it is.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Bucket)]
pub(crate) struct BucketShape {
    bucket: String,
    /// When it was made, in microseconds since 1970.
    created: Whole,
    create_stream_on_append: bool,
    create_stream_on_read: bool,
    /// Defaults of its streams.
    defaults: SettingsShape,
}

impl From<&BucketInfo> for BucketShape {
    fn from(info: &BucketInfo) -> BucketShape {
        BucketShape {
            bucket: info.name.as_str().to_owned(),
            created: Whole(info.created.0),
            create_stream_on_append: info.settings.create_stream_on_append,
            create_stream_on_read: info.settings.create_stream_on_read,
            defaults: info.settings.defaults.into(),
        }
    }
}

/// A page of streams, in byte order of their keys.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Streams)]
pub(crate) struct StreamsShape {
    pub(crate) streams: Vec<StreamShape>,
    /// Whether there are more after the last.
    pub(crate) has_more: bool,
}

/// A page of buckets, in byte order of their names.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Buckets)]
pub(crate) struct BucketsShape {
    pub(crate) buckets: Vec<BucketShape>,
    /// Whether there are more after the last.
    pub(crate) has_more: bool,
}

/// A fence that is durable.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Fenced)]
pub(crate) struct FencedShape {
    /// The token that is installed now.
    pub(crate) fence: String,
    /// The tail that it was installed at.
    pub(crate) tail: PositionShape,
}

/// A trim that is durable.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Trimmed)]
pub(crate) struct TrimmedShape {
    /// First record that is left.
    pub(crate) first: Whole,
    /// The tail then.
    pub(crate) tail: PositionShape,
}

/// A stream that another core leads now.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Moved)]
pub(crate) struct MovedShape {
    /// The core.
    pub(crate) core: u16,
    /// Its advertised address.
    pub(crate) address: String,
    /// The epoch of its leadership.
    pub(crate) epoch: Whole,
}

#[cfg(test)]
#[path = "shapes_tests.rs"]
mod tests;
