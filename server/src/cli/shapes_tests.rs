//! Tests of the JSON of results.

use super::*;
use nova_client::{BucketName, FencingToken, SequenceNumber, StreamName, Timestamp};
use nova_model::request::CoreInfo;
use nova_model::settings::EffectiveSettings;
use nova_model::{CoreId, Epoch, Incarnation, StarId, StreamId};

fn tail() -> Position {
    Position {
        sequence: SequenceNumber(9),
        timestamp: Timestamp(77),
    }
}

#[test]
fn a_stream_tells_its_settings_and_where_each_came_from() {
    let own = StreamSettings {
        policy: Some(ProducerPolicy::Fenced),
        ..StreamSettings::default()
    };
    let defaults = StreamSettings {
        retention: Some(Retention {
            age_s: Some(60),
            bytes: None,
        }),
        ..StreamSettings::default()
    };
    let info = StreamInfo {
        name: StreamName::parse("logs/web").unwrap(),
        id: StreamId(0xab),
        settings: EffectiveSettings::resolve(&own, &defaults),
        fence: FencingToken::parse("me").unwrap(),
        first: SequenceNumber(4),
        tail: tail(),
        epoch: Epoch(3),
        created: Timestamp(5),
    };
    let expected = json!({
        "stream": "logs/web",
        "id": "000000000000000000000000000000ab",
        "created": 5,
        "first": 4,
        "tail": { "seq": 9, "timestamp": 77 },
        "epoch": 3,
        "fence": "me",
        "settings": {
            "policy": { "value": "fenced", "from": "stream" },
            "retention": { "value": { "age_s": 60, "bytes": null }, "from": "bucket" },
            "timestamps": { "value": "client-prefer", "from": "built-in" },
            "timestamps_uncapped": { "value": false, "from": "built-in" },
            "delete_on_empty_s": { "value": 0, "from": "built-in" },
        },
    });
    assert_eq!(stream(&info), expected);
}

#[test]
fn a_bucket_tells_what_was_said() {
    let info = BucketInfo {
        name: BucketName::parse("logs").unwrap(),
        settings: BucketSettings {
            create_stream_on_append: true,
            ..BucketSettings::default()
        },
        created: Timestamp(5),
    };
    let expected = json!({
        "bucket": "logs",
        "created": 5,
        "create_stream_on_append": true,
        "create_stream_on_read": false,
        "defaults": {
            "policy": null, "retention": null, "timestamps": null,
            "timestamps_uncapped": null, "delete_on_empty_s": null,
        },
    });
    assert_eq!(bucket(&info), expected);
}

#[test]
fn a_star_tells_its_cores() {
    let info = StarInfo {
        star: StarId(1),
        incarnation: Incarnation(2),
        core: CoreId(0),
        cores: vec![CoreInfo {
            core: CoreId(0),
            address: "127.0.0.1:7400".to_owned(),
        }],
    };
    let json = star(&info);
    assert_eq!(json["incarnation"], 2);
    assert_eq!(
        json["cores"],
        json!([{ "core": 0, "address": "127.0.0.1:7400" }])
    );
}

#[test]
fn all_facts_have_a_shape() {
    let number = SequenceNumber(1);
    let address = Some("a:1".to_owned());
    let field = "body".to_owned();
    let cases = [
        (Facts::None, json!({})),
        (
            Facts::Field {
                field,
                limit: Some(2),
            },
            json!({ "field": "body", "limit": 2 }),
        ),
        (Facts::Token("t".to_owned()), json!({ "fence": "t" })),
        (
            Facts::Tail(tail()),
            json!({ "tail": { "seq": 9, "timestamp": 77 } }),
        ),
        (Facts::First(number), json!({ "first": 1 })),
        (Facts::Expected(3), json!({ "expected": 3 })),
        (Facts::After(4), json!({ "after_us": 4 })),
        (
            Facts::Holder {
                address,
                epoch: Epoch(1),
            },
            json!({ "address": "a:1", "epoch": 1 }),
        ),
        (
            Facts::Space { free: 1, floor: 2 },
            json!({ "free": 1, "floor": 2 }),
        ),
        (
            Facts::Range {
                from: number,
                to: number,
            },
            json!({ "from": 1, "to": 1 }),
        ),
    ];
    for (given, expected) in cases {
        assert_eq!(facts(&given), expected);
    }
}
