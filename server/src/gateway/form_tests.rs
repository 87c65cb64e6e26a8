//! Tests of reading fields.

use super::*;
use nova_model::{Facts, Refusal};
use serde::Deserialize;

#[derive(Debug, PartialEq, Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
struct Asked {
    count: Option<u64>,
    clamp: bool,
    prefix: String,
    inner: Inner,
}

#[derive(Debug, PartialEq, Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
struct Inner {
    age_s: Option<u64>,
}

fn field(refusal: &Refusal) -> String {
    match &refusal.facts {
        Facts::Field { field, .. } => field.clone(),
        other => panic!("no field is named: {other:?}"),
    }
}

#[test]
fn a_query_is_read_by_type() {
    let asked: Asked = query(Some("count=7&clamp=true&prefix=a%2Fb+c&")).unwrap();
    let expected = Asked {
        count: Some(7),
        clamp: true,
        prefix: "a/b c".to_owned(),
        inner: Inner::default(),
    };
    assert_eq!(asked, expected);
    assert_eq!(query::<Asked>(None).unwrap(), Asked::default());
}

#[test]
fn a_wrong_query_is_refused_by_its_field() {
    let cases = [
        ("count=x", "count", "'x' is not a whole number"),
        ("count=", "count", "'' is not a whole number"),
        ("count=-1", "count", "'-1'"),
        ("count=%2B1", "count", "'+1'"),
        ("count=1.5", "count", "'1.5'"),
        ("count=99999999999999999999", "count", "whole number"),
        ("count=1&count=2", "count", "twice"),
        ("clamp=1", "clamp", "true or false"),
        ("clamp", "clamp", "true or false"),
        ("prefix=%f", "prefix", "hexadecimal"),
        ("prefix=%ff", "prefix", "UTF-8"),
        ("conut=1", "conut", "did you mean 'count'?"),
        ("%zz=1", "query", "hexadecimal"),
        ("zebra=1", "zebra", "there is no field 'zebra'"),
    ];
    for (text, named, said) in cases {
        let refused = query::<Asked>(Some(text)).unwrap_err();
        let refusal = refused.refusal();
        assert_eq!(field(refusal), named, "{text}: {refusal}");
        assert!(refusal.message.contains(said), "{text}: {refusal}");
    }
}

#[test]
fn wrong_json_is_refused_by_its_field() {
    let cases = [
        ("", "body", "EOF"),
        ("{", "body", "EOF"),
        ("{} x", "body", "trailing"),
        ("[]", "body", "invalid"),
        (r#"{"count":"x"}"#, "count", "invalid type"),
        (r#"{"count":-1}"#, "count", "invalid value"),
        (r#"{"count":1,"count":2}"#, "count", "duplicate"),
        (r#"{"inner":{"age_s":1.5}}"#, "inner.age_s", "invalid type"),
        (r#"{"inner":{"age":1}}"#, "inner.age", "there is no field"),
        (
            r#"{"inner":{"agee_s":1}}"#,
            "inner.agee_s",
            "did you mean 'age_s'?",
        ),
        (r#"{"conut":1}"#, "conut", "did you mean 'count'?"),
    ];
    for (text, named, said) in cases {
        let refused = json::<Asked>(text.as_bytes(), "body").unwrap_err();
        let refusal = refused.refusal();
        assert_eq!(field(refusal), named, "{text}: {refusal}");
        assert!(refusal.message.contains(said), "{text}: {refusal}");
    }
}
