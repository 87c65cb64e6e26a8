//! The session protocol without IO: frames, and the state machines of both ends.
//!
//! One bidirectional QUIC stream is one *lane*. The first frame of the client decides what it is:
//!
//! ```text
//!   client                                    star
//!   client::AppendLane   -- OpenAppend -->    server::Lane   an append session on one stream
//!   client::ReadLane     -- OpenRead ---->    server::Lane   a reader of one stream
//!   client::ControlLane  -- Request ----->    server::Lane   requests, answered in any order
//! ```
//!
//! A driver owns the QUIC stream and moves bytes: what it received goes into `handle_bytes` and
//! `handle_end`, what `poll_output` returns is written in that order. In between the star's driver
//! takes [`server::Input`]s to the shard and brings its answers back; the client takes events.
//! The bytes are described in docs/PROTOCOL.md and nowhere else.
//!
//! # Errors
//! `handle_bytes` and `handle_end` fail when the peer broke the protocol. The lane is dead then:
//! it polls nothing more, ignores answers, and its driver resets both directions of the stream
//! with [`ProtocolError::close_code`] (or closes the connection, see [`ProtocolError::closes`])
//! and ends the session or the reader at the shard, as after a lost connection.
//!
//! # Invariants
//! - No clock, socket, file, thread, randomness or async: the same calls give the same bytes.
//! - A declared length is compared with the limit of its kind, and a frame with what its lane
//!   may carry at that moment, before anything is allocated for it.
//! - Memory for a frame grows with the bytes that arrived for it.
//! - The payload of a batch is not copied on its way out.
//! - What an answer or a request says in an archive was validated and checked before it is seen.
//!
//! # Not here
//! - Admission, order and durability: `nova-core`. Reconnecting and batching: `nova-client`.
#![forbid(unsafe_code)]

pub mod client;
mod error;
mod frame;
mod output;
pub mod server;

pub use error::{Closes, ProtocolError};
pub use frame::{Kind, RequestId};

/// The name that both ends give in the TLS handshake: the version of the whole protocol.
pub const ALPN: &[u8] = b"nova/1";

/// The code that a finished direction of a lane, or an orderly closed connection, is stopped with.
pub const CLOSE_CODE_NONE: u32 = 0;

#[cfg(test)]
mod answers_tests;
#[cfg(test)]
mod corruption_tests;
#[cfg(test)]
mod golden_tests;
#[cfg(test)]
mod limits_tests;
#[cfg(test)]
mod pipe_tests;
#[cfg(test)]
mod places_tests;
#[cfg(test)]
mod samples_tests;
