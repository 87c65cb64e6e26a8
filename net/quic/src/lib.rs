//! QUIC of both ends behind own types: quinn-proto on the glommio executor of a core, and on tokio.
//!
//! ```text
//! client (tokio)                                   server (one glommio executor per core)
//! client::ClientEndpoint                           server::Endpoint, one UDP port per core
//!   connect() -> client::Connection  == UDP ==>      accept() -> Incoming -> handshake()
//!     open_stream() -> (SendStream, RecvStream)        accept_stream() -> (SendStream, RecvStream)
//! ```
//!
//! Both ends share the transport settings of [`params`], the errors of [`error`] and the
//! certificates of [`tls`], and have streams of the same interface. No type of quinn is in the
//! public interface, so that another transport can take its place without a change above.
//!
//! Both run the same state machines, those of quinn-proto. A core drives all of its connections in
//! one task (docs/decisions/0010); a client has a socket and a task for each connection, for any
//! number of threads (docs/decisions/0012).
//!
//! # Invariants
//! - Only this crate names quinn.
//! - A send never exceeds what one UDP datagram batch may carry (see [`params::segments_max`]).
//! - Server types are `!Send`: they live and die on the thread of their core.
//! - Early data (0-RTT) is off: it can be replayed, and an append must not be.
//!
//! # Not here
//! - The meaning of the bytes in a stream: `net/proto`.
//! - Threads and executors: the server's core loop; the caller's tokio runtime.

#![deny(unsafe_code)]

#[cfg(all(feature = "glommio", feature = "tokio"))]
pub mod baseline;
#[cfg(feature = "glommio")]
pub mod certificates;
mod chunks;
#[cfg(feature = "tokio")]
pub mod client;
mod congestion;
#[cfg(all(test, feature = "glommio", feature = "tokio"))]
mod crash_tests;
pub mod error;
#[cfg(all(test, feature = "glommio", feature = "tokio"))]
mod loopback_tests;
pub mod params;
#[cfg(feature = "glommio")]
mod reset_key;
#[cfg(feature = "glommio")]
pub mod server;
mod socket;
pub mod stats;
pub mod tls;
