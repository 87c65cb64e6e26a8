//! What each segment of a log is, and so how much of it has to be read.
//!
//! ```text
//!   index fits the seal                   -> take the index
//!   sealed, index lost                    -> read up to the seal
//!   the newest with a header              -> read to where it ends
//!   older, no seal, no index, groups      -> read whole: its successor was forgotten
//!   rewritten, index lost                 -> read up to where its own header says
//!   no header, no groups                  -> a file that was made and never begun
//!   no header, groups                     -> damage
//! ```
//! # Invariants
//! - A segment counts as without groups only if none was found where its first one would be.
//!
//! # Not here
//! - Doing it: the parent module.

use super::pieces::Pieces;
use super::report::{Flaw, RebuildReason, RecoveryError};
use super::scan::{Ending, LOOK_AHEAD_BYTES, find_group};
use super::survey::{Head, Survey, Surveyed};
use super::{Recovery, whole_range};
use crate::disk::SegmentFile;
use crate::index::SealedIndex;
use crate::planted::PlantedBug;
use crate::segment::{LogEnd, SegmentHeader};
use nova_model::limits::BLOCK_BYTES;
use nova_model::{Generation, SegmentId, StarId};

/// What becomes of a segment.
pub(super) enum Role {
    /// Its index is good.
    Indexed(SealedIndex),
    /// It is read.
    Read {
        id: SegmentId,
        before: Option<LogEnd>,
        ending: Ending,
        /// What it stands for in its log, if that is not where reading it ends.
        stands_for: Option<LogEnd>,
    },
    /// It holds no group.
    WithoutGroups,
    /// It held groups, of which nothing is left; that was accepted.
    Gone,
}

impl Recovery<'_> {
    pub(super) fn role(
        &mut self,
        survey: &Survey,
        segment: &Surveyed,
    ) -> Result<Role, RecoveryError> {
        let seal = survey.seals.get(&segment.file.number);
        let is_newest = survey
            .newest()
            .is_some_and(|own| own.id.number == segment.file.number);
        if let Head::Own(header) = segment.head
            && seal.is_some()
            && header.rewritten.is_none()
            && self.options.planted.has(PlantedBug::NoSeal)
        {
            let before = Some(header.end_before());
            return Ok(Role::Read {
                id: header.id,
                before,
                ending: Ending::Open,
                stands_for: None,
            });
        }
        let problem = match self.open_index(survey, segment, is_newest)? {
            Ok(index) => return Ok(Role::Indexed(index)),
            Err(problem) => problem,
        };
        let role = match (segment.head, seal) {
            (Head::Own(header), Some(seal)) if !header.is_sealed_by(seal) => self.gone(segment)?,
            (Head::Own(header), _) if header.rewritten.is_some() => rewritten(&header),
            (Head::Own(header), Some(seal)) => Role::Read {
                id: seal.id,
                before: Some(header.end_before()),
                ending: Ending::Sealed(*seal),
                stands_for: None,
            },
            (Head::Own(header), None) if header.closed => Role::WithoutGroups,
            (Head::Own(header), None) if is_newest => Role::Read {
                id: header.id,
                before: Some(header.end_before()),
                ending: Ending::Open,
                stands_for: None,
            },
            (Head::Own(header), None) => match self.first_group(segment, header.id.star)? {
                None => Role::WithoutGroups,
                Some(_) => Role::Read {
                    id: header.id,
                    before: Some(header.end_before()),
                    ending: Ending::Whole,
                    stands_for: None,
                },
            },
            (Head::Lost(_), _) => self.headless(survey, segment)?,
        };
        let was_sealed = matches!(&role, Role::Read { ending, .. } if *ending != Ending::Open);
        if was_sealed || (segment.has_index && problem != RebuildReason::Missing) {
            self.report.rebuilt.push((segment.file, problem));
        }
        Ok(role)
    }

    /// A segment whose first block is not its header, and which has no good index.
    fn headless(&mut self, survey: &Survey, segment: &Surveyed) -> Result<Role, RecoveryError> {
        let seal = survey.seals.get(&segment.file.number);
        let star = survey.newest().map(|own| own.id.star);
        let group = match star {
            Some(star) => self.first_group(segment, star)?,
            None => self.first_group_of_any_star(segment)?,
        };
        let Some(id) = group else {
            return match seal {
                Some(_) => self.gone(segment),
                None => Ok(Role::WithoutGroups),
            };
        };
        if !self.options.allow_corrupt {
            let Head::Lost(damage) = segment.head else {
                unreachable!("called for segments without a header");
            };
            let range = Box::new(whole_range(segment));
            return Err(RecoveryError::Damaged {
                range,
                flaw: Flaw::Header(damage),
            });
        }
        let is_last = survey
            .newest()
            .is_none_or(|own| own.id.number < segment.file.number);
        let stands_for = seal.map(|seal| LogEnd::from(Some(*seal)));
        let ending = match seal {
            // What the seal says is not where it ends now.
            _ if id.generation > Generation(0) => Ending::Whole,
            Some(seal) => Ending::Sealed(*seal),
            None if is_last => Ending::Open,
            None => Ending::Whole,
        };
        Ok(Role::Read {
            id,
            before: None,
            ending,
            stands_for: stands_for.filter(|_| id.generation > Generation(0)),
        })
    }

    fn gone(&self, segment: &Surveyed) -> Result<Role, RecoveryError> {
        if self.options.allow_corrupt {
            return Ok(Role::Gone);
        }
        let range = Box::new(whole_range(segment));
        Err(RecoveryError::Damaged {
            range,
            flaw: Flaw::Emptied,
        })
    }

    /// Opens the index of a segment if it can stand for the segment.
    fn open_index(
        &mut self,
        survey: &Survey,
        segment: &Surveyed,
        is_newest: bool,
    ) -> Result<Result<SealedIndex, RebuildReason>, RecoveryError> {
        if !segment.has_index {
            return Ok(Err(RebuildReason::Missing));
        }
        let mapped = self.disk.map_index(segment.file)?;
        let index = match SealedIndex::open(segment.file, mapped) {
            Ok(index) => index,
            Err(damage) => return Ok(Err(RebuildReason::Damaged(damage))),
        };
        let seal = survey.seals.get(&segment.file.number);
        let other_id = match segment.head {
            Head::Own(header) => header.id != index.id(),
            Head::Lost(_) => index.id().generation != segment.generation,
        };
        let is_cut = segment.size < index.length() && !index.has_damage();
        if other_id || is_cut || seal.is_some_and(|seal| LogEnd::from(Some(*seal)) != index.end()) {
            return Ok(Err(RebuildReason::OtherEnd));
        }
        if seal.is_none() && is_newest {
            // An earlier recovery stored it, and the seal is not written yet, or it was in a
            // segment without groups that is a spare file by now. So the index is the seal: what
            // lies behind its end in a longer file was torn, or landed late.
            let is_unsealed = self.options.planted.has(PlantedBug::NoSeal);
            if is_unsealed && segment.size != index.length() {
                return Ok(Err(RebuildReason::Missing));
            }
            if let Err(damage) = index.verify() {
                return Ok(Err(RebuildReason::Damaged(damage)));
            }
        }
        if matches!(segment.head, Head::Lost(_)) {
            self.report.headers_lost.push(segment.file);
        }
        Ok(Ok(index))
    }

    /// The id in the first whole group of the segment, among those that can be in its beginning.
    fn first_group(
        &mut self,
        segment: &Surveyed,
        star: StarId,
    ) -> Result<Option<SegmentId>, RecoveryError> {
        let id = self.first_group_of_any_star(segment)?;
        Ok(id.filter(|id| id.star == star))
    }

    fn first_group_of_any_star(
        &mut self,
        segment: &Surveyed,
    ) -> Result<Option<SegmentId>, RecoveryError> {
        let SegmentFile { log, number } = segment.file;
        let block = BLOCK_BYTES as u64;
        let to = segment.size.min(block + LOOK_AHEAD_BYTES);
        let mut pieces = Pieces::new(self.disk, segment.file, segment.size);
        let found = find_group(&mut pieces, block, to, |header| {
            header.segment.log == log && header.segment.number == number
        })?;
        Ok(found.map(|(_, header)| header.segment))
    }
}

/// A segment that was rewritten says itself where it ends.
fn rewritten(header: &SegmentHeader) -> Role {
    let now = header.rewritten.zip(header.own_seal());
    let (now, own_seal) = now.expect("called for a segment that was rewritten");
    Role::Read {
        id: header.id,
        before: Some(LogEnd::default()),
        ending: Ending::Sealed(own_seal),
        stands_for: Some(LogEnd::from(Some(now.stands_for))),
    }
}
