//! HTTP: whatever is sent, a refusal names what is wrong, and the star goes on.

use crate::SITE;
use crate::http::{append, make, star_with_bucket};
use nova_e2e::home::Home;
use nova_e2e::http::{Http, read_reply};
use rustix::process::{Resource, getrlimit, setrlimit};
use serde_json::json;
use std::io::{BufReader, Write};

/// A request, and the field that its refusal names.
type Case = (
    &'static str,
    &'static str,
    &'static str,
    &'static str,
    u16,
    &'static str,
);

const JSON: &str = "application/json";
const RECORDS: &str = "/v1/streams/tests/k/records";

const CASES: [Case; 41] = [
    // Bodies.
    ("POST", RECORDS, JSON, "", 400, "body"),
    ("POST", RECORDS, JSON, "{", 400, "body"),
    ("POST", RECORDS, JSON, "nothing", 400, "body"),
    ("POST", RECORDS, JSON, "{}", 400, "records"),
    ("POST", RECORDS, JSON, "[]", 400, "body"),
    ("POST", RECORDS, JSON, r#"{"records":[]}"#, 400, "records"),
    ("POST", RECORDS, JSON, r#"{"records":{}}"#, 400, "records"),
    (
        "POST",
        RECORDS,
        JSON,
        r#"{"records":[{"body":1}]}"#,
        400,
        "records[0].body",
    ),
    (
        "POST",
        RECORDS,
        JSON,
        r#"{"records":[{"bod":""}]}"#,
        400,
        "records[0].bod",
    ),
    (
        "POST",
        RECORDS,
        JSON,
        r#"{"records":[{}]}"#,
        400,
        "records[0].body",
    ),
    (
        "POST",
        RECORDS,
        JSON,
        r#"{"records":[{"body_base64":"!"}]}"#,
        400,
        "records[0].body_base64",
    ),
    (
        "POST",
        RECORDS,
        JSON,
        r#"{"records":[{"body":"a"}],"fense":""}"#,
        400,
        "fense",
    ),
    (
        "POST",
        RECORDS,
        JSON,
        r#"{"records":[{"body":"a"}],"match_seq":-1}"#,
        400,
        "match_seq",
    ),
    (
        "POST",
        RECORDS,
        JSON,
        r#"{"records":[{"body":"a"}],"writer_seq":0}"#,
        422,
        "writer_id",
    ),
    (
        "POST",
        RECORDS,
        JSON,
        r#"{"records":[{"body":"a"}],"records":[]}"#,
        400,
        "records",
    ),
    (
        "POST",
        RECORDS,
        JSON,
        "{\"records\":[{\"body\":\"\\ud800\"}]}",
        400,
        "records[0].body",
    ),
    (
        "POST",
        RECORDS,
        "application/x-ndjson",
        "{\"body\":\"a\"}\n{\"body\":",
        400,
        "body",
    ),
    ("POST", RECORDS, "application/x-ndjson", "", 400, "records"),
    ("POST", RECORDS, "text/plain", "a", 415, "content-type"),
    (
        "POST",
        RECORDS,
        "application/x-www-form-urlencoded",
        "a",
        415,
        "content-type",
    ),
    (
        "PUT",
        "/v1/streams/tests/k",
        JSON,
        r#"{"policy":"some"}"#,
        400,
        "policy",
    ),
    (
        "PUT",
        "/v1/streams/tests/k",
        JSON,
        r#"{"polici":"any"}"#,
        400,
        "polici",
    ),
    (
        "PATCH",
        "/v1/streams/tests/k",
        JSON,
        r#"{"retention":{"age_s":0}}"#,
        422,
        "retention.age_s",
    ),
    (
        "POST",
        "/v1/streams/tests/k/fence",
        JSON,
        "{}",
        400,
        "token",
    ),
    (
        "POST",
        "/v1/streams/tests/k/trim",
        JSON,
        r#"{"first":"0"}"#,
        400,
        "first",
    ),
    (
        "POST",
        "/v1/streams/tests/k/handoff",
        JSON,
        r#"{"to":99}"#,
        422,
        "to",
    ),
    ("DELETE", "/v1/streams/tests/k", JSON, "{}", 400, "body"),
    // Paths.
    ("GET", "/v1/streams/tests/%/tail", JSON, "", 400, "key"),
    ("GET", "/v1/streams/tests/%zz/tail", JSON, "", 400, "key"),
    ("GET", "/v1/streams/tests/%ff/tail", JSON, "", 400, "key"),
    ("GET", "/v1/streams/Tests/k/tail", JSON, "", 422, "bucket"),
    ("GET", "/v1/streams/tests/a/b/tail", JSON, "", 404, "path"),
    ("GET", "/v1/streams/tests//tail", JSON, "", 422, "key"),
    ("GET", "/", JSON, "", 404, "path"),
    ("PUT", RECORDS, JSON, "", 405, "method"),
    ("BREW", "/v1/star", JSON, "", 405, "method"),
    // Queries.
    (
        "GET",
        "/v1/streams/tests/k/records?seq=1&timestamp=1",
        JSON,
        "",
        422,
        "timestamp",
    ),
    (
        "GET",
        "/v1/streams/tests/k/records?seq=2&until_seq=1",
        JSON,
        "",
        422,
        "until_seq",
    ),
    (
        "GET",
        "/v1/streams/tests/k/records?sec=1",
        JSON,
        "",
        400,
        "sec",
    ),
    (
        "GET",
        "/v1/streams/tests?limit=1001",
        JSON,
        "",
        400,
        "limit",
    ),
    ("GET", "/v1/streams/tests/k/tail?x=1", JSON, "", 400, "x"),
];

#[test]
fn what_is_wrong_is_named() {
    let (_home, _star, http) = star_with_bucket();
    make(&http, "k");
    for (method, target, kind, body, status, field) in CASES {
        let reply = http.send(method, target, &[("content-type", kind)], body.as_bytes());
        let what = format!("{method} {target} {body}: {}", reply.text());
        assert_eq!(reply.status, status, "{what}");
        let facts = reply.refused(status, "INVALID");
        assert_eq!(facts["field"], field, "{what}");
    }
    let reply = http.send("GET", "/v1/streams/tests/k/records?sek=1", &[], b"");
    assert!(
        reply.text().contains("did you mean 'seq'?"),
        "{}",
        reply.text()
    );
    append(&http, "k", &["still here"]).expect(200);
}

#[test]
fn wrong_headers_are_named() {
    let (_home, _star, http) = star_with_bucket();
    make(&http, "k");
    let long = "x".repeat(20_000);
    let cases: [(&str, &str, u16, &str); 8] = [
        ("nova-match-seq", "x", 400, "nova-match-seq"),
        ("nova-fense", "x", 400, "nova-fense"),
        ("nova-writer-id", "x", 422, "writer_seq"),
        ("content-encoding", "br", 415, "content-encoding"),
        ("content-encoding", "gzip", 400, "content-encoding"),
        ("cookie", &long, 431, "cookie"),
        ("nova-stream-id", "7", 400, "stream_id"),
        ("nova-timestamp", "-1", 400, "nova-timestamp"),
    ];
    for (name, value, status, field) in cases {
        let facts = http
            .send("POST", RECORDS, &[(name, value)], b"x")
            .refused(status, "INVALID");
        assert_eq!(facts["field"], field, "{name}");
    }
    let accept = [("accept", "text/html")];
    let facts = http
        .send("GET", RECORDS, &accept, b"")
        .refused(406, "INVALID");
    assert_eq!(facts["field"], "accept");
    let target = format!("/v1/streams/tests?prefix={}", "x".repeat(9_000));
    http.get(&target).refused(414, "INVALID");
    let origin = [("origin", "http://evil.example")];
    http.send("POST", RECORDS, &origin, b"x")
        .refused(403, "PERMISSION_DENIED");
}

#[test]
fn what_is_too_large_is_refused_with_its_limit() {
    let (_home, _star, http) = star_with_bucket();
    make(&http, "k");
    let record = vec![b'x'; 1024 * 1024];
    let facts = http
        .send("POST", RECORDS, &[], &record)
        .refused(413, "TOO_LARGE");
    assert_eq!(facts["limit"], 1024 * 1024);
    http.send("POST", RECORDS, &[], &record[8..]).expect(200);
    let body = vec![b' '; 9 * 1024 * 1024];
    let kind = [("content-type", JSON)];
    http.send("POST", RECORDS, &kind, &body)
        .refused(413, "TOO_LARGE");
    let mut stream = http.connect();
    let head = "POST /v1/streams/tests/k/records HTTP/1.1\r\nhost: x\r\n\
                transfer-encoding: chunked\r\n\r\n";
    stream.write_all(head.as_bytes()).expect("the star reads");
    let chunk = [b"100000\r\n", &record[..], b"\r\n"].concat();
    for _ in 0..9 {
        // The star refuses before all is sent.
        let _early = stream.write_all(&chunk);
    }
    read_reply(&mut BufReader::new(stream)).refused(413, "TOO_LARGE");
}

/// Bytes that are no HTTP, or half of it: a status of 4xx or a closed connection, and the star
/// serves on.
#[test]
fn what_is_no_http_ends_its_connection_alone() {
    let (_home, star, http) = star_with_bucket();
    make(&http, "k");
    let many: String = (0..500).map(|n| format!("a{n}: b\r\n")).collect();
    let cases = [
        "\r\n\r\n\r\n".to_owned(),
        "GET\r\n\r\n".to_owned(),
        "GET / HTTP/9.9\r\n\r\n".to_owned(),
        "\u{16}\u{3}\u{1}\u{2}\u{0}\u{1}\u{0}\u{1}".to_owned(),
        "GET / HTTP/1.1\r\nhost: x\r\nbad header\r\n\r\n".to_owned(),
        "POST / HTTP/1.1\r\ncontent-length: x\r\n\r\n".to_owned(),
        "POST / HTTP/1.1\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n".to_owned(),
        format!("GET / HTTP/1.1\r\n{many}\r\n"),
        format!("GET /{} HTTP/1.1\r\nhost: x\r\n\r\n", "x".repeat(70_000)),
        format!("GET / HTTP/1.1\r\na: {}\r\n\r\n", "x".repeat(100_000)),
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_owned(),
    ];
    for case in cases {
        let mut stream = http.connect();
        // The star may close before it has read all.
        let _early = stream.write_all(case.as_bytes());
        let _half = stream.shutdown(std::net::Shutdown::Write);
        let mut answer = Vec::new();
        let _broken = std::io::Read::read_to_end(&mut stream, &mut answer);
        let answer = String::from_utf8_lossy(&answer).into_owned();
        let what: String = case.chars().take(40).collect();
        assert!(
            answer.is_empty() || answer.starts_with("HTTP/1.1 4"),
            "{what}: {answer}"
        );
    }
    assert!(!star.process().has_ended());
    append(&http, "k", &["still here"]).expect(200);
}

/// More than a star takes.
const IDLE_PEERS: u64 = 1_100;

/// Whether this process may have so many descriptors, after asking for them.
fn may_open(descriptors: u64) -> bool {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    let is_raised = setrlimit(Resource::Nofile, limit).is_ok();
    is_raised && limit.maximum.is_none_or(|most| most >= descriptors)
}

/// Connections that say nothing, or half a request, take no place from one that asks.
#[test]
fn peers_that_say_nothing_keep_nobody_out() {
    if !may_open(IDLE_PEERS + 200) {
        println!("left out: this process may not have {IDLE_PEERS} connections");
        return;
    }
    let home = Home::new(SITE).with_http();
    let star = home.start();
    let http = Http::of(&star);
    let mut idle = Vec::new();
    for n in 0..IDLE_PEERS {
        let mut stream = http.connect();
        if n % 2 == 0 {
            // The star may close it for another.
            let _closed = stream.write_all(b"POST /v1/buckets/b HTTP/1.1\r\ncontent-le");
        }
        idle.push(stream);
    }
    let made = http.json("PUT", "/v1/buckets/b", &json!({}));
    made.expect(201);
    let metrics = http.get("/metrics").expect(200).text();
    let evicted = metrics
        .lines()
        .find_map(|line| line.strip_prefix("nova_http_connections_evicted_total "));
    let evicted: u64 = evicted.expect("the figure").parse().expect("a number");
    assert!(evicted > 0, "{evicted}");
    drop(idle);
}
