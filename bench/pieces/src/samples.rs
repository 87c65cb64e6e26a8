//! Batches, entries, a segment and a disk in memory, made for the pieces.
//!
//! # Invariants
//! - All of it is legal: the same code that a star runs would take it.

use bytes::Bytes;
use nova_core::disk::{BootDisk, DiskError, ListedSegment, LogListing, Mapped, SegmentFile};
use nova_core::entry::{BatchEntry, Entry};
use nova_core::index::{ActiveIndex, SealedIndex};
use nova_core::segment::{GroupBuilder, GroupContext, LogEnd, SealedGroup, SegmentHeader};
use nova_core::state::StreamState;
use nova_model::settings::{StreamSettings, TimestampMode};
use nova_model::stored::Stamping;
use nova_model::{
    Checksum, EncodedBatch, Generation, GroupNumber, Incarnation, LogId, Record, SegmentId,
    SegmentNumber, StarId, StoredBatch, StreamId, StreamName, Timestamp,
};
use std::ops::Range;
use std::sync::Arc;

/// The star of all samples.
pub const STAR: StarId = StarId(0x5741);
/// The log of all samples.
pub const LOG: LogId = LogId(0);

const NUMBER: SegmentNumber = SegmentNumber(1);

/// The file of the sample segment.
pub fn file() -> SegmentFile {
    SegmentFile {
        log: LOG,
        number: NUMBER,
    }
}

/// Its id.
pub fn segment_id() -> SegmentId {
    SegmentId {
        star: STAR,
        log: LOG,
        incarnation: Incarnation(1),
        number: NUMBER,
        generation: Generation(0),
    }
}

/// Records of equal bodies.
pub fn records(count: usize, body_bytes: usize) -> Vec<Record> {
    let body = Bytes::from(vec![b'x'; body_bytes]);
    (0..count).map(|_| Record::new(body.clone())).collect()
}

/// A batch of equal records.
pub fn batch(count: usize, body_bytes: usize) -> EncodedBatch {
    EncodedBatch::encode(&records(count, body_bytes)).expect("within the limits")
}

/// A new stream.
pub fn stream(number: u128) -> StreamState {
    let name = StreamName::parse(&format!("bucket/stream-{number}")).expect("legal");
    let settings = StreamSettings::default();
    StreamState::new(StreamId(number), name, Timestamp(1), settings)
}

/// The entry that introduces a stream to a segment.
pub fn introduction(state: &StreamState) -> Entry {
    Entry::Led(Box::new(state.clone()))
}

/// The entry of a batch at a stream's tail, which moves on.
pub fn append(state: &mut StreamState, batch: EncodedBatch) -> Entry {
    let stamping = Stamping {
        mode: TimestampMode::Arrival,
        uncapped: false,
        arrival: Timestamp(state.tail.timestamp.0 + 10),
        floor: state.tail.timestamp,
    };
    let last_timestamp = stamping.last(&batch);
    let entry = Entry::Batch(BatchEntry {
        stream: state.id,
        stored: StoredBatch {
            first: state.tail.sequence,
            epoch: state.epoch,
            stamping,
            writer: None,
            batch,
        },
        last_timestamp,
    });
    state.apply(&entry);
    entry
}

/// Entries as one group behind the end of a log.
pub fn seal(entries: &[Entry], end: &LogEnd) -> SealedGroup {
    let mut builder = GroupBuilder::new();
    entries.iter().for_each(|entry| builder.push(entry));
    builder.seal(&GroupContext {
        segment: segment_id(),
        number: end.last_group.next(),
        previous: end.last_checksum,
        durable_through: end.last_group,
    })
}

/// A segment with its index.
pub struct Segment {
    /// Its bytes.
    pub bytes: Bytes,
    /// What is in it.
    pub index: ActiveIndex,
    /// Where it ends.
    pub end: LogEnd,
}

/// A segment of `groups` groups: each has a batch of `streams_each` streams, in turns.
pub fn segment(groups: usize, streams: usize, streams_each: usize, of: &EncodedBatch) -> Segment {
    let header = SegmentHeader {
        id: segment_id(),
        file_length: 256 << 20,
        closed: false,
        predecessor: None,
        rewritten: None,
    };
    let mut states: Vec<StreamState> = (0..streams as u128).map(|n| stream(n + 1)).collect();
    let mut bytes = header.encode().to_vec();
    let mut index = ActiveIndex::new(file(), segment_id());
    let mut end = LogEnd::default();
    let introductions: Vec<Entry> = states.iter().map(introduction).collect();
    for group in 0..groups {
        let mut entries = match group {
            0 => introductions.clone(),
            _ => Vec::new(),
        };
        for place in 0..streams_each {
            let state = &mut states[(group * streams_each + place) % streams];
            entries.push(append(state, of.clone()));
        }
        let sealed = seal(&entries, &end);
        let offset = bytes.len() as u64;
        sealed.parts.iter().for_each(|part| bytes.extend(part));
        bytes.resize(offset as usize + sealed.length, 0);
        index.apply_group(offset, sealed.length, &entries);
        end = LogEnd {
            segment: Some(segment_id()),
            length: bytes.len() as u64,
            last_group: GroupNumber(end.last_group.0 + 1),
            last_checksum: Checksum(sealed.checksum.0),
        };
    }
    Segment {
        bytes: Bytes::from(bytes),
        index,
        end,
    }
}

/// The index of a segment that states these streams and holds nothing of them.
pub fn index(number: SegmentNumber, streams: Range<u128>) -> SealedIndex {
    let file = SegmentFile { log: LOG, number };
    let id = SegmentId {
        number,
        ..segment_id()
    };
    let mut index = ActiveIndex::new(file, id);
    let entries: Vec<Entry> = streams.map(|n| introduction(&stream(n))).collect();
    index.apply_group(4096, 4096, &entries);
    let end = LogEnd {
        segment: Some(id),
        length: 8192,
        last_group: GroupNumber(1),
        last_checksum: Checksum(1),
    };
    SealedIndex::open(file, Arc::new(index.seal(&end))).expect("just sealed")
}

/// A log of one segment and no index, in memory.
pub struct MemoryDisk {
    /// The segment's bytes.
    pub bytes: Bytes,
    /// Its id.
    pub id: SegmentId,
}

impl BootDisk for MemoryDisk {
    fn list(&mut self, _log: LogId) -> Result<LogListing, DiskError> {
        Ok(LogListing {
            segments: vec![ListedSegment {
                number: self.id.number,
                generation: self.id.generation,
                size: self.bytes.len() as u64,
            }],
            indexes: Vec::new(),
        })
    }

    fn choose(&mut self, _file: SegmentFile, _of: Generation) -> Result<(), DiskError> {
        Ok(())
    }

    fn lock(&mut self, _file: SegmentFile) -> Result<(), DiskError> {
        Ok(())
    }

    fn read(&mut self, _file: SegmentFile, offset: u64, length: usize) -> Result<Bytes, DiskError> {
        let start = self.bytes.len().min(offset as usize);
        let end = self.bytes.len().min(start + length);
        Ok(self.bytes.slice(start..end))
    }

    fn map_index(&mut self, _file: SegmentFile) -> Result<Mapped, DiskError> {
        Ok(Arc::new(Bytes::new()))
    }

    fn store_index(&mut self, _file: SegmentFile, bytes: Bytes) -> Result<Mapped, DiskError> {
        Ok(Arc::new(bytes))
    }

    fn create_closed(&mut self, _file: SegmentFile, _header: Bytes) -> Result<(), DiskError> {
        Ok(())
    }

    fn finish(&mut self, _file: SegmentFile, length: u64) -> Result<(), DiskError> {
        self.bytes.truncate(length as usize);
        Ok(())
    }

    fn recycle(&mut self, _file: SegmentFile) -> Result<(), DiskError> {
        Ok(())
    }
}
