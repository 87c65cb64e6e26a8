//! The client on tokio: connections, lanes, tasks, the clock and the random numbers.
//!
//! ```text
//!   Client = Arc<Star>
//!     Dialer: one QUIC connection per address, shared, dialled again with backoff
//!       Pipe<AppendLane>   in the task of each producer
//!       Pipe<ReadLane>     inside each Reader, driven by its caller
//!       Pipe<ControlLane>  in one task per address, for all requests
//! ```
//!
//! # Invariants
//! - What decides is in [`crate::core`] and `nova_proto::client`; here facts are moved.
//! - Addresses are dialled as the star gives them.
//!
//! # Not here
//! - What callers see: `producer.rs`, `reader.rs`, `admin.rs` of this crate.

pub(crate) mod control;
pub(crate) mod dialer;
pub(crate) mod holders;
pub(crate) mod knock;
pub(crate) mod outcome_cell;
pub(crate) mod pipe;
pub(crate) mod producer_task;
pub(crate) mod source;
pub(crate) mod staging;
