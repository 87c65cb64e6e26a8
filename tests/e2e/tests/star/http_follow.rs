//! HTTP: long polls and events, and where they go on.

use crate::http::{append, make, star_with_bucket};
use nova_e2e::http::{Http, Lines};
use serde_json::{Value, json};
use std::thread;
use std::time::{Duration, Instant};

const EVENTS: (&str, &str) = ("accept", "text/event-stream");

fn follow(http: &Http, query: &str, last: Option<&str>) -> Lines {
    let mut headers = vec![EVENTS];
    headers.extend(last.map(|id| ("last-event-id", id)));
    let target = format!("/v1/streams/tests/k/records{query}");
    let lines = http.follow(&target, &headers);
    assert_eq!(lines.status, 200);
    lines
}

/// The next record of a stream of events: its id and what it holds.
fn next_record(lines: &mut Lines) -> (String, Value) {
    let id = lines.wait_for(|line| line.starts_with("id: "));
    let data = lines.next_line().expect("data");
    let data = data.strip_prefix("data: ").expect("data");
    let id = id.strip_prefix("id: ").expect("an id").to_owned();
    (id, serde_json::from_str(data).expect("JSON"))
}

#[test]
fn a_long_poll_waits_for_the_next_record_and_not_for_ever() {
    let (_home, _star, http) = star_with_bucket();
    make(&http, "k");
    let target = "/v1/streams/tests/k/records";
    let begun = Instant::now();
    let page = http
        .get(&format!("{target}?wait_ms=200"))
        .expect(200)
        .json();
    assert_eq!((&page["records"], &page["next"]), (&json!([]), &json!(0)));
    assert!(begun.elapsed() >= Duration::from_millis(200));
    let waiting = thread::spawn(move || http.get(&format!("{target}?seq=0&wait_ms=60000")));
    append(&http, "k", &["came"]).expect(200);
    let page = waiting.join().expect("no panic").expect(200).json();
    assert_eq!(page["records"][0]["body"], "came");
    let page = http
        .get(&format!("{target}?seq=0&wait_ms=60000"))
        .expect(200)
        .json();
    assert_eq!(
        page["records"][0]["body"], "came",
        "what is there is not waited for"
    );
}

#[test]
fn events_follow_and_go_on_behind_the_last_one_seen() {
    let (_home, _star, http) = star_with_bucket();
    make(&http, "k");
    append(&http, "k", &["a", "b"]).expect(200);
    let mut lines = follow(&http, "", None);
    assert_eq!(next_record(&mut lines).1["body"], "a");
    let (last, record) = next_record(&mut lines);
    assert_eq!(record["body"], "b");
    lines.wait_for(|line| line == "event: caught-up");
    append(&http, "k", &["c"]).expect(200);
    assert_eq!(next_record(&mut lines).1["body"], "c");
    drop(lines);
    append(&http, "k", &["d"]).expect(200);
    let mut lines = follow(&http, "", Some(&last));
    assert_eq!(next_record(&mut lines).1["body"], "c");
    assert_eq!(next_record(&mut lines).1["body"], "d");
    let mut lines = follow(&http, "", Some("2"));
    assert_eq!(next_record(&mut lines).1["body"], "d");
    // Another incarnation is not taken for the same stream.
    http.send("DELETE", "/v1/streams/tests/k", &[], b"")
        .expect(204);
    make(&http, "k");
    let headers = [EVENTS, ("last-event-id", &last)];
    http.send("GET", "/v1/streams/tests/k/records", &headers, b"")
        .refused(404, "STREAM_NOT_FOUND");
}

#[test]
fn events_end_where_they_are_told_and_say_why_they_break_off() {
    let (_home, _star, http) = star_with_bucket();
    make(&http, "k");
    append(&http, "k", &["a", "b", "c"]).expect(200);
    let text = follow(&http, "?count=2", None).finish().text();
    assert_eq!(text.matches("\nid: ").count(), 2, "{text}");
    assert!(text.contains("event: end\ndata: {\"next\":2,"), "{text}");
    let lines = follow(&http, "?seq=3", None);
    http.send("DELETE", "/v1/streams/tests/k", &[], b"")
        .expect(204);
    let text = lines.finish().text();
    assert!(text.contains("event: refused\n"), "{text}");
    assert!(text.contains("STREAM_NOT_FOUND"), "{text}");
}

/// Heartbeats are comments, and tell the tail.
#[test]
fn a_stream_of_events_without_records_beats() {
    let (_home, _star, http) = star_with_bucket();
    make(&http, "k");
    let mut lines = follow(&http, "", None);
    lines.wait_for(|line| line == ": 0 is the tail");
}

#[test]
fn readers_follow_their_stream_to_another_core() {
    let (home, _star, http) = star_with_bucket();
    if home.cores() < 2 {
        println!("left out: there is one CPU");
        return;
    }
    make(&http, "k");
    append(&http, "k", &["before"]).expect(200);
    let mut lines = follow(&http, "", None);
    assert_eq!(next_record(&mut lines).1["body"], "before");
    lines.wait_for(|line| line == "event: caught-up");
    for to in [0, 1, 0, 1] {
        let target = "/v1/streams/tests/k/handoff";
        let moved = http
            .json("POST", target, &json!({ "to": to }))
            .expect(200)
            .json();
        assert_eq!(moved["core"], to);
        append(&http, "k", &["behind"]).expect(200);
        assert_eq!(next_record(&mut lines).1["body"], "behind");
    }
    let page = http.get("/v1/streams/tests/k/records").expect(200).json();
    assert_eq!(page["records"].as_array().map(Vec::len), Some(5));
}

/// A stream that moves to and fro under appends: nobody sees more than a moment's wait, nothing is
/// lost or there twice.
#[test]
fn appends_follow_a_stream_that_moves_to_and_fro() {
    let (home, _star, http) = star_with_bucket();
    if home.cores() < 2 {
        println!("left out: there is one CPU");
        return;
    }
    make(&http, "k");
    let appending: Vec<_> = (0..3)
        .map(|writer| {
            thread::spawn(move || {
                for n in 0..60 {
                    append(&http, "k", &[&format!("{writer}/{n}")]).expect(200);
                }
            })
        })
        .collect();
    for n in 0..30 {
        let target = "/v1/streams/tests/k/handoff";
        http.json("POST", target, &json!({ "to": n % 2 }))
            .expect(200);
    }
    for appender in appending {
        appender.join().expect("every append is answered");
    }
    let page = http.get("/v1/streams/tests/k/records").expect(200).json();
    let records = page["records"].as_array().expect("records");
    for writer in 0..3 {
        let prefix = format!("{writer}/");
        let own = records.iter().filter_map(|record| record["body"].as_str());
        let own: Vec<_> = own.filter(|body| body.starts_with(&prefix)).collect();
        let expected: Vec<_> = (0..60).map(|n| format!("{writer}/{n}")).collect();
        assert_eq!(own, expected);
    }
}

/// A drained core leads nothing, and nobody who asks over HTTP has to know.
#[test]
fn cores_are_drained_and_undrained_over_http() {
    let (home, _star, http) = star_with_bucket();
    if home.cores() < 2 {
        println!("left out: there is one CPU");
        return;
    }
    let keys: Vec<_> = (0..8).map(|n| format!("k{n}")).collect();
    for key in &keys {
        make(&http, key);
        append(&http, key, &["before"]).expect(200);
    }
    let one = json!({ "core": 1 });
    let drained = http
        .json("POST", "/v1/admin/drain", &one)
        .expect(200)
        .json();
    assert_eq!(drained["drained"], json!([1]));
    let status = http.get("/v1/admin/status").expect(200).json();
    assert_eq!(status["cores"][1]["is_drained"], true, "{status}");
    assert_eq!(status["cores"][1]["streams_led"], 0, "{status}");
    for key in &keys {
        append(&http, key, &["drained"]).expect(200);
    }
    let undrained = http.json("POST", "/v1/admin/undrain", &json!({}));
    assert_eq!(undrained.expect(200).json()["drained"], json!([]));
    let rebalanced = http.send("POST", "/v1/admin/rebalance", &[], b"");
    assert!(rebalanced.expect(200).json()["moves"].is_array());
    for key in &keys {
        append(&http, key, &["behind"]).expect(200);
        let page = http.get(&format!("/v1/streams/tests/{key}/records"));
        let page = page.expect(200).json();
        assert_eq!(page["records"].as_array().map(Vec::len), Some(3), "{key}");
    }
    let listed = http.get("/v1/streams/tests").expect(200).json();
    assert_eq!(listed["streams"].as_array().map(Vec::len), Some(keys.len()));
}
