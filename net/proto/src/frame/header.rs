//! The 16 bytes before every frame: what it is, how long its two parts are, and a checksum.
//!
//! # Invariants
//! - A decoded header has this version, no flags, and lengths within the limits of its kind.
//! - The checksum covers the header before it and the head. A batch is covered by its own, which
//!   stands in the head: no byte is summed twice.

use super::Kind;
use crate::error::ProtocolError;
use nova_model::checksum::{Checksum, ChecksumBuilder};

/// Length of a header.
pub(crate) const HEADER_BYTES: usize = 16;
/// The version of all frames.
pub(crate) const VERSION: u8 = 1;
/// Where the checksum is.
const CHECKSUM_AT: usize = 12;

/// A header as it arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Header {
    /// What the frame is.
    pub(crate) kind: Kind,
    /// Length of the part that the checksum covers.
    pub(crate) head_bytes: usize,
    /// Length of the batch after it.
    pub(crate) batch_bytes: usize,
    raw: [u8; HEADER_BYTES],
}

impl Header {
    /// The header for a frame of `kind` with this head and a batch of `batch_bytes`.
    ///
    /// # Panics
    /// If a length is outside the limits of the kind: own frames are always legal.
    pub(crate) fn encode(kind: Kind, head: &[u8], batch_bytes: usize) -> [u8; HEADER_BYTES] {
        let head_range = kind.head_bytes();
        let batch_range = kind.batch_bytes();
        assert!(head_range.contains(&head.len()), "head of {kind}");
        assert!(batch_range.contains(&batch_bytes), "batch of {kind}");
        let mut raw = [0; HEADER_BYTES];
        raw[0] = kind as u8;
        raw[1] = VERSION;
        raw[4..8].copy_from_slice(&(head.len() as u32).to_le_bytes());
        raw[8..12].copy_from_slice(&(batch_bytes as u32).to_le_bytes());
        let checksum = checksum(&raw, head);
        raw[CHECKSUM_AT..].copy_from_slice(&checksum.0.to_le_bytes());
        raw
    }

    /// Reads a header. The lengths are within their limits when this succeeds.
    pub(crate) fn decode(raw: [u8; HEADER_BYTES]) -> Result<Header, ProtocolError> {
        if raw[1] != VERSION {
            return Err(ProtocolError::Version(raw[1]));
        }
        let kind = Kind::from_byte(raw[0]).ok_or(ProtocolError::Kind(raw[0]))?;
        let flags = u16::from_le_bytes([raw[2], raw[3]]);
        if flags != 0 {
            return Err(ProtocolError::Flags { kind, flags });
        }
        let head_bytes = length(kind, kind.head_bytes(), [raw[4], raw[5], raw[6], raw[7]])?;
        let batch_bytes = length(kind, kind.batch_bytes(), [raw[8], raw[9], raw[10], raw[11]])?;
        Ok(Header {
            kind,
            head_bytes,
            batch_bytes,
            raw,
        })
    }

    /// Compares the checksum of header and head with the declared one.
    pub(crate) fn check(&self, head: &[u8]) -> Result<(), ProtocolError> {
        let declared = Checksum(u32::from_le_bytes([
            self.raw[12],
            self.raw[13],
            self.raw[14],
            self.raw[15],
        ]));
        let found = checksum(&self.raw, head);
        if found == declared {
            return Ok(());
        }
        Err(ProtocolError::Checksum {
            kind: self.kind,
            declared,
            found,
        })
    }
}

fn checksum(raw: &[u8; HEADER_BYTES], head: &[u8]) -> Checksum {
    let mut builder = ChecksumBuilder::new();
    builder.update(&raw[..CHECKSUM_AT]);
    builder.update(head);
    builder.finish()
}

fn length(
    kind: Kind,
    range: std::ops::RangeInclusive<usize>,
    raw: [u8; 4],
) -> Result<usize, ProtocolError> {
    let declared = u32::from_le_bytes(raw);
    if range.contains(&(declared as usize)) {
        return Ok(declared as usize);
    }
    Err(ProtocolError::Length {
        kind,
        declared,
        min: *range.start() as u32,
        max: *range.end() as u32,
    })
}
