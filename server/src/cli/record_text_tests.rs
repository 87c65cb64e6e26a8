//! Tests of written records.

use super::*;
use nova_client::{Record, SequenceNumber, Timestamp};
use nova_model::EncodedBatch;

fn written(form: Form, record: Record) -> Vec<u8> {
    let position = Position {
        sequence: SequenceNumber(7),
        timestamp: Timestamp(1_000),
    };
    let mut bytes = Vec::new();
    let batch = EncodedBatch::encode(&[record]).unwrap();
    batch.for_each(|view| write(form, &mut bytes, position, view));
    bytes
}

fn json_of(record: Record) -> Value {
    let bytes = written(Form::Json, record);
    assert_eq!(bytes.iter().filter(|&&byte| byte == b'\n').count(), 1);
    serde_json::from_slice(&bytes).unwrap()
}

#[test]
fn a_body_is_written_as_it_is() {
    assert_eq!(written(Form::Text, Record::new("a line")), b"a line\n");
    assert_eq!(
        written(Form::Text, Record::new(&b"\xff\x00"[..])),
        b"\xff\x00\n"
    );
    assert_eq!(written(Form::Text, Record::new("")), b"\n");
}

#[test]
fn json_has_everything() {
    let record = Record::new("said \"so\"\n")
        .with_header("level", "info")
        .with_header("level", "x");
    let expected = json!({
        "seq": 7, "timestamp": 1000,
        "headers": [["level", "info"], ["level", "x"]],
        "body": "said \"so\"\n",
    });
    assert_eq!(json_of(record), expected);
}

#[test]
fn what_is_no_text_is_base64() {
    let record = Record::new(&b"\xff\x00\xfe"[..]).with_header("raw", &b"\xff"[..]);
    let expected = json!({
        "seq": 7, "timestamp": 1000,
        "headers": [["raw", { "base64": "/w==" }]],
        "body_base64": "/wD+",
    });
    assert_eq!(json_of(record), expected);
}

#[test]
fn raw_bodies_have_nothing_between_them() {
    assert_eq!(
        written(Form::Raw, Record::new(&b"\xff\x00"[..])),
        b"\xff\x00"
    );
}

#[test]
fn all_can_be_base64() {
    let record = Record::new("started").with_header("level", &b"\xff"[..]);
    let written: Value = serde_json::from_slice(&written(Form::JsonBase64, record)).unwrap();
    let expected = json!({
        "seq": 7, "timestamp": 1000,
        "headers": [["bGV2ZWw=", "/w=="]],
        "body_base64": "c3RhcnRlZA==",
    });
    assert_eq!(written, expected);
}
