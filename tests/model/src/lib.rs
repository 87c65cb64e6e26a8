//! Runs TLC over the TLA+ models of this folder and reads what it says.
//!
//! ```text
//!   FencedWriter.tla + FW_*.cfg --.
//!   Segment.tla      + SG_*.cfg --+--> java tlc2.TLC --> exit code, states, broken invariant
//! ```
//! A model with all its safeguards must hold; one that lacks a safeguard must break an invariant,
//! or the model shows nothing about that safeguard. docs/MODELS.md explains the models and names
//! the code beside their actions; [`document`] checks that what it names is there.
//!
//! # Invariants
//! - One run has one worker and a bounded heap, and its files in a folder of its own.
//!
//! # Not here
//! - Getting TLC: `fetch.sh`. Which configuration must hold: `tests/models.rs`.
#![forbid(unsafe_code)]

pub mod document;
pub mod tlc;

use std::path::{Path, PathBuf};

/// The folder of the models.
pub fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// The root of the tree.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}
