//! What the indexes say of records that have had their time, and a round over all streams at rest.
//!
//! ```text
//!   newest segment of a stream --previous--> ... --> the segment with a run that has expired
//! ```
//! # Invariants
//! - Each step looks into one index, so that the caller can bound a turn.
//! - Damage stops a search: what cannot be seen is kept.

use super::indexes::{IndexRef, Indexes};
use crate::disk::SegmentFile;
use crate::index::{Expiry, SealedIndex};
use crate::state::StreamState;
use nova_model::SequenceNumber;
use nova_model::ids::StreamId;
use std::sync::Arc;

/// What one segment says of a stream's expired records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Expired {
    /// All before this record have expired.
    Before(SequenceNumber),
    /// Nothing here has; older records are in this segment.
    Perhaps(SegmentFile),
    /// Nothing has.
    Nothing,
}

/// A place in the round over the streams at rest.
pub(crate) enum Resting {
    /// The segment being written, behind this stream.
    Active(Option<StreamId>),
    /// Row `n` of a sealed index.
    Sealed(Arc<SealedIndex>, usize),
}

impl Indexes {
    /// Looks into one segment for expired records of a stream whose trim point is `trimmed`.
    pub(crate) fn expired_in(
        &self,
        stream: StreamId,
        file: SegmentFile,
        expiry: &Expiry,
        trimmed: SequenceNumber,
    ) -> Expired {
        let Some(index) = self.index_of(stream, file) else {
            return Expired::Nothing;
        };
        let (kept, first) = match &index {
            IndexRef::Active(index) => (
                Ok(index.first_kept(stream, expiry)),
                Ok(index.first_sequence(stream)),
            ),
            IndexRef::Sealed(index) => (
                index.first_kept(stream, expiry),
                index.first_sequence(stream),
            ),
        };
        let (Ok(kept), Ok(first)) = (kept, first) else {
            return Expired::Nothing;
        };
        match kept {
            Some(kept) if kept > trimmed => Expired::Before(kept),
            Some(_) => Expired::Nothing,
            None if first.is_some_and(|first| first <= trimmed) => Expired::Nothing,
            None => match index.previous(stream) {
                Ok(Some(before)) => Expired::Perhaps(before),
                Ok(None) | Err(_) => Expired::Nothing,
            },
        }
    }

    /// The places at which a round over all streams begins: the segment being written, and every
    /// sealed one.
    pub(crate) fn resting(&self) -> Vec<Resting> {
        let sealed = self.at_start.values().flatten().chain(&self.sealed);
        let sealed = sealed.map(|index| Resting::Sealed(Arc::clone(index), 0));
        sealed.chain([Resting::Active(None)]).collect()
    }

    /// The stream at a place with the segment that states it, and the place moves on; none at its
    /// end.
    pub(crate) fn next_resting(&self, place: &mut Resting) -> Option<(StreamState, SegmentFile)> {
        match place {
            Resting::Active(after) => {
                let index = self.active()?;
                let state = index.stream_behind(*after)?.clone();
                *after = Some(state.id);
                Some((state, index.file()))
            }
            Resting::Sealed(index, n) => {
                // A damaged index is told of when somebody asks for what is in it.
                let state = index.nth(*n).ok().flatten()?;
                *n += 1;
                Some((state, index.file()))
            }
        }
    }

    /// How many indexes a look-up by name may go through.
    pub(crate) fn depth(&self) -> usize {
        let at_start: usize = self.at_start.values().map(Vec::len).sum();
        1 + at_start + self.sealed.len()
    }
}
