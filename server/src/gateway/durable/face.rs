//! What the protocol keeps of a stream beyond its bytes, and how it is written into a record.
//!
//! # Invariants
//! - A face is small: producers and forks are bounded, the longest unused producer goes first.

use nova_model::Record;
use nova_model::record::RecordView;
use serde::{Deserialize, Serialize};

/// Header of the last record of each append: the face as of that append.
const FACE: &[u8] = b"durable-face";
/// Header of records that are no message.
const CONTROL: &[u8] = b"durable-control";
/// Header of a copied record that was the last of an append.
const END: &[u8] = b"durable-end";
/// Producers that are remembered of a stream.
pub(super) const PRODUCERS_MAX: usize = 64;
/// Forks that a stream can have.
pub(super) const FORKS_MAX: usize = 64;

/// What a face takes at most: each name and id is bounded.
pub(super) const FACE_BYTES_MAX: usize = 128 * 1024;

/// What the protocol keeps of a stream.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Face {
    /// The media type of its messages, as it was said.
    pub(super) kind: String,
    /// Seconds without use after which it expires.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(super) ttl_s: Option<u64>,
    /// When it expires, in microseconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(super) expires_us: Option<u64>,
    /// When it was last used.
    pub(super) used_us: u64,
    /// One past the last message.
    pub(super) end: u64,
    /// Whether it takes no further message.
    pub(super) is_closed: bool,
    /// The last `Stream-Seq`.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(super) seq: Option<String>,
    /// The longest unused first.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub(super) producers: Vec<Producer>,
    /// Where it was forked from.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(super) origin: Option<Origin>,
    /// Streams that were forked from it: their bucket and key.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub(super) forks: Vec<String>,
    /// In what state the stream is as a whole.
    pub(super) stage: Stage,
}

/// In what state a stream is as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Stage {
    /// What it was forked from is being copied; nobody sees it.
    Copying,
    /// It is there.
    Open,
    /// It was deleted while forks of it lived; its name is taken until they are gone.
    Gone,
}

/// A producer that numbers its appends.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Producer {
    pub(super) id: String,
    pub(super) epoch: u64,
    pub(super) seq: u64,
}

/// Where a stream was forked from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Origin {
    /// Bucket and key.
    pub(super) stream: String,
    /// Its records before this one.
    pub(super) at: u64,
    /// And this much of what follows: messages of JSON, else bytes.
    pub(super) part: u64,
}

impl Face {
    /// A stream that is made now.
    pub(super) fn new(kind: String, now_us: u64) -> Face {
        Face {
            kind,
            ttl_s: None,
            expires_us: None,
            used_us: now_us,
            end: 0,
            is_closed: false,
            seq: None,
            producers: Vec::new(),
            origin: None,
            forks: Vec::new(),
            stage: Stage::Open,
        }
    }

    /// Whether it has expired.
    pub(super) fn is_expired(&self, now_us: u64) -> bool {
        let unused = self
            .ttl_s
            .map(|ttl| self.used_us.saturating_add(ttl.saturating_mul(1_000_000)));
        let ends = [unused, self.expires_us];
        ends.into_iter().flatten().any(|end| now_us >= end)
    }

    /// Whether a use is worth writing down: eight times in a lifetime are enough.
    pub(super) fn is_renewal_due(&self, now_us: u64) -> bool {
        let unused_us = now_us.saturating_sub(self.used_us);
        self.ttl_s
            .is_some_and(|ttl| unused_us >= ttl.saturating_mul(1_000_000 / 8))
    }

    /// Whether its messages are JSON.
    pub(super) fn is_json(&self) -> bool {
        essence(&self.kind) == "application/json"
    }

    /// Whether its messages go into events as they are.
    pub(super) fn is_text(&self) -> bool {
        self.is_json() || essence(&self.kind).starts_with("text/")
    }

    /// What is remembered of a producer.
    pub(super) fn producer(&self, id: &str) -> Option<&Producer> {
        self.producers.iter().find(|known| known.id == id)
    }

    /// Remembers what a producer did last.
    pub(super) fn note(&mut self, producer: Producer) {
        self.producers.retain(|known| known.id != producer.id);
        if self.producers.len() == PRODUCERS_MAX {
            self.producers.remove(0);
        }
        self.producers.push(producer);
    }

    /// The face that a record carries.
    pub(super) fn of(record: RecordView<'_>) -> Option<Face> {
        let mut headers = record.headers();
        let (_, face) = headers.find(|(name, _)| *name == FACE)?;
        serde_json::from_slice(face).ok()
    }

    /// The record with this face.
    pub(super) fn on(&self, record: Record) -> Record {
        let face = serde_json::to_vec(self).expect("a face is plain data");
        record.with_header(FACE, face)
    }
}

/// A record that is no message.
pub(super) fn control() -> Record {
    Record::new("").with_header(CONTROL, "")
}

/// Whether a record is a message.
pub(super) fn is_message(record: RecordView<'_>) -> bool {
    record.headers().all(|(name, _)| name != CONTROL)
}

/// Whether a record is the last of an append.
pub(super) fn is_end(record: RecordView<'_>) -> bool {
    record
        .headers()
        .any(|(name, _)| name == FACE || name == END)
}

/// The same record for a fork, in which it is as much of an end.
pub(super) fn copied(record: RecordView<'_>) -> Record {
    let copy = match is_message(record) {
        true => Record::new(record.body().to_vec()),
        false => control(),
    };
    match is_end(record) {
        true => copy.with_header(END, ""),
        false => copy,
    }
}

/// A media type without its parameters, in small letters.
pub(super) fn essence(kind: &str) -> String {
    let essence = kind.split(';').next().unwrap_or_default();
    essence.trim().to_ascii_lowercase()
}

#[cfg(test)]
#[path = "face_tests.rs"]
mod tests;
