//! Reads that several readers wait for: who comes to a place that another reader is still to be
//! sent joins its read.
//!
//! ```text
//!   reader a   |  read, read, read, ...   not handed out yet
//!   reader b        |  read, read, ...    the same groups: of the same stream, or of another one
//!                                         with records in them
//! ```
//! Groups hold records of many streams and are read whole. So those who catch up side by side would
//! read the same bytes once for each.
//!
//! # Invariants
//! - Bytes are at hand as long as a reader has them before it; nothing is kept for who may come.
//! - What was begun or joined ahead of a need counts once, however many share it, for as long as
//!   anybody does.
//! - What failed is told to those who waited for it, and read again for who comes later.

use crate::disk::{DiskResult, OpToken, SegmentFile};
use crate::event::ReaderKey;
use bytes::Bytes;
use nova_model::Generation;
use nova_model::limits::READ_AHEAD_BYTES_MAX;
use std::collections::BTreeMap;

/// A stretch of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    pub(crate) file: SegmentFile,
    pub(crate) generation: Generation,
    pub(crate) offset: u64,
    /// In bytes.
    pub(crate) length: usize,
}

/// All reads that readers have before them.
#[derive(Default)]
pub(crate) struct SharedReads {
    reads: BTreeMap<Place, Shared>,
    /// Bytes of those that somebody has taken part in ahead of a need.
    ahead_bytes: usize,
}

struct Shared {
    token: OpToken,
    /// Readers that have it before them.
    readers: usize,
    /// Those of them that wait for it.
    waiting: Vec<ReaderKey>,
    /// Whether it counts as ahead.
    is_ahead: bool,
    bytes: Option<Bytes>,
}

/// A reader, and whether it has others at hand still.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Taker {
    pub(crate) key: ReaderKey,
    pub(crate) is_ahead: bool,
}

impl SharedReads {
    /// Whether a place may be read ahead of a need.
    pub(crate) fn has_room(&self, place: &Place) -> bool {
        let counts = self.reads.get(place).is_some_and(|shared| shared.is_ahead);
        counts || self.ahead_bytes + place.length <= READ_AHEAD_BYTES_MAX
    }

    /// A reader takes part in the read of a place, if there is one: its token, and what it brought
    /// if that has come.
    pub(crate) fn join(&mut self, place: &Place, by: Taker) -> Option<(OpToken, Option<Bytes>)> {
        let shared = self.reads.get_mut(place)?;
        shared.readers += 1;
        if by.is_ahead && !std::mem::replace(&mut shared.is_ahead, true) {
            self.ahead_bytes += place.length;
        }
        if shared.bytes.is_none() {
            shared.waiting.push(by.key);
        }
        Some((shared.token, shared.bytes.clone()))
    }

    /// A reader has begun the read of a place that nobody has before it.
    pub(crate) fn begin(&mut self, place: Place, token: OpToken, by: Taker) {
        if by.is_ahead {
            self.ahead_bytes += place.length;
        }
        let shared = Shared {
            token,
            readers: 1,
            waiting: vec![by.key],
            is_ahead: by.is_ahead,
            bytes: None,
        };
        self.reads.insert(place, shared);
    }

    /// A read has come to its end: who has waited for it.
    pub(crate) fn end(
        &mut self,
        place: &Place,
        token: OpToken,
        result: &DiskResult,
    ) -> Vec<ReaderKey> {
        // It may be of readers that are gone.
        let Some(shared) = self.reads.get_mut(place).filter(|read| read.token == token) else {
            return Vec::new();
        };
        let waiting = std::mem::take(&mut shared.waiting);
        match result {
            DiskResult::Read(bytes) => shared.bytes = Some(bytes.clone()),
            _ => self.remove(place),
        }
        waiting
    }

    /// A reader has taken what a read brought, or does not need it any more.
    pub(crate) fn leave(&mut self, place: &Place, token: OpToken, key: ReaderKey) {
        let Some(shared) = self.reads.get_mut(place).filter(|read| read.token == token) else {
            return;
        };
        shared.readers -= 1;
        shared.waiting.retain(|waiting| *waiting != key);
        if shared.readers == 0 {
            self.remove(place);
        }
    }

    fn remove(&mut self, place: &Place) {
        let removed = self.reads.remove(place);
        if removed.is_some_and(|shared| shared.is_ahead) {
            self.ahead_bytes -= place.length;
        }
    }
}

#[cfg(test)]
#[path = "shared_tests.rs"]
mod tests;
