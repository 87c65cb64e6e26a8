//! The first look at a log: which segments there are, what their headers say, which seal which.
//!
//! Every segment that no header seals is locked before its header counts: a write of an earlier
//! process can land until the lock is had, and never after.
//!
//! # Invariants
//! - A header in a survey belongs to the star, the log, the file's number and its generation.
//!
//! # Not here
//! - What is behind the headers: the parent module and `scan`.

use super::report::RecoveryError;
use crate::disk::{BootDisk, ListedSegment, LogListing, SegmentFile};
use crate::planted::{PlantedBug, PlantedBugs};
use crate::segment::{HeaderDamage, Predecessor, SegmentHeader};
use nova_model::limits::BLOCK_BYTES;
use nova_model::{Generation, Incarnation, LogId, SegmentId, SegmentNumber, StarId};
use std::collections::{BTreeMap, BTreeSet};

/// What the first block of a segment says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::large_enum_variant, reason = "nearly all are headers")]
pub(super) enum Head {
    /// It is this segment's header.
    Own(SegmentHeader),
    /// It is none: zeros, the header of a recycled file, or damaged.
    Lost(Option<HeaderDamage>),
}

/// A segment's file at the first look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Surveyed {
    pub(super) file: SegmentFile,
    /// The generation that counts.
    pub(super) generation: Generation,
    pub(super) size: u64,
    pub(super) has_index: bool,
    /// Whether it was locked, because nothing sealed it.
    pub(super) is_locked: bool,
    pub(super) head: Head,
}

/// All of a log.
#[derive(Debug, Default)]
pub(super) struct Survey {
    pub(super) segments: Vec<Surveyed>,
    pub(super) seals: BTreeMap<SegmentNumber, Predecessor>,
}

impl Survey {
    /// The newest segment with a header.
    pub(super) fn newest(&self) -> Option<&SegmentHeader> {
        self.segments
            .iter()
            .rev()
            .find_map(|segment| match &segment.head {
                Head::Own(header) => Some(header),
                Head::Lost(_) => None,
            })
    }

    /// Of each segment with a header: the number of the one with groups before it.
    pub(super) fn predecessors(&self) -> BTreeMap<SegmentNumber, Option<SegmentNumber>> {
        let mut predecessors = BTreeMap::new();
        for segment in &self.segments {
            if let Head::Own(header) = &segment.head {
                let before = header.predecessor.map(|before| before.id.number);
                predecessors.insert(segment.file.number, before);
            }
        }
        predecessors
    }

    /// The number after all that are there.
    pub(super) fn next_number(&self) -> SegmentNumber {
        let last = self.segments.last().map(|segment| segment.file.number);
        last.unwrap_or_default().next()
    }
}

/// Looks, locks what is not sealed, and looks again.
pub(super) fn survey(
    disk: &mut dyn BootDisk,
    log: LogId,
    star: StarId,
    planted: PlantedBugs,
) -> Result<Survey, RecoveryError> {
    let listing = listed(disk, log, planted)?;
    let before = look(disk, log, star, &listing)?;
    let mut locked = BTreeSet::new();
    for segment in &before.segments {
        let closed = matches!(segment.head, Head::Own(SegmentHeader { closed: true, .. }));
        if !closed && !before.seals.contains_key(&segment.file.number) {
            disk.lock(segment.file)?;
            locked.insert(segment.file);
        }
    }
    let listing = listed(disk, log, planted)?;
    let mut survey = look(disk, log, star, &listing)?;
    for segment in &mut survey.segments {
        segment.is_locked = locked.contains(&segment.file);
    }
    Ok(survey)
}

/// What there is of a log, with one generation of each segment: the newest, which got its name when
/// it was whole.
fn listed(
    disk: &mut dyn BootDisk,
    log: LogId,
    planted: PlantedBugs,
) -> Result<LogListing, RecoveryError> {
    let mut listing = disk.list(log)?;
    let of_number = |a: &ListedSegment, b: &ListedSegment| a.number == b.number;
    let mut chosen = Vec::new();
    for generations in listing.segments.chunk_by(of_number) {
        let newest = match planted.has(PlantedBug::OlderGeneration) {
            true => generations.first(),
            false => generations.last(),
        };
        let newest = *newest.expect("a chunk is not empty");
        let ListedSegment {
            number, generation, ..
        } = newest;
        if generations.len() > 1 || generation > Generation(0) {
            disk.choose(SegmentFile { log, number }, generation)?;
        }
        chosen.push(newest);
    }
    listing.segments = chosen;
    Ok(listing)
}

fn look(
    disk: &mut dyn BootDisk,
    log: LogId,
    star: StarId,
    listing: &LogListing,
) -> Result<Survey, RecoveryError> {
    let mut survey = Survey::default();
    let mut latest = Incarnation::default();
    for &listed in &listing.segments {
        let ListedSegment {
            number,
            generation,
            size,
        } = listed;
        let file = SegmentFile { log, number };
        let head = match read_head(disk, file, generation, star)? {
            // A number is used again when no segment of that number got a group. Then a spare file
            // may still begin with its old header: starts only go up along a log.
            Head::Own(header) if header.id.incarnation < latest => Head::Lost(None),
            head => head,
        };
        if let Head::Own(header) = &head {
            latest = header.id.incarnation;
        }
        if let Head::Own(SegmentHeader {
            predecessor: Some(before),
            ..
        }) = head
        {
            survey.seals.insert(before.id.number, before);
        }
        survey.segments.push(Surveyed {
            file,
            generation,
            size,
            has_index: listing.indexes.binary_search(&(number, generation)).is_ok(),
            is_locked: false,
            head,
        });
    }
    Ok(survey)
}

fn read_head(
    disk: &mut dyn BootDisk,
    file: SegmentFile,
    generation: Generation,
    star: StarId,
) -> Result<Head, RecoveryError> {
    let block = disk.read(file, 0, BLOCK_BYTES)?;
    match SegmentHeader::decode(&block) {
        Ok(None) => Ok(Head::Lost(None)),
        Ok(Some(header)) if header.id.star != star => Err(RecoveryError::OtherStar {
            file,
            found: header.id.star,
            expected: star,
        }),
        Ok(Some(header)) => {
            let SegmentId { log, number, .. } = header.id;
            let is_own = SegmentFile { log, number } == file && header.id.generation == generation;
            Ok(match is_own {
                true => Head::Own(header),
                false => Head::Lost(None),
            })
        }
        Err(damage @ HeaderDamage::Version { .. }) => Err(RecoveryError::Version { file, damage }),
        Err(damage) => Ok(Head::Lost(Some(damage))),
    }
}
