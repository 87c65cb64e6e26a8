//! HTTP: appends, reads, streams, buckets, fences and trims, on a star of two cores; each refusal
//! with the contract's status, code and facts.

use crate::SITE;
use nova_client::{BucketChange, BucketName};
use nova_e2e::home::{Home, Star};
use nova_e2e::http::{Http, Reply};
use serde_json::{Value, json};
use std::process::Command;

/// A star of two cores with HTTP and a bucket; one core where there are not two CPUs.
pub(crate) fn star_with_bucket() -> (Home, Star, Http) {
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    let home = Home::new(SITE).with_http().with_cores(cpus.min(2));
    let star = home.start();
    let http = Http::of(&star);
    http.send("PUT", "/v1/buckets/tests", &[], b"").expect(201);
    (home, star, http)
}

/// Makes a stream.
pub(crate) fn make(http: &Http, key: &str) {
    let target = format!("/v1/streams/tests/{key}");
    http.send("PUT", &target, &[], b"").expect(201);
}

/// Appends texts as one batch.
pub(crate) fn append(http: &Http, key: &str, texts: &[&str]) -> Reply {
    let records: Vec<Value> = texts.iter().map(|text| json!({ "body": text })).collect();
    let target = format!("/v1/streams/tests/{key}/records");
    http.json("POST", &target, &json!({ "records": records }))
}

fn bodies(page: &Value) -> Vec<String> {
    let records = page["records"].as_array().expect("records");
    let body = |record: &Value| record["body"].as_str().expect("a text").to_owned();
    records.iter().map(body).collect()
}

#[test]
fn what_was_appended_is_read_whichever_core_leads_its_stream() {
    let (_home, _star, http) = star_with_bucket();
    for key in ["a", "b", "c", "d%2Fe", "%C3%A4", "100%25"] {
        make(&http, key);
        let appended = append(&http, key, &["one", "two"]).expect(200).json();
        assert_eq!(appended["start"]["seq"], 0, "{key}: {appended}");
        assert_eq!(appended["end"]["seq"], 2);
        assert_eq!(appended["duplicate"], false);
        assert!(appended["times"]["total_us"].is_u64());
        let tail = http
            .get(&format!("/v1/streams/tests/{key}/tail"))
            .expect(200);
        assert_eq!(tail.json(), appended["tail"]);
        let page = http
            .get(&format!("/v1/streams/tests/{key}/records"))
            .expect(200);
        assert_eq!(page.header("content-type"), Some("application/json"));
        let page = page.json();
        assert_eq!(bodies(&page), ["one", "two"], "{key}");
        assert_eq!(
            (&page["next"], &page["tail"]),
            (&json!(2), &appended["tail"])
        );
    }
    let named = http.get("/v1/streams/tests/d%2Fe").expect(200).json();
    assert_eq!(named["stream"], "tests/d/e");
}

#[test]
fn every_form_of_a_body_is_appended() {
    let (_home, _star, http) = star_with_bucket();
    make(&http, "forms");
    let target = "/v1/streams/tests/forms/records";
    let send = |kind: &str, encoding: Option<&str>, body: &[u8]| {
        let mut headers = vec![("content-type", kind)];
        headers.extend(encoding.map(|encoding| ("content-encoding", encoding)));
        http.send("POST", target, &headers, body)
    };
    let lines = b"{\"body\":\"a\",\"headers\":[[\"k\",\"v\"]]}\n{\"body_base64\":\"/w==\"}\n";
    send("application/x-ndjson", None, lines).expect(200);
    send("application/octet-stream", None, b"raw \xff").expect(200);
    http.send("POST", target, &[("nova-timestamp", "7")], b"kindless")
        .expect(200);
    let json = br#"{"records":[{"body":"packed"}]}"#;
    let kind = "Application/JSON; charset=utf-8";
    send(kind, Some("gzip"), &gzip(json)).expect(200);
    send(kind, Some("zstd"), &zstandard(json)).expect(200);
    let page = http.get(target).json();
    let expected = [
        json!({ "headers": [["k", "v"]], "body": "a" }),
        json!({ "headers": [], "body_base64": "/w==" }),
        json!({ "headers": [], "body_base64": "cmF3IP8=" }),
        json!({ "headers": [], "body": "kindless" }),
        json!({ "headers": [], "body": "packed" }),
        json!({ "headers": [], "body": "packed" }),
    ];
    let mut records = page["records"].as_array().expect("records").clone();
    for record in &mut records {
        let members = record.as_object_mut().expect("an object");
        members.remove("seq");
        members.remove("timestamp");
    }
    assert_eq!(records, expected);
}

/// Stored blocks of deflate need no compressor.
fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut packed = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255, 1];
    let length = bytes.len() as u16;
    packed.extend_from_slice(&length.to_le_bytes());
    packed.extend_from_slice(&(!length).to_le_bytes());
    packed.extend_from_slice(bytes);
    packed.extend_from_slice(&crc32(bytes).to_le_bytes());
    packed.extend_from_slice(&u32::from(length).to_le_bytes());
    packed
}

fn crc32(bytes: &[u8]) -> u32 {
    let step = |crc: u32, _: u32| (crc >> 1) ^ (0xedb8_8320 & (crc & 1).wrapping_neg());
    let byte = |crc: u32, byte: &u8| (0..8).fold(crc ^ u32::from(*byte), step);
    !bytes.iter().fold(!0, byte)
}

/// A frame with one raw block (RFC 8878).
fn zstandard(bytes: &[u8]) -> Vec<u8> {
    let mut packed = vec![0x28, 0xb5, 0x2f, 0xfd, 0x20, bytes.len() as u8];
    let block = (bytes.len() as u32) << 3 | 1;
    packed.extend_from_slice(&block.to_le_bytes()[..3]);
    packed.extend_from_slice(bytes);
    packed
}

#[test]
fn a_read_goes_from_where_to_where_it_says() {
    let (_home, _star, http) = star_with_bucket();
    make(&http, "ranges");
    for n in 0..10 {
        let target = "/v1/streams/tests/ranges/records";
        let record = json!({ "body": n.to_string(), "timestamp": 1000 + n });
        http.json("POST", target, &json!({ "records": [record] }))
            .expect(200);
    }
    let read = |query: &str| {
        let page = http.get(&format!("/v1/streams/tests/ranges/records?{query}"));
        bodies(&page.expect(200).json()).concat()
    };
    let cases = [
        ("", "0123456789"),
        ("seq=7", "789"),
        ("seq=3&count=2", "34"),
        ("seq=3&until_seq=5", "34"),
        ("seq=10", ""),
        ("seq=99&clamp=true", ""),
        ("tail_offset=3", "789"),
        ("tail_offset=300&count=1", "0"),
        ("timestamp=1004", "456789"),
        ("timestamp=1004&until_timestamp=1006", "45"),
        ("bytes=1", "0"),
        ("bytes=27", "012"),
        ("count=0", ""),
    ];
    for (query, expected) in cases {
        assert_eq!(read(query), expected, "{query}");
    }
    let lines = http.send(
        "GET",
        "/v1/streams/tests/ranges/records?seq=8",
        &[("accept", "application/x-ndjson")],
        b"",
    );
    let lines = lines.expect(200).text();
    let seqs = lines
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).expect("a record")["seq"].clone());
    assert_eq!(seqs.collect::<Vec<_>>(), [8, 9]);
}

#[test]
fn conditions_writers_and_fences_are_refused_as_the_contract_says() {
    let (_home, _star, http) = star_with_bucket();
    make(&http, "held");
    append(&http, "held", &["a"]).expect(200);
    let records = "/v1/streams/tests/held/records";
    let send = |headers: &[(&str, &str)]| http.send("POST", records, headers, b"x");
    let facts = send(&[("nova-match-seq", "0")]).refused(412, "SEQ_MISMATCH");
    assert_eq!(facts["tail"]["seq"], 1);
    send(&[("nova-match-seq", "1")]).expect(200);

    let fence = "/v1/streams/tests/held/fence";
    let fenced = http
        .json("POST", fence, &json!({ "token": "me" }))
        .expect(200)
        .json();
    assert_eq!(
        (&fenced["fence"], &fenced["tail"]["seq"]),
        (&json!("me"), &json!(2))
    );
    let facts = send(&[("nova-fence", "you")]).refused(412, "FENCED");
    assert_eq!(facts["fence"], "me");
    send(&[("nova-fence", "me")]).expect(200);
    let body = json!({ "token": "you", "fence": "them" });
    http.json("POST", fence, &body).refused(412, "FENCED");

    let id = "0123456789abcdef0123456789abcdef";
    let numbered = |n: &str, body: &[u8]| {
        let headers = [("nova-writer-id", id), ("nova-writer-seq", n)];
        http.send("POST", records, &headers, body)
    };
    let first = numbered("0", b"n").expect(200).json();
    let again = numbered("0", b"n").expect(200).json();
    assert_eq!(
        (&again["duplicate"], &again["start"]),
        (&json!(true), &first["start"])
    );
    numbered("0", b"other").refused(409, "DUPLICATE_MISMATCH");
    let facts = numbered("7", b"n").refused(409, "WRITER_GAP");
    assert_eq!(facts["expected"], 1);
    send(&[("nova-stream-id", id)]).refused(404, "STREAM_NOT_FOUND");

    let trim = "/v1/streams/tests/held/trim";
    let trimmed = http
        .json("POST", trim, &json!({ "first": 2 }))
        .expect(200)
        .json();
    assert_eq!(trimmed["first"], 2);
    let facts = http
        .get(&format!("{records}?seq=0"))
        .refused(416, "TRIMMED");
    assert_eq!(facts["first"], 2);
    let facts = http
        .get(&format!("{records}?seq=9"))
        .refused(416, "PAST_TAIL");
    assert_eq!(facts["tail"]["seq"], 4);
    http.json("POST", trim, &json!({ "first": 99 }))
        .refused(416, "PAST_TAIL");
}

#[test]
fn streams_are_made_told_changed_and_deleted() {
    let (_home, _star, http) = star_with_bucket();
    let target = "/v1/streams/tests/s";
    http.get(target).refused(404, "STREAM_NOT_FOUND");
    http.get("/v1/streams/none/s")
        .refused(404, "BUCKET_NOT_FOUND");
    let made = http
        .json("PUT", target, &json!({ "policy": "fenced" }))
        .expect(201)
        .json();
    assert_eq!(
        made["settings"]["policy"],
        json!({ "value": "fenced", "from": "stream" })
    );
    http.send("PUT", target, &[], b"").expect(200);
    http.send("PUT", &format!("{target}?exclusive=true"), &[], b"")
        .refused(409, "ALREADY_EXISTS");
    http.send("PUT", target, &[("if-none-match", "*")], b"")
        .refused(409, "ALREADY_EXISTS");
    let change = json!({ "retention": { "age_s": 60 } });
    let changed = http.json("PATCH", target, &change).expect(200).json();
    assert_eq!(changed["settings"]["policy"]["value"], "fenced");
    assert_eq!(changed["settings"]["retention"]["value"]["age_s"], 60);
    assert_eq!(http.get(target).expect(200).json(), changed);
    http.send("DELETE", "/v1/buckets/tests", &[], b"")
        .refused(422, "INVALID");
    http.send("DELETE", target, &[], b"").expect(204);
    http.get(target).refused(404, "STREAM_NOT_FOUND");
}

#[test]
fn a_request_that_names_an_incarnation_does_nothing_to_another_one() {
    let (_home, _star, http) = star_with_bucket();
    let target = "/v1/streams/tests/again";
    let old = http.send("PUT", target, &[], b"").expect(201).json();
    let old = old["id"].as_str().expect("an id").to_owned();
    http.send("DELETE", target, &[("nova-stream-id", &old)], b"")
        .expect(204);
    let new = http.send("PUT", target, &[], b"").expect(201).json();
    let new_id = new["id"].as_str().expect("an id").to_owned();
    let requests = [
        (
            "PATCH",
            target.to_owned(),
            json!({ "policy": "fenced" }).to_string(),
        ),
        (
            "POST",
            format!("{target}/fence"),
            json!({ "token": "t" }).to_string(),
        ),
        (
            "POST",
            format!("{target}/trim"),
            json!({ "first": 0 }).to_string(),
        ),
        ("DELETE", target.to_owned(), String::new()),
    ];
    let send = |(method, target, body): &(&str, String, String), id: &str| {
        let headers = [("content-type", "application/json"), ("nova-stream-id", id)];
        http.send(method, target, &headers, body.as_bytes())
    };
    for request in &requests {
        send(request, &old).refused(404, "STREAM_NOT_FOUND");
        send(request, "x").refused(400, "INVALID");
    }
    assert_eq!(
        http.get(target).expect(200).json()["settings"],
        new["settings"]
    );
    for request in &requests {
        let status = send(request, &new_id).status;
        assert!(matches!(status, 200 | 204), "{request:?}: {status}");
    }
}

#[test]
fn streams_are_listed_page_by_page_over_all_cores() {
    let (_home, _star, http) = star_with_bucket();
    for n in 0..12 {
        make(&http, &format!("many-{n:02}"));
    }
    let mut listed = Vec::new();
    loop {
        let after = listed
            .last()
            .map_or("", |name: &String| &name["tests/".len()..]);
        let page = http.get(&format!(
            "/v1/streams/tests?prefix=many&limit=5&start_after={after}"
        ));
        let page = page.expect(200).json();
        let streams = page["streams"].as_array().expect("streams");
        listed.extend(
            streams
                .iter()
                .map(|s| s["stream"].as_str().expect("a name").to_owned()),
        );
        if page["has_more"] == false {
            break;
        }
    }
    let expected: Vec<_> = (0..12).map(|n| format!("tests/many-{n:02}")).collect();
    assert_eq!(listed, expected);
}

#[test]
fn buckets_are_made_changed_listed_and_deleted() {
    let (_home, _star, http) = star_with_bucket();
    let bucket = "/v1/buckets/b2";
    let body = json!({ "create_stream_on_append": true, "defaults": { "policy": "fenced" } });
    http.json("PUT", bucket, &body).expect(201);
    let change = json!({ "defaults": { "timestamps": "arrival" } });
    let changed = http.json("PATCH", bucket, &change).expect(200).json();
    assert_eq!(changed["create_stream_on_append"], true);
    assert_eq!(changed["defaults"]["policy"], "fenced");
    assert_eq!(changed["defaults"]["timestamps"], "arrival");
    let page = http.get("/v1/buckets?prefix=b").expect(200).json();
    assert_eq!(page["buckets"].as_array().map(Vec::len), Some(1));
    http.send("POST", "/v1/streams/b2/made/records", &[], b"x")
        .expect(200);
    http.send("DELETE", "/v1/streams/b2/made", &[], b"")
        .expect(204);
    http.send("DELETE", bucket, &[], b"").expect(204);
    http.get(bucket).refused(404, "BUCKET_NOT_FOUND");
}

/// A change of one setting undid another one's, when both were on their way at once: HTTP read all
/// settings, laid its own over them and wrote all back, and so did the command line.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn changes_of_different_settings_of_a_bucket_all_stand() {
    let (home, _star, http) = star_with_bucket();
    let client = home.client();
    let name = BucketName::parse("tests").expect("a legal name");
    for round in 0..10 {
        let (modes, on) = (["arrival", "client-require"], round % 2 == 0);
        let timestamps = modes[round % 2];
        let change = json!({ "defaults": { "timestamps": timestamps } });
        let over_http = tokio::task::spawn_blocking(move || {
            http.json("PATCH", "/v1/buckets/tests", &change).expect(200);
        });
        let on_append = BucketChange {
            create_stream_on_append: Some(on),
            ..BucketChange::default()
        };
        let on_read = BucketChange {
            create_stream_on_read: Some(on),
            ..BucketChange::default()
        };
        let (append, read, http_done) = tokio::join!(
            client.reconfigure_bucket(name.clone(), on_append),
            client.reconfigure_bucket(name.clone(), on_read),
            over_http,
        );
        append.expect("a change");
        read.expect("a change");
        http_done.expect("no panic");
        let told = http.get("/v1/buckets/tests").expect(200).json();
        assert_eq!(told["create_stream_on_append"], on, "{told}");
        assert_eq!(told["create_stream_on_read"], on, "{told}");
        assert_eq!(told["defaults"]["timestamps"], timestamps, "{told}");
    }
}

/// A real client: what people type.
#[test]
fn curl_appends_and_reads() {
    if Command::new("curl").arg("--version").output().is_err() {
        println!("left out: there is no curl");
        return;
    }
    let (_home, _star, http) = star_with_bucket();
    make(&http, "curl");
    let url = format!("http://{}/v1/streams/tests/curl/records", http.address());
    let curl = |words: &[&str]| {
        let output = Command::new("curl")
            .args(["-sS", "--fail"])
            .args(words)
            .output();
        let output = output.expect("curl runs");
        assert!(output.status.success(), "{output:?}");
        serde_json::from_slice::<Value>(&output.stdout).expect("JSON")
    };
    let kind = "content-type: application/octet-stream";
    let appended = curl(&["-H", kind, "--data-binary", "it happened", &url]);
    assert_eq!(appended["start"]["seq"], 0);
    assert_eq!(bodies(&curl(&[&url])), ["it happened"]);
}
