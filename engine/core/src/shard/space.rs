//! A full disk as a mode: appends are refused below a floor of free space, until there is clearly
//! more of it.
//!
//! ```text
//!   free    ---------- high: floor and a segment more ---------- appends are taken again
//!              (as before)
//!           ---------- low: the floor ------------------------- appends are refused DISK_FULL
//!              reads, trims, deletions, retention and recycling go on
//! ```
//! What lies below the floor is left to commands: what frees space has to be written down, too.
//! Spare files of the log count as free, since the next segments are made from them. A lack of
//! descriptors is told as such, since other space does not help there.
//!
//! # Invariants
//! - A refusal names what is free and what the floor is.
//! - Nobody has to do anything for appends to be taken again but make space.
//!
//! # Not here
//! - What happens when a segment's file cannot be made: [`crate::commit`].

use super::{OpOwner, Shard, ShardConfig};
use crate::disk::{DiskOp, DiskResult};
use nova_model::{Code, Facts, Instant, Now, Refusal};

/// Segments for each core that the floor leaves room for: two, and a spare one.
const FLOOR_SEGMENTS: u64 = 3;
/// The floor is at most this part of the file system, so that a small one can be used at all.
const FLOOR_PART: u64 = 10;
/// When to try again without a descriptor.
const DESCRIPTOR_WAIT_US: u64 = 1_000_000;

/// What is known of the file system. Until it is asked, nothing is free and the floor is what it is
/// on a large one.
pub(super) struct Space {
    due: Instant,
    is_asked: bool,
    free: u64,
    floor: u64,
    /// Where appends are taken again.
    high: u64,
    is_short: bool,
}

impl Space {
    pub(super) fn new(config: &ShardConfig) -> Space {
        Space {
            due: Instant::default(),
            is_asked: false,
            free: 0,
            floor: config.floor_bytes.unwrap_or_else(|| usual_floor(config)),
            high: 0,
            is_short: false,
        }
    }

    pub(super) fn deadline(&self) -> Instant {
        self.due
    }

    /// Whether so many bytes are free, as far as known.
    pub(super) fn has_room(&self, bytes: u64) -> bool {
        self.free >= bytes
    }

    /// Whether so little is free, or nothing known of it, that it is to be found out early whether
    /// there is room for the next segment.
    pub(super) fn is_tight(&self) -> bool {
        self.free <= self.high
    }
}

impl Shard {
    /// Asks how much is free, if it is time.
    pub(super) fn look_at_space(&mut self, now: Now) {
        if self.space.due > now.instant {
            return;
        }
        self.space.due = now.instant.plus_us(self.config.forget_us);
        self.ask_for_space();
        self.try_again();
    }

    /// Asks how much is free, unless that is asked already.
    pub(super) fn ask_for_space(&mut self) {
        if !std::mem::replace(&mut self.space.is_asked, true) {
            let log = self.config.log();
            self.ask(OpOwner::Space, DiskOp::Space { log });
        }
    }

    /// How much is free.
    pub(super) fn space_known(&mut self, result: DiskResult) {
        self.space.is_asked = false;
        // A file system that does not tell refuses when a segment is made.
        let DiskResult::Space { free, total } = result else {
            return;
        };
        let usual = usual_floor(&self.config).min(total / FLOOR_PART);
        let floor = self.config.floor_bytes.unwrap_or(usual);
        self.space.free = free;
        self.space.floor = floor;
        self.space.high = floor.saturating_add(self.config.segment_bytes);
        self.space.is_short = match self.space.is_short {
            true => free < self.space.high,
            false => free < floor,
        };
        self.rewrite_for_space();
    }

    /// The least that appends leave free, in bytes.
    pub fn disk_floor_bytes(&self) -> u64 {
        self.space.floor
    }

    /// Why appends and creations are refused at the moment, if they are.
    pub(super) fn shortage(&self) -> Option<Refusal> {
        let is_full = self.log.is_full();
        if is_full && self.log.lacks_descriptors() {
            let message = "the star's process has no file descriptor left for the next segment; \
                           raise its limit (ulimit -n, RLIMIT_NOFILE)";
            let facts = Facts::After(DESCRIPTOR_WAIT_US);
            return Some(Refusal::new(Code::RateLimited, message).with(facts));
        }
        if !is_full && !self.space.is_short {
            return None;
        }
        let Space { free, floor, .. } = self.space;
        let message = format!(
            "the star's disk is full: {free} bytes are free, {floor} are left alone; reads, trims \
             and deletes go on, appends resume by themselves when space is free"
        );
        let facts = Facts::Space { free, floor };
        Some(Refusal::new(Code::DiskFull, message).with(facts))
    }
}

/// The floor on a file system that is large enough for it.
fn usual_floor(config: &ShardConfig) -> u64 {
    FLOOR_SEGMENTS * config.segment_bytes * u64::from(config.cores())
}
