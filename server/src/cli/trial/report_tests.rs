//! Tests of what a trial tells.

use super::*;

fn report() -> Report {
    let (mut sent, mut back) = (Sent::default(), Back::default());
    for body in ["one", "two", "three"] {
        sent.digest.note(body.as_bytes());
        back.digest.note(body.as_bytes());
    }
    sent.origin = "stdin".to_owned();
    sent.first = Some(SequenceNumber(40));
    sent.one_by_one = 1;
    sent.one_by_one_latencies.note(Duration::from_micros(310));
    sent.at_once = 2;
    sent.at_once_bytes = 8;
    sent.at_once_took = Duration::from_micros(4);
    sent.at_once_latencies.note(Duration::from_micros(1_420));
    back.took = Duration::from_micros(11);
    Report {
        stream: "try/lines",
        data: "/data".into(),
        named: "/data".into(),
        addresses: vec!["127.0.0.1:1".to_owned()],
        probe: None,
        sent,
        back,
    }
}

#[test]
fn people_are_told_what_happened_and_what_to_try_next() {
    let text = report().to_text();
    for part in [
        "3 records (11 B, stdin) were sent, became durable, and came back the same.",
        "one by one             1 records  ack p50 310 us, p99 310 us",
        "all at once            2 records  ack p50 1.42 ms, p99 1.42 ms, 2.0 MB/s, 500,000 record",
        "read back              3 records  1.0 MB/s, 272,727 records/s",
        "1 core, with this client on the same machine",
        "try/lines, records 40..42",
        "serve --data /data &",
        "read try/lines --data /data --tail 3",
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
}

#[test]
fn the_default_directory_is_not_named_again() {
    let mut report = report();
    report.named = DATA_DEFAULT.into();
    assert!(report.to_text().contains(" serve &\n"));
}

#[test]
fn scripts_get_numbers() {
    let json = report().to_json();
    assert_eq!(json["records"], 3);
    assert_eq!((&json["first"], &json["last"]), (&json!(40), &json!(42)));
    assert_eq!(json["one_by_one"]["ack_us"]["p50"], 310);
    assert_eq!(json["read_back"]["bytes"], 11);
    assert_eq!(json["same"], true);
}
