//! The shard: commands in, disk operations and answers out.
#![forbid(unsafe_code)]

pub mod disk;
pub mod entry;
pub mod index;
pub mod planted;
pub mod segment;
pub mod state;
