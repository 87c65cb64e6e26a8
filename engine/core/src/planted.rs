//! Bugs that the simulator plants to prove that it would find them.
//!
//! Without the feature `planted-bugs` a [`PlantedBugs`] is empty and every question to it is a
//! constant `false`, so that nothing of this is in a released binary.
//!
//! # Not here
//! - Which bug a run has: the simulator, which passes the set in.

use crate::state::StreamState;
use nova_model::condition::FencingToken;
use nova_model::ids::Epoch;
use nova_model::settings::StreamSettings;

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
    /// No fencing token is asked for or looked at, and a new one ends no session.
    NoFence,
    /// Writers' numbers are not looked at: a repeat is applied again.
    NoDedup,
    /// What was admitted before a move is refused as if it had come after it.
    NotOwnerAfterAdmission,
    /// A segment's statement of a stream has no fencing token.
    FenceForgotten,
    /// A new leadership forgets what the stream said of its settings.
    SettingsForgotten,
    /// A new leadership goes on under the old one's epoch.
    EpochRepeated,
    /// A change of the policy ends no session.
    PolicyKeepsSessions,
    /// A segment is recycled before it is durable that it was released.
    RecycledEarly,
    /// What an old segment states last is not stated anew before it goes.
    NotStatedAnew,
    /// A core does not count the streams that come to it.
    ArrivalsNotCounted,
    /// Recovery takes the oldest generation of a segment.
    OlderGeneration,
    /// A segment is rewritten without the first batch that is left of each stream.
    RewriteMiscut,
    /// No write of a draft is waited for before it gets its name.
    DraftPlacedEarly,
    /// What looks old takes all before it with it, however young that is.
    YoungExpired,
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

    /// What a new leadership states of a stream: with a bug, not all that holds.
    pub(crate) fn spoil_leadership(self, state: &mut StreamState, epoch_before: Epoch) {
        if self.has(PlantedBug::SettingsForgotten) {
            state.settings = StreamSettings::default();
        }
        if self.has(PlantedBug::EpochRepeated) {
            state.epoch = epoch_before.max(Epoch(1));
        }
    }

    /// What a segment states of a stream that goes on in it: with a bug, not all that holds.
    pub(crate) fn spoil_statement(self, state: &mut StreamState) {
        if self.has(PlantedBug::FenceForgotten) {
            state.fence = FencingToken::default();
        }
    }
}
