//! How a core waits for datagrams: awake for a while, then asleep.
//!
//! ```text
//! something came or went --> look, look, look ... for the window --> sleep until a datagram wakes
//!                             | now and then: let the executor look at its rings
//! ```
//! A thread that sleeps in the kernel has to be woken, and the executor then polls each of its
//! rings before it runs the first task: 15 to 20 us between a datagram and whoever reads it, on
//! each way of a closed loop. A core that has just had something to do has soon something to do
//! again, so it looks at its socket for a short while first (docs/decisions/0008).
//!
//! # Invariants
//! - A core spins only within the window after it has received or sent something. Idle, it sleeps.
//!   Time in which others worked is not of the window, up to [`WINDOWS_MAX`] times its length.
//! - While it spins every other task that is ready runs as well, and the executor looks at its
//!   rings, timers and mail every [`VISIT_INTERVAL`], counted from the end of the last such look.
//! - While [`Spin::hold`] holds it sleeps at once: what it waits for comes by a ring.
//!
//! # Not here
//! - Looking at the socket: `udp`.

use std::cell::Cell;
use std::rc::Rc;
use std::time::{Duration, Instant};

/// Two looks that are farther apart had other work between them, which is not spinning.
const LOOK_GAP_MAX: Duration = Duration::from_micros(10);

/// A window lasts this many times its length at most, whatever else runs meanwhile: a core that
/// shares its CPU gets its next look late, and must sleep all the same.
const WINDOWS_MAX: u32 = 16;

/// How long other things that a core waits for may be kept waiting by a spin.
const VISIT_INTERVAL: Duration = Duration::from_micros(50);

/// A core's spinning. What drives the disk holds it, and is told what it has cost.
#[derive(Debug)]
pub struct Spin {
    window: Duration,
    is_held: Cell<bool>,
    /// What is left of the window.
    left: Cell<Duration>,
    /// How long ago it began.
    lasted: Cell<Duration>,
    /// Until the executor is to look at its rings.
    until_visit: Cell<Duration>,
    /// The executor was told to look at its rings, and the next look tells that it has.
    is_visiting: Cell<bool>,
    spent: Cell<Duration>,
    looked: Cell<Option<Instant>>,
}

/// What to do when no datagram is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wait {
    /// Let others run, then look again.
    Spin,
    /// Let the executor look at its rings, then look again.
    Visit,
    /// Sleep until a datagram comes.
    Sleep,
}

impl Spin {
    /// A core that spins for `window` after it has received or sent something; zero is never.
    pub fn new(window: Duration) -> Rc<Spin> {
        Rc::new(Spin {
            window,
            is_held: Cell::new(false),
            left: Cell::new(Duration::ZERO),
            lasted: Cell::new(Duration::ZERO),
            until_visit: Cell::new(VISIT_INTERVAL),
            is_visiting: Cell::new(false),
            spent: Cell::new(Duration::ZERO),
            looked: Cell::new(None),
        })
    }

    /// While it holds, the core waits for something that only a ring tells, such as the end of a
    /// write, and does not spin.
    pub fn hold(&self, holds: bool) {
        self.is_held.set(holds);
    }

    /// How long the core has spun so far. For the executor that was time in which tasks ran.
    pub fn spent(&self) -> Duration {
        self.spent.get()
    }

    /// Whether the core ever spins.
    pub(super) fn is_on(&self) -> bool {
        !self.window.is_zero()
    }

    /// Something was received or sent: the window begins.
    pub(super) fn renew(&self) {
        self.left.set(self.window);
        self.lasted.set(Duration::ZERO);
    }

    /// No datagram is there at `now`.
    pub(super) fn wait(&self, now: Instant) -> Wait {
        let before = self.looked.replace(Some(now));
        let gap = before.map_or(Duration::ZERO, |at| now.saturating_duration_since(at));
        let until_visit = match self.is_visiting.take() {
            true => VISIT_INTERVAL,
            false => self.until_visit.get().saturating_sub(gap),
        };
        if gap <= LOOK_GAP_MAX {
            self.spent.set(self.spent.get() + gap);
            self.left.set(self.left.get().saturating_sub(gap));
        }
        self.lasted.set(self.lasted.get() + gap);
        let is_over = self.left.get().is_zero() || self.lasted.get() > WINDOWS_MAX * self.window;
        if self.is_held.get() || is_over {
            self.until_visit.set(VISIT_INTERVAL);
            self.looked.set(None);
            Wait::Sleep
        } else if until_visit.is_zero() {
            self.is_visiting.set(true);
            Wait::Visit
        } else {
            self.until_visit.set(until_visit);
            Wait::Spin
        }
    }
}

#[cfg(test)]
#[path = "spin_tests.rs"]
mod tests;
