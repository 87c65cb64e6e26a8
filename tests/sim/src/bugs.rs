//! The bugs that can be planted, with their names: the canaries of the simulator.
//!
//! # Not here
//! - What a star's bug does: `nova_core::planted`. What a client's does: [`crate::clients`].

use nova_core::planted::{PlantedBug, PlantedBugs};

/// A bug of the star or of its clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bug {
    /// The star's.
    Star(PlantedBug),
    /// A client's.
    Client(ClientBug),
}

/// A safeguard that clients leave out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClientBug {
    /// A producer sends again what has no answer, without numbers.
    RetryWithoutDedup,
    /// A writer of entities does not say what must not have changed since its read.
    WriteWithoutCondition,
    /// A writer of entities sends an update again under a new id.
    FreshIdOnRetry,
    /// An owner of an entity does not present its token.
    WriteWithoutToken,
}

/// Each bug with its name on the command line.
pub const BUGS: [(&str, Bug); 23] = [
    ("no_group_checksum", Bug::Star(PlantedBug::NoGroupChecksum)),
    ("no_seal", Bug::Star(PlantedBug::NoSeal)),
    (
        "ack_before_durable",
        Bug::Star(PlantedBug::AckBeforeDurable),
    ),
    (
        "refuse_before_durable",
        Bug::Star(PlantedBug::RefuseBeforeDurable),
    ),
    (
        "write_on_in_old_segment",
        Bug::Star(PlantedBug::WriteOnInOldSegment),
    ),
    ("no_fence", Bug::Star(PlantedBug::NoFence)),
    ("no_dedup", Bug::Star(PlantedBug::NoDedup)),
    (
        "not_owner_after_admission",
        Bug::Star(PlantedBug::NotOwnerAfterAdmission),
    ),
    ("fence_forgotten", Bug::Star(PlantedBug::FenceForgotten)),
    (
        "settings_forgotten",
        Bug::Star(PlantedBug::SettingsForgotten),
    ),
    ("epoch_repeated", Bug::Star(PlantedBug::EpochRepeated)),
    (
        "policy_keeps_sessions",
        Bug::Star(PlantedBug::PolicyKeepsSessions),
    ),
    ("recycled_early", Bug::Star(PlantedBug::RecycledEarly)),
    ("not_stated_anew", Bug::Star(PlantedBug::NotStatedAnew)),
    ("older_generation", Bug::Star(PlantedBug::OlderGeneration)),
    ("rewrite_miscut", Bug::Star(PlantedBug::RewriteMiscut)),
    (
        "draft_placed_early",
        Bug::Star(PlantedBug::DraftPlacedEarly),
    ),
    ("young_expired", Bug::Star(PlantedBug::YoungExpired)),
    (
        "arrivals_not_counted",
        Bug::Star(PlantedBug::ArrivalsNotCounted),
    ),
    (
        "retry_without_dedup",
        Bug::Client(ClientBug::RetryWithoutDedup),
    ),
    (
        "write_without_condition",
        Bug::Client(ClientBug::WriteWithoutCondition),
    ),
    ("fresh_id_on_retry", Bug::Client(ClientBug::FreshIdOnRetry)),
    (
        "write_without_token",
        Bug::Client(ClientBug::WriteWithoutToken),
    ),
];

impl Bug {
    /// The bug of this name.
    pub fn named(name: &str) -> Option<Bug> {
        let found = BUGS.iter().find(|(known, _)| *known == name);
        found.map(|(_, bug)| *bug)
    }

    /// What the star is given.
    pub(crate) fn of_star(bug: Option<Bug>) -> PlantedBugs {
        match bug {
            Some(Bug::Star(bug)) => PlantedBugs::NONE.with(bug),
            Some(Bug::Client(_)) | None => PlantedBugs::NONE,
        }
    }

    /// What the clients are given.
    pub(crate) fn of_clients(bug: Option<Bug>) -> Option<ClientBug> {
        match bug {
            Some(Bug::Client(bug)) => Some(bug),
            Some(Bug::Star(_)) | None => None,
        }
    }
}
