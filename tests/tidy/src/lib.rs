//! The style of the project and the arrows between its crates, as functions over the tree's files.
//!
//! Each module holds one kind of rule: it takes a file's text and gives a list of [`Finding`]s.
//! `tests/tree.rs` runs them all over the files that git knows; the sibling `*_tests.rs` files run
//! each of them over small bad samples, so that no rule can pass by never looking.
//!
//! ```text
//!   tree (files) --> tokens --> shape, banned, names, glossary, purity --.
//!        '--------> manifest --> arrows, code_map ------------------------> findings
//! ```
//! # Invariants
//! - A rule is a pure function of texts; only [`tree`] touches the file system.
//! - A finding says where, which rule, what was found and what to do about it.
//!
//! # Not here
//! - What the compiler, clippy or rustfmt can refuse: the lints of the workspace and the
//!   `clippy.toml` files of the rule crates do that.
#![forbid(unsafe_code)]

pub mod arrows;
pub mod banned;
pub mod code_map;
pub mod glossary;
pub mod manifest;
pub mod names;
pub mod purity;
pub mod shape;
pub mod tokens;
pub mod tree;

use std::fmt;

/// One breach of one rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The file, relative to the root of the tree.
    pub path: String,
    /// The line, from 1.
    pub line: usize,
    /// The rule's short name.
    pub rule: &'static str,
    /// What was found.
    pub found: String,
    /// What to do about it.
    pub advice: &'static str,
}

impl Finding {
    /// A finding from its parts.
    pub fn new(
        path: &str,
        line: usize,
        rule: &'static str,
        found: impl Into<String>,
        advice: &'static str,
    ) -> Finding {
        Finding {
            path: path.to_owned(),
            line,
            rule,
            found: found.into(),
            advice,
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Finding {
            path,
            line,
            rule,
            found,
            advice,
        } = self;
        write!(f, "{path}:{line}: [{rule}] {found}; {advice}")
    }
}

/// Fails with all findings, one a line, or returns when there are none.
///
/// # Panics
/// When `findings` is not empty.
pub fn assert_none(findings: &[Finding]) {
    let lines: Vec<String> = findings.iter().map(Finding::to_string).collect();
    let count = lines.len();
    assert!(
        lines.is_empty(),
        "{count} finding(s):\n{}\n",
        lines.join("\n")
    );
}
