//! The hot pieces of the rule crates, each as a closure on sample data that is made beforehand.
//!
//! | what runs them | what for |
//! | --- | --- |
//! | `cargo bench -p nova-pieces` | seconds and bytes a second, by Criterion |
//! | `cargo run --release -p nova-pieces` | the gate: instructions, held to what is written down |
//!
//! # Invariants
//! - A piece does the same each time it runs, so that instructions can be counted.
//!
//! # Not here
//! - Files, networks, stars: `nova bench`.
#![forbid(unsafe_code)]

pub mod counted;
pub mod pieces;
pub mod samples;
