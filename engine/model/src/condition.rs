//! What an append may require of its stream, and what marks it as a writer's own.
//!
//! # Not here
//! - The judgement: `nova-core`'s admission.

use crate::error::Refusal;
use crate::ids::WriterId;
use crate::limits::FENCING_TOKEN_BYTES_MAX;
use crate::position::SequenceNumber;
use rkyv::{Archive, Deserialize, Serialize};
use std::fmt;

/// A fencing token: 0 to 36 bytes of UTF-8; empty means that none is installed.
#[derive(
    Archive, Serialize, Deserialize, Debug, Clone, PartialEq, Eq, Hash, Default, PartialOrd, Ord,
)]
pub struct FencingToken(String);

impl FencingToken {
    /// Parses a token; the refusal is `INVALID` with field `fence`.
    pub fn parse(text: &str) -> Result<FencingToken, Refusal> {
        let token = FencingToken(text.to_owned());
        token.check()?;
        Ok(token)
    }

    /// Checks a token that came from outside in an archive.
    pub fn check(&self) -> Result<(), Refusal> {
        if self.0.len() <= FENCING_TOKEN_BYTES_MAX {
            return Ok(());
        }
        let limit = FENCING_TOKEN_BYTES_MAX as u64;
        Err(Refusal::invalid(
            "fence",
            Some(limit),
            format!(
                "a fencing token has at most {limit} bytes, this one has {}",
                self.0.len()
            ),
        ))
    }

    /// The token as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether this is the absence of a token.
    pub fn is_none(&self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Display for FencingToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What must hold for an append, judged with all earlier admitted batches applied.
#[derive(Archive, Serialize, Deserialize, Debug, Clone, PartialEq, Eq, Default)]
pub struct Conditions {
    /// The fencing token that the writer holds.
    pub fence: Option<FencingToken>,
    /// The sequence number that the first record must get.
    pub match_sequence: Option<SequenceNumber>,
}

/// A writer's own number for a batch: a repeat is recognised by it.
#[derive(Archive, Serialize, Deserialize, Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct WriterStamp {
    /// The writer.
    pub writer: WriterId,
    /// Number of the batch among the writer's batches for this stream, from 0, dense.
    pub sequence: u64,
}
