//! Bugs that the simulator plants to prove that it would find them.
//!
//! Without the feature `planted-bugs` a [`PlantedBugs`] is empty and every question to it is a
//! constant `false`, so that nothing of this is in a released binary.
//!
//! # Not here
//! - Which bug a run has: the simulator, which passes the set in.

/// A bug that can be planted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlantedBug {
    /// Recovery compares no checksum of a group.
    NoGroupChecksum,
    /// Recovery ignores where the predecessor was sealed and reads on behind it.
    NoSeal,
    /// An ack leaves before its group is durable.
    AckBeforeDurable,
    /// A refusal leaves before the state that it names is durable.
    RefuseBeforeDurable,
    /// A new start writes on in the last segment of the old one.
    WriteOnInOldSegment,
}

/// The bugs planted in this run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PlantedBugs {
    #[cfg(feature = "planted-bugs")]
    planted: u32,
}

impl PlantedBugs {
    /// No bug.
    pub const NONE: PlantedBugs = PlantedBugs {
        #[cfg(feature = "planted-bugs")]
        planted: 0,
    };

    /// The same with one bug more.
    #[cfg(feature = "planted-bugs")]
    #[must_use]
    pub const fn with(self, bug: PlantedBug) -> PlantedBugs {
        PlantedBugs {
            planted: self.planted | 1 << bug as u32,
        }
    }

    /// Whether the bug is planted.
    #[cfg(feature = "planted-bugs")]
    pub const fn has(self, bug: PlantedBug) -> bool {
        self.planted & 1 << bug as u32 != 0
    }

    /// Whether the bug is planted: never, without the feature.
    #[cfg(not(feature = "planted-bugs"))]
    pub const fn has(self, _bug: PlantedBug) -> bool {
        false
    }
}
