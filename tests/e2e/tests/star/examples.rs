//! The examples of the SDK do what they say, against a real star.

use crate::SITE;
use nova_e2e::home::Home;
use nova_e2e::process::{Ended, Process};
use std::process::Command;

/// An example on its way, with the star's address, its authority and further words.
fn begin(home: &Home, name: &str, binary: &str, words: &[&str]) -> Process {
    let address = std::fs::read_to_string(home.data().join("address")).expect("an address");
    let mut command = Command::new(binary);
    command
        .arg(address.trim())
        .arg(home.data().join("tls/ca.pem"))
        .args(words);
    Process::start(name, &mut command)
}

#[test]
fn append_settle_and_follow_work_together() {
    let home = Home::new(SITE);
    let _star = home.start();
    let stream = "examples/all";
    let append = env!("CARGO_BIN_EXE_example-append");
    let mut append = begin(&home, "append", append, &[stream]);
    append.write(b"first\nsecond\n");
    append.close_stdin();
    let said = append.wait_for_end().expect_done();
    assert_eq!(said.text(), "examples/all ends at 2\n");

    let settle = env!("CARGO_BIN_EXE_example-settle");
    let settle = begin(&home, "settle", settle, &[stream, "order-7f3a", "third"]);
    let said = settle.wait_for_end().expect_done();
    assert_eq!(said.text(), "durable at 2\n");

    let follow = env!("CARGO_BIN_EXE_example-follow");
    let follow = begin(&home, "follow", follow, &[stream, "1"]);
    let expected = b"1\tsecond\n2\tthird\n";
    let read = follow.wait_for_output(|output| output.len() >= expected.len());
    assert_eq!(read, expected);
}

fn ordered_writes(home: &Home, words: &[&str]) -> Ended {
    let mut command = Command::new(env!("CARGO_BIN_EXE_example-ordered-writes"));
    command.arg("--data").arg(home.data()).args(words);
    Process::start("ordered_writes", &mut command).wait_for_end()
}

/// Contract 5.7: several processes write the same entities, through any core, and are killed; each
/// update is there once. Writers that lack the safeguards are found out.
#[test]
fn killed_writers_of_the_same_entities_leave_each_update_once() {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let home = Home::new(SITE).with_cores(cores.min(2));
    let star = home.start();
    let words = ["--seconds", "3", "--entities", "6"];
    let said = ordered_writes(&home, &words).expect_code(0).text();
    println!("{said}");
    assert!(!said.contains(" 0 writers killed"), "{said}");
    let words = ["--seconds", "2", "--careless"];
    let said = ordered_writes(&home, &words).expect_code(1).text();
    assert!(said.contains("VIOLATION: "), "{said}");

    let said = ordered_writes(&home, &["--help"]).expect_done().text();
    for flag in [
        "--seconds",
        "--writers",
        "--entities",
        "--seed",
        "--careless",
    ] {
        assert!(said.contains(flag), "{flag}: {said}");
    }
    for words in [
        &["--second", "3"][..],
        &["--writers", "0"],
        &["--seed"],
        &["--star", "x:1"],
    ] {
        let ended = ordered_writes(&home, words).expect_code(2);
        assert!(
            ended.stderr.starts_with("ordered_writes: "),
            "{}",
            ended.stderr
        );
    }
    star.stop().expect_done();
}
