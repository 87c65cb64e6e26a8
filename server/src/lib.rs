//! The star: one process that serves streams, one pinned thread per core.
//!
//! # Invariants
//! - The core loop moves facts between the world and the rule crates, and has no rules itself.

pub mod boot;
pub mod cli;
pub mod config;
mod core;
mod shutdown;
