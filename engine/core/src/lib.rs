//! The shard: one core's streams and their log, as a state machine without IO.
//!
//! ```text
//!   commands, facts -> shard (admission, sequencing, leadership, reads)
//!                        |  entries                 ^ durable groups
//!                        v                          |
//!                      commit (groups, tickets, gate, segments) -> disk operations
//!                        |
//!                      segment (bytes of groups)   index (where records lie)
//!   files -> recovery -> ShardStart -> shard
//! ```
//!
//! # Invariants
//! - No clock, file, socket, thread, randomness or async: time and fresh ids are arguments, storage
//!   is [`disk::DiskOp`] and [`disk::BootDisk`]. The server drives it on a core, the simulator
//!   drives the same code on virtual time.
//! - Every answer passes the durability gate ([`commit::gate`]).
//!
//! # Not here
//! - QUIC and frames (`nova-quic`, `nova-proto`); how files are written (`nova-disk`).
#![forbid(unsafe_code)]

mod admission;
mod catalog;
pub mod commit;
pub mod config;
pub mod disk;
pub mod entry;
pub mod event;
mod handover;
pub mod index;
mod load;
pub mod planted;
mod reader;
mod rebalance;
pub mod recovery;
pub mod released;
mod rewrite;
pub mod segment;
mod shard;
pub mod state;

pub use catalog::indexes::StarIndexes;
pub use config::ShardConfig;
pub use event::{
    Caller, ChangeStep, Event, LoadStep, LoadTold, PeerMessage, ReaderKey, SessionKey,
};
pub use handover::{Handover, SharedIndex};
pub use shard::{Shard, ShardStart};
