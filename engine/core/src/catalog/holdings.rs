//! Where the records of a stream lie that moves to another core within a start.
//!
//! The segments of earlier starts are known to every core. What this start wrote is known to the
//! core that wrote it alone, so the stream takes that part of its indexes along.
//!
//! # Invariants
//! - A part is final: a stream that comes back gets a new segment there.

use super::indexes::{IndexRef, Indexes};
use crate::disk::SegmentFile;
use crate::index::{ActiveIndex, SealedIndex};
use nova_model::ids::StreamId;
use std::sync::Arc;

/// What one segment of this start holds of a stream that moves to another core.
#[derive(Debug, Clone)]
pub(crate) enum Holding {
    /// A copy of the stream's part of an index that is not stored yet.
    Part(Box<ActiveIndex>),
    /// A sealed index.
    Sealed(Arc<SealedIndex>),
}

impl Holding {
    fn file(&self) -> SegmentFile {
        match self {
            Holding::Part(index) => index.file(),
            Holding::Sealed(index) => index.file(),
        }
    }
}

impl PartialEq for Holding {
    fn eq(&self, other: &Holding) -> bool {
        self.file() == other.file()
    }
}

impl Eq for Holding {}

impl Indexes {
    /// What the segments of this start hold of a stream, from the newest back.
    pub(crate) fn holdings(&self, stream: StreamId, newest: Option<SegmentFile>) -> Vec<Holding> {
        let mut holdings = Vec::new();
        let mut at = newest;
        while let Some(file) = at {
            let holding = match self.index_of(stream, file) {
                Some(IndexRef::Active(index)) => Holding::Part(Box::new(index.only(stream))),
                Some(IndexRef::Sealed(_)) => match self.sealed_here(stream, file) {
                    Some(index) => Holding::Sealed(index),
                    None => break,
                },
                None => break,
            };
            let previous = self
                .index_of(stream, file)
                .map(|index| index.previous(stream));
            holdings.push(holding);
            at = previous.and_then(Result::ok).flatten();
        }
        holdings
    }

    /// The sealed index of a segment of this start, also of another core's.
    fn sealed_here(&self, stream: StreamId, file: SegmentFile) -> Option<Arc<SealedIndex>> {
        if let Some(Holding::Sealed(index)) = self.adopted.get(&(stream, file)) {
            return Some(Arc::clone(index));
        }
        self.sealed
            .iter()
            .find(|index| index.file() == file)
            .cloned()
    }

    /// Takes note of what other cores' segments hold of a stream that came from there.
    pub(crate) fn adopt(&mut self, stream: StreamId, holdings: Vec<Holding>) {
        let others = holdings
            .into_iter()
            .filter(|holding| holding.file().log != self.log);
        for holding in others {
            self.adopted.insert((stream, holding.file()), holding);
        }
    }
}
