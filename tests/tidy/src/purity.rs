//! The rule crates and the client's core see no clock, file, socket, thread, chance or async.
//!
//! Clippy refuses the same things in the rule crates by type; it cannot look at one module of a
//! crate, and nobody can switch this check off with an attribute.
//!
//! # Not here
//! - Which packages a rule crate depends on: [`crate::arrows`].

use crate::Finding;
use crate::tokens::{Token, find, tokens};
use crate::tree::File;

/// Folders whose code is rules only.
pub const RULE_FOLDERS: [&str; 4] = [
    "engine/model/src/",
    "engine/core/src/",
    "net/proto/src/",
    "net/client/src/core/",
];

/// Words that only a driver has a use for.
const DRIVER_WORDS: [&str; 20] = [
    "tokio",
    "glommio",
    "quinn",
    "nova_quic",
    "rustix",
    "libc",
    "rand",
    "getrandom",
    "SystemTime",
    "UNIX_EPOCH",
    "async",
    "await",
    "HashMap",
    "HashSet",
    "RandomState",
    "Mutex",
    "RwLock",
    "Condvar",
    "mpsc",
    "thread_local",
];

/// Modules of `std` that reach outside.
const DRIVER_MODULES: [&str; 6] = ["thread", "net", "fs", "env", "process", "os"];

/// Ways to a clock. `std::time::Duration` by its whole path is a plain value and may be used.
const CLOCKS: [&[&str]; 4] = [
    &["Instant", ":", ":", "now"],
    &[".", "elapsed", "(", ")"],
    &["std", ":", ":", "time", ":", ":", "Instant"],
    &["std", ":", ":", "time", ":", ":", "{"],
];

const ADVICE: &str = "let the driver do it and hand the fact in as an argument";

/// What a file of a rule folder uses that it may not; nothing for other files and for tests.
pub fn check(file: &File) -> Vec<Finding> {
    let in_rules = RULE_FOLDERS
        .iter()
        .any(|folder| file.path.starts_with(folder));
    if !in_rules || !file.is_rust() || file.is_test() {
        return Vec::new();
    }
    let tokens = tokens(&file.text);
    let mut found: Vec<(usize, String)> = Vec::new();
    for token in &tokens {
        if DRIVER_WORDS.contains(&token.text) {
            found.push((token.line, format!("`{}`", token.text)));
        }
    }
    for pattern in CLOCKS {
        let text = pattern.concat();
        found.extend(
            find(&tokens, pattern)
                .into_iter()
                .map(|line| (line, format!("`{text}`"))),
        );
    }
    for (line, module) in std_modules(&tokens) {
        if DRIVER_MODULES.contains(&module) {
            found.push((line, format!("`std::{module}`")));
        }
    }
    found
        .into_iter()
        .map(|(line, found)| Finding::new(&file.path, line, "purity", found, ADVICE))
        .collect()
}

/// Folders of [`RULE_FOLDERS`] in which there is no code, so that nothing is checked there.
pub fn check_folders(files: &[File]) -> Vec<Finding> {
    let is_empty = |folder: &str| !files.iter().any(|file| file.path.starts_with(folder));
    RULE_FOLDERS
        .iter()
        .filter(|folder| is_empty(folder))
        .map(|folder| {
            let advice = "put the rules there, or correct the list in tests/tidy/src/purity.rs";
            Finding::new(folder, 1, "purity", "no code in this folder", advice)
        })
        .collect()
}

/// Each module of `std` that is named, alone or in a group: `std::fs::read`, `use std::{fs, io}`.
fn std_modules<'a>(tokens: &[Token<'a>]) -> Vec<(usize, &'a str)> {
    let mut modules = Vec::new();
    for (index, window) in tokens.windows(4).enumerate() {
        if window[0].text != "std" || window[1].text != ":" || window[2].text != ":" {
            continue;
        }
        if window[3].text == "{" {
            modules.extend(group_heads(&tokens[index + 4..]));
        } else {
            modules.push((window[3].line, window[3].text));
        }
    }
    modules
}

/// The first word of each item of a `use` group, whose opening brace is already behind.
fn group_heads<'a>(tokens: &[Token<'a>]) -> Vec<(usize, &'a str)> {
    let mut heads = Vec::new();
    let mut depth = 0_usize;
    let mut is_head = true;
    for token in tokens {
        match token.text {
            "{" => depth += 1,
            "}" if depth == 0 => break,
            "}" => depth -= 1,
            "," if depth == 0 => is_head = true,
            text if is_head => {
                heads.push((token.line, text));
                is_head = false;
            }
            _ => {}
        }
    }
    heads
}

#[cfg(test)]
#[path = "purity_tests.rs"]
mod tests;
