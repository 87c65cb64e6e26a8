//! What a sequence of bodies comes to, in little memory, so that two can be compared.
//!
//! # Invariants
//! - Two digests are the same only if count, bytes and the running hash at every mark are.

use std::hash::{DefaultHasher, Hasher};

/// Records between two marks.
const MARK_RECORDS: u64 = 1_024;

/// The digest of a sequence of bodies.
#[derive(Debug, Clone, Default)]
pub(crate) struct Digest {
    hasher: DefaultHasher,
    records: u64,
    bytes: u64,
    /// The hash after each `MARK_RECORDS` records.
    marks: Vec<u64>,
}

impl Digest {
    /// Takes the next body in.
    pub(crate) fn note(&mut self, body: &[u8]) {
        self.hasher.write_usize(body.len());
        self.hasher.write(body);
        self.records += 1;
        self.bytes += body.len() as u64;
        if self.records.is_multiple_of(MARK_RECORDS) {
            self.marks.push(self.hasher.finish());
        }
    }

    /// How many bodies there were.
    pub(crate) fn records(&self) -> u64 {
        self.records
    }

    /// How many bytes they had.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Whether both are of the same bodies in the same order.
    pub(crate) fn is_same(&self, other: &Digest) -> bool {
        self.records == other.records
            && self.bytes == other.bytes
            && self.marks == other.marks
            && self.hasher.finish() == other.hasher.finish()
    }

    /// The last mark up to which both are the same.
    pub(crate) fn first_difference(&self, other: &Digest) -> u64 {
        let pairs = self.marks.iter().zip(&other.marks);
        MARK_RECORDS * pairs.take_while(|(a, b)| a == b).count() as u64
    }
}

#[cfg(test)]
#[path = "digest_tests.rs"]
mod tests;
