//! The log's pen: gathers entries into groups, writes one group at a time, rolls segments.
//!
//! ```text
//!   push --> [ open group ] --device free--> assembled --write--> in flight --durable--> gate
//!                 ^ more entries gather here meanwhile (natural batching, no timer)
//! ```
//! Answers wait for a [`Ticket`], which names an open group before it has a number in the log. A
//! group gets its number, its segment and its place in the chain when it is sent. At that moment
//! the streams that its segment does not know yet are stated in full at its head, so that each
//! segment can be understood alone; when those statements are large they go ahead as a group of
//! their own.
//!
//! # Invariants
//! - One group in flight; a group is sent only after everything before it is durable.
//! - The header of a new segment, which seals the one before it, is durable before its first group
//!   is sent; nothing is durable, and so nothing answered, before that.
//! - After the first failed write nothing more is written.
//!
//! # Not here
//! - What a group looks like: `segment`. Who waits for it: [`gate`].

mod assemble;
pub mod gate;
mod room;
pub(crate) mod slot;

use crate::config::ShardConfig;
use crate::disk::{DiskError, DiskOp, DiskResult, OpToken, SegmentFile};
use crate::entry::Entry;
use crate::planted::PlantedBug;
use crate::segment::{GroupContext, LogEnd, SegmentHeader};
pub(crate) use assemble::Statements;
use assemble::{OpenGroup, assemble, entry_bytes_most};
use gate::Ticket;
use nova_model::ids::SegmentNumber;
use nova_model::limits::{BLOCK_BYTES, GROUP_ENTRIES_MAX, GROUP_TARGET_BYTES};
use nova_model::{Generation, Instant, SegmentId};
use slot::{BULK_BYTES, Phase, Slot};
use std::collections::{BTreeMap, VecDeque};

/// Sizes of a first segment that are tried one after the other when a start has no space for a
/// whole one: room for commands, which may free some; then the header alone, behind which a star at
/// least serves what it has. Recovery has just cut the unused end of the segment before, so one of
/// them fits unless somebody else took that space at once.
const FIRST_SEGMENT_BYTES_SMALL: [u64; 2] = [1024 * 1024, BLOCK_BYTES as u64];

/// How long the log waits before it tries again to make a segment file.
const CREATE_RETRY_US: u64 = 1_000_000;

/// A group that became durable.
pub(crate) struct DurableGroup {
    /// The ticket that is released, none for a group of statements only.
    pub(crate) ticket: Option<Ticket>,
    /// Where it lies.
    pub(crate) offset: u64,
    /// How long it is, with padding.
    pub(crate) length: usize,
    /// What it holds.
    pub(crate) entries: Vec<Entry>,
    /// When it was sent to the disk.
    pub(crate) sent: Instant,
}

/// What the log has to tell after a completed operation.
pub(crate) enum LogEvent {
    /// A group is durable.
    Durable(DurableGroup),
    /// Groups go to a new segment from now on.
    Rolled {
        /// The segment before it in this start, with the log's end in it.
        from: Option<(SegmentFile, LogEnd)>,
        /// The new segment's file.
        to: SegmentFile,
        /// Its id.
        id: SegmentId,
    },
    /// A write failed: nothing more will be written.
    Fatal(DiskError),
}

struct InFlight {
    ticket: Option<Ticket>,
    entries: Vec<Entry>,
    bytes: usize,
    offset: u64,
    length: usize,
    sent: Instant,
}

#[derive(Clone, Copy)]
enum LogOp {
    Create,
    Header,
    Group,
    Zero(SegmentFile),
}

/// The log of one core.
pub(crate) struct LogWriter {
    template: SegmentId,
    segment_bytes: u64,
    next_number: SegmentNumber,
    end: LogEnd,
    active: Option<Slot>,
    next: Option<Slot>,
    roll_wanted: bool,
    /// A new segment is to begin once there is a file for it.
    roll_soon: bool,
    create_retry: Option<Instant>,
    no_space: bool,
    no_descriptor: bool,
    /// Size of the segment that is made next.
    create_bytes: u64,
    open: VecDeque<OpenGroup>,
    last_ticket: Ticket,
    pending_bytes: usize,
    in_flight: Option<InFlight>,
    ops: BTreeMap<OpToken, LogOp>,
    poisoned: bool,
}

impl LogWriter {
    /// A log that ends at `end` and whose next segment is `next_number`.
    pub(crate) fn new(config: &ShardConfig, end: LogEnd, next_number: SegmentNumber) -> LogWriter {
        let mut writer = LogWriter {
            template: SegmentId {
                star: config.star,
                log: config.log(),
                incarnation: config.incarnation,
                number: next_number,
                generation: Generation(0),
            },
            segment_bytes: config.segment_bytes,
            next_number,
            end,
            active: None,
            next: None,
            roll_wanted: true,
            roll_soon: false,
            create_retry: None,
            no_space: false,
            no_descriptor: false,
            create_bytes: config.segment_bytes,
            open: VecDeque::new(),
            last_ticket: Ticket(0),
            pending_bytes: 0,
            in_flight: None,
            ops: BTreeMap::new(),
            poisoned: false,
        };
        if config.planted.has(PlantedBug::WriteOnInOldSegment) {
            writer.write_on(config.segment_bytes);
        }
        writer
    }

    /// The mistake `write_on_in_old_segment`: goes on where the last start stopped.
    fn write_on(&mut self, length: u64) {
        let Some(id) = self.end.segment else { return };
        let file = SegmentFile {
            log: id.log,
            number: id.number,
        };
        let mut slot = Slot::creating(file, id, length);
        slot.created(true);
        slot.phase = Phase::Open;
        slot.offset = self.end.length;
        self.active = Some(slot);
        self.roll_wanted = false;
    }

    /// The file that groups go to, once there is one.
    pub(crate) fn active_file(&self) -> Option<(SegmentFile, SegmentId)> {
        self.active.as_ref().map(|slot| (slot.file, slot.id))
    }

    /// Adds an entry to the open group; the ticket is what answers to it wait for.
    pub(crate) fn push(&mut self, entry: Entry) -> Ticket {
        let bytes = entry_bytes_most(&entry);
        let is_full = self.open.back().is_none_or(|group| {
            group.bytes >= GROUP_TARGET_BYTES || group.entries.len() >= GROUP_ENTRIES_MAX / 2
        });
        if is_full {
            self.last_ticket = Ticket(self.last_ticket.0 + 1);
            let ticket = self.last_ticket;
            self.open.push_back(OpenGroup {
                ticket,
                entries: Vec::new(),
                bytes: 0,
            });
        }
        let group = self.open.back_mut().expect("a group is open");
        group.entries.push(entry);
        group.bytes += bytes;
        self.pending_bytes += bytes;
        group.ticket
    }

    /// What is not on its way to the disk yet goes to a new segment.
    pub(crate) fn roll(&mut self) {
        self.roll_wanted = true;
    }

    /// The same as soon as there is a file for a new segment; until then groups go on as before.
    pub(crate) fn roll_soon(&mut self) {
        self.roll_soon = true;
    }

    /// A roll may be asked for soon: the file for it is made now.
    pub(crate) fn make_ready(&mut self) {
        if let Some(slot) = &mut self.active {
            slot.leave_soon();
        }
    }

    /// What answers to the entry that was pushed last wait for.
    pub(crate) fn last_ticket(&self) -> Ticket {
        self.last_ticket
    }

    /// Whether a new segment is waited for.
    pub(crate) fn is_rolling(&self) -> bool {
        self.roll_wanted || self.roll_soon
    }

    /// Bytes of groups in the segment being written.
    pub(crate) fn active_bytes(&self) -> u64 {
        self.active.as_ref().map_or(0, |slot| slot.offset)
    }

    /// Bytes pushed and not yet durable.
    pub(crate) fn pending_bytes(&self) -> usize {
        self.pending_bytes
    }

    /// When to ask again for an operation.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.create_retry
    }

    /// Whether a file for the next segment is to be made.
    pub(crate) fn wants_file(&self) -> bool {
        // A small first segment is left as soon as there is space: it takes commands alone.
        let wants_next = |slot: &Slot| slot.wants_next() || slot.length < self.segment_bytes;
        let is_near = || self.active.as_ref().is_none_or(wants_next);
        self.next.is_none() && (self.is_rolling() || is_near())
    }

    /// The next disk operation, if there is one now; `token` names it from then on. Unless
    /// `early`, the next segment's file is put off until a quarter of this one is left.
    pub(crate) fn poll(
        &mut self,
        now: Instant,
        token: OpToken,
        early: bool,
        statements: &dyn Statements,
    ) -> Option<DiskOp> {
        if self.poisoned {
            return None;
        }
        let (kind, op) = self
            .poll_group(now, statements)
            .map(|op| (LogOp::Group, op))
            .or_else(|| self.poll_header().map(|op| (LogOp::Header, op)))
            .or_else(|| self.poll_create(now, early).map(|op| (LogOp::Create, op)))
            .or_else(|| self.poll_zero())?;
        self.ops.insert(token, kind);
        Some(op)
    }

    fn poll_group(&mut self, now: Instant, statements: &dyn Statements) -> Option<DiskOp> {
        let slot = self.active.as_mut()?;
        if self.in_flight.is_some() || self.roll_wanted || slot.phase != Phase::Open {
            return None;
        }
        let group = self.open.front()?;
        let assembled = assemble(slot.file, group, statements);
        let length = assembled.builder.bytes().next_multiple_of(BLOCK_BYTES) as u64;
        if !slot.has_room(length) {
            self.roll_wanted = true;
            return None;
        }
        if slot.is_blocked(length) {
            return None;
        }
        let context = GroupContext {
            segment: slot.id,
            number: self.end.last_group.next(),
            previous: self.end.last_checksum,
            durable_through: self.end.last_group,
        };
        let sealed = assembled.builder.seal(&context);
        assert_eq!(
            sealed.length as u64, length,
            "a group's length is known before it is sealed"
        );
        let offset = slot.take(length);
        let op = DiskOp::Write {
            file: slot.file,
            offset,
            parts: sealed.parts,
            length: sealed.length,
        };
        let (ticket, bytes) = match assembled.whole {
            true => (Some(group.ticket), group.bytes),
            false => (None, 0),
        };
        if assembled.whole {
            self.open.pop_front();
        }
        self.end = LogEnd {
            segment: Some(slot.id),
            length: offset + length,
            last_group: context.number,
            last_checksum: sealed.checksum,
        };
        let (entries, length) = (assembled.entries, sealed.length);
        self.in_flight = Some(InFlight {
            ticket,
            entries,
            bytes,
            offset,
            length,
            sent: now,
        });
        Some(op)
    }

    fn poll_header(&mut self) -> Option<DiskOp> {
        let is_idle =
            self.in_flight.is_none() && self.active.as_ref().is_none_or(|slot| !slot.is_zeroing());
        let next = self.next.as_mut()?;
        if self.roll_soon && next.phase == Phase::Created {
            (self.roll_soon, self.roll_wanted) = (false, true);
        }
        if !self.roll_wanted || !is_idle || next.phase != Phase::Created {
            return None;
        }
        next.phase = Phase::WritingHeader;
        let header = SegmentHeader {
            id: next.id,
            file_length: next.length,
            closed: false,
            predecessor: self.end.predecessor(),
            rewritten: None,
        };
        let parts = vec![header.encode()];
        Some(DiskOp::Write {
            file: next.file,
            offset: 0,
            parts,
            length: BLOCK_BYTES,
        })
    }

    fn poll_create(&mut self, now: Instant, early: bool) -> Option<DiskOp> {
        let is_due = self.create_retry.is_none_or(|at| at <= now);
        let can_wait = !self.is_rolling() && self.active.as_ref().is_some_and(Slot::can_wait);
        if !self.wants_file() || !is_due || (can_wait && !early) {
            return None;
        }
        self.create_retry = None;
        let number = self.next_number;
        let file = SegmentFile {
            log: self.template.log,
            number,
        };
        let id = SegmentId {
            number,
            ..self.template
        };
        let length = self.create_bytes;
        self.next = Some(Slot::creating(file, id, length));
        self.next_number = number.next();
        Some(DiskOp::CreateSegment { file, length })
    }

    fn poll_zero(&mut self) -> Option<(LogOp, DiskOp)> {
        let is_bulk = self
            .in_flight
            .as_ref()
            .is_some_and(|group| group.length > BULK_BYTES);
        if is_bulk || self.open.len() > 1 {
            return None;
        }
        let active = self.active.iter_mut().filter(|_| !self.roll_wanted);
        active.chain(self.next.iter_mut()).find_map(|slot| {
            let file = slot.file;
            slot.zero_ahead().map(|op| (LogOp::Zero(file), op))
        })
    }

    /// An operation of the log is done; what follows from it. Results of others' are not taken.
    pub(crate) fn handle(
        &mut self,
        now: Instant,
        token: OpToken,
        result: DiskResult,
    ) -> Option<LogEvent> {
        let kind = self.ops.remove(&token).expect("an operation of the log");
        match (kind, result) {
            (LogOp::Create, DiskResult::Failed(error)) => self.create_failed(now, error),
            (_, DiskResult::Failed(error)) => {
                self.poisoned = true;
                Some(LogEvent::Fatal(error))
            }
            (LogOp::Create, DiskResult::Created { written_before }) => {
                let next = self.next.as_mut().expect("it was being made");
                next.created(written_before);
                self.no_descriptor = false;
                self.no_space = next.length < self.segment_bytes;
                self.create_bytes = self.segment_bytes;
                None
            }
            (LogOp::Header, _) => Some(self.header_written()),
            (LogOp::Group, _) => Some(LogEvent::Durable(self.group_written())),
            (LogOp::Zero(file), _) => {
                let mut slots = self.active.iter_mut().chain(self.next.iter_mut());
                if let Some(slot) = slots.find(|slot| slot.file == file) {
                    slot.zeros_written();
                }
                None
            }
            (LogOp::Create, _) => unreachable!("a driver answers a creation with its result"),
        }
    }

    fn header_written(&mut self) -> LogEvent {
        let mut slot = self.next.take().expect("its header was being written");
        assert_eq!(slot.phase, Phase::WritingHeader, "a header is written once");
        slot.phase = Phase::Open;
        (self.roll_soon, self.roll_wanted) = (false, false);
        let (to, id) = (slot.file, slot.id);
        let from = self.active.replace(slot).map(|old| (old.file, self.end));
        LogEvent::Rolled { from, to, id }
    }

    fn group_written(&mut self) -> DurableGroup {
        let group = self.in_flight.take().expect("a group was in flight");
        self.pending_bytes -= group.bytes;
        DurableGroup {
            ticket: group.ticket,
            offset: group.offset,
            length: group.length,
            entries: group.entries,
            sent: group.sent,
        }
    }
}

#[cfg(test)]
#[path = "open_groups_tests.rs"]
mod tests;
