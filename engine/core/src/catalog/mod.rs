//! Where streams and buckets are found: in memory, in the segment being written, in sealed ones.
//!
//! ```text
//!   led or read now:  Streams (memory)
//!   else:             active index -> indexes on their way to the disk -> sealed, newest first
//!                     -> the star's other logs (a start with another number of cores)
//! ```
//! The statement with the highest epoch wins: epochs go on growing when a stream is deleted and
//! created again under its name.
//!
//! # Not here
//! - What may be done with a stream: `admission`, `shard`.

pub(crate) mod arrivals;
pub(crate) mod buckets;
pub(crate) mod holdings;
pub(crate) mod indexes;
mod listing;
pub(crate) mod retained;
pub(crate) mod streams;
