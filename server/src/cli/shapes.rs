//! The JSON of results and errors: one function a shape.
//!
//! # Invariants
//! - A position is `{"seq": N, "timestamp": MICROSECONDS}` everywhere.
//! - Settings in force are `{"value": V, "from": "stream" | "bucket" | "built-in"}`.

use nova_client::{
    BucketInfo, BucketSettings, CoreStatus, Facts, Placement, Position, ProducerPolicy, Rebalanced,
    Refusal, StarInfo, StarStatus, StreamInfo, StreamSettings,
};
use nova_model::settings::{InForce, Origin, Retention, TimestampMode};
use serde_json::{Map, Value, json};

/// A position.
pub(crate) fn position(position: Position) -> Value {
    json!({ "seq": position.sequence.0, "timestamp": position.timestamp.0 })
}

/// The name of a policy.
pub(crate) fn policy(policy: ProducerPolicy) -> &'static str {
    match policy {
        ProducerPolicy::Any => "any",
        ProducerPolicy::Fenced => "fenced",
    }
}

/// The name of a timestamps mode.
pub(crate) fn timestamps(mode: TimestampMode) -> &'static str {
    match mode {
        TimestampMode::ClientPrefer => "client-prefer",
        TimestampMode::ClientRequire => "client-require",
        TimestampMode::Arrival => "arrival",
    }
}

/// The name of an origin.
pub(crate) fn origin(origin: Origin) -> &'static str {
    match origin {
        Origin::Stream => "stream",
        Origin::Bucket => "bucket",
        Origin::BuiltIn => "built-in",
    }
}

/// A bucket.
pub(crate) fn bucket(info: &BucketInfo) -> Value {
    let BucketSettings {
        defaults,
        create_stream_on_append,
        create_stream_on_read,
    } = info.settings;
    json!({
        "bucket": info.name.as_str(),
        "created": info.created.0,
        "create_stream_on_append": create_stream_on_append,
        "create_stream_on_read": create_stream_on_read,
        "defaults": said(&defaults),
    })
}

/// A stream.
pub(crate) fn stream(info: &StreamInfo) -> Value {
    let settings = &info.settings;
    json!({
        "stream": info.name.to_string(),
        "id": info.id.to_string(),
        "created": info.created.0,
        "first": info.first.0,
        "tail": position(info.tail),
        "epoch": info.epoch.0,
        "fence": info.fence.as_str(),
        "settings": {
            "policy": in_force(settings.policy, |value| json!(policy(value))),
            "retention": in_force(settings.retention, retention),
            "timestamps": in_force(settings.timestamps, |value| json!(timestamps(value))),
            "timestamps_uncapped": in_force(settings.timestamps_uncapped, Value::from),
            "delete_on_empty_s": in_force(settings.delete_on_empty_s, Value::from),
        },
    })
}

/// A star.
pub(crate) fn star(info: &StarInfo) -> Value {
    let cores = info
        .cores
        .iter()
        .map(|core| json!({ "core": core.core.0, "address": core.address }));
    json!({
        "star": info.star.to_string(),
        "incarnation": info.incarnation.0,
        "cores": cores.collect::<Vec<_>>(),
    })
}

/// A star and its cores as they are.
pub(crate) fn status(status: &StarStatus) -> Value {
    let core = |core: &CoreStatus| {
        json!({
            "core": core.core.0,
            "address": core.address,
            "drained": core.is_drained,
            "disk_full": core.is_disk_full,
            "streams_led": core.streams_led,
            "streams_loaded": core.streams_loaded,
            "streams_moving": core.streams_moving,
            "sessions": core.sessions,
            "readers": core.readers,
            "appended_bytes_per_s": core.appended_bytes_per_s,
            "appended_records_per_s": core.appended_records_per_s,
            "read_bytes_per_s": core.read_bytes_per_s,
            "segments": core.segments,
            "log_bytes": core.log_bytes,
            "pending_bytes": core.pending_bytes,
            "recent_bytes": core.recent_bytes,
        })
    };
    json!({
        "star": status.star.to_string(),
        "incarnation": status.incarnation.0,
        "cores": status.cores.iter().map(core).collect::<Vec<_>>(),
    })
}

/// What a drain or its end has come to.
pub(crate) fn placement(done: &Placement) -> Value {
    let drained: Vec<u16> = done.drained.iter().map(|core| core.0).collect();
    json!({ "drained": drained, "moved": done.moved })
}

/// What a rebalance has done.
pub(crate) fn rebalanced(done: &Rebalanced) -> Value {
    let moves = done
        .moves
        .iter()
        .map(|one| json!({ "stream": one.name.to_string(), "from": one.from.0, "to": one.to.0 }));
    json!({ "moves": moves.collect::<Vec<_>>(), "has_more": done.has_more })
}

/// What a refusal says, as members of an error.
pub(crate) fn refusal(refusal: &Refusal) -> Map<String, Value> {
    let mut members = Map::new();
    members.insert("code".to_owned(), json!(refusal.code.name()));
    members.insert("retry".to_owned(), json!(refusal.retry));
    members.insert("clean".to_owned(), json!(refusal.clean));
    members.insert("facts".to_owned(), facts(&refusal.facts));
    members
}

fn facts(facts: &Facts) -> Value {
    match facts {
        Facts::None => json!({}),
        Facts::Field { field, limit } => json!({ "field": field, "limit": limit }),
        Facts::Token(token) => json!({ "fence": token }),
        Facts::Tail(tail) => json!({ "tail": position(*tail) }),
        Facts::First(first) => json!({ "first": first.0 }),
        Facts::Expected(expected) => json!({ "expected": expected }),
        Facts::After(us) => json!({ "after_us": us }),
        Facts::Holder { address, epoch } => json!({ "address": address, "epoch": epoch.0 }),
        Facts::Space { free, floor } => json!({ "free": free, "floor": floor }),
        Facts::Range { from, to } => json!({ "from": from.0, "to": to.0 }),
    }
}

fn said(settings: &StreamSettings) -> Value {
    json!({
        "policy": settings.policy.map(policy),
        "retention": settings.retention.map(retention),
        "timestamps": settings.timestamps.map(timestamps),
        "timestamps_uncapped": settings.timestamps_uncapped,
        "delete_on_empty_s": settings.delete_on_empty_s,
    })
}

fn retention(retention: Retention) -> Value {
    json!({ "age_s": retention.age_s, "bytes": retention.bytes })
}

fn in_force<T: Copy>(setting: InForce<T>, show: impl Fn(T) -> Value) -> Value {
    json!({ "value": show(setting.value), "from": origin(setting.origin) })
}

#[cfg(test)]
#[path = "shapes_tests.rs"]
mod tests;
