//! Purity: each door to the outside is refused in rule code, and only there.

use super::*;

fn lines(path: &str, text: &str) -> Vec<usize> {
    let findings = check(&File::new(path, text));
    findings.iter().map(|f| f.line).collect()
}

#[test]
fn every_door_to_the_outside_is_refused() {
    for code in [
        "use tokio::time;",
        "let now = Instant::now();",
        "SystemTime::now()",
        "std::thread::spawn(f)",
        "use std::net::UdpSocket;",
        "use std::{fmt, net, io};",
        "use std::{fmt::{self, Debug}, thread};",
        "std::fs::read(x)",
        "std::env::var(x)",
        "std::process::exit(1)",
        "use std::time::Instant;",
        "use std::time::{Duration, Instant as Clock};",
        "let age = given.elapsed();",
        "let zero = std::time::UNIX_EPOCH;",
        "use std::collections::HashMap;",
        "async fn f() {}",
        "rand::random()",
    ] {
        for folder in RULE_FOLDERS {
            let path = format!("{folder}a.rs");
            assert_eq!(lines(&path, &format!("\n{code}")), [2], "{code}");
        }
        assert_eq!(lines("server/src/a.rs", code), Vec::<usize>::new());
        assert_eq!(lines("net/client/src/a.rs", code), Vec::<usize>::new());
        assert_eq!(
            lines("engine/core/src/a_tests.rs", code),
            Vec::<usize>::new()
        );
    }
}

#[test]
fn rule_code_may_use_the_rest() {
    for code in [
        "use nova_model::Instant;",
        "use nova_model::time::Instant;",
        "use std::time::Duration;",
        "use std::{fmt, collections::BTreeMap};",
        "// Instant::now",
        "\"tokio\"",
        "let env = 1;",
        "use std::fmt::{self, Debug}; mod thread;",
    ] {
        let found = lines("engine/core/src/a.rs", code);
        assert_eq!(found, Vec::<usize>::new(), "{code}");
    }
}

#[test]
fn a_folder_without_code_is_told() {
    assert_eq!(check_folders(&[]).len(), RULE_FOLDERS.len());
    let files: Vec<File> = RULE_FOLDERS
        .iter()
        .map(|folder| File::new(&format!("{folder}a.rs"), ""))
        .collect();
    assert_eq!(check_folders(&files), []);
}
