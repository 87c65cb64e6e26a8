//! From the files of a log to where it ends and what is in it.
//!
//! ```text
//!   list, lock, headers  ->  sealed segments: open the index, build it again if it is lost
//!                        ->  the last segment: read it, cut a torn end, store its index
//!                        ->  segments without groups: spare files
//! ```
//! Only the last segment's data is read. Every older one was sealed by its successor's header, and
//! its index says all that a start needs. What is found is judged by one total table, [`cases`]:
//! a torn end is cut, and what no crash can leave behind is refused in words that name the file,
//! the place and the streams.
//!
//! # Invariants
//! - Nothing that was answered from is cut or skipped, unless the operator allowed it.
//! - A crash at any point of a recovery leaves files from which the next one gets the same result
//!   (docs/DURABILITY.md walks them).
//! - No segment of an earlier incarnation is written into. It is cut at its end, never extended.
//! - Of several generations of a segment the newest counts: it got its name when it was whole.
//!
//! # Not here
//! - The header of the new incarnation's first segment, which seals what was found here: the shard
//!   writes it before it answers anything.

pub mod cases;
mod damage;
mod gaps;
mod pieces;
mod report;
mod roles;
mod scan;
mod survey;

pub use gaps::reconcile;
pub use report::{DamagedRange, Flaw, RebuildReason, RecoveryError, RecoveryReport};

use crate::disk::{BootDisk, DiskFailure, SegmentFile};
use crate::index::{DamagedSpan, SealedIndex};
use crate::planted::{PlantedBug, PlantedBugs};
use crate::released::Released;
use crate::segment::{Checks, LogEnd, SegmentHeader};
use crate::state::StreamState;
use bytes::Bytes;
use nova_model::limits::BLOCK_BYTES;
use nova_model::{
    Generation, GroupNumber, Incarnation, LogId, SegmentId, SegmentNumber, StarId, StreamId,
};
use roles::Role;
use scan::{Ending, Scanned, Task, scan};
use std::collections::BTreeMap;
use std::sync::Arc;
use survey::{Head, Survey, Surveyed, survey};

/// How to recover.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RecoveryOptions {
    /// Skip what is damaged and keep the damage, instead of refusing.
    pub allow_corrupt: bool,
    /// The log gets no more groups: seal it with a closed segment of this incarnation, unless it
    /// has one.
    pub closing: Option<Incarnation>,
    /// Bugs of a simulation.
    pub planted: PlantedBugs,
}

/// A log as it was found.
#[derive(Debug)]
pub struct RecoveredLog {
    /// The log.
    pub log: LogId,
    /// Where it ends: what the next segment's header says.
    pub end: LogEnd,
    /// The number for the next segment.
    pub next_number: SegmentNumber,
    /// The segments that hold groups, by ascending number.
    pub indexes: Vec<Arc<SealedIndex>>,
    /// Of each segment whose header is there: the number of the segment with groups before it.
    pub predecessors: BTreeMap<SegmentNumber, Option<SegmentNumber>>,
    /// What was released of each log of the star; empty before [`reconcile`].
    pub released: BTreeMap<LogId, Released>,
    /// What cannot be read.
    pub damaged: Vec<DamagedRange>,
    /// What was found and done.
    pub report: RecoveryReport,
}

/// Recovers a log.
pub fn recover(
    disk: &mut impl BootDisk,
    log: LogId,
    star: StarId,
    options: RecoveryOptions,
) -> Result<RecoveredLog, RecoveryError> {
    let survey = survey(disk, log, star, options.planted)?;
    let mut recovery = Recovery {
        disk,
        options,
        indexes: Vec::new(),
        unstored: Vec::new(),
        without_groups: Vec::new(),
        report: RecoveryReport {
            log,
            ..RecoveryReport::default()
        },
    };
    for segment in &survey.segments {
        recovery.segment(&survey, segment)?;
    }
    recovery.store_rest()?;
    recovery.conclude(&survey, log, star)
}

struct Recovery<'a> {
    disk: &'a mut dyn BootDisk,
    options: RecoveryOptions,
    indexes: Vec<Arc<SealedIndex>>,
    /// Indexes that there was no space for.
    unstored: Vec<(SegmentFile, Bytes)>,
    /// With the header, where there is one.
    without_groups: Vec<(SegmentFile, Option<SegmentHeader>)>,
    report: RecoveryReport,
}

impl Recovery<'_> {
    fn segment(&mut self, survey: &Survey, segment: &Surveyed) -> Result<(), RecoveryError> {
        let file = segment.file;
        match self.role(survey, segment)? {
            Role::Indexed(index) => {
                let length = index.length();
                self.note_damage_of(&index)?;
                self.indexes.push(Arc::new(index));
                self.finish(segment, length)?;
            }
            Role::Read {
                id,
                before,
                ending,
                stands_for,
            } => {
                let scanned = self.read(segment, id, before, ending)?;
                self.take_scanned(segment, scanned, stands_for)?;
            }
            Role::WithoutGroups => {
                let header = match segment.head {
                    Head::Own(header) => Some(header),
                    Head::Lost(_) => None,
                };
                self.without_groups.push((file, header));
            }
            Role::Gone => self.report.damaged.push(whole_range(segment)),
        }
        Ok(())
    }

    fn read(
        &mut self,
        segment: &Surveyed,
        id: SegmentId,
        before: Option<LogEnd>,
        ending: Ending,
    ) -> Result<Scanned, RecoveryError> {
        let checks = match self.options.planted.has(PlantedBug::NoGroupChecksum) {
            true => Checks::NoChecksums,
            false => Checks::All,
        };
        let indexes = &self.indexes;
        let earlier = |stream| earlier_state(indexes, stream);
        let task = Task {
            file: segment.file,
            id,
            size: segment.size,
            before,
            ending,
            checks,
            allow_corrupt: self.options.allow_corrupt,
            earlier: &earlier,
        };
        scan(self.disk, task)
    }

    fn take_scanned(
        &mut self,
        segment: &Surveyed,
        scanned: Scanned,
        stands_for: Option<LogEnd>,
    ) -> Result<(), RecoveryError> {
        let file = segment.file;
        self.report.groups += scanned.groups;
        self.report.read_bytes += scanned.read_bytes;
        self.report.cut_bytes += scanned.torn_bytes;
        self.report.damaged.extend(scanned.damaged.iter().cloned());
        self.report.orphans.extend(scanned.orphans);
        if scanned.groups == 0 && scanned.damaged.is_empty() {
            let header = match segment.head {
                Head::Own(header) => Some(header),
                Head::Lost(_) => None,
            };
            self.without_groups.push((file, header));
            return Ok(());
        }
        self.report.kept_bytes += scanned.end.length - BLOCK_BYTES as u64;
        let stands_for = stands_for.unwrap_or(LogEnd {
            segment: Some(scanned.index.id().original()),
            ..scanned.end
        });
        let length = scanned.end.length;
        let bytes = scanned.index.seal_rewritten(&stands_for, length);
        let mapped = match self.disk.store_index(file, bytes.clone()) {
            // The ends that are cut may be all the space there is. Damage behind one is kept until
            // the index tells of it.
            Err(error) if error.failure == DiskFailure::NoSpace && scanned.damaged.is_empty() => {
                self.unstored.push((file, bytes.clone()));
                Arc::new(bytes)
            }
            stored => stored?,
        };
        let index = SealedIndex::open(file, mapped).map_err(|damage| RecoveryError::Damaged {
            range: Box::new(whole_range(segment)),
            flaw: Flaw::Index(damage),
        })?;
        self.indexes.push(Arc::new(index));
        self.finish(segment, length)
    }

    /// Stores the indexes for which there was no space before all segments were cut. What is in
    /// memory of them stays in use: it is the same bytes.
    fn store_rest(&mut self) -> Result<(), RecoveryError> {
        for (file, bytes) in std::mem::take(&mut self.unstored) {
            self.disk.store_index(file, bytes)?;
        }
        Ok(())
    }

    /// Cuts a segment to its length and lets its lock go.
    fn finish(&mut self, segment: &Surveyed, length: u64) -> Result<(), RecoveryError> {
        if self.options.planted.has(PlantedBug::NoSeal) {
            return Ok(());
        }
        if !segment.is_locked {
            if segment.size <= length {
                return Ok(());
            }
            self.disk.lock(segment.file)?;
        }
        self.disk.finish(segment.file, length)?;
        Ok(())
    }

    fn note_damage_of(&mut self, index: &SealedIndex) -> Result<(), RecoveryError> {
        if !index.has_damage() {
            return Ok(());
        }
        // An index that turns out damaged here says so again at its first look-up.
        for span in index.damaged().unwrap_or_default() {
            let states = index.streams_in(span).unwrap_or_default();
            self.report
                .damaged
                .push(accepted_range(index.file(), span, states));
        }
        Ok(())
    }

    fn conclude(
        mut self,
        survey: &Survey,
        log: LogId,
        star: StarId,
    ) -> Result<RecoveredLog, RecoveryError> {
        let end = self.end(survey)?;
        let mut next_number = survey.next_number();
        let is_closed = survey.newest().is_some_and(|own| own.closed);
        let mut keep = None;
        match self.options.closing {
            Some(_) if is_closed => keep = survey.newest().map(|own| own.id.number),
            Some(incarnation) if end.segment.is_some() => {
                let file = SegmentFile {
                    log,
                    number: next_number,
                };
                let id = SegmentId {
                    star,
                    log,
                    incarnation,
                    number: next_number,
                    generation: Generation(0),
                };
                let header = SegmentHeader {
                    id,
                    file_length: BLOCK_BYTES as u64,
                    closed: true,
                    predecessor: end.predecessor(),
                    rewritten: None,
                };
                self.disk.create_closed(file, header.encode())?;
                next_number = next_number.next();
            }
            Some(_) | None => keep = self.last_witness(&end),
        }
        self.recycle(keep)?;
        self.report.segments = self.indexes.len();
        Ok(RecoveredLog {
            log,
            end,
            next_number,
            indexes: self.indexes,
            predecessors: survey.predecessors(),
            released: BTreeMap::new(),
            damaged: self.report.damaged.clone(),
            report: self.report,
        })
    }

    /// The log's end: that of the last segment with groups, or what the newest header says of it.
    fn end(&self, survey: &Survey) -> Result<LogEnd, RecoveryError> {
        let held = self
            .indexes
            .last()
            .map(|index| index.end())
            .unwrap_or_default();
        let newest = survey.newest();
        let said = newest.map(SegmentHeader::end_before).unwrap_or_default();
        let has_groups = |number| {
            self.indexes
                .iter()
                .any(|index| index.file().number == number)
        };
        let newest_is_empty = newest.is_some_and(|own| !has_groups(own.id.number));
        let planted = self.options.planted.has(PlantedBug::NoSeal);
        if newest_is_empty && held.last_group > said.last_group && !planted {
            if !self.options.allow_corrupt {
                let index = self
                    .indexes
                    .last()
                    .expect("an end behind another has a segment");
                let span = DamagedSpan {
                    offset: 0,
                    length: 0,
                };
                let range = Box::new(accepted_range(index.file(), span, Vec::new()));
                let flaw = Flaw::BehindEnd {
                    found: held.last_group,
                    end: said.last_group,
                };
                return Err(RecoveryError::Damaged { range, flaw });
            }
            return Ok(held);
        }
        match said.segment {
            Some(segment) if said.last_group > held.last_group => {
                self.check_given_up(segment, said.last_group)?;
                Ok(said)
            }
            Some(_) | None => Ok(held),
        }
    }

    /// The last segment with groups holds the newest state of every stream that is in it: a log
    /// without it would give their positions out again.
    fn check_given_up(&self, missing: SegmentId, last: GroupNumber) -> Result<(), RecoveryError> {
        if self.options.allow_corrupt || self.options.planted.has(PlantedBug::NoSeal) {
            return Ok(());
        }
        let file = SegmentFile {
            log: missing.log,
            number: missing.number,
        };
        let span = DamagedSpan {
            offset: 0,
            length: 0,
        };
        Err(RecoveryError::Damaged {
            range: Box::new(accepted_range(file, span, Vec::new())),
            flaw: Flaw::Missing { last },
        })
    }

    /// The segment without groups whose header alone still says where the log ends.
    fn last_witness(&self, end: &LogEnd) -> Option<SegmentNumber> {
        let segment = end.segment?;
        let is_held = |index: &Arc<SealedIndex>| index.id().original() == segment;
        if self.indexes.iter().any(is_held) {
            return None;
        }
        let says_so = |header: &SegmentHeader| header.end_before() == *end;
        let mut headers = self
            .without_groups
            .iter()
            .rev()
            .filter_map(|(_, header)| *header);
        headers.find(says_so).map(|header| header.id.number)
    }

    fn recycle(&mut self, keep: Option<SegmentNumber>) -> Result<(), RecoveryError> {
        for (file, header) in &self.without_groups {
            if keep != Some(file.number) {
                self.disk.recycle(*file)?;
                self.report.recycled += 1;
                continue;
            }
            let closed = header.is_some_and(|header| header.closed);
            if !closed {
                self.disk.finish(*file, BLOCK_BYTES as u64)?;
            }
        }
        Ok(())
    }
}

/// State of a stream as the newest of these segments leaves it, for the segment after them.
fn earlier_state(indexes: &[Arc<SealedIndex>], stream: StreamId) -> Option<StreamState> {
    indexes.iter().rev().find_map(|index| {
        let mut state = index.stream(stream).ok().flatten()?;
        if index.has_records(stream).unwrap_or(false) {
            state.previous = Some(index.file());
        }
        Some(state)
    })
}

fn whole_range(segment: &Surveyed) -> DamagedRange {
    DamagedRange {
        file: segment.file,
        offset: 0,
        length: segment.size,
        streams: Vec::new(),
        names: Vec::new(),
    }
}

fn accepted_range(file: SegmentFile, span: DamagedSpan, states: Vec<StreamState>) -> DamagedRange {
    DamagedRange {
        file,
        offset: u64::from(span.offset),
        length: u64::from(span.length),
        streams: states.iter().map(|state| state.id).collect(),
        names: states.into_iter().map(|state| state.name).collect(),
    }
}

#[cfg(test)]
#[path = "crash_tests.rs"]
mod crash_tests;
#[cfg(test)]
#[path = "damage_tests.rs"]
mod damage_tests;
#[cfg(test)]
#[path = "full_disk_tests.rs"]
mod full_disk_tests;
#[cfg(test)]
#[path = "gaps_tests.rs"]
mod gaps_tests;
#[cfg(test)]
#[path = "memory_disk_tests.rs"]
mod memory_disk;
#[cfg(test)]
#[path = "rewritten_tests.rs"]
mod rewritten_tests;
#[cfg(test)]
#[path = "recovery_tests.rs"]
mod tests;
