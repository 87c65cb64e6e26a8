//! The star as its operator sees it: cores, what each leads, its load, and where leadership moves.
//!
//! # Invariants
//! - Every list has a bound of [`crate::limits`]: cores, and moves of one rebalance.
//!
//! # Not here
//! - How load is measured and moves are planned: `nova-core`.

#![allow(
    missing_docs,
    reason = "rkyv derives resolvers without docs; all items here have one"
)]

use crate::ids::{CoreId, Incarnation, StarId};
use crate::names::StreamName;
use rkyv::{Archive, Deserialize, Serialize};

/// One core of a star.
#[derive(Archive, Serialize, Deserialize, Debug, Clone, PartialEq, Eq)]
pub struct CoreInfo {
    /// The core.
    pub core: CoreId,
    /// Its advertised address, `HOST:PORT`.
    pub address: String,
}

/// A star as it is.
#[derive(Archive, Serialize, Deserialize, Debug, Clone, PartialEq, Eq)]
pub struct StarInfo {
    /// Its identity.
    pub star: StarId,
    /// How often it was started.
    pub incarnation: Incarnation,
    /// The core that answers.
    pub core: CoreId,
    /// All its cores, in their order.
    pub cores: Vec<CoreInfo>,
}

/// Which cores a drain or its end is about.
#[derive(Archive, Serialize, Deserialize, Debug, Clone, Copy, PartialEq, Eq)]
pub enum CoreSet {
    /// This one.
    One(CoreId),
    /// Every core of the star.
    All,
}

/// A star and each of its cores as they are at the moment.
#[derive(Archive, Serialize, Deserialize, Debug, Clone, PartialEq, Eq)]
pub struct StarStatus {
    /// Its identity.
    pub star: StarId,
    /// How often it was started.
    pub incarnation: Incarnation,
    /// All its cores, in their order.
    pub cores: Vec<CoreStatus>,
}

/// A core as it is at the moment. Rates are means that forget: what is ten seconds back counts a
/// third of what is new.
#[derive(Archive, Serialize, Deserialize, Debug, Clone, PartialEq, Eq)]
pub struct CoreStatus {
    /// The core.
    pub core: CoreId,
    /// Its advertised address, `HOST:PORT`.
    pub address: String,
    /// Whether it is drained: it leads nothing and no stream's home is here.
    pub is_drained: bool,
    /// Whether its disk has no space for appends.
    pub is_disk_full: bool,
    /// Streams that it leads.
    pub streams_led: u64,
    /// Streams in its memory, led or only read.
    pub streams_loaded: u64,
    /// Streams on their way to another core.
    pub streams_moving: u64,
    /// Open append sessions.
    pub sessions: u64,
    /// Open readers.
    pub readers: u64,
    /// Bytes of batches appended in a second.
    pub appended_bytes_per_s: u64,
    /// Records appended in a second.
    pub appended_records_per_s: u64,
    /// Bytes of batches handed to readers in a second.
    pub read_bytes_per_s: u64,
    /// Segments of its log, the one being written included.
    pub segments: u64,
    /// Bytes of groups in those segments.
    pub log_bytes: u64,
    /// Bytes admitted and not yet durable.
    pub pending_bytes: u64,
    /// Bytes of newest batches kept in memory for followers.
    pub recent_bytes: u64,
}

/// A stream whose leadership went from one core to another.
#[derive(Archive, Serialize, Deserialize, Debug, Clone, PartialEq, Eq)]
pub struct StreamMove {
    /// The stream.
    pub name: StreamName,
    /// The core that led it.
    pub from: CoreId,
    /// The core that leads it now.
    pub to: CoreId,
}
