//! The command line against a real star: what goes in by `nova append` comes out of `nova read`.

use crate::SITE;
use nova_e2e::home::Home;
use nova_e2e::process::Process;
use rustix::process::Signal;
use serde_json::Value;

const REFUSED: i32 = 3;
const USAGE: i32 = 2;
const UNREACHABLE: i32 = 4;

fn json(text: &str) -> Value {
    serde_json::from_str(text.trim()).unwrap_or_else(|e| panic!("no JSON ({e}): {text}"))
}

/// The whole way by commands alone: bucket, lines in, lines out, tail, describe, list, delete.
#[test]
fn lines_go_in_and_come_out_by_commands_alone() {
    let home = Home::new(SITE);
    let star = home.start();
    home.nova(&["bucket", "create", "logs"], b"").expect_done();
    let lines: String = (0..2000).map(|n| format!("line {n}\n")).collect();
    home.nova(&["append", "logs/app/one"], lines.as_bytes())
        .expect_done();
    let read = home.nova(&["read", "logs/app/one"], b"").expect_done();
    assert_eq!(read.text(), lines);
    let read = home
        .nova(&["read", "logs/app/one", "--from", "1998"], b"")
        .expect_done();
    assert_eq!(read.text(), "line 1998\nline 1999\n");
    let read = home
        .nova(&["read", "logs/app/one", "--tail", "1", "--json"], b"")
        .expect_done();
    assert!(read.text().contains("line 1999"), "{}", read.text());
    assert!(json(&read.text()).is_object());
    let tail = home.nova(&["tail", "logs/app/one"], b"").expect_done();
    assert!(tail.text().contains("2000"), "{}", tail.text());
    let described = home
        .nova(&["stream", "describe", "logs/app/one", "--json"], b"")
        .expect_done();
    assert!(json(&described.text()).to_string().contains("2000"));
    let listed = home.nova(&["stream", "list", "logs"], b"").expect_done();
    assert!(listed.text().contains("app/one"), "{}", listed.text());
    let told = home.nova(&["star"], b"").expect_done();
    assert!(
        told.text().contains(&home.port().to_string()),
        "{}",
        told.text()
    );
    home.nova(&["bucket", "delete", "logs"], b"")
        .expect_code(REFUSED);
    home.nova(&["stream", "delete", "logs/app/one"], b"")
        .expect_done();
    home.nova(&["bucket", "delete", "logs"], b"").expect_done();
    star.stop().expect_done();
}

/// `--port 0` picks free ports; the data directory tells other commands where the star is.
#[test]
fn a_star_on_any_port_is_found_by_its_data_directory() {
    let home = Home::new(SITE);
    let data = home.data();
    let mut command = std::process::Command::new(SITE.binary);
    command.args([
        "serve",
        "--port",
        "0",
        "--cores",
        "1",
        "--segment-bytes",
        "16MiB",
        "--data",
    ]);
    let star = Process::start("a star on any port", command.arg(&data));
    star.wait_for_line(|line| line == "ready");
    let address = std::fs::read_to_string(data.join("address")).expect("an address");
    let port: u16 = address
        .trim()
        .rsplit_once(':')
        .and_then(|(_, port)| port.parse().ok())
        .expect("HOST:PORT");
    assert_ne!(port, home.port());
    let told = home.nova(&["star"], b"").expect_done();
    assert!(told.text().contains(address.trim()), "{}", told.text());
    let ca = data.join("tls/ca.pem").display().to_string();
    let away = Home::new(SITE);
    let words = ["star", "--star", address.trim(), "--ca", &ca];
    away.nova(&words, b"").expect_done();
    star.signal(Signal::TERM);
    star.wait_for_end().expect_done();
}

/// Contract 8 at the command line: exit codes tell what kind of failure it was, words tell what
/// next, and JSON carries the code.
#[test]
fn failures_have_an_exit_code_a_reason_and_a_next_step() {
    let home = Home::new(SITE);
    let star = home.start();
    let cases: [(&[&str], i32, &str); 6] = [
        (
            &["append", "nothere/x"],
            REFUSED,
            "nova bucket create nothere",
        ),
        (&["read", "nothere/x"], REFUSED, "BUCKET_NOT_FOUND"),
        (&["append", "noslash"], USAGE, "noslash"),
        (&["bucket", "create", "UPPER"], USAGE, "UPPER"),
        (&["serve", "--segment-bytes", "1MiB"], USAGE, "16"),
        (&["nonsense"], USAGE, "nonsense"),
    ];
    for (words, code, said) in cases {
        let ended = home.nova(words, b"").expect_code(code);
        assert!(ended.stderr.contains(said), "{words:?}: {}", ended.stderr);
        assert!(ended.stdout.is_empty(), "{words:?}: {}", ended.text());
    }
    let ended = home
        .nova(&["read", "nothere/x", "--json"], b"")
        .expect_code(REFUSED);
    let error = json(&ended.stderr);
    assert_eq!(error["error"]["code"], "BUCKET_NOT_FOUND", "{error}");
    star.stop().expect_done();
    let ended = home.nova(&["tail", "nothere/x", "--retry-for", "1s"], b"");
    assert!(
        matches!(ended.code(), Some(UNREACHABLE | USAGE)),
        "{ended:?}"
    );
    assert!(!ended.stderr.is_empty());
}

/// Contract 2.1, 5.3, 6 as processes: a pipe feeds `nova append`, `nova read --follow` prints,
/// and the star is killed and started again between and under them.
#[test]
fn pipes_go_on_while_the_star_is_killed_and_started_again() {
    const ROUNDS: usize = 4;
    const LINES: usize = 300;
    let home = Home::new(SITE);
    let mut star = home.start();
    home.nova(&["bucket", "create", "logs"], b"").expect_done();
    let mut append = home.begin_nova(&["append", "logs/app"]);
    let lines = |round: usize| -> String {
        (0..LINES)
            .map(|n| format!("round {round} line {n}\n"))
            .collect()
    };
    append.write(lines(0).as_bytes());
    let mut expected = lines(0);
    // The stream is there once its first line can be read.
    let read = loop {
        let listed = home.nova(&["stream", "list", "logs"], b"").expect_done();
        if listed.text().contains("app") {
            break home.begin_nova(&["read", "logs/app", "--follow"]);
        }
    };
    read.wait_for_output(|out| out == expected.as_bytes());
    for round in 1..=ROUNDS {
        // Half of the lines come while the star is there, the others while it is not.
        let text = lines(round);
        let half = text.len() / 2;
        append.write(&text.as_bytes()[..half]);
        star.kill();
        append.write(&text.as_bytes()[half..]);
        star = home.start();
        expected.push_str(&text);
        read.wait_for_output(|out| out.len() >= expected.len());
    }
    append.close_stdin();
    append.wait_for_end().expect_done();
    let given = read.wait_for_output(|out| out.len() >= expected.len());
    assert!(
        given == expected.as_bytes(),
        "lines were lost, doubled or out of order"
    );
    read.signal(Signal::INT);
    read.wait_for_end().expect_code(130);
    let read = home.nova(&["read", "logs/app"], b"").expect_done();
    assert!(read.text() == expected);
    star.stop().expect_done();
}
