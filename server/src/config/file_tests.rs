//! Tests of the configuration file.

use super::*;
use crate::config::HttpListen;
use crate::config::resolve::SyncName;
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

fn parsed(text: &str) -> Result<ServeSettings, FileError> {
    parse(Path::new("conf/nova.toml"), text)
}

#[test]
fn every_flag_has_a_key_of_the_same_name() {
    let text = r#"
        data = "data"
        listen = "10.0.0.7"
        port = 7500
        advertise = "star.example"
        cores = 4
        segment-bytes = "512MiB"
        floor-bytes = "1GiB"
        allow-corrupt = true
        sync = "fdatasync"
        recent-bytes = 1048576
        ingress-bytes = "128 MiB"
        tls-names = ["a.example", "b.example"]
        http = "off"
        http-plain = false
        http-allow-origin = ["https://app.example"]
        spin-us = 20
        idle-timeout = "90s"
    "#;
    let expected = ServeSettings {
        data: Some("conf/data".into()),
        listen: Some(IpAddr::V4(Ipv4Addr::new(10, 0, 0, 7))),
        port: Some(7500),
        advertise: Some("star.example".to_owned()),
        cores: Some(4),
        segment_bytes: Some(512 << 20),
        floor_bytes: Some(1 << 30),
        allow_corrupt: Some(true),
        sync: Some(SyncName::Fdatasync),
        recent_bytes: Some(1 << 20),
        ingress_bytes: Some(128 << 20),
        idle_timeout: Some(Duration::from_secs(90)),
        tls_names: Some(vec!["a.example".to_owned(), "b.example".to_owned()]),
        http: Some(HttpListen::Off),
        http_plain: Some(false),
        http_allow_origin: Some(vec!["https://app.example".to_owned()]),
        spin_us: Some(20),
    };
    assert_eq!(parsed(text).unwrap(), expected);
    let mut lines = text.lines().filter_map(|line| line.split_once(" = "));
    let known = known_keys();
    assert!(lines.all(|(key, _)| known.iter().any(|known| known == key.trim())));
    assert_eq!(text.matches(" = ").count(), known.len());
}

#[test]
fn an_empty_file_says_nothing() {
    assert_eq!(parsed("# nothing\n").unwrap(), ServeSettings::default());
}

#[test]
fn an_absolute_path_stays_as_it_is() {
    let settings = parsed("data = '/var/lib/nova'").unwrap();
    assert_eq!(settings.data, Some("/var/lib/nova".into()));
}

#[test]
fn an_unknown_key_is_refused_with_the_nearest_known_one() {
    let cases = [
        ("segment-byte", Some("segment-bytes")),
        ("segment_bytes", Some("segment-bytes")),
        ("Port", Some("port")),
        ("core", Some("cores")),
        ("advertize", Some("advertise")),
        ("replication", None),
        ("x", None),
    ];
    for (written, expected) in cases {
        let text = format!("# first\nlisten = \"::1\"\n{written} = 1\n");
        match parsed(&text) {
            Err(FileError::UnknownKey {
                line: 3,
                key,
                nearest,
                ..
            }) => {
                assert_eq!(key, written);
                assert_eq!(nearest.as_deref(), expected, "{written}");
            }
            other => panic!("{written}: {other:?}"),
        }
    }
    let error = parsed("prot = 1").unwrap_err().to_string();
    let expected = "conf/nova.toml:1: there is no setting 'prot'; did you mean 'port'?";
    assert_eq!(error, expected);
}

#[test]
fn a_value_of_the_wrong_kind_is_refused_with_its_line() {
    for text in [
        "port = 'high'",
        "port = 70000",
        "segment-bytes = 'big'",
        "listen = 'here'",
    ] {
        match parsed(text) {
            Err(FileError::Malformed { message, .. }) => {
                assert!(message.contains("line 1"), "{text}: {message}");
            }
            other => panic!("{text}: {other:?}"),
        }
    }
    assert!(matches!(parsed("port ="), Err(FileError::Malformed { .. })));
}

#[test]
fn a_file_that_is_not_there_is_named() {
    let missing = Path::new("no/such/file.toml");
    let error = read_file(missing).unwrap_err().to_string();
    assert!(error.starts_with("the configuration file no/such/file.toml can't be read: "));
}

#[test]
fn a_file_is_read_from_disk() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("nova.toml");
    std::fs::write(&path, "data = 'd'\n").unwrap();
    let settings = read_file(&path).unwrap();
    assert_eq!(settings.data, Some(folder.path().join("d")));
}
