//! Words and calls that have no place in the tree, by the kind of file.
//!
//! | what | where it is refused |
//! | --- | --- |
//! | marks of unfinished work, paths of one person's machine | all code, manifests and docs |
//! | debug and placeholder macros, ignored tests, unbounded channels | Rust code |
//! | `unwrap` | engine, net and server, outside tests |
//! | a sleep | tests |
//! | a test module with a body | Rust code: tests live in a sibling file |

use crate::Finding;
use crate::tokens::{Token, find, tokens};
use crate::tree::File;

/// Marks of unfinished work, put together here so that this file does not hold them.
const MARKS: [&str; 3] = [
    concat!("FIX", "ME"),
    concat!("X", "XX"),
    concat!("TO", "DO"),
];
/// Phrases that admit to less than the whole thing.
const PHRASES: [&str; 2] = [concat!("for ", "now"), concat!("simp", "lified")];
/// Beginnings of paths that exist on one person's machine only.
const PLACES: [&str; 4] = [
    concat!("/ho", "me/"),
    concat!("/ro", "ot/"),
    concat!("/Us", "ers/"),
    concat!("/wo", "rk/"),
];
/// Code in which nothing may panic for want of a reason.
const FOLDERS_WITHOUT_UNWRAP: [&str; 3] = ["engine/", "net/", "server/"];

struct Ban {
    rule: &'static str,
    pattern: &'static [&'static str],
    advice: &'static str,
}

const BANS_IN_RUST: [Ban; 8] = [
    Ban {
        rule: "debug-macro",
        pattern: &["dbg", "!"],
        advice: "remove it, or trace what an operator needs",
    },
    Ban {
        rule: "placeholder",
        pattern: &["todo", "!"],
        advice: "write it, or leave the door out",
    },
    Ban {
        rule: "placeholder",
        pattern: &["unimplemented", "!"],
        advice: "write it, or leave the door out",
    },
    Ban {
        rule: "ignored-test",
        pattern: &["#", "[", "ignore"],
        advice: "make it pass, or delete it",
    },
    Ban {
        rule: "ignored-test",
        pattern: &[",", "ignore", ")", "]"],
        advice: "make it pass, or delete it",
    },
    Ban {
        rule: "unbounded",
        pattern: &["unbounded", "("],
        advice: "give the channel a bound from limits.rs",
    },
    Ban {
        rule: "unbounded",
        pattern: &["unbounded_channel", "("],
        advice: "give the channel a bound from limits.rs",
    },
    Ban {
        rule: "inline-tests",
        pattern: &["mod", "tests", "{"],
        advice: "move them to a sibling `*_tests.rs` file",
    },
];

const UNWRAP: Ban = Ban {
    rule: "unwrap",
    pattern: &[".", "unwrap", "(", ")"],
    advice: "return the error, or `expect` what the line above proves",
};

const SLEEPS: [Ban; 3] = [
    Ban {
        rule: "sleep",
        pattern: &["sleep", "("],
        advice: "wait for the event itself, or drive virtual time",
    },
    Ban {
        rule: "sleep",
        pattern: &["sleep_until", "("],
        advice: "wait for the event itself, or drive virtual time",
    },
    Ban {
        rule: "sleep",
        pattern: &["sleep_ms", "("],
        advice: "wait for the event itself, or drive virtual time",
    },
];

/// All rules of this module over one file.
pub fn check(file: &File) -> Vec<Finding> {
    let mut findings = Vec::new();
    let is_prose = file.path.ends_with(".md") || file.path.ends_with(".toml");
    if file.is_code() || is_prose {
        findings.extend(check_text(file));
    }
    if file.is_rust() {
        let tokens = tokens(&file.text);
        for ban in bans(file) {
            findings.extend(refuse(file, &tokens, ban));
        }
    }
    findings
}

fn bans(file: &File) -> impl Iterator<Item = &'static Ban> {
    let without_unwrap = FOLDERS_WITHOUT_UNWRAP
        .iter()
        .any(|folder| file.path.starts_with(folder));
    let unwrap = (without_unwrap && !file.is_test()).then_some(&UNWRAP);
    let sleeps = file.is_test().then_some(&SLEEPS);
    BANS_IN_RUST
        .iter()
        .chain(unwrap)
        .chain(sleeps.into_iter().flatten())
}

fn refuse(file: &File, tokens: &[Token<'_>], ban: &Ban) -> Vec<Finding> {
    let found = ban.pattern.concat();
    find(tokens, ban.pattern)
        .into_iter()
        .map(|line| Finding::new(&file.path, line, ban.rule, format!("`{found}`"), ban.advice))
        .collect()
}

fn check_text(file: &File) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (index, line) in file.text.lines().enumerate() {
        let small = line.to_ascii_lowercase();
        let mark = MARKS.iter().find(|mark| holds_word(line, mark));
        let phrase = PHRASES.iter().find(|phrase| holds_word(&small, phrase));
        if let Some(word) = mark.or(phrase) {
            findings.push(Finding::new(
                &file.path,
                index + 1,
                "unfinished",
                format!("`{word}`"),
                "finish it, or say what is so and why",
            ));
        }
        if let Some(place) = PLACES.iter().find(|place| begins_path(line, place)) {
            findings.push(Finding::new(
                &file.path,
                index + 1,
                "machine-path",
                format!("a path below `{place}`"),
                "name it relative to the tree, or by a variable",
            ));
        }
    }
    findings
}

/// Whether `word` stands in `line` with no letter or digit on either side.
fn holds_word(line: &str, word: &str) -> bool {
    line.match_indices(word).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        let after = line[at + word.len()..].chars().next();
        !before.is_some_and(char::is_alphanumeric) && !after.is_some_and(char::is_alphanumeric)
    })
}

/// Whether a path that begins with `place` stands in `line`, not merely a part of a longer path.
fn begins_path(line: &str, place: &str) -> bool {
    line.match_indices(place).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        !before.is_some_and(|c| c.is_alphanumeric() || "}._-*".contains(c))
    })
}

#[cfg(test)]
#[path = "banned_tests.rs"]
mod tests;
