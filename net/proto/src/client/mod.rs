//! The client's end of each kind of lane.
//!
//! Making one queues its first frame, where it has one. The driver writes what `poll_output`
//! gives, feeds what it receives, and takes the events. Once `wants_finish`, it finishes its
//! direction of the stream.
//!
//! # Invariants
//! - The star is trusted no more than a client is: lengths, archives, batches, texts and the order
//!   of answers are checked, and a lie is a [`ProtocolError`](crate::ProtocolError).
//! - Own mistakes (a full window, a lane that is not open) are assertions.
//!
//! # Not here
//! - Batching, resending, reconnecting: `nova-client`.

mod append;
mod check;
mod control;
mod read;

pub use append::{AppendEvent, AppendLane};
pub use control::{ControlEvent, ControlLane};
pub use read::{ReadEvent, ReadLane};
