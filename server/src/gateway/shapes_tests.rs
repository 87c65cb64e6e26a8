//! Tests that the command line and HTTP show the same.

use super::*;
use crate::cli::shapes;
use nova_model::names::{BucketName, StreamName};
use nova_model::settings::{BucketSettings, EffectiveSettings};
use nova_model::{Epoch, FencingToken, SequenceNumber, StreamId, Timestamp};
use serde_json::to_value;

fn settings() -> StreamSettings {
    StreamSettings {
        policy: Some(ProducerPolicy::Fenced),
        retention: Some(Retention {
            age_s: Some(60),
            bytes: None,
        }),
        timestamps: Some(TimestampMode::ClientRequire),
        ..StreamSettings::default()
    }
}

#[test]
fn a_stream_looks_the_same_on_both_ways() {
    let info = StreamInfo {
        name: StreamName::parse("b/a/k").unwrap(),
        id: StreamId(7),
        settings: EffectiveSettings::resolve(&settings(), &StreamSettings::default()),
        fence: FencingToken::parse("me").unwrap(),
        first: SequenceNumber(1),
        tail: Position {
            sequence: SequenceNumber(9),
            timestamp: Timestamp(8),
        },
        epoch: Epoch(3),
        created: Timestamp(5),
    };
    let shown = to_value(StreamShape::from(&info)).unwrap();
    assert_eq!(shown, shapes::stream(&info));
}

#[test]
fn a_bucket_looks_the_same_on_both_ways() {
    let info = BucketInfo {
        name: BucketName::parse("b").unwrap(),
        settings: BucketSettings {
            defaults: settings(),
            create_stream_on_append: true,
            create_stream_on_read: false,
        },
        created: Timestamp(5),
    };
    let shown = to_value(BucketShape::from(&info)).unwrap();
    assert_eq!(shown, shapes::bucket(&info));
}

#[test]
fn settings_are_read_as_they_are_shown() {
    let shown = to_value(SettingsShape::from(settings())).unwrap();
    let read: SettingsShape = serde_json::from_value(shown).unwrap();
    assert_eq!(read.settings(), settings());
}
