//! The client without IO: what a producer and a reader decide, as plain state machines.
//!
//! ```text
//!   callers          Batcher            Producer             AppendLane (nova-proto)
//!   push(record) --> staged --pump()--> queue --Send-------> send(batch)  ==> bytes
//!        ^                              |  ^  --Resume-----> resume()
//!        |                              |  +---- handle_* <- poll_event() <== bytes
//!        +---- Share, with the Ack <----+ Resolve
//! ```
//!
//! # The boundary, for whoever drives it
//! The tokio driver of this crate and the simulator drive the same two values in the same way:
//!
//! 1. Callers' records go into a [`Batcher`]; each caller keeps its [`Share`].
//! 2. After anything happened: [`Producer::pump`] with the batcher, then [`Producer::poll_action`]
//!    until it has none left. [`Action`] says what each asks for:
//!    - `Connect`: drop the lane if there is one, connect to the target, open a new
//!      `AppendLane` with the given open frame. Report `handle_lost` or `handle_unresolvable` if
//!      that does not come about.
//!    - `Send`, `Resume`: hand it to the lane. `Disconnect`: drop the lane.
//!    - `Resolve`: give the result to the callers of that batch; [`Share::appended`] turns the
//!      batch's acknowledgement into a caller's own range.
//!    - `NeedWriter`: answer with [`Producer::set_writer`] and a fresh random id.
//! 3. Events of the lane go to `handle_opened`, `handle_open_refused`, `handle_acked`,
//!    `handle_rejected` and `handle_broken`; its end without a reason is `handle_lost`.
//! 4. At [`Producer::next_deadline`]: [`Producer::handle_tick`].
//!
//! Nothing is reported for a lane that was dropped on request. All events of a lane are handed over
//! before `poll_action` is asked again: a lane that has ended takes no batch any more.
//!
//! The two values of an entity writer, [`KeyedQueue`] and [`FencedWrite`], are driven alike: facts
//! go in by `handle_*`, what to do comes out of `poll_*`.
//!
//! # Invariants
//! - No clock, randomness, socket, task or wait: the time and a random number are arguments
//!   ([`Moment`]).
//! - Everything is bounded: staged bytes by the batcher, batches by the window, inputs by key and
//!   what is remembered of entities by their limits.
//!
//! # Not here
//! - Frames: `nova-proto`. Connections and names: the `driver` of this crate.

pub mod batcher;
pub mod change;
pub mod cursor;
pub mod fenced;
pub mod handshake;
pub mod keyed;
pub mod listing;
pub mod outcome;
pub mod producer;
pub mod retry;

pub use batcher::{BatchNumber, Batcher, BatcherConfig, PushError, Pushed, Share};
pub use cursor::ReadCursor;
pub use fenced::FencedWrite;
pub use handshake::{HandshakeFailure, HandshakeProblem};
pub use keyed::KeyedQueue;
pub use outcome::{Ambiguity, AppendError, Appended};
pub use producer::{Action, Producer, ProducerRules, Target};

use nova_model::Instant;

/// The time and a random number: all that a state machine takes from its driver besides events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moment {
    /// The monotonic clock.
    pub now: Instant,
    /// Any number, new for each moment; spreads the retries of many clients.
    pub random: u64,
}
