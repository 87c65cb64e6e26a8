//! Contract 4.4: a star of two cores is operated by commands while it is written to; what was
//! acked is there, nothing is applied twice, and nobody has to be told.
//!
//! ```text
//!   writers of 8 streams, one record after the other ------------------------------------>
//!   status | drain 1 | status | handoff to 1, drain 7: no | undrain 1 | rebalance | drain --all
//!   | append: DRAINING | undrain --all | SIGTERM, start |
//! ```

use crate::{SITE, all_bodies, append_once, in_time, make_stream, numbered, producer, stream};
use nova_client::*;
use nova_e2e::home::Home;
use nova_model::placement::stream_home;
use serde_json::Value;
use tokio::sync::watch;
use tokio::task::JoinSet;

const STREAMS: u64 = 8;
const REFUSED: i32 = 3;
/// Acks that show that the writers go on.
const SOME: u64 = 200;

/// Writers of streams, one record after the other, until they are told to stop.
struct Writers {
    acks: watch::Sender<u64>,
    over: watch::Sender<bool>,
    tasks: JoinSet<(StreamName, u64)>,
}

impl Writers {
    async fn begin(client: &Client) -> Writers {
        let (acks, over) = (watch::channel(0).0, watch::channel(false).0);
        let mut tasks = JoinSet::new();
        for n in 0..STREAMS {
            let name = make_stream(client, &format!("written-{n}")).await;
            let writer = producer(client, &name);
            let (acks, over) = (acks.clone(), over.subscribe());
            tasks.spawn(async move { (name, write(writer, acks, over).await) });
        }
        Writers { acks, over, tasks }
    }

    /// Waits for some acks more.
    async fn go_on(&self) {
        let mut acks = self.acks.subscribe();
        let wanted = *acks.borrow() + SOME;
        let waited = in_time("acks", acks.wait_for(|acks| *acks >= wanted)).await;
        waited.expect("there are writers");
    }

    /// Stops them: each stream holds what was acked, once and in order.
    async fn end(mut self, client: &Client) {
        self.over.send_replace(true);
        while let Some(written) = in_time("the end", self.tasks.join_next()).await {
            let (name, count) = written.expect("no panic");
            let there = all_bodies(client, &name).await;
            assert_eq!(there.len() as u64, count, "{name}");
            let wanted = (0..count).map(numbered);
            assert!(wanted.eq(there.iter().map(|body| body.to_vec())), "{name}");
        }
    }
}

async fn write(writer: Producer, acks: watch::Sender<u64>, over: watch::Receiver<bool>) -> u64 {
    let mut next = 0;
    while !*over.borrow() {
        let appended = in_time("an ack", writer.append(Record::new(numbered(next)))).await;
        let appended = appended.expect("a writer goes on");
        assert_eq!(
            appended.start.sequence.0, next,
            "nothing is lost or doubled"
        );
        next += 1;
        acks.send_modify(|acks| *acks += 1);
    }
    in_time("a close", writer.close())
        .await
        .expect("all was acked");
    next
}

/// Whether there are two CPUs for a star of two cores.
fn has_two_cpus() -> bool {
    let has = std::thread::available_parallelism().map_or(1, usize::from) >= 2;
    if !has {
        println!("not run: a star of two cores needs two CPUs");
    }
    has
}

/// Commands run while the writers do: on a thread of their own.
async fn nova(home: &Home, words: &[&str], code: i32) -> (String, String) {
    let ended = tokio::task::block_in_place(|| home.nova(words, b"a line\n").expect_code(code));
    (ended.text(), ended.stderr)
}

async fn json(home: &Home, words: &[&str]) -> Value {
    let (text, _) = nova(home, &[words, &["--json"]].concat(), 0).await;
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("no JSON ({error}): {text}"))
}

/// The state of each core, as the table and the JSON of the status tell it.
async fn states(home: &Home) -> Vec<(String, u64)> {
    let (table, _) = nova(home, &["admin", "status"], 0).await;
    let status = json(home, &["admin", "status"]).await;
    let cores = status["cores"].as_array().expect("cores");
    let told = cores.iter().map(|core| {
        let (number, is_drained) = (&core["core"], core["drained"] == true);
        let state = if is_drained { "drained" } else { "ok" };
        let number = number.to_string();
        let line = table.lines().find(|line| line.starts_with(&number));
        let line = line.unwrap_or_else(|| panic!("no core {number}: {table}"));
        assert!(line.ends_with(state), "{table}");
        if is_drained {
            assert_eq!(core["sessions"], 0, "{status}");
        }
        (
            state.to_owned(),
            core["streams_led"].as_u64().expect("a number"),
        )
    });
    told.collect()
}

/// A client that enters at this core.
fn client_at(home: &Home, core: u16) -> Client {
    let mut config = home.client_config();
    config.star = format!("127.0.0.1:{}", home.port() + core);
    Client::connect(config).expect("a client")
}

/// Appends to streams at rest, whose home was the drained core: one redirect each at most, for a
/// client that knew their leader as for one that comes to the drained core.
async fn first_opens(home: &Home, knew: &Client, resting: &[StreamName]) {
    for client in [knew, &client_at(home, 1), &client_at(home, 0)] {
        for name in resting {
            let before = client.redirects();
            let appended = append_once(client, name, Record::new("x")).await;
            appended.expect("somebody leads it");
            let redirects = client.redirects() - before;
            assert!(redirects <= 1, "{name}: {redirects} redirects");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn cores_are_drained_and_used_again_by_commands_under_load() {
    if !has_two_cpus() {
        return;
    }
    let home = Home::new(SITE).with_cores(2);
    let star = home.start();
    let client = home.client();
    let writers = Writers::begin(&client).await;
    let at_second = (0..).map(|n| stream(&format!("resting-{n}")));
    let at_second = at_second.filter(|name| stream_home(name, 2) == CoreId(1));
    let resting: Vec<StreamName> = at_second.take(4).collect();
    for name in &resting {
        make_stream(&client, name.key.as_str()).await;
    }
    writers.go_on().await;
    let before = states(&home).await;
    assert!(before.iter().all(|(state, _)| state == "ok"), "{before:?}");

    let (said, _) = nova(&home, &["admin", "drain", "1"], 0).await;
    assert!(said.starts_with("core-1 is drained: "), "{said}");
    assert!(said.contains("nova admin undrain 1"), "{said}");
    let drained = states(&home).await;
    assert_eq!(drained[1], ("drained".to_owned(), 0), "{drained:?}");
    assert!(drained[0].1 >= STREAMS, "{drained:?}");
    writers.go_on().await;
    first_opens(&home, &client, &resting).await;

    let words = ["admin", "handoff", "tests/written-0", "--to", "1"];
    let (_, why) = nova(&home, &words, REFUSED).await;
    assert!(
        why.contains("core-1 is drained: it leads no stream"),
        "{why}"
    );
    let (_, why) = nova(&home, &["admin", "drain", "7"], REFUSED).await;
    assert!(why.contains("core-7 was not drained"), "{why}");
    assert!(why.contains("INVALID"), "{why}");

    let undrained = json(&home, &["admin", "undrain", "1"]).await;
    assert_eq!(undrained["drained"], serde_json::json!([]), "{undrained}");
    writers.go_on().await;
    let spread = json(&home, &["admin", "rebalance"]).await;
    for one in spread["moves"].as_array().expect("moves") {
        assert_ne!(one["from"], one["to"], "{spread}");
    }
    let (said, _) = nova(&home, &["admin", "rebalance"], 0).await;
    assert!(
        said.contains("moved") || said.contains("nothing to move"),
        "{said}"
    );
    writers.go_on().await;
    writers.end(&client).await;
    star.stop().expect_done();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_closed_star_says_how_to_open_it_and_its_writers_wait() {
    if !has_two_cpus() {
        return;
    }
    let home = Home::new(SITE).with_cores(2);
    let star = home.start();
    let client = home.client();
    let writers = Writers::begin(&client).await;
    writers.go_on().await;
    let drained = json(&home, &["admin", "drain", "--all"]).await;
    assert_eq!(drained["drained"], serde_json::json!([0, 1]), "{drained}");
    let closed = states(&home).await;
    let nothing = ("drained".to_owned(), 0);
    assert_eq!(closed, [nothing.clone(), nothing]);
    let words = ["append", "tests/written-0", "--retry-for", "1s"];
    let (_, why) = nova(&home, &words, REFUSED).await;
    assert!(why.contains("DRAINING"), "{why}");
    assert!(why.contains("nova admin undrain --all --data "), "{why}");
    let (said, _) = nova(&home, &["admin", "undrain", "--all"], 0).await;
    assert!(said.starts_with("all cores take streams again"), "{said}");
    writers.go_on().await;
    writers.end(&client).await;
    star.stop().expect_done();
}

/// SIGTERM and kill -9 under load: writers of streams on both cores go on by themselves.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn writers_go_on_after_a_stop_and_after_a_kill() {
    if !has_two_cpus() {
        return;
    }
    let home = Home::new(SITE).with_cores(2);
    let mut star = home.start();
    let client = home.client();
    let writers = Writers::begin(&client).await;
    for is_kill in [false, true, false] {
        writers.go_on().await;
        star = tokio::task::block_in_place(|| {
            match is_kill {
                true => star.kill(),
                false => drop(star.stop().expect_done()),
            }
            home.start()
        });
    }
    writers.go_on().await;
    writers.end(&client).await;
    star.stop().expect_done();
}
