//! The one checksum of nova: CRC-32 (IEEE 802.3), as computed by `crc32fast`.
//!
//! It is computed by the producer over each encoded batch, checked by the star on arrival, stored,
//! checked on read, and checked again by the reader; a second one covers each commit group as a
//! whole, and each control frame. It finds damage, not forgery.

use rkyv::{Archive, Deserialize, Serialize};
use std::fmt;

/// A CRC-32 value.
#[derive(Archive, Serialize, Deserialize, Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Checksum(pub u32);

impl Checksum {
    /// Checksum of `bytes`.
    pub fn of(bytes: &[u8]) -> Checksum {
        Checksum(crc32fast::hash(bytes))
    }
}

impl fmt::Display for Checksum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:08x}", self.0)
    }
}

/// Computes a checksum over several pieces, as if they were one.
#[derive(Debug, Clone, Default)]
pub struct ChecksumBuilder(crc32fast::Hasher);

impl ChecksumBuilder {
    /// Starts with nothing.
    pub fn new() -> ChecksumBuilder {
        ChecksumBuilder::default()
    }

    /// Adds the next piece.
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// Adds a piece whose checksum is known already, without reading it: `length` bytes.
    pub fn append_known(&mut self, checksum: Checksum, length: u64) {
        self.0
            .combine(&crc32fast::Hasher::new_with_initial_len(checksum.0, length));
    }

    /// The checksum of all pieces so far.
    pub fn finish(self) -> Checksum {
        Checksum(self.0.finalize())
    }
}
