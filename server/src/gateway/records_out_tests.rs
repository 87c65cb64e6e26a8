//! Tests of records in answers.

use super::*;
use nova_model::stored::Stamping;
use nova_model::{EncodedBatch, Epoch, Record, SequenceNumber, Timestamp};
use serde_json::Value;

fn batch() -> StoredBatch {
    let records = [
        Record::new("a"),
        Record::new(&b"\xff"[..]),
        Record::new("c"),
    ];
    StoredBatch {
        first: SequenceNumber(7),
        epoch: Epoch(1),
        stamping: Stamping {
            arrival: Timestamp(9),
            ..Stamping::default()
        },
        writer: None,
        batch: EncodedBatch::encode(&records).unwrap(),
    }
}

fn position(sequence: u64) -> PositionShape {
    nova_model::Position {
        sequence: SequenceNumber(sequence),
        timestamp: Timestamp(9),
    }
    .into()
}

#[test]
fn a_page_holds_what_was_taken() {
    let mut page = Page::new();
    assert!(page.is_empty());
    page.add(&batch(), 1..3);
    page.add(&batch(), 0..1);
    let text = page.finish(Whole(10), position(12), "id");
    let shown: Value = serde_json::from_slice(&text).unwrap();
    let expected = json!({
        "records": [
            { "seq": 8, "timestamp": 9, "headers": [], "body_base64": "/w==" },
            { "seq": 9, "timestamp": 9, "headers": [], "body": "c" },
            { "seq": 7, "timestamp": 9, "headers": [], "body": "a" },
        ],
        "next": 10, "tail": { "seq": 12, "timestamp": 9 }, "stream_id": "id",
    });
    assert_eq!(shown, expected);
}

#[test]
fn an_empty_page_is_json_too() {
    let text = Page::new().finish(Whole(0), position(0), "id");
    let shown: Value = serde_json::from_slice(&text).unwrap();
    assert_eq!(shown["records"], json!([]));
}

#[test]
fn an_event_has_an_id_and_one_line() {
    let text = String::from_utf8(events(&batch(), 2..3, "i")).unwrap();
    let record = r#"{"seq":9,"timestamp":9,"headers":[],"body":"c"}"#;
    assert_eq!(text, format!("id: 9@i\ndata: {record}\n\n"));
    let text = String::from_utf8(lines(&batch(), 2..3)).unwrap();
    assert_eq!(text, format!("{record}\n"));
}
