//! The words, bytes and bounds that every other crate of nova shares.
//!
//! A record batch is encoded once, by the producer, and stays the same bytes on the wire, in the
//! log and at the reader ([`batch`]). Everything that both the session protocol and the shard talk
//! about (names, positions, conditions, settings, refusals, requests) is defined here, so that the
//! two never need to see each other.
//!
//! # Invariants
//! - Nothing here reads a clock, a file, a socket or a random number, and nothing waits.
//! - Every bound of the system is in [`limits`], with compile-time proofs of how they relate.
//! - A declared length is compared with its limit before anything is allocated for it.
//!
//! # Not here
//! - Who decides about an append: `nova-core`. How frames look: `nova-proto`.
#![forbid(unsafe_code)]

pub mod batch;
pub mod checksum;
pub mod condition;
pub mod cursor;
pub mod error;
pub mod ids;
pub mod limits;
pub mod list;
pub mod names;
pub mod placement;
pub mod position;
pub mod record;
pub mod request;
pub mod settings;
pub mod star;
pub mod stored;
pub mod time;

pub use batch::EncodedBatch;
pub use checksum::Checksum;
pub use condition::{Conditions, FencingToken, WriterStamp};
pub use error::{Code, Facts, Refusal};
pub use ids::{
    CoreId, Epoch, Generation, GroupNumber, Incarnation, LogId, SegmentId, SegmentNumber, StarId,
    StreamId, WriterId,
};
pub use names::{BucketName, StreamKey, StreamName};
pub use position::{Position, SequenceNumber};
pub use record::{Header, Record};
pub use stored::StoredBatch;
pub use time::{Instant, Now, Timestamp};
