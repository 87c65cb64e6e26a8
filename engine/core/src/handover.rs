//! What one core gives another that is to lead a stream.
//!
//! # Not here
//! - The steps of a move: `shard`.

use crate::catalog::holdings::Holding;
use crate::disk::SegmentFile;
use crate::state::StreamState;

/// What the new leader is given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Handover {
    /// The stream with everything that is durable.
    pub(crate) state: StreamState,
    /// The newest segment that holds records of it.
    pub(crate) records_in: Option<SegmentFile>,
    /// Where its records of this start lie, since only the old leader's indexes tell.
    pub(crate) holdings: Vec<Holding>,
}
