//! `nova bench` as people run it: short loads on its own star and on one that runs, read back.
//!
//! # Not here
//! - Whether the numbers are good: a test machine is busy with other tests.

use crate::SITE;
use nova_e2e::home::Home;
use nova_e2e::process::{Ended, Process};
use serde_json::Value;
use std::process::Command;

const USAGE: i32 = 2;

fn bench(home: &Home, words: &[&str]) -> Ended {
    let mut command = Command::new(SITE.binary);
    command.arg("bench").args(words);
    command.arg("--data").arg(home.folder().join("bench"));
    Process::start("nova bench", &mut command).wait_for_end()
}

fn json(ended: &Ended) -> Value {
    let text = ended.text();
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("no JSON ({error}): {text}"))
}

/// An open loop on its own star, with followers, baselines and all that it writes.
#[test]
fn an_open_loop_measures_its_own_star_and_reads_back_what_was_acked() {
    let home = Home::new(SITE);
    let out = home.folder().join("report");
    let out_text = out.display().to_string();
    let words = [
        "fan-out",
        "--producers",
        "3",
        "--streams",
        "2",
        "--rate",
        "200",
        "--count",
        "100",
        "--warm-up",
        "0.1",
        "--readers",
        "2",
        "--json",
        "--out",
        &out_text,
    ];
    let found = json(&bench(&home, &words).expect_done());
    let load = &found["loads"][0];
    // A busy machine makes records late, never fewer: none is 10 s late within 30 s.
    assert_eq!(load["latency"]["count"], 100, "{load}");
    assert_eq!(load["baselines"].as_array().map(Vec::len), Some(2));
    assert!(load["ratios"][0]["value"].as_f64() > Some(0.0));
    // 20 records of the warm-up, and the first of each of three sessions.
    assert_eq!(load["verified"]["same"]["records"], 123, "{load}");
    let page = std::fs::read_to_string(out.join("report.html")).expect("a page");
    assert!(page.contains("<svg") && page.ends_with("</html>\n"));
    for file in ["results.json", "fan-out-3x2.hlog", "fan-out-3x2.hgrm"] {
        assert!(out.join(file).is_file(), "{file}");
    }
}

/// A closed loop, and readers that catch up, on a star that goes on; no stream stays behind.
#[test]
fn loads_run_on_a_star_that_runs_and_leave_no_stream() {
    let home = Home::new(SITE);
    let star = home.start();
    let address = format!("127.0.0.1:{}", home.port());
    let ca = home.data().join("tls/ca.pem").display().to_string();
    for shape in ["latency", "catch-up"] {
        let words = [
            shape,
            "--in-flight",
            "4",
            "--count",
            "200",
            "--warm-up",
            "0",
            "--no-baselines",
            "--json",
            "--star",
            &address,
            "--ca",
            &ca,
        ];
        let found = json(&bench(&home, &words).expect_done());
        let load = &found["loads"][0];
        assert!(
            load["verified"]["same"]["records"].as_u64() > Some(200),
            "{load}"
        );
        assert!(load["ratios"].as_array().is_some_and(Vec::is_empty));
    }
    let listed = home.nova(&["stream", "list", "bench"], b"").expect_done();
    assert!(!listed.text().contains("run-"), "{}", listed.text());
    star.stop().expect_done();
}

#[test]
fn loads_that_contradict_themselves_are_refused() {
    let home = Home::new(SITE);
    for words in [
        &["latency", "--rate", "5", "--in-flight", "5"][..],
        &["latency", "--record-bytes", "2000000"],
        &["latency", "--cores", "1000"],
        &["latency", "--star", "127.0.0.1:1"],
        &["everything"],
    ] {
        bench(&home, words).expect_code(USAGE);
    }
}
