//! Time as given values: the rule crates never read a clock.
//!
//! Two kinds are kept apart. [`Timestamp`] is what people see, microseconds since the Unix epoch.
//! [`Instant`] is a monotonic reading that only means something as a difference.

use rkyv::{Archive, Deserialize, Serialize};
use std::fmt;

/// Microseconds since the Unix epoch.
#[derive(
    Archive,
    Serialize,
    Deserialize,
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    Hash,
    PartialOrd,
    Ord,
    Default,
)]
pub struct Timestamp(pub u64);

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}us", self.0)
    }
}

/// A monotonic reading in microseconds, from an arbitrary start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Instant(pub u64);

impl Instant {
    /// Microseconds from `earlier` to this instant, 0 if `earlier` is later.
    pub fn since_us(self, earlier: Instant) -> u64 {
        self.0.saturating_sub(earlier.0)
    }

    /// The instant `us` microseconds after this one.
    pub fn plus_us(self, us: u64) -> Instant {
        Instant(self.0.saturating_add(us))
    }
}

/// Both readings of one moment, as the driver hands them to a state machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Now {
    /// For differences and deadlines.
    pub instant: Instant,
    /// For timestamps.
    pub wall: Timestamp,
}
