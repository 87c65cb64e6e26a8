//! Tests of names in paths.

use super::*;

fn name(path: &str) -> Result<String, String> {
    let read = || {
        let key = segment(path, SEGMENTS_BEFORE + 1, "key")?;
        let key = StreamKey::parse(&key).map_err(Refused::from)?;
        let bucket = bucket(path)?;
        Ok::<_, Refused>(StreamName { bucket, key }.to_string())
    };
    read().map_err(|refused| format!("{:?}", refused.refusal().facts))
}

#[test]
fn a_key_is_one_encoded_segment() {
    let cases = [
        ("/v1/streams/b/k", "b/k"),
        ("/v1/streams/b/a%2Fb/records", "b/a/b"),
        ("/v1/streams/b/a%2fb", "b/a/b"),
        ("/v1/streams/b/%C3%A4/tail", "b/\u{e4}"),
        ("/v1/streams/b/100%25", "b/100%"),
        ("/v1/streams/b/a+b", "b/a+b"),
        ("/v1/streams/b/%00", "b/\0"),
        ("/v1/streams/%62/k", "b/k"),
    ];
    for (path, expected) in cases {
        assert_eq!(name(path), Ok(expected.to_owned()), "{path}");
    }
}

#[test]
fn what_is_no_name_is_refused_by_its_field() {
    let long = format!("/v1/streams/b/{}", "k".repeat(513));
    let cases = [
        ("/v1/streams/b/%", "key"),
        ("/v1/streams/b/%2", "key"),
        ("/v1/streams/b/%zz", "key"),
        ("/v1/streams/b/%+1", "key"),
        ("/v1/streams/b/%ff", "key"),
        ("/v1/streams/b/%2E", "key"),
        ("/v1/streams/b/%2e%2E", "key"),
        ("/v1/streams/b/", "key"),
        (&long, "key"),
        ("/v1/streams/B/k", "bucket"),
        ("/v1/streams/-b/k", "bucket"),
        ("/v1/streams/%2F/k", "bucket"),
        ("/v1/streams//k", "bucket"),
    ];
    for (path, field) in cases {
        let refused = name(path).unwrap_err();
        assert!(
            refused.contains(&format!("\"{field}\"")),
            "{path}: {refused}"
        );
    }
}
