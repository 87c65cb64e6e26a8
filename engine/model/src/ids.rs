//! Identifiers as types of their own, so that two kinds are never mixed.
//!
//! Each is a plain number with a fixed size; how it is written on disk and on the wire is in
//! docs/FORMAT.md and docs/PROTOCOL.md. Fresh 128-bit ids come from the driver, which has the
//! source of randomness; the rule crates only carry them.
//!
//! # Not here
//! - Positions inside a stream: [`crate::position`].

use rkyv::{Archive, Deserialize, Serialize};
use std::fmt;

macro_rules! number_id {
    ($(#[$doc:meta])* $name:ident($inner:ty), $prefix:literal) => {
        $(#[$doc])*
        #[derive(
            Archive, Serialize, Deserialize, Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd,
            Ord, Default,
        )]
        pub struct $name(pub $inner);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!($prefix, "{}"), self.0)
            }
        }
    };
}

macro_rules! random_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(
            Archive, Serialize, Deserialize, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord,
            Default,
        )]
        pub struct $name(pub u128);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{:032x}", self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($name), "({:032x})"), self.0)
            }
        }
    };
}

number_id!(
    /// A core of a star: one pinned thread with its own log, port and shard.
    CoreId(u16), "core-"
);
number_id!(
    /// A log of a star's data directory. A core writes the log of its own number; logs left over
    /// from a start with more cores are adopted read-only.
    LogId(u16), "log-"
);
number_id!(
    /// Counts the starts of a star; raised durably before any segment is opened.
    Incarnation(u64), "incarnation-"
);
number_id!(
    /// Number of a segment in its log, from 1, dense.
    SegmentNumber(u64), "segment-"
);
number_id!(
    /// Counts how often a segment was rewritten without what is dead in it; 0 as it was first.
    Generation(u16), "generation-"
);
number_id!(
    /// Number of a commit group in its log, from 1, dense. 0 means "none yet".
    GroupNumber(u64), "group-"
);
number_id!(
    /// Epoch of a stream's leadership; only grows, stored with each commit. 0 means "never led".
    Epoch(u64), "epoch-"
);
random_id!(
    /// Identity of a star, given when its data directory is made.
    StarId
);
random_id!(
    /// Incarnation of a stream: new for each creation, also under the same name.
    StreamId
);
random_id!(
    /// A writer that numbers its batches so that repeats are recognised.
    WriterId
);

impl GroupNumber {
    /// The number after this one.
    pub fn next(self) -> GroupNumber {
        GroupNumber(self.0 + 1)
    }
}

impl SegmentNumber {
    /// The number after this one.
    pub fn next(self) -> SegmentNumber {
        SegmentNumber(self.0 + 1)
    }
}

impl Generation {
    /// The generation that a segment gets when it is rewritten once more; none after the last.
    pub fn next(self) -> Option<Generation> {
        self.0.checked_add(1).map(Generation)
    }
}

impl Epoch {
    /// The epoch of the next leadership.
    pub fn next(self) -> Epoch {
        Epoch(self.0 + 1)
    }
}

/// What makes a segment unmistakable: the remains of a recycled file carry another one.
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
pub struct SegmentId {
    /// The star that wrote it.
    pub star: StarId,
    /// Its log.
    pub log: LogId,
    /// The start of the star that wrote it.
    pub incarnation: Incarnation,
    /// Its number in the log.
    pub number: SegmentNumber,
    /// How often it was rewritten.
    pub generation: Generation,
}

impl SegmentId {
    /// The segment as it was written first: what others call it, however often it is rewritten.
    pub fn original(self) -> SegmentId {
        SegmentId {
            generation: Generation(0),
            ..self
        }
    }
}

impl fmt::Display for SegmentId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}", self.log, self.number, self.incarnation)?;
        match self.generation {
            Generation(0) => Ok(()),
            generation => write!(f, "/{generation}"),
        }
    }
}
