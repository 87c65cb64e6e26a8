//! A star: one process with a core for each shard, as the server drives them.
//!
//! ```text
//!   boot: recover each log -> ShardStart for each core -> turns
//!   turn: disk results, mail, bytes of lanes -> shard -> disk operations, events -> lanes -> bytes
//! ```
//!
//! # Invariants
//! - The star stops as a whole: with a fatal event of one core all of them are gone.
//!
//! # Not here
//! - What a crash leaves on the disk: [`crate::disk`].

mod boot;
mod core;
mod ends;

pub use boot::{BootEnd, BootPlan, boot};

use crate::agenda::{Agenda, Life};
use crate::disk::{Flight, SimDisk};
use crate::network::{LinkId, Network};
use crate::rng::Rng;
use crate::trace::Trace;
use core::Core;
use nova_core::disk::OpToken;
use nova_core::{PeerMessage, Shard};
use nova_model::{CoreId, Instant, Now, Timestamp};

/// The wall clock at the beginning of a run.
const WALL_START_US: u64 = 1_700_000_000_000_000;

/// Both readings of a moment of the run.
pub fn reading(now: u64) -> Now {
    Now {
        instant: Instant(now),
        wall: Timestamp(WALL_START_US + now),
    }
}

/// The core that an address of the star names.
pub fn core_of(address: &str) -> Option<u16> {
    address.strip_prefix("core-")?.parse().ok()
}

/// The address of a core.
pub fn address_of(core: u16) -> String {
    format!("core-{core}")
}

/// What the star shares with the rest of the world while it works.
pub struct Ground<'a> {
    /// Virtual time.
    pub agenda: &'a mut Agenda,
    /// The links.
    pub network: &'a mut Network,
    /// The disk.
    pub disk: &'a mut SimDisk,
    /// The story.
    pub trace: &'a mut Trace,
    /// Chance.
    pub rng: &'a mut Rng,
    /// How many times slower than usual the disk is.
    pub disk_slowness: u64,
}

/// A running process.
pub struct Star {
    life: Life,
    cores: Vec<Core>,
}

/// How a turn ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TurnEnd {
    /// All is well.
    Done,
    /// The disk failed: the process stops.
    Fatal(String),
    /// Something is not as it must be.
    Wrong(String),
}

impl Star {
    /// Which process this is.
    pub fn life(&self) -> Life {
        self.life
    }

    /// How many cores it has.
    pub fn cores(&self) -> u16 {
        self.cores.len() as u16
    }

    /// A core looks at what has come in.
    pub fn turn(&mut self, ground: &mut Ground<'_>, core: CoreId) -> TurnEnd {
        self.cores[usize::from(core.0)].turn(ground, self.life)
    }

    /// An operation is done.
    pub fn disk_done(&mut self, ground: &mut Ground<'_>, core: CoreId, token: OpToken) {
        let life = self.life;
        self.cores[usize::from(core.0)].disk_done(ground, life, token);
    }

    /// A message of another core arrives.
    pub fn mail(&mut self, ground: &mut Ground<'_>, to: CoreId, from: CoreId, mail: PeerMessage) {
        let life = self.life;
        self.cores[usize::from(to.0)].mail(ground, life, from, mail);
    }

    /// Something has arrived on a link, or there is room on it again.
    pub fn link_moves(&mut self, ground: &mut Ground<'_>, link: LinkId, core: u16) {
        let life = self.life;
        if let Some(core) = self.cores.get_mut(usize::from(core)) {
            core.link_moves(ground, life, link);
        }
    }

    /// The star learns that a link is broken.
    pub fn link_lost(&mut self, ground: &mut Ground<'_>, link: LinkId, core: u16) {
        let life = self.life;
        if let Some(core) = self.cores.get_mut(usize::from(core)) {
            core.link_lost(ground, life, link);
        }
    }

    /// Whether an operation of this kind is on its way to the disk: `write`, a group or a header,
    /// `draft` or `place`, of a rewriting, or `recycle`.
    pub fn has_in_flight(&self, kind: &str) -> bool {
        self.cores.iter().any(|core| core.has_in_flight(kind))
    }

    /// Its shards, for somebody who drives them by hand.
    pub fn into_shards(self) -> Vec<Shard> {
        self.cores.into_iter().map(Core::into_shard).collect()
    }

    /// The process is gone; the operations that were on their way.
    pub fn end(self) -> Vec<Flight> {
        let cores = self.cores.into_iter();
        cores.flat_map(|core| core.into_flights()).collect()
    }

    /// Takes nothing more, completes and answers what was taken: the end of an orderly stop.
    pub fn finish(&mut self, ground: &mut Ground<'_>) -> TurnEnd {
        for core in &mut self.cores {
            match core.finish(ground, self.life) {
                TurnEnd::Done => {}
                end => return end,
            }
        }
        TurnEnd::Done
    }
}
