//! The star: one process that serves streams, one pinned thread per core.
//!
//! # Invariants
//! - The core loop moves facts between the world and the rule crates, and has no rules itself.

pub mod boot;
mod boot_error;
mod boot_http;
pub mod cli;
pub mod config;
mod core;
mod gateway;
mod metrics;
mod shutdown;

/// The allocator of every program that a star runs in. glibc's gives the top of a thread's arena
/// back to the system and takes it again with each append (one `mprotect` and its page faults).
/// Only what the device reads and writes is in huge pages.
#[global_allocator]
static ALLOCATOR: nova_disk::DeviceMemory<mimalloc::MiMalloc> =
    nova_disk::DeviceMemory(mimalloc::MiMalloc);
