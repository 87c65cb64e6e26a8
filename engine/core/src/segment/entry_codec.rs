//! Entries of the log as bytes.
//!
//! Every entry begins with the same 32 bytes: length, kind, flags, stream, epoch. A batch goes on
//! with 64 fixed bytes and the producer's archive, byte for byte; any other entry goes on with an
//! rkyv archive of what it says.
//!
//! # Invariants
//! - An entry that decodes obeys the limits and the rules for names, also where its archive came
//!   from a disk that lies.
//! - Stream and epoch in the fixed header equal those in the archive.

use super::layout::{FieldReader, FieldWriter};
use crate::entry::{BatchEntry, Entry};
use crate::released::Released;
use crate::state::StreamState;
use bytes::Bytes;
use nova_model::batch::BatchError;
use nova_model::condition::FencingToken;
use nova_model::ids::{Epoch, LogId, StreamId};
use nova_model::names::BucketName;
use nova_model::position::SequenceNumber;
use nova_model::request::BucketInfo;
use nova_model::settings::{StreamSettings, TimestampMode};
use nova_model::stored::Stamping;
use nova_model::{Checksum, EncodedBatch, StoredBatch, Timestamp, WriterId, WriterStamp};
use rkyv::rancor;

macro_rules! archive {
    ($value:expr, $out:expr) => {
        rkyv::api::high::to_bytes_in::<_, rancor::Error>($value, $out)
    };
}
/// Length of the fixed header of every entry.
pub const ENTRY_HEADER_BYTES: usize = 32;
/// Length of the fixed header of a batch entry, the common part included.
pub const BATCH_HEADER_BYTES: usize = 96;

const KIND_BATCH: u8 = 1;
const KIND_LED: u8 = 2;
const KIND_FENCE: u8 = 3;
const KIND_TRIM: u8 = 4;
const KIND_SETTINGS: u8 = 5;
const KIND_DELETED: u8 = 6;
const KIND_BUCKET_PUT: u8 = 7;
const KIND_BUCKET_DELETED: u8 = 8;
const KIND_RELEASED: u8 = 9;

const FLAG_MODE: u8 = 0b0011;
const FLAG_UNCAPPED: u8 = 0b0100;
const FLAG_WRITER: u8 = 0b1000;

/// Why bytes are no entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum EntryDamage {
    /// Its length is impossible where it stands.
    #[error("its length {0} does not fit")]
    Length(u32),
    /// There is no such kind.
    #[error("there is no entry of kind {0}")]
    Kind(u8),
    /// Its flags mean nothing.
    #[error("its flags {0:#x} mean nothing")]
    Flags(u8),
    /// Its batch is damaged.
    #[error("{0}")]
    Batch(BatchError),
    /// Its batch has another number of records than its header says.
    #[error("its batch has {found} records, its header says {declared}")]
    Records {
        /// What the header says.
        declared: u32,
        /// What the batch has.
        found: u32,
    },
    /// Its archive is not valid.
    #[error("its archive is not valid")]
    Archive,
    /// What it says breaks a rule of names, sizes or order.
    #[error("its '{0}' breaks a rule")]
    Rule(&'static str),
}

/// What a trim says.
#[derive(rkyv::Archive, rkyv::Serialize, rkyv::Deserialize)]
struct TrimBody {
    first: SequenceNumber,
    at: Timestamp,
}

/// What is said of released segments.
#[derive(rkyv::Archive, rkyv::Serialize, rkyv::Deserialize)]
struct ReleasedBody {
    log: LogId,
    numbers: Released,
}

/// The common part of every entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct EntryHead {
    pub(crate) length: u32,
    pub(crate) kind: u8,
    pub(crate) flags: u8,
    pub(crate) stream: StreamId,
    pub(crate) epoch: Epoch,
}

impl EntryHead {
    /// Reads the common part; the length is at least that of the fixed header and at most that of
    /// `bytes`.
    pub(crate) fn decode(bytes: &[u8]) -> Result<EntryHead, EntryDamage> {
        if bytes.len() < ENTRY_HEADER_BYTES {
            return Err(EntryDamage::Length(bytes.len() as u32));
        }
        let mut fields = FieldReader::new(bytes);
        let head = EntryHead {
            length: fields.u32(),
            kind: fields.u8(),
            flags: fields.u8(),
            stream: StreamId(fields.skip(2).u128()),
            epoch: Epoch(fields.u64()),
        };
        let least = match head.kind {
            KIND_BATCH => BATCH_HEADER_BYTES,
            _ => ENTRY_HEADER_BYTES,
        };
        if (head.length as usize) < least || head.length as usize > bytes.len() {
            return Err(EntryDamage::Length(head.length));
        }
        Ok(head)
    }

    /// Whether the entry belongs to `stream`.
    pub(crate) fn is_of(&self, stream: StreamId) -> bool {
        self.stream == stream && self.kind < KIND_BUCKET_PUT
    }

    /// First record and count that a batch entry's header claims.
    pub(crate) fn claimed_records(&self, bytes: &[u8]) -> Option<(SequenceNumber, u32)> {
        (self.kind == KIND_BATCH && bytes.len() >= BATCH_HEADER_BYTES).then(|| {
            let mut fields = FieldReader::new(&bytes[ENTRY_HEADER_BYTES..]);
            (SequenceNumber(fields.u64()), fields.u32())
        })
    }
}

/// Bytes that a batch takes in a group.
pub fn batch_entry_bytes(batch: &EncodedBatch) -> usize {
    BATCH_HEADER_BYTES + batch.bytes().len()
}

/// The fixed header of a batch entry; the payload follows it.
pub(crate) fn encode_batch_header(entry: &BatchEntry) -> [u8; BATCH_HEADER_BYTES] {
    let StoredBatch {
        first,
        epoch,
        stamping,
        writer,
        batch,
    } = &entry.stored;
    let mut flags = match stamping.mode {
        TimestampMode::ClientPrefer => 0,
        TimestampMode::ClientRequire => 1,
        TimestampMode::Arrival => 2,
    };
    if stamping.uncapped {
        flags |= FLAG_UNCAPPED;
    }
    if writer.is_some() {
        flags |= FLAG_WRITER;
    }
    let (writer, writer_sequence) = writer.map_or((0, 0), |w| (w.writer.0, w.sequence));
    let mut bytes = [0; BATCH_HEADER_BYTES];
    let mut fields = FieldWriter::new(&mut bytes);
    fields
        .u32(batch_entry_bytes(batch) as u32)
        .u8(KIND_BATCH)
        .u8(flags)
        .skip(2);
    fields.u128(entry.stream.0).u64(epoch.0);
    fields
        .u64(first.0)
        .u32(batch.records())
        .u32(batch.checksum().0);
    fields
        .u64(stamping.arrival.0)
        .u64(stamping.floor.0)
        .u64(entry.last_timestamp.0);
    fields.u128(writer).u64(writer_sequence);
    bytes
}

/// Appends an entry that is no batch.
///
/// # Panics
/// If the entry is a batch: the group lays those itself, to share their payload.
pub(crate) fn encode_other(entry: &Entry, out: Vec<u8>) -> Vec<u8> {
    let start = out.len();
    let (kind, stream, epoch) = match entry {
        Entry::Batch(_) => panic!("a batch is laid by the group"),
        Entry::Led(state) => (KIND_LED, state.id, state.epoch),
        Entry::Fence { stream, epoch, .. } => (KIND_FENCE, *stream, *epoch),
        Entry::Trim { stream, epoch, .. } => (KIND_TRIM, *stream, *epoch),
        Entry::Settings { stream, epoch, .. } => (KIND_SETTINGS, *stream, *epoch),
        Entry::Deleted { stream, epoch } => (KIND_DELETED, *stream, *epoch),
        Entry::BucketPut(_) => (KIND_BUCKET_PUT, StreamId(0), Epoch(0)),
        Entry::BucketDeleted(_) => (KIND_BUCKET_DELETED, StreamId(0), Epoch(0)),
        Entry::Released { .. } => (KIND_RELEASED, StreamId(0), Epoch(0)),
    };
    let mut out = out;
    out.resize(start + ENTRY_HEADER_BYTES, 0);
    let mut out = match entry {
        Entry::Batch(_) | Entry::Deleted { .. } => Ok(out),
        Entry::Led(state) => archive!(&**state, out),
        Entry::Fence { token, .. } => archive!(token, out),
        Entry::Trim { first, at, .. } => archive!(
            &TrimBody {
                first: *first,
                at: *at
            },
            out
        ),
        Entry::Settings { settings, .. } => archive!(settings, out),
        Entry::BucketPut(info) => archive!(info, out),
        Entry::BucketDeleted(name) => archive!(name, out),
        Entry::Released { log, numbers } => archive!(
            &ReleasedBody {
                log: *log,
                numbers: numbers.clone()
            },
            out
        ),
    }
    .expect("writing plain values into memory does not fail");
    let length = (out.len() - start) as u32;
    let mut fields = FieldWriter::new(&mut out[start..]);
    fields
        .u32(length)
        .u8(kind)
        .u8(0)
        .skip(2)
        .u128(stream.0)
        .u64(epoch.0);
    out
}

macro_rules! unarchive {
    ($kind:ty, $bytes:expr) => {
        rkyv::from_bytes::<$kind, rancor::Failure>($bytes).map_err(|_| EntryDamage::Archive)
    };
}

/// What becomes of a payload's own checksum.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PayloadCheck {
    /// It is compared with that of the bytes.
    Compare,
    /// It is what went into the group's checksum, which was compared: the bytes have it.
    Known,
    /// It is replaced by that of the bytes, whatever they are.
    Replace,
}

/// Decodes the entry at the beginning of `bytes`, whose head was decoded.
pub(crate) fn decode_entry(
    head: &EntryHead,
    bytes: &Bytes,
    check: PayloadCheck,
) -> Result<Entry, EntryDamage> {
    let EntryHead { stream, epoch, .. } = *head;
    let body = &bytes[ENTRY_HEADER_BYTES..head.length as usize];
    if head.kind != KIND_BATCH && head.flags != 0 {
        return Err(EntryDamage::Flags(head.flags));
    }
    match head.kind {
        KIND_BATCH => decode_batch(head, bytes, check),
        KIND_LED => {
            let state = unarchive!(StreamState, body)?;
            state.check().map_err(EntryDamage::Rule)?;
            if state.id != stream || state.epoch != epoch {
                return Err(EntryDamage::Rule("stream or epoch"));
            }
            Ok(Entry::Led(Box::new(state)))
        }
        KIND_FENCE => {
            let token = unarchive!(FencingToken, body)?;
            token
                .check()
                .map_err(|_| EntryDamage::Rule("fencing token"))?;
            Ok(Entry::Fence {
                stream,
                epoch,
                token,
            })
        }
        KIND_TRIM => {
            let TrimBody { first, at } = unarchive!(TrimBody, body)?;
            Ok(Entry::Trim {
                stream,
                epoch,
                first,
                at,
            })
        }
        KIND_SETTINGS => {
            let settings = unarchive!(StreamSettings, body)?;
            settings
                .check()
                .map_err(|_| EntryDamage::Rule("settings"))?;
            Ok(Entry::Settings {
                stream,
                epoch,
                settings,
            })
        }
        KIND_DELETED if body.is_empty() => Ok(Entry::Deleted { stream, epoch }),
        KIND_DELETED => Err(EntryDamage::Length(head.length)),
        KIND_BUCKET_PUT => {
            let info = unarchive!(BucketInfo, body)?;
            info.name
                .check()
                .map_err(|_| EntryDamage::Rule("bucket name"))?;
            Ok(Entry::BucketPut(info))
        }
        KIND_BUCKET_DELETED => {
            let name = unarchive!(BucketName, body)?;
            name.check().map_err(|_| EntryDamage::Rule("bucket name"))?;
            Ok(Entry::BucketDeleted(name))
        }
        KIND_RELEASED => decode_released(body),
        kind => Err(EntryDamage::Kind(kind)),
    }
}

fn decode_released(body: &[u8]) -> Result<Entry, EntryDamage> {
    let ReleasedBody { log, numbers } = unarchive!(ReleasedBody, body)?;
    match numbers.is_sound() {
        true => Ok(Entry::Released { log, numbers }),
        false => Err(EntryDamage::Rule("released numbers")),
    }
}

fn decode_batch(
    head: &EntryHead,
    bytes: &Bytes,
    check: PayloadCheck,
) -> Result<Entry, EntryDamage> {
    let mode = match head.flags & FLAG_MODE {
        0 => TimestampMode::ClientPrefer,
        1 => TimestampMode::ClientRequire,
        2 => TimestampMode::Arrival,
        _ => return Err(EntryDamage::Flags(head.flags)),
    };
    if head.flags & !(FLAG_MODE | FLAG_UNCAPPED | FLAG_WRITER) != 0 {
        return Err(EntryDamage::Flags(head.flags));
    }
    let mut fields = FieldReader::new(&bytes[ENTRY_HEADER_BYTES..BATCH_HEADER_BYTES]);
    let first = SequenceNumber(fields.u64());
    let declared = fields.u32();
    let checksum = Checksum(fields.u32());
    let stamping = Stamping {
        mode,
        uncapped: head.flags & FLAG_UNCAPPED != 0,
        arrival: Timestamp(fields.u64()),
        floor: Timestamp(fields.u64()),
    };
    let last_timestamp = Timestamp(fields.u64());
    let stamp = WriterStamp {
        writer: WriterId(fields.u128()),
        sequence: fields.u64(),
    };
    let payload = bytes.slice(BATCH_HEADER_BYTES..head.length as usize);
    let batch = match check {
        PayloadCheck::Compare => EncodedBatch::check(payload, checksum),
        PayloadCheck::Known => EncodedBatch::check_known(payload, checksum),
        PayloadCheck::Replace => {
            let found = Checksum::of(&payload);
            EncodedBatch::check_known(payload, found)
        }
    };
    let batch = batch.map_err(EntryDamage::Batch)?;
    let found = batch.records();
    if found != declared {
        return Err(EntryDamage::Records { declared, found });
    }
    if first.0.checked_add(u64::from(found)).is_none() {
        return Err(EntryDamage::Rule("sequence number"));
    }
    let writer = (head.flags & FLAG_WRITER != 0).then_some(stamp);
    Ok(Entry::Batch(BatchEntry {
        stream: head.stream,
        stored: StoredBatch {
            first,
            epoch: head.epoch,
            stamping,
            writer,
            batch,
        },
        last_timestamp,
    }))
}
