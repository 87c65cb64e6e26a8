//! Real files behind the shard's disk boundary, `nova_core::disk`.
//!
//! ```text
//!  start of a star:  probe -> DataDirectory::open -> Registry: incarnation + 1
//!  each core, first: FileBootDisk (blocking)  <- recovery works through it
//!  each core, then:  Driver (glommio)         <- Shard's operations, Completions back
//! ```
//!
//! Everything that names glommio's files is in [`Driver`] and what is below it; the rest is plain
//! blocking calls, which the start of a star and glommio's blocking thread both use.
//!
//! # Invariants
//! - A name that has its final form is whole: files are made under a draft's name, synced, renamed,
//!   and their directory is synced before anybody hears of it.
//! - The descriptor that writes a segment holds the segment's lock from before the first write
//!   until after the last one, also when the process has died in between.
//!
//! # Not here
//! - Rules: what is written where and when, and what a failure means, is `nova-core`'s.
//! - Simulated faults and power loss: `tests/sim`.

pub mod baseline;
mod boot;
mod completions;
mod device_memory;
mod directory;
mod driver;
mod durable;
mod failure;
mod handles;
mod identity;
mod in_flight;
mod in_place;
mod index_map;
mod layout;
mod lock;
mod lull;
mod operations;
mod probe;
mod read_buffer;
mod registry;
mod segments;
#[cfg(test)]
mod trial_tests;
mod writable;
mod write_through;
mod writer;

pub use boot::FileBootDisk;
pub use completions::Completions;
pub use device_memory::{DEVICE_MEMORY_BYTES, DeviceMemory, HugePages};
pub use directory::{DataDirectory, DirectoryError};
pub use driver::{Driver, DriverConfig, READ_BYTES_MAX, READ_HANDLES_DEFAULT, SyncMode};
pub use identity::{FORMAT_VERSION, Identity};
pub use layout::Layout;
pub use probe::{LOCKED_MEMORY_BYTES_MIN, ProbeError, ProbeReport, probe};
pub use registry::{
    Entry, FileRegistry, Registry, RegistryError, Revision, incarnation, raise_incarnation,
};
