//! HTTP: health, figures, the document, and how HTTP begins and ends with its star.

use crate::SITE;
use crate::http::{append, make, star_with_bucket};
use nova_e2e::home::Home;
use nova_e2e::http::{Http, read_reply};
use rustix::process::Signal;
use serde_json::Value;
use std::io::{BufReader, Write};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

#[test]
fn a_star_that_serves_is_live_ready_and_writable() {
    let (_home, _star, http) = star_with_bucket();
    for what in ["live", "ready", "writable"] {
        let reply = http.get(&format!("/health/{what}")).expect(200);
        assert_eq!(reply.text(), format!("{what}\n"));
    }
    let star = http.get("/v1/star").expect(200).json();
    assert_eq!(star["incarnation"], 1);
}

#[test]
fn figures_tell_what_was_done() {
    let (_home, _star, http) = star_with_bucket();
    make(&http, "k");
    append(&http, "k", &["a", "b"]).expect(200);
    http.get("/v1/streams/tests/none").expect(404);
    let text = http.get("/metrics").expect(200).text();
    let sum = |name: &str| -> f64 {
        let lines = text
            .lines()
            .filter(|line| line.split(['{', ' ']).next() == Some(name));
        lines
            .map(|line| line.rsplit_once(' ').expect("a value").1)
            .map(|value| value.parse::<f64>().expect("a number"))
            .sum()
    };
    assert_eq!(sum("nova_received_records_total"), 2.0);
    assert_eq!(sum("nova_acks_total"), 1.0);
    assert_eq!(sum("nova_append_total_seconds_count"), 1.0);
    assert!(sum("nova_append_total_seconds_sum") > 0.0);
    assert!(sum("nova_group_bytes_count") > 0.0);
    assert!(sum("nova_turn_seconds_count") > 0.0);
    assert!(sum("nova_disk_free_bytes") > 0.0);
    assert!(sum("nova_disk_floor_bytes") > 0.0);
    assert!(sum("process_open_fds") > 3.0);
    let refused = "code=\"STREAM_NOT_FOUND\"} 1";
    assert!(text.lines().any(|line| line.ends_with(refused)), "{text}");
    let route = "route=\"/v1/streams/{bucket}/{key}/records\",status=\"200\"} 1";
    assert!(text.lines().any(|line| line.ends_with(route)), "{text}");
}

#[test]
fn the_document_tells_every_route() {
    let (_home, _star, http) = star_with_bucket();
    let document = http.get("/openapi.json").expect(200).json();
    assert!(
        document["openapi"]
            .as_str()
            .is_some_and(|v| v.starts_with("3."))
    );
    for path in [
        "/v1/streams/{bucket}/{key}/records",
        "/v1/buckets",
        "/v1/admin/drain",
        "/metrics",
    ] {
        assert!(document["paths"][path].is_object(), "{path}");
    }
}

/// A stop lets a running request finish and ends a wait; nothing holds it up.
#[test]
fn a_star_that_stops_finishes_what_runs() {
    let (_home, star, http) = star_with_bucket();
    make(&http, "k");
    let target = "/v1/streams/tests/k/records";
    let mut events = http.follow(target, &[("accept", "text/event-stream")]);
    events.wait_for(|line| line == "event: caught-up");
    let waiting = thread::spawn(move || http.get(&format!("{target}?wait_ms=60000")));
    let appending: Vec<_> = (0..4)
        .map(|_| {
            thread::spawn(move || {
                let mut acked = 0;
                loop {
                    let reply = append(&http, "k", &["x"]);
                    match reply.status {
                        200 => acked += 1,
                        _ => return (acked, reply.refused(503, "DRAINING")),
                    }
                    if acked == 20 {
                        return (acked, Value::Null);
                    }
                }
            })
        })
        .collect();
    events.wait_for(|line| line.starts_with("id: 40@"));
    for appender in appending {
        appender.join().expect("no panic");
    }
    let begun = Instant::now();
    star.process().signal(Signal::TERM);
    let rest = events.finish().text();
    assert!(
        rest.contains("event: refused") && rest.contains("DRAINING"),
        "{rest}"
    );
    waiting.join().expect("no panic");
    star.wait_for_end().expect_done();
    assert!(
        begun.elapsed() < Duration::from_secs(3),
        "{:?}",
        begun.elapsed()
    );
}

/// A load balancer learns of a stop while a request still runs, and that one is answered.
#[test]
fn a_star_that_stops_is_not_ready_and_takes_what_is_on_its_way() {
    let (_home, star, http) = star_with_bucket();
    make(&http, "k");
    let mut stream = http.connect();
    let head = "POST /v1/streams/tests/k/records HTTP/1.1\r\nhost: x\r\ncontent-length: 9\r\n\r\n";
    stream.write_all(head.as_bytes()).expect("the star reads");
    let asked = |http: &Http| http.get("/metrics").expect(200).text();
    // Behind an answer on a connection of its own the head above was read.
    asked(&http);
    star.process().signal(Signal::TERM);
    star.process()
        .wait_for_error_line(|line| line.contains("stopping"));
    http.get("/health/ready").refused(503, "DRAINING");
    http.get("/health/live").expect(200);
    stream.write_all(b"in flight").expect("the star reads");
    read_reply(&mut BufReader::new(stream)).expect(200);
    star.wait_for_end().expect_done();
}

/// What HTTP was told is durable is there after SIGKILL.
#[test]
fn what_was_appended_by_http_survives_a_kill() {
    let (home, star, http) = star_with_bucket();
    make(&http, "k");
    for n in 0..20 {
        append(&http, "k", &[&n.to_string()]).expect(200);
    }
    star.kill();
    let star = home.start();
    let http = Http::of(&star);
    let page = http.get("/v1/streams/tests/k/records").expect(200).json();
    let records = page["records"].as_array().expect("records");
    let bodies: Vec<_> = records.iter().filter_map(|r| r["body"].as_str()).collect();
    let expected: Vec<_> = (0..20).map(|n| n.to_string()).collect();
    assert_eq!(bodies, expected);
}

/// Readers that take nothing cost what one credit brings, and nobody waits for them.
#[test]
fn readers_that_take_nothing_cost_little() {
    let mut home = Home::new(SITE).with_http();
    home.add_flag("--recent-bytes=1MiB");
    let star = home.start();
    let http = Http::of(&star);
    http.send("PUT", "/v1/buckets/tests", &[], b"").expect(201);
    make(&http, "k");
    let target = "/v1/streams/tests/k/records";
    let record = vec![b'x'; 1024 * 1024 - 8];
    for _ in 0..32 {
        http.send("POST", target, &[], &record).expect(200);
    }
    let lines = ("accept", "application/x-ndjson");
    let whole = http.follow(target, &[lines]).finish().body.len();
    assert!(whole > 32 * record.len());
    let before = star.memory_bytes();
    let lazy: Vec<_> = (0..16)
        .map(|n| http.follow(target, &[[lines, ("accept", "text/event-stream")][n % 2]]))
        .collect();
    http.send("POST", target, &[], &record).expect(200);
    let whole = http.follow(target, &[lines]).finish().body.len();
    assert!(whole > 33 * record.len());
    let more = star.memory_bytes().saturating_sub(before);
    println!("{} MiB for {} readers", more >> 20, lazy.len());
    assert!(more < 16 * 8 * 1024 * 1024, "{more}");
}

#[test]
fn beyond_this_machine_http_is_under_the_stars_certificate() {
    if Command::new("curl").arg("--version").output().is_err() {
        println!("left out: there is no curl");
        return;
    }
    let mut home = Home::new(SITE);
    home.set_http("0.0.0.0:0");
    let star = home.start();
    let line = star
        .process()
        .wait_for_line(|line| line.starts_with("serving https://"));
    let (_, port) = line.rsplit_once(':').expect("a port");
    let authorities = home.data().join("tls/ca.pem");
    let output = Command::new("curl")
        .args(["-sS", "--fail", "--cacert"])
        .arg(authorities)
        .arg(format!("https://localhost:{port}/health/ready"))
        .output()
        .expect("curl runs");
    assert_eq!(output.stdout, b"ready\n", "{output:?}");
}

#[test]
fn http_may_be_off_and_a_taken_port_is_told() {
    let mut home = Home::new(SITE).with_http();
    let star = home.start();
    let http = Http::of(&star);
    let mut other = Home::new(SITE);
    other.start().stop().expect_done();
    other.set_http(&http.address().to_string());
    let ended = other.start_refused();
    assert!(ended.stderr.contains("--http"), "{}", ended.stderr);
    star.stop().expect_done();
    home.set_http("0.0.0.0:0");
    let star = home.start();
    let line = star
        .process()
        .wait_for_line(|line| line.starts_with("serving http"));
    assert!(
        line.starts_with("serving https://"),
        "not in plain beyond this machine: {line}"
    );
    star.stop().expect_done();
    home.add_flag("--http-plain");
    let star = home.start();
    assert!(Http::of(&star).address().port() > 0);
}
