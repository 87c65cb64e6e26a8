//! Pages of lists, and what tells whether a page of one core still holds.
//!
//! # Invariants
//! - A page that came in an archive from outside is not used before its `check` passed.

#![allow(
    missing_docs,
    reason = "rkyv derives resolvers without docs; all items here have one"
)]

use crate::error::Refusal;
use crate::ids::Incarnation;
use crate::limits::{LIST_LIMIT_MAX, STREAM_KEY_BYTES_MAX};
use rkyv::{Archive, Deserialize, Serialize};

/// A page of a list: names after `start_after` that begin with `prefix`, in byte order.
#[derive(Archive, Serialize, Deserialize, Debug, Clone, PartialEq, Eq, Default)]
pub struct Page {
    /// What the names begin with; empty for all.
    pub prefix: String,
    /// Names after this one only; empty for the start.
    pub start_after: String,
    /// At most this many, 1 to 1,000.
    pub limit: u32,
}

impl Page {
    pub(crate) fn check(&self) -> Result<(), Refusal> {
        let most = STREAM_KEY_BYTES_MAX as u64;
        for (field, text) in [("prefix", &self.prefix), ("start_after", &self.start_after)] {
            if text.len() > STREAM_KEY_BYTES_MAX {
                let message = format!("{field} has at most {most} bytes, not {}", text.len());
                return Err(Refusal::invalid(field, Some(most), message));
            }
        }
        if self.limit == 0 || self.limit as usize > LIST_LIMIT_MAX {
            let most = LIST_LIMIT_MAX as u64;
            let message = format!("limit is 1 to {most}, not {}", self.limit);
            return Err(Refusal::invalid("limit", Some(most), message));
        }
        Ok(())
    }
}

/// Counts how often a core may have begun to speak for a stream of a bucket that was there before.
#[derive(Archive, Serialize, Deserialize, Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arrivals {
    /// The start of the star that counts.
    pub incarnation: Incarnation,
    /// Grows with each.
    pub count: u64,
}
