//! Every system is started so that its acks are durable, in the folder that it was given.

use super::*;
use std::ffi::OsStr;

const PROGRAM: &str = "/bin/system";

fn words(command: &Command) -> Vec<String> {
    let words = command.get_args().map(OsStr::to_string_lossy);
    words.map(|word| word.into_owned()).collect()
}

fn has(words: &[String], wanted: &[&str]) -> bool {
    words.windows(wanted.len()).any(|window| window == wanted)
}

#[test]
fn redis_syncs_its_log_before_it_answers() {
    let command = redis::command(Path::new(PROGRAM), Path::new("/data"), 7000);
    let words = words(&command);
    for wanted in [
        ["--appendonly", "yes"],
        ["--appendfsync", "always"],
        ["--dir", "/data"],
        ["--port", "7000"],
        ["--bind", "127.0.0.1"],
    ] {
        assert!(has(&words, &wanted), "{wanted:?} in {words:?}");
    }
}

#[test]
fn nats_syncs_each_message() {
    let folder = tempfile::tempdir().unwrap();
    let command = nats::command(Path::new(PROGRAM), folder.path(), 7000).unwrap();
    let settings = folder.path().join("nats.conf");
    assert_eq!(words(&command), ["-c", settings.to_str().unwrap()]);
    let text = fs::read_to_string(settings).unwrap();
    let store = format!("store_dir: \"{}\"", folder.path().display());
    for wanted in [
        "sync_interval: always",
        &store,
        "host: \"127.0.0.1\"",
        "port: 7000",
    ] {
        assert!(text.contains(wanted), "{wanted} in {text}");
    }
}

#[test]
fn iggy_has_its_folder_and_tcp_only() {
    let command = iggy::command(Path::new(PROGRAM), Path::new("/data"), 7000);
    let says = |name: &str| {
        let mut said = command.get_envs();
        let found = said.find(|(key, _)| *key == name);
        found
            .and_then(|(_, value)| value)
            .map(OsStr::to_string_lossy)
    };
    for (name, value) in [
        ("IGGY_PATH", "/data"),
        ("IGGY_TCP_ADDRESS", "127.0.0.1:7000"),
        ("IGGY_HTTP_ENABLED", "false"),
        ("IGGY_QUIC_ENABLED", "false"),
        ("IGGY_WEBSOCKET_ENABLED", "false"),
    ] {
        assert_eq!(says(name).as_deref(), Some(value), "{name}");
    }
}

#[test]
fn s2_lite_keeps_its_objects_in_its_folder() {
    let command = lite::command(Path::new(PROGRAM), Path::new("/data"), 7000);
    let words = words(&command);
    assert_eq!(words.first().map(String::as_str), Some("lite"));
    for wanted in [["--local-root", "/data"], ["--port", "7000"]] {
        assert!(has(&words, &wanted), "{wanted:?} in {words:?}");
    }
}

#[test]
fn whoever_is_missing_is_told_how_to_come() {
    for other in Other::ALL {
        let About {
            name,
            program,
            durable_by,
            install,
        } = about(other);
        for text in [name, program, durable_by, install] {
            assert!(!text.is_empty(), "{other:?}");
        }
    }
}
