//! Sizes, marks and the reading and writing of fixed fields; the drawings are in docs/FORMAT.md.
//!
//! # Invariants
//! - Numbers are little endian. Reserved bytes are written as zeros and not looked at.

use nova_model::limits::{BLOCK_BYTES, GROUP_BYTES_MAX};
use nova_model::{Generation, Incarnation, LogId, SegmentId, SegmentNumber, StarId};

/// First bytes of a segment.
pub const SEGMENT_MAGIC: [u8; 8] = *b"NOVA-SEG";
/// First bytes of a group.
pub const GROUP_MAGIC: [u8; 8] = *b"NOVA-GRP";
/// First bytes of the trailer of a sealed index.
pub const INDEX_MAGIC: [u8; 8] = *b"NOVA-IDX";
/// Version of all formats of the log.
pub const FORMAT_VERSION: u16 = 1;
/// Feature bit of everything in a segment that was rewritten, and of its index.
pub const FEATURE_REWRITTEN: u32 = 1;
/// Feature bits that this version understands. An unknown bit means bytes it would misread.
pub const FEATURES_KNOWN: u32 = FEATURE_REWRITTEN;
/// The segment header is one block.
pub const SEGMENT_HEADER_BYTES: usize = BLOCK_BYTES;
/// Length of a group's header.
pub const GROUP_HEADER_BYTES: usize = 128;
/// Encoded length of a segment id.
pub(crate) const SEGMENT_ID_BYTES: usize = 40;

const _: () = {
    assert!(GROUP_HEADER_BYTES < BLOCK_BYTES);
    // Lengths of groups and entries are 32 bits.
    assert!(GROUP_BYTES_MAX <= u32::MAX as usize);
};

/// The feature bits of what belongs to a segment.
pub(crate) fn features_of(segment: &SegmentId) -> u32 {
    match segment.generation {
        Generation(0) => 0,
        _ => FEATURE_REWRITTEN,
    }
}

/// `bytes` rounded up to whole blocks.
pub const fn blocks(bytes: usize) -> usize {
    bytes.next_multiple_of(BLOCK_BYTES)
}

/// Writes fixed fields one after the other.
pub(crate) struct FieldWriter<'a> {
    bytes: &'a mut [u8],
    at: usize,
}

impl<'a> FieldWriter<'a> {
    /// Starts at the beginning of `bytes`, which the caller made long enough.
    pub(crate) fn new(bytes: &'a mut [u8]) -> FieldWriter<'a> {
        FieldWriter { bytes, at: 0 }
    }

    /// Raw bytes.
    pub(crate) fn raw(&mut self, value: &[u8]) -> &mut Self {
        self.bytes[self.at..self.at + value.len()].copy_from_slice(value);
        self.at += value.len();
        self
    }

    /// One byte.
    pub(crate) fn u8(&mut self, value: u8) -> &mut Self {
        self.raw(&[value])
    }

    /// 16 bits.
    pub(crate) fn u16(&mut self, value: u16) -> &mut Self {
        self.raw(&value.to_le_bytes())
    }

    /// 32 bits.
    pub(crate) fn u32(&mut self, value: u32) -> &mut Self {
        self.raw(&value.to_le_bytes())
    }

    /// 64 bits.
    pub(crate) fn u64(&mut self, value: u64) -> &mut Self {
        self.raw(&value.to_le_bytes())
    }

    /// 128 bits.
    pub(crate) fn u128(&mut self, value: u128) -> &mut Self {
        self.raw(&value.to_le_bytes())
    }

    /// Leaves `count` bytes as they are: reserved ones.
    pub(crate) fn skip(&mut self, count: usize) -> &mut Self {
        self.at += count;
        self
    }

    /// A segment id: star, log, generation, 4 reserved bytes, incarnation, number.
    pub(crate) fn segment_id(&mut self, id: &SegmentId) -> &mut Self {
        self.u128(id.star.0)
            .u16(id.log.0)
            .u16(id.generation.0)
            .skip(4);
        self.u64(id.incarnation.0).u64(id.number.0)
    }
}

/// Reads fixed fields one after the other.
pub(crate) struct FieldReader<'a> {
    bytes: &'a [u8],
}

impl<'a> FieldReader<'a> {
    /// Starts at the beginning of `bytes`.
    ///
    /// # Panics
    /// Each read does when the bytes are used up: the caller compared lengths before.
    pub(crate) fn new(bytes: &'a [u8]) -> FieldReader<'a> {
        FieldReader { bytes }
    }

    /// Raw bytes.
    pub(crate) fn raw<const N: usize>(&mut self) -> [u8; N] {
        let (value, rest) = self
            .bytes
            .split_first_chunk()
            .expect("the length was checked");
        self.bytes = rest;
        *value
    }

    /// One byte.
    pub(crate) fn u8(&mut self) -> u8 {
        self.raw::<1>()[0]
    }

    /// 16 bits.
    pub(crate) fn u16(&mut self) -> u16 {
        u16::from_le_bytes(self.raw())
    }

    /// 32 bits.
    pub(crate) fn u32(&mut self) -> u32 {
        u32::from_le_bytes(self.raw())
    }

    /// 64 bits.
    pub(crate) fn u64(&mut self) -> u64 {
        u64::from_le_bytes(self.raw())
    }

    /// 128 bits.
    pub(crate) fn u128(&mut self) -> u128 {
        u128::from_le_bytes(self.raw())
    }

    /// Passes over reserved bytes.
    pub(crate) fn skip(&mut self, count: usize) -> &mut Self {
        self.bytes = &self.bytes[count..];
        self
    }

    /// A segment id.
    pub(crate) fn segment_id(&mut self) -> SegmentId {
        let star = StarId(self.u128());
        let log = LogId(self.u16());
        let generation = Generation(self.u16());
        self.skip(4);
        SegmentId {
            star,
            log,
            generation,
            incarnation: Incarnation(self.u64()),
            number: SegmentNumber(self.u64()),
        }
    }
}
