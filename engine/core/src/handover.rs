//! What one core gives another: a stream to lead, and the indexes of its sealed segments.
//!
//! # Not here
//! - The steps of a move: `shard`.

use crate::catalog::holdings::Holding;
use crate::disk::SegmentFile;
use crate::index::SealedIndex;
use crate::load::Load;
use crate::state::StreamState;
use std::sync::Arc;

/// What the new leader is given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Handover {
    /// The stream with everything that is durable.
    pub(crate) state: StreamState,
    /// The newest segment that holds records of it.
    pub(crate) records_in: Option<SegmentFile>,
    /// Where its records of this start lie, as far as the new leader may not know yet.
    pub(crate) holdings: Vec<Holding>,
    /// How busy it is.
    pub(crate) load: Load,
}

/// The index of a sealed segment, shared by all cores of the star.
#[derive(Debug, Clone)]
pub struct SharedIndex(pub(crate) Arc<SealedIndex>);

impl PartialEq for SharedIndex {
    fn eq(&self, other: &SharedIndex) -> bool {
        self.0.file() == other.0.file()
    }
}

impl Eq for SharedIndex {}
