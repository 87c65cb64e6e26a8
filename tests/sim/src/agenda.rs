//! Virtual time: what is to happen, in its order.
//!
//! # Invariants
//! - Things due at the same time happen in the order in which they were planned.

use crate::network::{LinkId, Side, Way};
use crate::node::reading;
use nova_core::PeerMessage;
use nova_core::disk::OpToken;
use nova_model::{CoreId, Now};
use std::collections::BTreeMap;

/// Which process of the star something belongs to; a new number for each start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Life(pub u64);

/// Something that is planned.
#[derive(Debug, Clone)]
pub enum Happening {
    /// The star's process starts.
    Boot,
    /// A core looks at what has come in.
    Turn(Life, CoreId),
    /// An operation of a core is done.
    DiskDone(Life, CoreId, OpToken),
    /// A message of another core arrives.
    Mail(Life, CoreId, CoreId, PeerMessage),
    /// The next piece on a link's way arrives.
    Arrival(LinkId, Way),
    /// A side of a link learns that it is broken.
    Lost(LinkId, Side),
    /// There is room on a link again for what the star has to say.
    Room(LinkId),
    /// A client does its next thing.
    Client(usize),
    /// A fault strikes.
    Fault(usize),
    /// The disk has space again.
    SpaceAgain,
    /// What is done in the background does not fail any more.
    BackgroundAgain,
    /// The wall clock is right again.
    ClockAgain,
    /// Writes of killed processes land.
    Late,
}

/// The plan.
#[derive(Debug, Default)]
pub struct Agenda {
    plan: BTreeMap<(u64, u64), Happening>,
    count: u64,
    now: u64,
    behind_us: u64,
}

impl Agenda {
    /// The time, in microseconds.
    pub fn now(&self) -> u64 {
        self.now
    }

    /// What the star's clocks show.
    pub fn reading(&self) -> Now {
        let mut reading = reading(self.now);
        reading.wall.0 -= self.behind_us;
        reading
    }

    /// From now on the star's wall clock is so far behind.
    pub fn set_clock(&mut self, behind_us: u64) {
        self.behind_us = behind_us;
    }

    /// Plans something for a time; what is due already happens next.
    pub fn at(&mut self, time: u64, happening: Happening) {
        self.count += 1;
        self.plan
            .insert((time.max(self.now), self.count), happening);
    }

    /// Plans something for later.
    pub fn after(&mut self, us: u64, happening: Happening) {
        self.at(self.now + us, happening);
    }

    /// The next thing; time moves to it.
    pub fn next(&mut self) -> Option<Happening> {
        let ((time, _), happening) = self.plan.pop_first()?;
        self.now = time;
        Some(happening)
    }
}
