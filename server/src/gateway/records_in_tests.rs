//! Tests of records in requests.

use super::*;
use nova_model::Facts;

fn read(text: &str) -> Result<Vec<Record>, Refused> {
    let body: AppendBody = form::json(text.as_bytes(), "body")?;
    records(body.records)
}

fn field(refused: &Refused) -> String {
    match &refused.refusal().facts {
        Facts::Field { field, .. } => field.clone(),
        other => panic!("no field is named: {other:?}"),
    }
}

#[test]
fn text_and_base64_are_records() {
    let found = read(
        r#"{"records":[
            {"body":"a \u00e4"},
            {"body_base64":"/wD+","timestamp":7,"headers":[["k","v"],["r",{"base64":"/w=="}]]}
        ]}"#,
    );
    let expected = [
        Record::new("a \u{e4}"),
        Record::new(&b"\xff\x00\xfe"[..])
            .with_timestamp(Timestamp(7))
            .with_header("k", "v")
            .with_header("r", &b"\xff"[..]),
    ];
    assert_eq!(found.unwrap(), expected);
}

#[test]
fn a_line_is_a_record() {
    let text = Bytes::from("{\"body\":\"a\"}\n\n{\"body_base64\":\"Yg==\"}\r\n");
    let expected = [Record::new("a"), Record::new("b")];
    assert_eq!(lines(&text).unwrap(), expected);
}

#[test]
fn what_is_no_record_is_refused_by_its_field() {
    let cases = [
        (r#"{"records":[{}]}"#, "records[0].body"),
        (
            r#"{"records":[{"body":"a","body_base64":"YQ=="}]}"#,
            "records[0].body_base64",
        ),
        (
            r#"{"records":[{"body":"a"},{"body_base64":"Y"}]}"#,
            "records[1].body_base64",
        ),
        (
            r#"{"records":[{"body_base64":"a-_="}]}"#,
            "records[0].body_base64",
        ),
        (r#"{"records":[{"body":7}]}"#, "records[0].body"),
        (r#"{"records":[["a"]]}"#, "records[0]"),
        (
            r#"{"records":[{"body":"a","headers":[["k"]]}]}"#,
            "records[0].headers[0]",
        ),
        (
            r#"{"records":[{"body":"a","headers":[["k",{"base64":"?"}]]}]}"#,
            "records[0].headers[0]",
        ),
        (
            r#"{"records":[{"body":"a","timestamp":-1}]}"#,
            "records[0].timestamp",
        ),
        (r#"{"records":[{"bodi":"a"}]}"#, "records[0].bodi"),
        (r#"{"record":[]}"#, "record"),
        (r#"{}"#, "records"),
    ];
    for (text, named) in cases {
        let refused = read(text).unwrap_err();
        assert_eq!(field(&refused), named, "{text}: {}", refused.refusal());
    }
}

#[test]
fn a_wrong_line_is_told_by_its_number() {
    let text = Bytes::from("{\"body\":\"a\"}\n{\"body\":");
    let refused = lines(&text).unwrap_err();
    assert!(
        refused.refusal().message.starts_with("line 2: "),
        "{refused:?}"
    );
}
