//! A record: ordered headers and a body, with an optional time of the client.
//!
//! Bodies and header parts are [`Bytes`], so that a record can be handed through the batcher
//! without a copy until it is encoded.

use crate::error::Refusal;
use crate::limits::{HEADER_METERED_BYTES_MIN, RECORD_METERED_BYTES_MAX, RECORD_METERED_BYTES_MIN};
use crate::time::Timestamp;
use bytes::Bytes;
use rkyv::{Archive, Deserialize, Serialize};

/// One header of a record; names may repeat, order is kept.
#[derive(Archive, Serialize, Deserialize, Debug, Clone, PartialEq, Eq, Default)]
pub struct Header {
    /// Name, any bytes.
    pub name: Bytes,
    /// Value, any bytes.
    pub value: Bytes,
}

/// What the encoded form holds when the client gave no time.
pub(crate) const NO_TIMESTAMP: u64 = u64::MAX;

/// A record as a producer makes it.
#[derive(Archive, Serialize, Deserialize, Debug, Clone, PartialEq, Eq)]
pub struct Record {
    pub(crate) timestamp_raw: u64,
    /// Ordered headers.
    pub headers: Vec<Header>,
    /// Body, any bytes.
    pub body: Bytes,
}

impl Record {
    /// A record with this body, no headers and no time.
    pub fn new(body: impl Into<Bytes>) -> Record {
        Record {
            timestamp_raw: NO_TIMESTAMP,
            headers: Vec::new(),
            body: body.into(),
        }
    }

    /// The same record with the client's time.
    #[must_use]
    pub fn with_timestamp(mut self, timestamp: Timestamp) -> Record {
        self.timestamp_raw = timestamp.0.min(NO_TIMESTAMP - 1);
        self
    }

    /// The same record with one more header.
    #[must_use]
    pub fn with_header(mut self, name: impl Into<Bytes>, value: impl Into<Bytes>) -> Record {
        self.headers.push(Header {
            name: name.into(),
            value: value.into(),
        });
        self
    }

    /// The client's time, if it gave one.
    pub fn timestamp(&self) -> Option<Timestamp> {
        decode_timestamp(self.timestamp_raw)
    }

    /// Metered size: 8 + 2 for each header + header bytes + body bytes.
    pub fn metered_bytes(&self) -> usize {
        let headers: usize = self
            .headers
            .iter()
            .map(|h| HEADER_METERED_BYTES_MIN + h.name.len() + h.value.len())
            .sum();
        RECORD_METERED_BYTES_MIN + headers + self.body.len()
    }

    /// Refuses a record over the limit: `TOO_LARGE`.
    pub fn check(&self) -> Result<(), Refusal> {
        check_metered(self.metered_bytes())
    }
}

/// A record as it lies in an encoded batch.
#[derive(Clone, Copy)]
pub struct RecordView<'a>(pub(crate) &'a ArchivedRecord);

impl<'a> RecordView<'a> {
    /// The body.
    pub fn body(&self) -> &'a [u8] {
        &self.0.body
    }

    /// The headers, as (name, value), in order.
    pub fn headers(&self) -> impl ExactSizeIterator<Item = (&'a [u8], &'a [u8])> + use<'a> {
        self.0.headers.iter().map(|h| (&h.name[..], &h.value[..]))
    }

    /// The client's time, if it gave one.
    pub fn timestamp(&self) -> Option<Timestamp> {
        decode_timestamp(self.0.timestamp_raw.to_native())
    }

    /// Metered size, see [`Record::metered_bytes`].
    pub fn metered_bytes(&self) -> usize {
        let headers: usize = self
            .headers()
            .map(|(n, v)| HEADER_METERED_BYTES_MIN + n.len() + v.len())
            .sum();
        RECORD_METERED_BYTES_MIN + headers + self.0.body.len()
    }

    /// An owned copy.
    pub fn to_record(&self) -> Record {
        Record {
            timestamp_raw: self.0.timestamp_raw.to_native(),
            headers: self
                .headers()
                .map(|(name, value)| Header {
                    name: Bytes::copy_from_slice(name),
                    value: Bytes::copy_from_slice(value),
                })
                .collect(),
            body: Bytes::copy_from_slice(self.body()),
        }
    }
}

pub(crate) fn check_metered(metered: usize) -> Result<(), Refusal> {
    if metered <= RECORD_METERED_BYTES_MAX {
        return Ok(());
    }
    Err(Refusal::too_large(
        "record",
        RECORD_METERED_BYTES_MAX as u64,
        metered as u64,
    ))
}

fn decode_timestamp(raw: u64) -> Option<Timestamp> {
    (raw != NO_TIMESTAMP).then_some(Timestamp(raw))
}
