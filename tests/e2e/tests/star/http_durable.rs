//! The Durable Streams protocol: that what it keeps of a stream is as durable as its records. Its
//! own rules are held by its public suite (`tests/e2e/clients/durable_streams.sh`).

use crate::http::star_with_bucket;
use nova_e2e::http::{Http, Reply};

const TARGET: &str = "/v1/durable/tests/some/where";
const TEXT: (&str, &str) = ("content-type", "text/plain");

fn produce(http: &Http, epoch: &str, seq: &str, body: &str) -> Reply {
    let headers = [
        TEXT,
        ("producer-id", "me"),
        ("producer-epoch", epoch),
        ("producer-seq", seq),
    ];
    http.send("POST", TARGET, &headers, body.as_bytes())
}

fn close(http: &Http) -> Reply {
    http.send("POST", TARGET, &[("stream-closed", "true")], b"")
}

#[test]
fn kind_producers_and_closure_survive_a_kill() {
    let (home, star, http) = star_with_bucket();
    let made = http.send("PUT", TARGET, &[TEXT], b"").expect(201);
    let beginning = made
        .header("stream-next-offset")
        .expect("an offset")
        .to_owned();
    produce(&http, "3", "0", "a").expect(200);
    produce(&http, "3", "1", "b").expect(200);
    star.kill();

    let star = home.start();
    let http = Http::of(&star);
    let repeated = produce(&http, "3", "1", "b").expect(204);
    assert_eq!(repeated.header("producer-seq"), Some("1"));
    produce(&http, "2", "0", "late").expect(403);
    produce(&http, "3", "3", "gap").expect(409);
    produce(&http, "3", "2", "c").expect(200);
    close(&http).expect(204);
    star.kill();

    let star = home.start();
    let http = Http::of(&star);
    let read = http
        .get(&format!("{TARGET}?offset={beginning}"))
        .expect(200);
    assert_eq!(read.text(), "abc");
    assert_eq!(read.header("content-type"), Some("text/plain"));
    assert_eq!(read.header("stream-closed"), Some("true"));
    produce(&http, "3", "3", "d").expect(409);
    close(&http).expect(204);
}

#[test]
fn a_fork_stays_when_its_origin_goes_and_the_origin_goes_with_it() {
    let (home, star, http) = star_with_bucket();
    let fork = "/v1/durable/tests/fork";
    http.send("PUT", TARGET, &[TEXT], b"first").expect(201);
    let origin = [("stream-forked-from", TARGET)];
    http.send("PUT", fork, &origin, b"").expect(201);
    http.send("DELETE", TARGET, &[], b"").expect(204);
    star.kill();

    let star = home.start();
    let http = Http::of(&star);
    http.get(TARGET).expect(410);
    http.send("PUT", TARGET, &[TEXT], b"").expect(409);
    assert_eq!(http.get(fork).expect(200).text(), "first");
    http.send("DELETE", fork, &[], b"").expect(204);
    http.get(TARGET).expect(404);
}

#[test]
fn records_of_others_are_messages_and_change_nothing_else() {
    let (_home, _star, http) = star_with_bucket();
    http.send("PUT", TARGET, &[TEXT], b"a").expect(201);
    let records = "/v1/streams/tests/some%2Fwhere/records";
    let octets = ("content-type", "application/octet-stream");
    http.send("POST", records, &[octets], b"b").expect(200);
    http.send("POST", TARGET, &[TEXT], b"c").expect(204);
    let read = http.get(TARGET).expect(200);
    assert_eq!(read.text(), "abc");
    assert_eq!(read.header("stream-up-to-date"), Some("true"));
    http.get("/v1/durable/tests/nothing")
        .refused(404, "STREAM_NOT_FOUND");
}
