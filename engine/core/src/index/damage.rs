//! What can be wrong with the file of an index.

use crate::disk::Unreadable;
use nova_model::{Checksum, SegmentId};

/// Why a file is no index of its segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum IndexDamage {
    /// It is shorter than a trailer.
    #[error("the index has {0} bytes, less than its trailer")]
    Short(usize),
    /// Its trailer is damaged.
    #[error("the trailer of the index is damaged")]
    Trailer,
    /// It was written by another version.
    #[error("the index has format version {version} with features {features:#x}")]
    Version {
        /// Its format version.
        version: u16,
        /// Its feature bits.
        features: u32,
    },
    /// It belongs to another segment.
    #[error("the index belongs to {0}")]
    OtherSegment(SegmentId),
    /// The device does not give its bytes.
    #[error("the device does not give the bytes of the index")]
    Unreadable,
    /// Its bytes are not those that were written.
    #[error("the checksum of the index is {found}, its trailer says {declared}")]
    Checksum {
        /// What the trailer says.
        declared: Checksum,
        /// What the bytes have.
        found: Checksum,
    },
    /// Its checksum fits, but a row or a state says something impossible.
    #[error("the index contradicts itself")]
    Content,
}

impl From<Unreadable> for IndexDamage {
    fn from(Unreadable: Unreadable) -> IndexDamage {
        IndexDamage::Unreadable
    }
}
