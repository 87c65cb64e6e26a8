//! Names: what parses and what does not, at each limit.

use super::*;

#[test]
fn bucket_names() {
    for good in ["a", "0", "a-b", "logs-2026", &"a".repeat(64)] {
        assert!(BucketName::parse(good).is_ok(), "{good}");
    }
    for bad in ["", "-a", "a-", "A", "a_b", "a/b", "a b", &"a".repeat(65)] {
        let refusal = BucketName::parse(bad).expect_err(bad);
        assert_eq!(refusal.code, crate::Code::Invalid);
        assert!(
            matches!(refusal.facts, crate::Facts::Field { ref field, .. } if field == "bucket")
        );
    }
}

#[test]
fn stream_names() {
    let name = StreamName::parse("logs/host/app.log").expect("good");
    assert_eq!(
        (name.bucket.as_str(), name.key.as_str()),
        ("logs", "host/app.log")
    );
    assert_eq!(name.to_string(), "logs/host/app.log");
    for bad in [
        "logs",
        "logs/",
        "logs/.",
        "logs/..",
        "/x",
        &format!("logs/{}", "k".repeat(513)),
    ] {
        assert!(StreamName::parse(bad).is_err(), "{bad}");
    }
}
