//! A segment as bytes: its header, its commit groups, their entries.
//!
//! ```text
//!   | header | group | group | group | ... | never written, or remains of a recycled file |
//!   0        4096    every group begins on a block and is padded with zeros to the next one
//! ```
//! A group is the unit of a write and of durability: the entries of all streams that gathered
//! while the write before it was under way. [`GroupBuilder`] lays entries into one, and
//! [`decode_group`] reads one back. Payloads are shared in both directions, never copied, unless
//! they are so small that a copy is the cheaper way. Every byte is drawn in docs/FORMAT.md.
//!
//! # Invariants
//! - What [`decode_group`] returns has the segment's own id, a matching checksum over header and
//!   entries, and only entries that obey the limits. Nothing in damaged bytes makes it panic, or
//!   allocate more than a small multiple of the bytes that are there.
//! - A segment gets its groups from one incarnation only. Its length is sealed by the header of
//!   its successor: [`SegmentHeader::predecessor`].
//!
//! # Not here
//! - Which groups of a damaged log count: [`crate::recovery`].
//! - Where a record lies: [`crate::index`].

mod entry_codec;
mod group;
mod header;
mod layout;

pub use entry_codec::{BATCH_HEADER_BYTES, ENTRY_HEADER_BYTES, EntryDamage, batch_entry_bytes};
pub(crate) use group::{Checks, decode_group_checked, entry_outlines};
pub use group::{
    Group, GroupBuilder, GroupContext, GroupDamage, GroupHeader, SealedGroup, decode_group,
    decode_group_of,
};
pub use header::{HeaderDamage, LogEnd, Predecessor, Rewritten, SegmentHeader};
pub use layout::{
    FEATURE_REWRITTEN, FEATURES_KNOWN, FORMAT_VERSION, GROUP_HEADER_BYTES, GROUP_MAGIC,
    INDEX_MAGIC, SEGMENT_HEADER_BYTES, SEGMENT_MAGIC, blocks,
};
pub(crate) use layout::{FieldReader, FieldWriter, features_of};

#[cfg(test)]
#[path = "golden_tests.rs"]
mod golden_tests;
#[cfg(test)]
#[path = "samples_tests.rs"]
pub(crate) mod samples;
