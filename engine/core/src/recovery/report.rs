//! What recovery found and did, for people and for tests; and why it refuses.
//!
//! # Not here
//! - How long it took: the driver, which has the clock.

use super::cases::Contradiction;
use crate::disk::{DiskError, SegmentFile};
use crate::index::{IndexDamage, Misfit};
use crate::segment::{GroupDamage, HeaderDamage};
use nova_model::{Checksum, GroupNumber, LogId, StarId, StreamId, StreamName};
use std::fmt;

/// Bytes of a segment that cannot be read, and whose records they may have held.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DamagedRange {
    /// The file.
    pub file: SegmentFile,
    /// Where the damage begins.
    pub offset: u64,
    /// Its length in bytes.
    pub length: u64,
    /// Streams that have or may have records in it, as far as that can be told.
    pub streams: Vec<StreamId>,
    /// Their names, as far as known.
    pub names: Vec<StreamName>,
}

/// What recovery found and did.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RecoveryReport {
    /// The log.
    pub log: LogId,
    /// Segments that hold groups.
    pub segments: usize,
    /// Groups that were read and count.
    pub groups: u64,
    /// Bytes that those groups take.
    pub kept_bytes: u64,
    /// Bytes of a torn last group that were cut off; what was behind them is not counted.
    pub cut_bytes: u64,
    /// Bytes read from segments.
    pub read_bytes: u64,
    /// Segments without groups that became spare files.
    pub recycled: usize,
    /// Indexes of sealed segments that were missing or damaged and were built again.
    pub rebuilt: Vec<(SegmentFile, RebuildReason)>,
    /// Segments whose header block is lost and whose index says all that is needed.
    pub headers_lost: Vec<SegmentFile>,
    /// Damaged ranges that were accepted, now or at an earlier start.
    pub damaged: Vec<DamagedRange>,
    /// Streams whose entries behind damage belong to nothing known any more.
    pub orphans: Vec<StreamId>,
}

/// Why an index was built again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RebuildReason {
    /// There was none.
    Missing,
    /// It could not be read.
    Damaged(IndexDamage),
    /// It says another end than the segment's seal.
    OtherEnd,
}

impl fmt::Display for RebuildReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RebuildReason::Missing => f.write_str("it was missing"),
            RebuildReason::Damaged(damage) => write!(f, "{damage}"),
            RebuildReason::OtherEnd => f.write_str("it ended elsewhere than the segment"),
        }
    }
}

impl fmt::Display for DamagedRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} from byte {} for {} bytes",
            self.file, self.offset, self.length
        )?;
        write!(f, ", streams: {}", Streams(self))
    }
}

/// The streams of a range for a sentence: names where known, ids elsewhere, at most ten.
struct Streams<'a>(&'a DamagedRange);

impl fmt::Display for Streams<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SHOWN_MAX: usize = 10;
        let DamagedRange { streams, names, .. } = self.0;
        if streams.is_empty() {
            return f.write_str("not known");
        }
        let named = names.iter().map(ToString::to_string);
        let unnamed = streams.iter().skip(names.len()).map(ToString::to_string);
        let shown: Vec<String> = named.chain(unnamed).take(SHOWN_MAX).collect();
        f.write_str(&shown.join(", "))?;
        match streams.len().saturating_sub(SHOWN_MAX) {
            0 => Ok(()),
            more => write!(f, " and {more} more"),
        }
    }
}

impl fmt::Display for RecoveryReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} has {} segments with data; {} groups ({} bytes) were read and count.",
            self.log, self.segments, self.groups, self.kept_bytes
        )?;
        if self.cut_bytes > 0 {
            write!(
                f,
                " A torn group of {} bytes at the end was cut off: nobody was answered from it.",
                self.cut_bytes
            )?;
        }
        if self.recycled > 0 {
            write!(
                f,
                " {} segments without data became spare files.",
                self.recycled
            )?;
        }
        for (file, reason) in &self.rebuilt {
            write!(f, " The index of {file} was built again: {reason}.")?;
        }
        for file in &self.headers_lost {
            write!(
                f,
                " The header of {file} is lost; its index says all that is needed."
            )?;
        }
        for range in &self.damaged {
            write!(f, " DAMAGED and answered with CORRUPT: {range}.")?;
        }
        if !self.orphans.is_empty() {
            write!(
                f,
                " LOST with the damage: what introduced {} streams; their later records here \
                 cannot be read.",
                self.orphans.len()
            )?;
        }
        Ok(())
    }
}

/// What makes a log unacceptable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Flaw {
    /// A group that was durable cannot be read.
    #[error("group {expected} was durable and cannot be read: {damage}")]
    Group {
        /// The number expected there.
        expected: u64,
        /// What is wrong with it.
        damage: GroupDamage,
    },
    /// The file ends inside a group that was durable.
    #[error("the file ends before group {expected}, which was durable")]
    Cut {
        /// The number expected there.
        expected: u64,
    },
    /// A whole group in a place where none or another must be.
    #[error("{found} is whole and does not follow {last}: {contradiction:?} differs")]
    Place {
        /// The group there.
        found: GroupNumber,
        /// The group before it.
        last: GroupNumber,
        /// What differs.
        contradiction: Contradiction,
    },
    /// A whole group that holds an entry which contradicts those before it.
    #[error("a group contradicts the groups before it: {0}")]
    Misfit(Misfit),
    /// The segment ends with another group than its seal says.
    #[error(
        "the segment ends with {found} ({found_checksum}), but it was sealed with {sealed} \
         ({sealed_checksum})"
    )]
    Seal {
        /// Its last group.
        found: GroupNumber,
        /// That group's checksum.
        found_checksum: Checksum,
        /// The last group when it was sealed.
        sealed: GroupNumber,
        /// That group's checksum.
        sealed_checksum: Checksum,
    },
    /// The header is lost, and groups are behind it.
    #[error("the segment's header is lost and groups are behind it")]
    Header(Option<HeaderDamage>),
    /// The segment was sealed with groups in it, and none is there.
    #[error("the segment was sealed with groups in it, and nothing of it can be read")]
    Emptied,
    /// The segment with the log's last groups is not there, and that one is never given up.
    #[error("the segment is not there, and the log ends in it with {last}")]
    Missing {
        /// The last group of the log, as the next segment's header says.
        last: GroupNumber,
    },
    /// A segment is not there, and nothing says that it was given up.
    #[error("the segment is not there, and it was not released")]
    Lost,
    /// Its index cannot be read.
    #[error("its index cannot be read: {0}")]
    Index(IndexDamage),
    /// A segment holds later groups than the log's end.
    #[error("the segment holds {found}, but the log ends with {end}")]
    BehindEnd {
        /// Its last group.
        found: GroupNumber,
        /// The last group of the log.
        end: GroupNumber,
    },
}

/// Why a log is not served.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RecoveryError {
    /// The disk failed.
    #[error(transparent)]
    Disk(#[from] DiskError),
    /// Something that no crash leaves behind.
    #[error(
        "{range_file} is damaged at byte {offset}: {flaw}. Streams that may have lost records: \
         {streams}. Restore the file from a copy, or start with --allow-corrupt to serve \
         everything else and answer CORRUPT there",
        range_file = .range.file,
        offset = .range.offset,
        streams = Streams(.range)
    )]
    Damaged {
        /// Where.
        range: Box<DamagedRange>,
        /// What.
        flaw: Flaw,
    },
    /// The segment belongs to another star.
    #[error(
        "{file} belongs to star {found}, not to {expected}: the data directory mixes two stars"
    )]
    OtherStar {
        /// The file.
        file: SegmentFile,
        /// The star in its header.
        found: StarId,
        /// The star of the directory.
        expected: StarId,
    },
    /// The segment was written by another version of the program.
    #[error("{file}: {damage}; start the version that wrote it")]
    Version {
        /// The file.
        file: SegmentFile,
        /// What its header says.
        damage: HeaderDamage,
    },
}
