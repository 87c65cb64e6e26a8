//! Operations that fail: those that no append and no reader waits for.
//!
//! ```text
//!   Works      only a full disk refuses what needs a new file
//!   Fails(K)   all operations of kind K, until it is said otherwise
//!   Flaky      some of all kinds; what changes a name may have taken effect all the same, as where
//!              a directory could not be synced
//! ```
//!
//! # Invariants
//! - Whether a flaky operation fails is drawn from numbers of its own: nothing else is moved by it.
//!
//! # Not here
//! - The log's own operations, whose failure ends the process: `flight`.

use super::{Flight, SimDisk, failed};
use crate::rng::Rng;
use nova_core::disk::{DiskFailure, DiskResult, SegmentFile};

/// How many of 100 flaky operations fail, and how many of those that fail took effect.
const FAILS_PERCENT: u64 = 40;
const LANDS_PERCENT: u64 = 50;

/// Operations that need a new file, which a full disk refuses.
const NEED_SPACE: [&str; 3] = ["index", "draft", "place"];

/// Operations that change names and nothing else.
const CHANGE_NAMES: [&str; 4] = ["index", "place", "drop", "recycle"];

/// How it stands with operations that are done in the background.
#[derive(Debug, Clone)]
pub enum Background {
    /// They are done.
    Works,
    /// Those of this kind fail; see [`Flight::weight`].
    Fails(String),
    /// Each of them may fail.
    Flaky(Rng),
}

impl SimDisk {
    /// An operation is done, or fails.
    pub fn end(&mut self, flight: Flight) -> DiskResult {
        let (kind, file) = (flight.weight().0, flight.file());
        let Some((failure, lands)) = self.failure_of(kind) else {
            return self.complete(flight);
        };
        if lands {
            self.complete(flight);
        }
        self.troubled.insert(file);
        DiskResult::Failed(failed(kind, file, failure))
    }

    /// Whether an operation on a segment has failed, so that the star may say so.
    pub fn is_troubled(&self, file: SegmentFile) -> bool {
        self.troubled.contains(&file)
    }

    /// How an operation of a kind fails now, and whether it takes effect all the same.
    fn failure_of(&mut self, kind: &'static str) -> Option<(DiskFailure, bool)> {
        if self.is_full && NEED_SPACE.contains(&kind) {
            return Some((DiskFailure::NoSpace, false));
        }
        let changes_names = CHANGE_NAMES.contains(&kind);
        match &mut self.background {
            Background::Works => None,
            Background::Fails(failing) => (failing == kind).then_some((DiskFailure::Io, false)),
            Background::Flaky(rng) => {
                let is_theirs = changes_names || ["draft", "let go"].contains(&kind);
                let fails = is_theirs && rng.chance(FAILS_PERCENT);
                fails.then(|| (DiskFailure::Io, changes_names && rng.chance(LANDS_PERCENT)))
            }
        }
    }
}
