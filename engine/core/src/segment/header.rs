//! The header block of a segment, and with it the seal of the segment before.
//!
//! A segment is sealed by what its successor's header says of it: its id, how many of its bytes
//! count, its last group. The header is durable before the first group behind it is written, and
//! before a new incarnation answers anything. So the end of every segment but the last is known
//! without looking at it, and what lands there later is not part of it.
//!
//! # Invariants
//! - A header that decodes has a checksum over its whole block, so none is half written.
//! - Predecessor and stand-in are named by their original ids: no header changes its meaning when
//!   another segment is rewritten.
//!
//! # Not here
//! - Whether the predecessor's end agrees with its bytes: [`crate::recovery`].

use super::layout::{FieldReader, FieldWriter, SEGMENT_ID_BYTES, features_of};
use super::{FEATURES_KNOWN, FORMAT_VERSION, SEGMENT_HEADER_BYTES, SEGMENT_MAGIC};
use bytes::Bytes;
use nova_model::limits::{BLOCK_BYTES, SEGMENT_BYTES_MAX};
use nova_model::{Checksum, Generation, GroupNumber, SegmentId, SegmentNumber};

/// The last segment before this one that has groups, and where it ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Predecessor {
    /// Its id.
    pub id: SegmentId,
    /// Bytes of it that count, its header among them; a multiple of the block.
    pub length: u64,
    /// Number of its last group.
    pub last_group: GroupNumber,
    /// Checksum of its last group.
    pub last_checksum: Checksum,
}

/// What the header of a segment that was rewritten says besides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rewritten {
    /// What the segment stands for in its log: where it ended as it was written first. The segment
    /// behind it says the same.
    pub stands_for: Predecessor,
    /// Bytes of it that count now.
    pub length: u64,
    /// Number of its last group; they count from 1 in each generation.
    pub last_group: GroupNumber,
    /// Checksum of its last group.
    pub last_checksum: Checksum,
}

/// Where a log ends: what the next segment's header says of the one before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LogEnd {
    /// The last segment that has groups; none in a log without groups.
    pub segment: Option<SegmentId>,
    /// Bytes of it that count, its header among them.
    pub length: u64,
    /// Number of its last group; 0 if none.
    pub last_group: GroupNumber,
    /// Checksum of its last group; 0 if none.
    pub last_checksum: Checksum,
}

impl LogEnd {
    /// What the next segment's header says.
    pub fn predecessor(&self) -> Option<Predecessor> {
        self.segment.map(|id| Predecessor {
            id,
            length: self.length,
            last_group: self.last_group,
            last_checksum: self.last_checksum,
        })
    }
}

impl From<Option<Predecessor>> for LogEnd {
    fn from(predecessor: Option<Predecessor>) -> LogEnd {
        predecessor.map_or_else(LogEnd::default, |before| LogEnd {
            segment: Some(before.id),
            length: before.length,
            last_group: before.last_group,
            last_checksum: before.last_checksum,
        })
    }
}

/// The first block of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SegmentHeader {
    /// Who wrote it, and which segment it is.
    pub id: SegmentId,
    /// Size of the file when it was made, in bytes.
    pub file_length: u64,
    /// Whether it never gets a group: it seals the last segment of an adopted log.
    pub closed: bool,
    /// The segment before it with its end; none at the beginning of a log.
    pub predecessor: Option<Predecessor>,
    /// What it stands for and where it ends, if it was rewritten.
    pub rewritten: Option<Rewritten>,
}

/// Why a block is no segment header.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum HeaderDamage {
    /// There is less than a block.
    #[error("the file has {0} bytes, less than a segment header")]
    Short(usize),
    /// It begins with something else.
    #[error("the block does not begin like a segment header")]
    Magic,
    /// Its bytes are not those that were written.
    #[error("the segment header's checksum is {found}, its bytes say {declared}")]
    Checksum {
        /// What its field says.
        declared: Checksum,
        /// What its bytes have.
        found: Checksum,
    },
    /// It was written by another version.
    #[error(
        "the segment has format version {version} with features {features:#x}, which this \
             program does not read"
    )]
    Version {
        /// Its format version.
        version: u16,
        /// Its feature bits.
        features: u32,
    },
    /// A field has a value that is never written.
    #[error("the segment header's field '{0}' is out of its bounds")]
    Field(&'static str),
}

const CHECKSUM_END: usize = 12;
const FLAG_CLOSED: u8 = 1;
const FLAG_PREDECESSOR: u8 = 2;
const FLAG_REWRITTEN: u8 = 4;

impl SegmentHeader {
    /// The end that this header names: where a log ends that has no group after it.
    pub fn end_before(&self) -> LogEnd {
        LogEnd::from(self.predecessor)
    }

    /// The seal that a segment carries itself: where its groups end, if it was rewritten.
    pub fn own_seal(&self) -> Option<Predecessor> {
        self.rewritten.map(|now| Predecessor {
            id: self.id,
            length: now.length,
            last_group: now.last_group,
            last_checksum: now.last_checksum,
        })
    }

    /// Whether a seal of the segment behind it is one of this segment.
    pub fn is_sealed_by(&self, seal: &Predecessor) -> bool {
        match self.rewritten {
            Some(now) => now.stands_for == *seal,
            None => self.id == seal.id,
        }
    }

    /// The header as one block.
    pub fn encode(&self) -> Bytes {
        let mut block = vec![0; SEGMENT_HEADER_BYTES];
        let mut flags = if self.closed { FLAG_CLOSED } else { 0 };
        if self.predecessor.is_some() {
            flags |= FLAG_PREDECESSOR;
        }
        if self.rewritten.is_some() {
            flags |= FLAG_REWRITTEN;
        }
        let mut fields = FieldWriter::new(&mut block);
        fields.raw(&SEGMENT_MAGIC).skip(4);
        fields
            .u16(FORMAT_VERSION)
            .u8(flags)
            .skip(1)
            .u32(features_of(&self.id));
        fields.u32(BLOCK_BYTES as u32).u64(self.file_length);
        fields.segment_id(&self.id);
        match &self.predecessor {
            None => fields.skip(SEGMENT_ID_BYTES + 20),
            Some(before) => fields
                .segment_id(&before.id)
                .u64(before.length)
                .u64(before.last_group.0)
                .u32(before.last_checksum.0),
        };
        if let Some(now) = &self.rewritten {
            let stands_for = &now.stands_for;
            fields
                .u64(stands_for.length)
                .u64(stands_for.last_group.0)
                .u32(stands_for.last_checksum.0)
                .u64(now.length)
                .u64(now.last_group.0)
                .u32(now.last_checksum.0);
        }
        let checksum = Checksum::of(&block[CHECKSUM_END..]);
        block[SEGMENT_MAGIC.len()..CHECKSUM_END].copy_from_slice(&checksum.0.to_le_bytes());
        Bytes::from(block)
    }

    /// Reads a header from the first block of a segment; none if all of it is zero, or nothing is
    /// there.
    pub fn decode(block: &[u8]) -> Result<Option<SegmentHeader>, HeaderDamage> {
        let block = &block[..block.len().min(SEGMENT_HEADER_BYTES)];
        if block.iter().all(|&byte| byte == 0) {
            return Ok(None);
        }
        if block.len() < SEGMENT_HEADER_BYTES {
            return Err(HeaderDamage::Short(block.len()));
        }
        let mut fields = FieldReader::new(block);
        if fields.raw() != SEGMENT_MAGIC {
            return Err(HeaderDamage::Magic);
        }
        let declared = Checksum(fields.u32());
        let found = Checksum::of(&block[CHECKSUM_END..]);
        if declared != found {
            return Err(HeaderDamage::Checksum { declared, found });
        }
        decode_fields(fields).map(Some)
    }
}

fn decode_fields(mut fields: FieldReader<'_>) -> Result<SegmentHeader, HeaderDamage> {
    let version = fields.u16();
    let flags = fields.u8();
    let features = fields.skip(1).u32();
    if version != FORMAT_VERSION || features & !FEATURES_KNOWN != 0 {
        return Err(HeaderDamage::Version { version, features });
    }
    if flags & !(FLAG_CLOSED | FLAG_PREDECESSOR | FLAG_REWRITTEN) != 0 {
        return Err(HeaderDamage::Field("flags"));
    }
    if fields.u32() != BLOCK_BYTES as u32 {
        return Err(HeaderDamage::Field("block"));
    }
    let file_length = fields.u64();
    if file_length < BLOCK_BYTES as u64 || file_length > SEGMENT_BYTES_MAX {
        return Err(HeaderDamage::Field("file length"));
    }
    let id = fields.segment_id();
    if !is_number(id.number) {
        return Err(HeaderDamage::Field("number"));
    }
    let before = Predecessor {
        id: fields.segment_id(),
        length: fields.u64(),
        last_group: GroupNumber(fields.u64()),
        last_checksum: Checksum(fields.u32()),
    };
    let predecessor = (flags & FLAG_PREDECESSOR != 0).then_some(before);
    if predecessor.is_some_and(|before| !is_plausible(&before)) {
        return Err(HeaderDamage::Field("predecessor"));
    }
    let rewritten = (flags & FLAG_REWRITTEN != 0).then(|| decode_rewritten(id, &mut fields));
    let is_plausible_now = rewritten.is_none_or(|now| is_plausible_rewritten(&now));
    if rewritten.is_some() != (id.generation > Generation(0)) || !is_plausible_now {
        return Err(HeaderDamage::Field("generation"));
    }
    Ok(SegmentHeader {
        id,
        file_length,
        closed: flags & FLAG_CLOSED != 0,
        predecessor,
        rewritten,
    })
}

fn decode_rewritten(id: SegmentId, fields: &mut FieldReader<'_>) -> Rewritten {
    Rewritten {
        stands_for: Predecessor {
            id: id.original(),
            length: fields.u64(),
            last_group: GroupNumber(fields.u64()),
            last_checksum: Checksum(fields.u32()),
        },
        length: fields.u64(),
        last_group: GroupNumber(fields.u64()),
        last_checksum: Checksum(fields.u32()),
    }
}

fn is_plausible_rewritten(now: &Rewritten) -> bool {
    let content = Predecessor {
        id: now.stands_for.id,
        length: now.length,
        last_group: now.last_group,
        last_checksum: now.last_checksum,
    };
    is_plausible(&now.stands_for) && is_plausible(&content)
}

fn is_plausible(before: &Predecessor) -> bool {
    let block = BLOCK_BYTES as u64;
    before.length.is_multiple_of(block)
        && before.length > block
        && before.length <= SEGMENT_BYTES_MAX
        && is_number(before.id.number)
        && (1..u64::MAX).contains(&before.last_group.0)
}

/// Whether a segment can have this number: it has one behind it.
fn is_number(number: SegmentNumber) -> bool {
    (1..u64::MAX).contains(&number.0)
}

#[cfg(test)]
#[path = "header_tests.rs"]
mod tests;
