//! A batch of records: built once by the producer, checked on arrival, stored as it is.
//!
//! The encoded form is an rkyv archive (little endian, unaligned, 32-bit offsets) of a list of
//! records: 8 bytes and 24 more a record, 16 a header. The same bytes travel, are written to the
//! log and come back to the reader; what the star adds (positions, times) stands next to them in
//! [`crate::stored::StoredBatch`].
//!
//! # Invariants
//! - An [`EncodedBatch`] made by [`EncodedBatch::encode`] or [`EncodedBatch::check`] has 1 or more
//!   records, each and all within the metered limits, a valid archive and a matching checksum.
//! - A valid archive is no larger than its metered size allows, so it cannot carry ballast.

use crate::checksum::Checksum;
use crate::error::Refusal;
use crate::limits::{
    BATCH_ENCODED_BYTES_MAX, BATCH_ENCODED_BYTES_MIN, BATCH_METERED_BYTES_MAX,
    ENCODED_PER_METERED_MAX, HEADER_ENCODED_BYTES_MIN, RECORD_ENCODED_BYTES_MIN,
};
use crate::record::{self, Record, RecordView};
use crate::time::Timestamp;
use bytes::Bytes;
use rkyv::rancor;
use rkyv::{Archive, Serialize};
use std::fmt;

#[derive(Archive, Serialize)]
struct BatchArchive<'a> {
    #[rkyv(with = rkyv::with::AsOwned)]
    records: std::borrow::Cow<'a, [Record]>,
}

/// Why bytes are not a batch. Each is the sender's mistake or damage on the way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BatchError {
    /// The encoded length is outside what any legal batch can have.
    #[error("an encoded batch has at most {BATCH_ENCODED_BYTES_MAX} bytes, this one has {0}")]
    Length(usize),
    /// The checksum of the bytes is another one.
    #[error("the batch's checksum is {found}, its sender says {declared}")]
    Checksum {
        /// What the sender says.
        declared: Checksum,
        /// What the bytes have.
        found: Checksum,
    },
    /// The bytes are no valid archive.
    #[error("the batch is not a valid archive")]
    Archive,
    /// There is no record in it.
    #[error("the batch holds no record")]
    Empty,
    /// A record is over the metered limit.
    #[error("record {index} of the batch has {metered} metered bytes, over the limit")]
    RecordTooLarge {
        /// Which record, from 0.
        index: usize,
        /// Its metered size.
        metered: usize,
    },
    /// All records together are over the metered limit.
    #[error("the batch has {0} metered bytes, at most {BATCH_METERED_BYTES_MAX} are allowed")]
    TooLarge(usize),
    /// The archive is larger than its records need.
    #[error("the batch carries bytes that belong to no record")]
    Ballast,
}

impl From<BatchError> for Refusal {
    fn from(error: BatchError) -> Refusal {
        let message = error.to_string();
        match error {
            BatchError::RecordTooLarge { metered, .. } => {
                Refusal::too_large("record", BATCH_METERED_BYTES_MAX as u64, metered as u64)
            }
            BatchError::TooLarge(metered) => {
                Refusal::too_large("batch", BATCH_METERED_BYTES_MAX as u64, metered as u64)
            }
            BatchError::Length(bytes) => {
                Refusal::too_large("batch", BATCH_ENCODED_BYTES_MAX as u64, bytes as u64)
            }
            BatchError::Checksum { .. }
            | BatchError::Archive
            | BatchError::Empty
            | BatchError::Ballast => Refusal::invalid("batch", None, message),
        }
    }
}

/// The client's times in a batch, as far as the batch's own timestamps follow from them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ClientTimes {
    /// The first record's.
    pub first: Option<Timestamp>,
    /// The latest of all.
    pub latest: Option<Timestamp>,
    /// Whether any record has none.
    pub is_any_missing: bool,
}

impl ClientTimes {
    fn note(&mut self, index: usize, time: Option<Timestamp>) {
        if index == 0 {
            self.first = time;
        }
        self.latest = self.latest.max(time);
        self.is_any_missing |= time.is_none();
    }
}

/// A checked batch in its one encoded form. Cloning shares the bytes.
#[derive(Clone, PartialEq, Eq)]
pub struct EncodedBatch {
    bytes: Bytes,
    checksum: Checksum,
    records: u32,
    metered: u32,
    times: ClientTimes,
}

impl fmt::Debug for EncodedBatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "EncodedBatch({} records, {} bytes)",
            self.records,
            self.bytes.len()
        )
    }
}

impl EncodedBatch {
    /// Encodes records into a batch; `TOO_LARGE` or `INVALID` if they do not make a legal one.
    pub fn encode(records: &[Record]) -> Result<EncodedBatch, Refusal> {
        let mut metered = 0;
        let mut times = ClientTimes::default();
        let mut encoded = BATCH_ENCODED_BYTES_MIN;
        for (index, record) in records.iter().enumerate() {
            let size = record.metered_bytes();
            if record::check_metered(size).is_err() {
                return Err(BatchError::RecordTooLarge {
                    index,
                    metered: size,
                }
                .into());
            }
            metered += size;
            times.note(index, record.timestamp());
            encoded += encoded_bytes(record);
        }
        if records.is_empty() {
            return Err(BatchError::Empty.into());
        }
        if metered > BATCH_METERED_BYTES_MAX {
            return Err(BatchError::TooLarge(metered).into());
        }
        let batch = BatchArchive {
            records: std::borrow::Cow::Borrowed(records),
        };
        let bytes =
            rkyv::api::high::to_bytes_in::<_, rancor::Error>(&batch, Vec::with_capacity(encoded))
                .map_err(|_| Refusal::from(BatchError::Archive))?;
        let checksum = Checksum::of(&bytes);
        Ok(EncodedBatch {
            bytes: Bytes::from(bytes),
            checksum,
            records: records.len() as u32,
            metered: metered as u32,
            times,
        })
    }

    /// Checks bytes from outside: checksum, archive, counts and sizes. Reads each byte once or
    /// twice and allocates nothing.
    pub fn check(bytes: Bytes, declared: Checksum) -> Result<EncodedBatch, BatchError> {
        if bytes.len() > BATCH_ENCODED_BYTES_MAX {
            return Err(BatchError::Length(bytes.len()));
        }
        let found = Checksum::of(&bytes);
        if found != declared {
            return Err(BatchError::Checksum { declared, found });
        }
        EncodedBatch::check_known(bytes, found)
    }

    /// The same for bytes whose checksum has been compared already, as part of a larger one.
    pub fn check_known(bytes: Bytes, checksum: Checksum) -> Result<EncodedBatch, BatchError> {
        if bytes.len() > BATCH_ENCODED_BYTES_MAX {
            return Err(BatchError::Length(bytes.len()));
        }
        let archive = access(&bytes).ok_or(BatchError::Archive)?;
        let records = archive.records.len();
        let mut metered = 0;
        let mut times = ClientTimes::default();
        for (index, raw) in archive.records.iter().enumerate() {
            let size = RecordView(raw).metered_bytes();
            if record::check_metered(size).is_err() {
                return Err(BatchError::RecordTooLarge {
                    index,
                    metered: size,
                });
            }
            metered += size;
            times.note(index, RecordView(raw).timestamp());
            if metered > BATCH_METERED_BYTES_MAX {
                return Err(BatchError::TooLarge(metered));
            }
        }
        if records == 0 {
            return Err(BatchError::Empty);
        }
        if bytes.len() > ENCODED_PER_METERED_MAX * metered + BATCH_ENCODED_BYTES_MIN {
            return Err(BatchError::Ballast);
        }
        Ok(EncodedBatch {
            bytes,
            checksum,
            records: records as u32,
            metered: metered as u32,
            times,
        })
    }

    /// The same batch with bytes of its own, which keep nothing else alive.
    #[must_use]
    pub fn detached(&self) -> EncodedBatch {
        EncodedBatch {
            bytes: Bytes::copy_from_slice(&self.bytes),
            ..*self
        }
    }

    /// The encoded bytes.
    pub fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// Their checksum.
    pub fn checksum(&self) -> Checksum {
        self.checksum
    }

    /// Number of records, at least 1.
    pub fn records(&self) -> u32 {
        self.records
    }

    /// Metered bytes of all records together.
    pub fn metered_bytes(&self) -> u32 {
        self.metered
    }

    /// The client's times.
    pub fn client_times(&self) -> ClientTimes {
        self.times
    }

    /// Calls `visit` with each record in order.
    pub fn for_each(&self, mut visit: impl FnMut(RecordView<'_>)) {
        let archive = access(&self.bytes).expect("checked when this value was made");
        for raw in archive.records.iter() {
            visit(RecordView(raw));
        }
    }

    /// The records as owned values whose bytes are shared with this batch, without a copy.
    pub fn to_records(&self) -> Vec<Record> {
        let mut records = Vec::with_capacity(self.records as usize);
        self.for_each(|view| {
            records.push(Record {
                timestamp_raw: view.0.timestamp_raw.to_native(),
                headers: view
                    .headers()
                    .map(|(name, value)| record::Header {
                        name: self.bytes.slice_ref(name),
                        value: self.bytes.slice_ref(value),
                    })
                    .collect(),
                body: self.bytes.slice_ref(view.body()),
            });
        });
        records
    }
}

/// Encoded size that a record adds to its batch.
pub fn encoded_bytes(record: &Record) -> usize {
    let headers: usize = record
        .headers
        .iter()
        .map(|h| HEADER_ENCODED_BYTES_MIN + h.name.len() + h.value.len())
        .sum();
    RECORD_ENCODED_BYTES_MIN + headers + record.body.len()
}

fn access(bytes: &[u8]) -> Option<&ArchivedBatchArchive<'_>> {
    rkyv::access::<ArchivedBatchArchive<'_>, rancor::Failure>(bytes).ok()
}

#[cfg(test)]
#[path = "batch_tests.rs"]
mod tests;
