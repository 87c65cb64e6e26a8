//! Reading a segment group by group, up to where it ends.
//!
//! At each place the facts are collected, [`decide`] decides, and the index takes the group or the
//! scan ends. What follows a damaged place is looked at block by block for whole groups of the same
//! segment. Groups in flight lie within [`LOOK_AHEAD_BYTES`], but damage can be wider than a crash
//! makes it, so the search goes on to the end of the file: 256 MiB take 0.2 s, once for each log.
//!
//! # Invariants
//! - The index holds exactly the groups before the end that is returned, in order, without a gap
//!   that is not noted as damage.
//! - Nothing is skipped unless the operator allowed it.
//!
//! # Not here
//! - Which segments are read, and what is done with the result: the parent module.

use super::cases::{Contradiction, Decision, Facts, decide};
use super::damage::{claims, range_of};
use super::pieces::Pieces;
use super::report::{DamagedRange, Flaw, RecoveryError};
use crate::disk::{BootDisk, SegmentFile};
use crate::index::{ActiveIndex, DamagedSpan, Misfit};
use crate::segment::{
    Checks, Group, GroupDamage, GroupHeader, LogEnd, Predecessor, decode_group_checked,
};
use crate::state::StreamState;
use nova_model::limits::{BLOCK_BYTES, GROUP_BYTES_MAX, GROUPS_IN_FLIGHT_MAX, SEGMENT_BYTES_MAX};
use nova_model::{Checksum, GroupNumber, SegmentId, StreamId};
use std::collections::BTreeSet;

const BLOCK: u64 = BLOCK_BYTES as u64;

/// How far behind a torn place a group can begin that was in flight with it: each of them may be as
/// large as groups get.
pub(super) const LOOK_AHEAD_BYTES: u64 = (GROUP_BYTES_MAX * (GROUPS_IN_FLIGHT_MAX + 1)) as u64;

/// What is known of a segment's end before it is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ending {
    /// Nothing: it is the last one, and its end may be torn.
    Open,
    /// Its seal.
    Sealed(Predecessor),
    /// Its file was cut to its length and every block of it counts.
    Whole,
}

/// A segment to read.
pub(super) struct Task<'a> {
    pub(super) file: SegmentFile,
    pub(super) id: SegmentId,
    /// Size of the file.
    pub(super) size: u64,
    /// The log's end before this segment; none if it is lost.
    pub(super) before: Option<LogEnd>,
    pub(super) ending: Ending,
    pub(super) checks: Checks,
    pub(super) allow_corrupt: bool,
    /// State of a stream as older segments leave it, for what damage took.
    pub(super) earlier: &'a dyn Fn(StreamId) -> Option<StreamState>,
}

/// What reading it brought.
pub(super) struct Scanned {
    pub(super) index: ActiveIndex,
    pub(super) end: LogEnd,
    pub(super) groups: u64,
    /// Bytes of a group that began at the end and is torn.
    pub(super) torn_bytes: u64,
    pub(super) read_bytes: u64,
    pub(super) damaged: Vec<DamagedRange>,
    pub(super) orphans: BTreeSet<StreamId>,
}

/// The group before the place that is looked at.
#[derive(Clone, Copy)]
struct Last {
    number: GroupNumber,
    checksum: Checksum,
    /// Whether the next group must follow it directly; not behind accepted damage.
    binding: bool,
}

/// What stands at a place.
enum Found {
    Whole(Group),
    Broken(GroupDamage),
}

/// What was found behind a damaged place.
#[derive(Default)]
struct Later {
    first: Option<u64>,
    durable_through: Option<GroupNumber>,
}

struct Scan<'a> {
    task: Task<'a>,
    pieces: Pieces<'a>,
    limit: u64,
    offset: u64,
    last: Last,
    scanned: Scanned,
}

/// Reads a segment.
pub(super) fn scan<'a>(
    disk: &'a mut dyn BootDisk,
    task: Task<'a>,
) -> Result<Scanned, RecoveryError> {
    let size = task.size.min(SEGMENT_BYTES_MAX);
    let limit = match &task.ending {
        Ending::Open | Ending::Whole => size - size % BLOCK,
        Ending::Sealed(seal) => seal.length,
    };
    let before = task.before.unwrap_or_default();
    let scan = Scan {
        pieces: Pieces::new(disk, task.file, limit.min(size)),
        limit,
        offset: BLOCK,
        last: Last {
            number: before.last_group,
            checksum: before.last_checksum,
            binding: task.before.is_some(),
        },
        scanned: Scanned {
            index: ActiveIndex::new(task.file, task.id),
            end: before,
            groups: 0,
            torn_bytes: 0,
            read_bytes: 0,
            damaged: Vec::new(),
            orphans: BTreeSet::new(),
        },
        task,
    };
    scan.run()
}

/// Where the first whole group for which `wanted` holds begins, among those that begin in
/// `from..to`, with its header.
pub(super) fn find_group(
    pieces: &mut Pieces<'_>,
    from: u64,
    to: u64,
    mut wanted: impl FnMut(&GroupHeader) -> bool,
) -> Result<Option<(u64, GroupHeader)>, RecoveryError> {
    let mut offset = from;
    loop {
        offset = pieces.skip_unwritten(offset)?;
        if offset >= to {
            return Ok(None);
        }
        let block = pieces.at(offset, BLOCK_BYTES)?;
        if block.is_empty() {
            return Ok(None);
        }
        if let Ok(header) = GroupHeader::decode_any(&block)
            && wanted(&header)
        {
            let bytes = pieces.at(offset, header.length as usize)?;
            if decode_group_checked(&bytes, &header.segment, Checks::All).is_ok() {
                return Ok(Some((offset, header)));
            }
        }
        offset += BLOCK;
    }
}

impl Scan<'_> {
    fn run(mut self) -> Result<Scanned, RecoveryError> {
        while self.offset < self.limit {
            let found = self.look()?;
            let (facts, later) = self.facts(&found)?;
            match (decide(&facts), found) {
                (Decision::Keep, Found::Whole(group)) => self.keep(group)?,
                (Decision::Keep, Found::Broken(_)) => unreachable!("only whole groups are kept"),
                (Decision::CutTorn, Found::Whole(_)) => unreachable!("a whole group is not torn"),
                (Decision::CutTorn, Found::Broken(_)) => {
                    self.note_torn()?;
                    break;
                }
                (Decision::Refuse(_), Found::Broken(damage)) => self.damaged(damage, &later)?,
                (Decision::Refuse(what), Found::Whole(group)) => self.misplaced(&group, what)?,
            }
        }
        self.check_end()?;
        self.scanned.read_bytes = self.pieces.bytes_read;
        Ok(self.scanned)
    }

    fn look(&mut self) -> Result<Found, RecoveryError> {
        let Task { id, checks, .. } = self.task;
        let mut bytes = self.pieces.at(self.offset, BLOCK_BYTES)?;
        let mut decoded = decode_group_checked(&bytes, &id, checks);
        if let Err(GroupDamage::Incomplete { needed }) = decoded
            && bytes.len() == BLOCK_BYTES
            && self.offset + needed as u64 <= self.limit
        {
            bytes = self.pieces.at(self.offset, needed)?;
            decoded = decode_group_checked(&bytes, &id, checks);
        }
        Ok(match decoded {
            Ok(group) => Found::Whole(group),
            Err(damage) => Found::Broken(damage),
        })
    }

    /// The facts of this place; what follows is looked for only where it matters.
    fn facts(&mut self, found: &Found) -> Result<(Facts, Later), RecoveryError> {
        let Last {
            number,
            checksum,
            binding,
        } = self.last;
        let (number_fits, chain_fits) = match found {
            Found::Broken(_) => (false, false),
            Found::Whole(group) if binding => (
                group.header.number == number.next(),
                group.header.previous == checksum,
            ),
            Found::Whole(group) => (group.header.number > number, true),
        };
        let (header_ok, checksum_ok) = match found {
            Found::Whole(_) => (true, true),
            Found::Broken(GroupDamage::Checksum { .. } | GroupDamage::Entry { .. }) => {
                (true, false)
            }
            Found::Broken(GroupDamage::Incomplete { .. }) => (true, false),
            Found::Broken(
                GroupDamage::Magic
                | GroupDamage::OtherSegment(_)
                | GroupDamage::Version { .. }
                | GroupDamage::Field(_),
            ) => (false, false),
        };
        let later = match found {
            Found::Whole(_) => Later::default(),
            Found::Broken(_) => self.look_ahead()?,
        };
        // All of it landed, and still it cannot be read: no crash leaves that, but another version
        // of nova does. It counts as covered, so that nothing that may have been acked is cut.
        let is_landed = self.task.checks == Checks::All
            && matches!(found, Found::Broken(GroupDamage::Entry { .. }));
        let expected = number.next();
        let covers = |through: GroupNumber| through >= expected;
        let facts = Facts {
            header_ok,
            checksum_ok,
            number_fits,
            chain_fits,
            later_follows: is_landed || later.durable_through.is_some(),
            later_covers: is_landed || later.durable_through.is_some_and(covers),
        };
        Ok((facts, later))
    }

    fn look_ahead(&mut self) -> Result<Later, RecoveryError> {
        let mut later = Later::default();
        match &self.task.ending {
            Ending::Open => {}
            Ending::Sealed(seal) => later.durable_through = Some(seal.last_group),
            Ending::Whole => later.durable_through = Some(GroupNumber(u64::MAX)),
        }
        let (id, last) = (self.task.id, self.last.number);
        let mut from = self.offset + BLOCK;
        let wanted = |header: &GroupHeader| header.segment == id && header.number > last;
        while let Some((offset, header)) = find_group(&mut self.pieces, from, self.limit, wanted)? {
            later.first.get_or_insert(offset);
            later.durable_through = later.durable_through.max(Some(header.durable_through));
            from = offset + (header.length as u64).next_multiple_of(BLOCK);
            if later.durable_through > Some(last) {
                break;
            }
        }
        Ok(later)
    }

    fn keep(&mut self, group: Group) -> Result<(), RecoveryError> {
        let (offset, length) = (self.offset, group.length);
        if self.scanned.damaged.is_empty() && self.task.before.is_some() {
            let applied = self
                .scanned
                .index
                .try_apply_group(offset, length, &group.entries);
            if let Err(misfit) = applied {
                return self.misfit(&group, misfit);
            }
        } else {
            let earlier = self.task.earlier;
            let index = &mut self.scanned.index;
            let lost = index.apply_group_behind_damage(offset, length, &group.entries, earlier);
            self.scanned.orphans.extend(lost);
        }
        self.last = Last {
            number: group.header.number,
            checksum: group.header.checksum,
            binding: true,
        };
        self.offset += length as u64;
        self.scanned.groups += 1;
        self.set_end();
        Ok(())
    }

    fn set_end(&mut self) {
        self.scanned.end = LogEnd {
            segment: Some(self.task.id),
            length: self.offset,
            last_group: self.last.number,
            last_checksum: self.last.checksum,
        };
    }

    /// How much of a torn group there is: what its header says, if that landed.
    fn note_torn(&mut self) -> Result<(), RecoveryError> {
        let block = self.pieces.at(self.offset, BLOCK_BYTES)?;
        if let Ok(header) = GroupHeader::decode(&block, &self.task.id) {
            self.scanned.torn_bytes = u64::from(header.length);
        }
        Ok(())
    }

    /// A group that was durable is damaged: skips to the next whole one, if that is allowed.
    fn damaged(&mut self, damage: GroupDamage, later: &Later) -> Result<(), RecoveryError> {
        let expected = self.last.number.0 + 1;
        let flaw = match damage {
            GroupDamage::Incomplete { .. } => Flaw::Cut { expected },
            damage => Flaw::Group { expected, damage },
        };
        let behind = later.first.unwrap_or(self.limit);
        self.skip_to(behind, flaw)
    }

    /// A whole group does not follow the one before it: skips it, if that is allowed.
    fn misplaced(&mut self, group: &Group, what: Contradiction) -> Result<(), RecoveryError> {
        let flaw = Flaw::Place {
            found: group.header.number,
            last: self.last.number,
            contradiction: what,
        };
        self.skip_to(self.offset + group.length as u64, flaw)
    }

    fn misfit(&mut self, group: &Group, misfit: Misfit) -> Result<(), RecoveryError> {
        self.skip_to(self.offset + group.length as u64, Flaw::Misfit(misfit))
    }

    fn skip_to(&mut self, behind: u64, flaw: Flaw) -> Result<(), RecoveryError> {
        let span = DamagedSpan {
            offset: self.offset as u32,
            length: (behind - self.offset) as u32,
        };
        let claims = claims(&mut self.pieces, span, &self.task.id, |stream| {
            self.scanned
                .index
                .stream(stream)
                .cloned()
                .or_else(|| (self.task.earlier)(stream))
        })?;
        let range = range_of(self.task.file, span, &claims);
        if !self.task.allow_corrupt {
            let range = Box::new(range);
            return Err(RecoveryError::Damaged { range, flaw });
        }
        let ends = claims.into_iter().map(|claim| (claim.state, claim.end));
        self.scanned.index.note_damage(span, ends);
        self.scanned.damaged.push(range);
        self.last.binding = false;
        self.offset = behind;
        self.set_end();
        Ok(())
    }

    /// The end must be the one that the seal says.
    fn check_end(&mut self) -> Result<(), RecoveryError> {
        let Ending::Sealed(seal) = self.task.ending else {
            return Ok(());
        };
        let (found, found_checksum) = (self.last.number, self.last.checksum);
        if found == seal.last_group && found_checksum == seal.last_checksum {
            return Ok(());
        }
        if !self.task.allow_corrupt {
            let span = DamagedSpan {
                offset: self.offset as u32,
                length: 0,
            };
            let range = Box::new(range_of(self.task.file, span, &[]));
            let flaw = Flaw::Seal {
                found,
                found_checksum,
                sealed: seal.last_group,
                sealed_checksum: seal.last_checksum,
            };
            return Err(RecoveryError::Damaged { range, flaw });
        }
        self.scanned.end = LogEnd::from(Some(seal));
        Ok(())
    }
}
