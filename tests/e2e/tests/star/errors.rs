//! Contract 8: one taxonomy. Every code that a star of one machine can give, provoked at the real
//! star: code, both bits and facts as the client shows them, and as the command line prints them.
//!
//! Where the client answers a refusal by itself (it follows, waits, sends again), a peer that does
//! not shows what the star said.
//!
//! # Not here
//! - `DISK_FULL`, which needs a small disk: `full_disk`. `UNAVAILABLE`, which the star says when it
//!   has no file descriptor left, `INTERNAL`, and the two codes about rights, which it never gives.

use crate::raw::Raw;
use crate::{
    SITE, append_each, append_once, append_open, bodies_of, in_time, log_folder, make_stream,
    make_with_policy, numbered, refusal, token, with_fence,
};
use nova_client::*;
use nova_e2e::home::Home;
use nova_e2e::segments::{Place, flip_bit, groups, segments};
use nova_model::limits::RECORD_METERED_BYTES_MAX;
use nova_model::placement::stream_home;
use nova_model::request::{AppendOpen, Request, SessionAppend};
use nova_model::{WriterId, WriterStamp};
use nova_proto::client::{AppendEvent, ControlEvent};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::time::Duration;

const REFUSED: i32 = 3;
const UNREACHABLE: i32 = 4;

/// The taxonomy as the contract has it: code, `retry`, `clean`.
const TAXONOMY: [(Code, bool, bool); 22] = [
    (Code::Invalid, false, true),
    (Code::Unauthenticated, false, true),
    (Code::PermissionDenied, false, true),
    (Code::BucketNotFound, false, true),
    (Code::StreamNotFound, false, true),
    (Code::AlreadyExists, false, true),
    (Code::PolicyBusy, true, true),
    (Code::DuplicateMismatch, false, true),
    (Code::WriterGap, false, true),
    (Code::Fenced, false, true),
    (Code::SeqMismatch, false, true),
    (Code::BehindRejected, true, true),
    (Code::PastTail, false, true),
    (Code::Trimmed, false, true),
    (Code::TooLarge, false, true),
    (Code::RateLimited, true, true),
    (Code::NotOwner, true, true),
    (Code::Draining, true, true),
    (Code::Unavailable, true, false),
    (Code::DiskFull, true, true),
    (Code::Corrupt, false, true),
    (Code::Internal, true, false),
];

/// The codes that are not provoked here, for the reasons above.
const ELSEWHERE: [Code; 5] = [
    Code::Unauthenticated,
    Code::PermissionDenied,
    Code::Unavailable,
    Code::DiskFull,
    Code::Internal,
];

/// What was provoked so far.
struct Seen<'a> {
    home: &'a Home,
    codes: BTreeSet<Code>,
}

impl Seen<'_> {
    /// A refusal with this code, the contract's bits and these facts.
    #[track_caller]
    fn refused(&mut self, refusal: &Refusal, code: Code, facts: &Facts) {
        assert_eq!(refusal.code, code, "{refusal:?}");
        let row = TAXONOMY.iter().find(|(known, ..)| *known == code);
        let &(_, retry, clean) = row.expect("all codes are there");
        assert_eq!((refusal.retry, refusal.clean), (retry, clean), "{code}");
        assert_eq!(&refusal.facts, facts, "{code}");
        assert!(!refusal.message.is_empty(), "{code} says nothing to people");
        self.codes.insert(code);
    }

    /// The same from a call of the client.
    #[track_caller]
    fn told<T: std::fmt::Debug>(
        &mut self,
        result: Result<T, ClientError>,
        code: Code,
        facts: &Facts,
    ) {
        self.refused(&refusal(result, code), code, facts);
    }

    /// The same from a command: its last line on stderr, its exit code.
    #[track_caller]
    fn printed(&self, words: &[&str], stdin: &[u8], code: Code, facts: &Value) {
        let all: Vec<&str> = words.iter().copied().chain(["--json"]).collect();
        let ended = self.home.nova(&all, stdin).expect_code(REFUSED);
        let error = error_of(&ended.stderr);
        let row = TAXONOMY.iter().find(|(known, ..)| *known == code);
        let &(_, retry, clean) = row.expect("all codes are there");
        assert_eq!(error["code"], code.name(), "{error}");
        assert_eq!(error["retry"], retry, "{error}");
        assert_eq!(error["clean"], clean, "{error}");
        assert_eq!(&error["facts"], facts, "{error}");
        assert_eq!(error["exit"], REFUSED, "{error}");
        for text in ["what", "why", "next"] {
            let says = error[text].as_str().is_some_and(|text| !text.is_empty());
            assert!(says, "{code} has no '{text}': {error}");
        }
    }
}

/// The error that a command printed.
#[track_caller]
fn error_of(stderr: &str) -> Value {
    let line = stderr.lines().find(|line| line.starts_with("{\"error\""));
    let line = line.unwrap_or_else(|| panic!("no error in JSON: {stderr}"));
    let value: Value = serde_json::from_str(line).expect("JSON");
    value["error"].clone()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_code_has_its_bits_and_facts_in_the_client_and_on_the_command_line() {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let home = Home::new(SITE).with_cores(cores.min(2));
    let star = home.start();
    let client = home.client();
    let mut seen = Seen {
        home: &home,
        codes: BTreeSet::new(),
    };
    names_and_forms(&mut seen, &client).await;
    writers(&mut seen, &client).await;
    tokens_and_tails(&mut seen, &client).await;
    sessions(&mut seen, &client).await;
    moments(&mut seen, &client).await;
    star.kill();
    damage(&mut seen).await;
    let mut missing: BTreeSet<Code> = Code::ALL.into_iter().collect();
    missing.retain(|code| !seen.codes.contains(code));
    if cores < 2 {
        println!("not seen: NOT_OWNER needs two CPUs");
        missing.remove(&Code::NotOwner);
    }
    assert_eq!(missing, BTreeSet::from(ELSEWHERE), "and no other");
}

fn field(name: &str, limit: Option<u64>) -> Facts {
    let field = name.to_owned();
    Facts::Field { field, limit }
}

/// What is not there, what is there already, what has no legal form.
async fn names_and_forms(seen: &mut Seen<'_>, client: &Client) {
    let name = make_stream(client, "there").await;
    let nowhere = StreamName::parse("nowhere/x").expect("a legal name");
    let absent = crate::stream("absent");
    let none = &Facts::None;
    let told = client.describe_stream(nowhere);
    let told = in_time("an answer", told).await;
    seen.told(told, Code::BucketNotFound, none);
    seen.printed(
        &["stream", "describe", "nowhere/x"],
        b"",
        Code::BucketNotFound,
        &json!({}),
    );
    let told = in_time("an answer", client.check_tail(absent)).await;
    seen.told(told, Code::StreamNotFound, none);
    seen.printed(
        &["tail", "tests/absent"],
        b"",
        Code::StreamNotFound,
        &json!({}),
    );
    let told = client.create_stream(name.clone(), StreamSettings::default());
    let told = in_time("an answer", told).await;
    seen.told(told, Code::AlreadyExists, none);
    let words = ["stream", "create", "tests/there"];
    seen.printed(&words, b"", Code::AlreadyExists, &json!({}));
    let cores = in_time("the star", client.describe_star()).await;
    let most = cores.expect("the star").cores.len() as u64 - 1;
    let told = in_time("an answer", client.hand_off(name.clone(), CoreId(99))).await;
    seen.told(told, Code::Invalid, &field("to", Some(most)));
    seen.printed(
        &["admin", "handoff", "tests/there", "--to", "99"],
        b"",
        Code::Invalid,
        &json!({ "field": "to", "limit": most }),
    );
    let large = Record::new(vec![0; RECORD_METERED_BYTES_MAX]);
    let limit = field("record", Some(RECORD_METERED_BYTES_MAX as u64));
    let told = append_once(client, &name, large).await;
    seen.told(told, Code::TooLarge, &limit);
}

/// Numbers of a writer.
async fn writers(seen: &mut Seen<'_>, client: &Client) {
    let name = make_stream(client, "writers").await;
    let once = async |sequence: u64, body: &'static str| {
        let stamp = WriterStamp {
            writer: WriterId(5),
            sequence,
        };
        let with = AppendOnce {
            writer: Some(stamp),
            ..AppendOnce::default()
        };
        let records = [Record::new(body)];
        let appended = client.append_once(name.clone(), &records, with);
        in_time("an answer", appended).await
    };
    once(0, "a").await.expect("an ack");
    let facts = Facts::Expected(1);
    seen.told(once(0, "b").await, Code::DuplicateMismatch, &facts);
    seen.told(once(2, "c").await, Code::WriterGap, &facts);
}

/// Conditions of appends and commands, and where reads begin.
async fn tokens_and_tails(seen: &mut Seen<'_>, client: &Client) {
    let name = make_stream(client, "conditions").await;
    append_each(client, &name, (0..3).map(numbered)).await;
    crate::fence(client, &name, "held").await;
    let other = client
        .producer(name.clone(), with_fence("other"))
        .expect("legal settings");
    let told = in_time("an answer", other.append(Record::new("x"))).await;
    seen.told(told, Code::Fenced, &Facts::Token("held".to_owned()));
    let words = ["append", "tests/conditions", "--fence", "other"];
    seen.printed(&words, b"x\n", Code::Fenced, &json!({ "fence": "held" }));

    let tail = in_time("a tail", client.check_tail(name.clone())).await;
    let tail = tail.expect("a tail");
    let facts = Facts::Tail(tail);
    let position = json!({ "seq": 3, "timestamp": tail.timestamp.0 });
    let printed = json!({ "tail": position });
    let conditions = Conditions {
        match_sequence: Some(SequenceNumber(9)),
        fence: None,
    };
    let told = client.fence(name.clone(), token("new"), conditions);
    let told = in_time("an answer", told).await;
    seen.told(told, Code::SeqMismatch, &facts);
    let words = [
        "stream",
        "fence",
        "tests/conditions",
        "new",
        "--if-tail",
        "9",
    ];
    seen.printed(&words, b"", Code::SeqMismatch, &printed);

    let told = bodies_of(client, read_from(name.clone(), 9)).await;
    seen.told(told, Code::PastTail, &facts);
    let words = ["read", "tests/conditions", "--from", "9"];
    seen.printed(&words, b"", Code::PastTail, &printed);
    let words = ["stream", "trim", "tests/conditions", "9"];
    seen.printed(&words, b"", Code::PastTail, &printed);

    let trim = client.trim(name.clone(), SequenceNumber(2), Conditions::default());
    in_time("a trim", trim).await.expect("a trim");
    let told = bodies_of(client, read_from(name.clone(), 1)).await;
    seen.told(told, Code::Trimmed, &Facts::First(SequenceNumber(2)));
    let words = ["read", "tests/conditions", "--from", "1"];
    seen.printed(&words, b"", Code::Trimmed, &json!({ "first": 2 }));
}

const PLAIN: SessionAppend = SessionAppend {
    writer_sequence: None,
    match_sequence: None,
};

/// What a session is told that the client deals with by itself, or tells its caller.
async fn sessions(seen: &mut Seen<'_>, client: &Client) {
    let name = make_stream(client, "behind").await;
    let mut raw = raw_to(seen.home, &name).await;
    let (mut session, _) = raw.session(append_open(&name, None)).await;
    let failing = SessionAppend {
        match_sequence: Some(SequenceNumber(9)),
        ..PLAIN
    };
    session.send(failing, "first");
    session.send(PLAIN, "behind it");
    session.rejected(Code::SeqMismatch).await;
    let behind = session.rejected(Code::BehindRejected).await;
    seen.refused(&behind, Code::BehindRejected, &Facts::None);
    let producer = crate::producer(client, &name);
    let mut tickets = Vec::new();
    for at in [9, 10] {
        let records = vec![Record::new("x")];
        let ticket = producer.append_if_async(SequenceNumber(at), records).await;
        tickets.push(ticket.expect("room"));
    }
    for (ticket, codes) in tickets.into_iter().zip([
        &[Code::SeqMismatch][..],
        &[Code::BehindRejected, Code::SeqMismatch],
    ]) {
        let told = in_time("an answer", ticket).await.expect_err("no place");
        let refusal = told.refusal().expect("the star said why");
        assert!(codes.contains(&refusal.code) && told.is_clean(), "{told:?}");
    }

    let name = make_with_policy(client, "busy", ProducerPolicy::Fenced).await;
    let mut raw = raw_to(seen.home, &name).await;
    let (mut first, opened) = raw.session(append_open(&name, None)).await;
    let mut second = raw.ask_session(append_open(&name, None)).await;
    match second.event().await {
        AppendEvent::OpenRefused(busy) => seen.refused(&busy, Code::PolicyBusy, &Facts::None),
        event => panic!("not busy: {event:?}"),
    }
    let words = ["append", "tests/busy", "--retry-for", "300ms"];
    seen.printed(&words, b"x\n", Code::PolicyBusy, &json!({}));
    let mut config = seen.home.client_config();
    config.retry_budget = Duration::from_millis(300);
    let impatient = Client::connect(config).expect("a client");
    let told = append_once(&impatient, &name, Record::new("x")).await;
    let told = told.expect_err("the handle is taken");
    assert!(told.is_retryable() && told.is_clean(), "{told:?}");
    let last = told.refusal().expect("the star said why");
    seen.refused(last, Code::PolicyBusy, &Facts::None);

    let change = StreamSettings {
        policy: Some(ProducerPolicy::Any),
        ..StreamSettings::default()
    };
    let changed = client.reconfigure_stream(name.clone(), change);
    in_time("a change", changed).await.expect("a change");
    let draining = first.broken(Code::Draining).await;
    let address = Some(address_of(seen.home, &name));
    let epoch = opened.epoch;
    seen.refused(&draining, Code::Draining, &Facts::Holder { address, epoch });
}

/// Where a stream's own core is.
fn address_of(home: &Home, name: &StreamName) -> String {
    let core = stream_home(name, home.cores() as u16);
    format!("127.0.0.1:{}", home.port() + core.0)
}

async fn raw_to(home: &Home, name: &StreamName) -> Raw {
    Raw::connect(home, &address_of(home, name)).await
}

/// What passes by itself: another core, a change that is under way.
async fn moments(seen: &mut Seen<'_>, client: &Client) {
    let mut raw = Raw::to(seen.home).await;
    let mut control = raw.control().await;
    let bucket = BucketName::parse("brief").expect("a legal name");
    let made = client.create_bucket(bucket.clone(), BucketSettings::default());
    in_time("a bucket", made).await.expect("a bucket");
    let delete = Request::DeleteBucket { name: bucket };
    let answers = control.ask_all(&[delete.clone(), delete]).await;
    let limited = answers.into_iter().find_map(|event| match event {
        ControlEvent::Answered(_, answer) => answer.err(),
        ControlEvent::AppendedOnce(..) => None,
    });
    let limited = limited.expect("a change is under way");
    let after = Facts::After(10_000);
    seen.refused(&limited, Code::RateLimited, &after);
    if seen.home.cores() < 2 {
        return;
    }
    let far = (0..).map(|n| crate::stream(&format!("far-{n}")));
    let far = far
        .into_iter()
        .find(|name| stream_home(name, 2) == CoreId(1));
    let far = far.expect("one of them is there");
    make_stream(client, far.key.as_str()).await;
    let answer = control.ask(&Request::CheckTail { name: far.clone() }).await;
    let ControlEvent::Answered(_, Err(elsewhere)) = answer else {
        panic!("not refused: {answer:?}");
    };
    let address = Some(address_of(seen.home, &far));
    let facts = Facts::Holder {
        address,
        epoch: nova_model::Epoch(0),
    };
    seen.refused(&elsewhere, Code::NotOwner, &facts);
    let open = AppendOpen {
        writer: None,
        ..append_open(&far, None)
    };
    match raw.ask_session(open).await.event().await {
        AppendEvent::OpenRefused(refused) => seen.refused(&refused, Code::NotOwner, &facts),
        event => panic!("not refused: {event:?}"),
    }
    let tail = in_time("a tail", client.check_tail(far)).await;
    assert_eq!(tail.expect("the client follows").sequence.0, 0);
}

/// Damage in the middle of a log; and a star that is not there, which has no code to give.
async fn damage(seen: &mut Seen<'_>) {
    let home = Home::new(SITE);
    let star = home.start();
    let name = make_stream(&home.client(), "damaged").await;
    append_each(&home.client(), &name, (0..4).map(numbered)).await;
    star.kill();
    home.start().stop().expect_done();
    let holds = |place: &&Place| place.batches.iter().any(|(first, _)| *first == 1);
    let files = segments(&log_folder(&home, 0)).into_iter();
    let places = files.flat_map(|path| groups(&path).into_iter().map(move |at| (path.clone(), at)));
    let mut found = places.filter(|(_, place)| holds(&place));
    let (path, group) = found.next().expect("a group of its own");
    flip_bit(&path, group.offset + group.content - 3);
    let star = home.start();
    let facts = Facts::Range {
        from: SequenceNumber(1),
        to: SequenceNumber(2),
    };
    let told = bodies_of(&home.client(), read_from(name, 0)).await;
    seen.told(told, Code::Corrupt, &facts);
    let of_home = Seen {
        home: &home,
        codes: BTreeSet::new(),
    };
    let words = ["read", "tests/damaged"];
    let printed = json!({ "from": 1, "to": 2 });
    of_home.printed(&words, b"", Code::Corrupt, &printed);
    star.stop().expect_done();
    let words = ["tail", "tests/damaged", "--retry-for", "200ms", "--json"];
    let ended = home.nova(&words, b"").expect_code(UNREACHABLE);
    let error = error_of(&ended.stderr);
    assert_eq!((&error["code"], &error["exit"]), (&Value::Null, &json!(4)));
}
