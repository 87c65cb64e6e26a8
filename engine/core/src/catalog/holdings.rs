//! Where the records of a stream lie that moves to another core within a start.
//!
//! The sealed segments of a star are known to every core: those of earlier starts from the
//! beginning, those of this one once their index is stored. What is not sealed yet is known to the
//! core that writes it alone, so a stream that moves takes that part of the index along; the part
//! is dropped when the sealed index comes.
//!
//! # Invariants
//! - A part is final: a stream that comes back gets a new segment there.

use super::indexes::{IndexRef, Indexes};
use crate::disk::SegmentFile;
use crate::index::{ActiveIndex, SealedIndex};
use nova_model::ids::StreamId;
use nova_model::names::StreamName;
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
    /// What the segments of this start hold of a stream, from the newest back: the other core may
    /// not have heard yet that they are sealed.
    pub(crate) fn holdings(&self, stream: StreamId, newest: Option<SegmentFile>) -> Vec<Holding> {
        let mut holdings = Vec::new();
        let mut at = newest;
        while let Some(file) = at {
            let Some(index) = self.index_of(stream, file) else {
                break;
            };
            let holding = match index {
                IndexRef::Active(index) => Holding::Part(Box::new(index.only(stream))),
                IndexRef::Sealed(_) => match self.sealed_in_this_start(stream, file) {
                    Some(index) => Holding::Sealed(index),
                    None => break,
                },
            };
            at = index.previous(stream).ok().flatten();
            holdings.push(holding);
        }
        holdings
    }

    /// The sealed index of a segment of this start, of any core.
    fn sealed_in_this_start(
        &self,
        stream: StreamId,
        file: SegmentFile,
    ) -> Option<Arc<SealedIndex>> {
        if let Some(Holding::Sealed(index)) = self.adopted.get(&(stream, file)) {
            return Some(Arc::clone(index));
        }
        let log = self.sealed.get(&file.log)?;
        log.iter().find(|index| index.file() == file).cloned()
    }

    /// Takes note of what other cores' segments hold of a stream that came from there, unless the
    /// sealed index of such a segment has come before.
    pub(crate) fn adopt(&mut self, stream: StreamId, holdings: Vec<Holding>) {
        for holding in holdings {
            let file = holding.file();
            if file.log != self.log && !self.is_sealed(file) {
                self.adopted.insert((stream, file), holding);
            }
        }
    }

    /// Whether it is known where records of a stream lie in a segment.
    pub(crate) fn knows(&self, stream: StreamId, file: SegmentFile) -> bool {
        self.index_of(stream, file).is_some()
    }

    /// Another core has sealed a segment: what was known of parts of it is in its index.
    pub(crate) fn share(&mut self, index: Arc<SealedIndex>) {
        let file = index.file();
        self.adopted.retain(|(_, part_of), _| *part_of != file);
        self.keep_sealed(index);
    }

    /// Whether the sealed index of a segment of this start is known.
    fn is_sealed(&self, file: SegmentFile) -> bool {
        let log = self.sealed.get(&file.log);
        log.is_some_and(|log| log.iter().any(|index| index.file() == file))
    }

    /// Whether an index that is not sealed yet, so that no other core knows it, names a stream for
    /// which `is_meant` holds.
    pub(crate) fn has_unshared(&self, is_meant: impl Fn(&StreamName) -> bool) -> bool {
        let mut indexes = self.in_memory();
        indexes.any(|index| index.names().any(&is_meant))
    }

    /// Whether all segments of this log before the one being written are sealed.
    pub(crate) fn is_all_stored(&self) -> bool {
        self.storing.is_empty()
    }
}
