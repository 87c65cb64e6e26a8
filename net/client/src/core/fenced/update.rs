//! An update: a record with an id that its client chose.
//!
//! # Invariants
//! - What is stored is the record as given and a header with the id; nothing is added that
//!   depends on when or where the update is sent, so every attempt stores the same.
//! - The content of two updates is the same if their headers (without the id) and bodies are: it
//!   is compared by its length and its CRC-32. The client's time of a record is not compared, so
//!   that a client that comes back may give another one.

use bytes::Bytes;
use nova_model::checksum::ChecksumBuilder;
use nova_model::limits::UPDATE_ID_BYTES_MAX;
use nova_model::record::RecordView;
use nova_model::{Checksum, Record, Refusal};

/// Name of the header that holds an update's id, 1 to 64 bytes. Of several, the first counts.
pub const UPDATE_ID_HEADER: &str = "nova-update-id";

/// A record to be written once under its id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Update {
    id: Bytes,
    record: Record,
    content: Content,
}

impl Update {
    /// An update with an id of 1 to 64 bytes that no other update of its entity has. The record
    /// gets the id as its last header; one that has such a header already is refused.
    pub fn new(id: impl Into<Bytes>, record: Record) -> Result<Update, Refusal> {
        let id = id.into();
        let refuse = |message: String| {
            let limit = UPDATE_ID_BYTES_MAX as u64;
            Err(Refusal::invalid(UPDATE_ID_HEADER, Some(limit), message))
        };
        if id.is_empty() || id.len() > UPDATE_ID_BYTES_MAX {
            return refuse(format!(
                "an update id has 1 to {UPDATE_ID_BYTES_MAX} bytes, this one has {}",
                id.len()
            ));
        }
        if record.headers.iter().any(|h| h.name == UPDATE_ID_HEADER) {
            return refuse(format!(
                "the record has a header {UPDATE_ID_HEADER} already"
            ));
        }
        let headers = record.headers.iter().map(|h| (&h.name[..], &h.value[..]));
        let content = Content::of(headers, &record.body);
        let record = record.with_header(UPDATE_ID_HEADER, id.clone());
        record.check()?;
        Ok(Update {
            id,
            record,
            content,
        })
    }

    /// Its id.
    pub fn id(&self) -> &Bytes {
        &self.id
    }

    /// The record as it is stored.
    pub fn record(&self) -> &Record {
        &self.record
    }

    /// What is compared with an update of the same id.
    pub(crate) fn content(&self) -> Content {
        self.content
    }
}

/// What is remembered of an update's content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Content {
    bytes: u64,
    checksum: Checksum,
}

impl Content {
    /// The id and the content of a stored record, if it is an update.
    pub(crate) fn of_stored(record: RecordView<'_>) -> Option<(Bytes, Content)> {
        let is_id = |name: &[u8]| name == UPDATE_ID_HEADER.as_bytes();
        let (_, id) = record.headers().find(|(name, _)| is_id(name))?;
        if id.is_empty() || id.len() > UPDATE_ID_BYTES_MAX {
            return None;
        }
        let headers = record.headers().filter(|(name, _)| !is_id(name));
        let content = Content::of(headers, record.body());
        // A copy: a slice would keep the whole batch alive.
        Some((Bytes::copy_from_slice(id), content))
    }

    fn of<'a>(headers: impl Iterator<Item = (&'a [u8], &'a [u8])>, body: &[u8]) -> Content {
        let mut checksum = ChecksumBuilder::new();
        let mut bytes = 0;
        let mut add = |piece: &[u8]| {
            checksum.update(&(piece.len() as u64).to_le_bytes());
            checksum.update(piece);
            bytes += piece.len() as u64;
        };
        for (name, value) in headers {
            add(name);
            add(value);
        }
        add(body);
        Content {
            bytes,
            checksum: checksum.finish(),
        }
    }
}

#[cfg(test)]
#[path = "update_tests.rs"]
mod tests;
