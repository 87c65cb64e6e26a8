//! The bytes of a sealed index; drawn in docs/FORMAT.md.
//!
//! The file is a row of sections and a trailer that says where they are. The rows of the tables
//! are rkyv archives of one fixed size each, so the n-th is found by multiplication, and looking at
//! one validates that one alone. A stream's state is an archive of its own for the same reason.
//!
//! # Invariants
//! - A trailer that decodes describes sections that lie inside the file and hold whole rows.

use super::active::ActiveIndex;
use super::{DamagedSpan, IndexDamage};
use crate::segment::{
    FEATURES_KNOWN, FORMAT_VERSION, FieldReader, FieldWriter, INDEX_MAGIC, LogEnd, features_of,
};
use bytes::Bytes;
use nova_model::limits::{BLOCK_BYTES, SEGMENT_BYTES_MAX};
use nova_model::request::BucketInfo;
use nova_model::{Checksum, Generation, GroupNumber, SegmentId, StreamId};
use rkyv::{Archive, Serialize, rancor};
use std::collections::BTreeMap;
use std::mem;
use std::ops::Range;

/// Bytes of the trailer.
pub(super) const TRAILER_BYTES: usize = 256;
const CHECKSUM_END: usize = 12;

/// A stream in the table that is sorted by stream id.
#[derive(Archive, Serialize)]
pub(super) struct StreamRow {
    pub(super) id: u128,
    pub(super) state_offset: u64,
    pub(super) state_length: u32,
    pub(super) name_offset: u64,
    pub(super) bucket_length: u16,
    pub(super) key_length: u16,
    pub(super) runs_first: u32,
    pub(super) runs_count: u32,
    pub(super) tail_timestamp: u64,
}

/// A run in the table of runs, where those of a stream stand together.
#[derive(Archive, Serialize)]
pub(super) struct RunRow {
    pub(super) sequence: u64,
    pub(super) timestamp: u64,
    pub(super) arrival: u64,
    pub(super) before: u64,
    pub(super) offset: u32,
    pub(super) length: u32,
}

/// A stream's place in the table of streams, in the order of names.
#[derive(Archive, Serialize)]
pub(super) struct NameRow {
    pub(super) stream: u32,
}

/// A range of released segments of a log.
#[derive(Archive, Serialize)]
pub(super) struct ReleasedRow {
    pub(super) log: u16,
    pub(super) first: u64,
    pub(super) last: u64,
}

pub(super) const STREAM_ROW_BYTES: usize = mem::size_of::<ArchivedStreamRow>();
pub(super) const RUN_ROW_BYTES: usize = mem::size_of::<ArchivedRunRow>();
pub(super) const NAME_ROW_BYTES: usize = mem::size_of::<ArchivedNameRow>();
pub(super) const RELEASED_ROW_BYTES: usize = mem::size_of::<ArchivedReleasedRow>();
pub(super) const SPAN_ROW_BYTES: usize = mem::size_of::<super::ArchivedDamagedSpan>();

const _: () = {
    assert!(STREAM_ROW_BYTES == 56);
    assert!(RUN_ROW_BYTES == 40);
    assert!(NAME_ROW_BYTES == 4);
    assert!(RELEASED_ROW_BYTES == 18);
    assert!(SPAN_ROW_BYTES == 8);
};

/// The sections of an index, in the order of the file.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Sections {
    /// Archives of states.
    pub(super) states: Range<usize>,
    /// Bytes of names: bucket and key of each stream.
    pub(super) names: Range<usize>,
    /// Rows of runs.
    pub(super) runs: Range<usize>,
    /// Rows of streams.
    pub(super) streams: Range<usize>,
    /// Rows of names.
    pub(super) order: Range<usize>,
    /// One archive of all buckets.
    pub(super) buckets: Range<usize>,
    /// Rows of ranges of released segments.
    pub(super) released: Range<usize>,
    /// Rows of damaged spans.
    pub(super) damaged: Range<usize>,
}

/// The end of the file: what it is and where everything is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Trailer {
    /// Checksum of everything before the trailer.
    pub(super) body_checksum: Checksum,
    /// The segment.
    pub(super) segment: SegmentId,
    /// Where it ends, or ended before it was rewritten.
    pub(super) end: LogEnd,
    /// Where the sections are.
    pub(super) sections: Sections,
    /// Bytes of its file that count.
    pub(super) length: u64,
    /// Bytes of its batches, as they lie in groups; 0 if an older version did not count them.
    pub(super) batch_bytes: u64,
}

macro_rules! append {
    ($value:expr, $out:expr) => {
        $out = rkyv::api::high::to_bytes_in::<_, rancor::Error>($value, mem::take(&mut $out))
            .expect("writing plain values into memory does not fail")
    };
}

/// The whole file. `length` bytes of the segment count.
pub(super) fn encode(index: &ActiveIndex, end: &LogEnd, length: u64) -> Bytes {
    let mut out = Vec::new();
    let mut rows = Vec::new();
    for (id, stream) in index.all_streams() {
        let state_offset = out.len();
        append!(&stream.state, out);
        rows.push(StreamRow {
            id: id.0,
            state_offset: state_offset as u64,
            state_length: (out.len() - state_offset) as u32,
            name_offset: 0,
            bucket_length: 0,
            key_length: 0,
            runs_first: 0,
            runs_count: 0,
            tail_timestamp: stream.state.tail.timestamp.0,
        });
    }
    let states = 0..out.len();
    let names = add_names(index, &mut rows, &mut out);
    let runs = add_runs(index, &mut rows, &mut out);
    let streams = add_rows(&mut out, |out| {
        rows.iter().for_each(|row| append!(row, *out))
    });
    let order = add_order(index, &mut out);
    let buckets = add_rows(&mut out, |out| {
        let buckets: Vec<BucketInfo> = index.buckets().values().cloned().collect();
        append!(&buckets, *out);
    });
    let released = add_released(index, &mut out);
    let damaged = add_rows(&mut out, |out| {
        index
            .damaged()
            .iter()
            .for_each(|span: &DamagedSpan| append!(span, *out));
    });
    let trailer = Trailer {
        body_checksum: Checksum::of(&out),
        segment: index.id(),
        end: *end,
        sections: Sections {
            states,
            names,
            runs,
            streams,
            order,
            buckets,
            released,
            damaged,
        },
        length,
        batch_bytes: index.batch_bytes(),
    };
    out.extend_from_slice(&trailer.encode());
    Bytes::from(out)
}

fn add_rows(out: &mut Vec<u8>, add: impl FnOnce(&mut Vec<u8>)) -> Range<usize> {
    let start = out.len();
    add(out);
    start..out.len()
}

fn add_names(index: &ActiveIndex, rows: &mut [StreamRow], out: &mut Vec<u8>) -> Range<usize> {
    add_rows(out, |out| {
        for (row, (_, stream)) in rows.iter_mut().zip(index.all_streams()) {
            let (bucket, key) = (
                stream.state.name.bucket.as_str(),
                stream.state.name.key.as_str(),
            );
            row.name_offset = out.len() as u64;
            row.bucket_length = bucket.len() as u16;
            row.key_length = key.len() as u16;
            out.extend_from_slice(bucket.as_bytes());
            out.extend_from_slice(key.as_bytes());
        }
    })
}

fn add_runs(index: &ActiveIndex, rows: &mut [StreamRow], out: &mut Vec<u8>) -> Range<usize> {
    let mut laid = 0;
    add_rows(out, |out| {
        for (row, (_, stream)) in rows.iter_mut().zip(index.all_streams()) {
            row.runs_first = laid;
            row.runs_count = stream.runs.len() as u32;
            laid += row.runs_count;
            for run in &stream.runs {
                let row = RunRow {
                    sequence: run.first.sequence.0,
                    timestamp: run.first.timestamp.0,
                    arrival: run.arrival.0,
                    before: run.before,
                    offset: run.offset,
                    length: run.length,
                };
                append!(&row, *out);
            }
        }
    })
}

fn add_order(index: &ActiveIndex, out: &mut Vec<u8>) -> Range<usize> {
    let numbers: BTreeMap<StreamId, u32> =
        index.all_streams().map(|(id, _)| *id).zip(0..).collect();
    add_rows(out, |out| {
        for id in index.all_names() {
            append!(
                &NameRow {
                    stream: numbers[&id]
                },
                *out
            );
        }
    })
}

fn add_released(index: &ActiveIndex, out: &mut Vec<u8>) -> Range<usize> {
    add_rows(out, |out| {
        for (log, numbers) in index.released() {
            for range in numbers.ranges() {
                let row = ReleasedRow {
                    log: log.0,
                    first: range.first,
                    last: range.last,
                };
                append!(&row, *out);
            }
        }
    })
}

impl Sections {
    fn all(&self) -> [&Range<usize>; 8] {
        let Sections {
            states,
            names,
            runs,
            streams,
            order,
            buckets,
            released,
            damaged,
        } = self;
        [
            states, names, runs, streams, order, buckets, released, damaged,
        ]
    }
}

impl Trailer {
    fn encode(&self) -> [u8; TRAILER_BYTES] {
        let mut bytes = [0; TRAILER_BYTES];
        let mut fields = FieldWriter::new(&mut bytes);
        fields.raw(&INDEX_MAGIC).skip(4);
        fields
            .u16(FORMAT_VERSION)
            .u16(TRAILER_BYTES as u16)
            .u32(features_of(&self.segment));
        fields.u32(self.body_checksum.0).segment_id(&self.segment);
        fields
            .u64(self.end.length)
            .u64(self.end.last_group.0)
            .u32(self.end.last_checksum.0);
        for section in self.sections.all() {
            fields.u64(section.start as u64).u64(section.len() as u64);
        }
        fields.u64(self.length).u64(self.batch_bytes);
        let checksum = Checksum::of(&bytes[CHECKSUM_END..]);
        bytes[INDEX_MAGIC.len()..CHECKSUM_END].copy_from_slice(&checksum.0.to_le_bytes());
        bytes
    }

    /// Reads the trailer of a file.
    pub(super) fn decode(file: &[u8]) -> Result<Trailer, IndexDamage> {
        let Some((body, trailer)) = file.split_last_chunk::<TRAILER_BYTES>() else {
            return Err(IndexDamage::Short(file.len()));
        };
        let mut fields = FieldReader::new(trailer);
        if fields.raw() != INDEX_MAGIC {
            return Err(IndexDamage::Trailer);
        }
        if Checksum(fields.u32()) != Checksum::of(&trailer[CHECKSUM_END..]) {
            return Err(IndexDamage::Trailer);
        }
        let (version, length, features) = (fields.u16(), fields.u16(), fields.u32());
        if version != FORMAT_VERSION
            || usize::from(length) != TRAILER_BYTES
            || features & !FEATURES_KNOWN != 0
        {
            return Err(IndexDamage::Version { version, features });
        }
        let body_checksum = Checksum(fields.u32());
        let segment = fields.segment_id();
        let end = LogEnd {
            segment: Some(segment.original()),
            length: fields.u64(),
            last_group: GroupNumber(fields.u64()),
            last_checksum: Checksum(fields.u32()),
        };
        let sections = decode_sections(&mut fields, body.len())?;
        let (length, batch_bytes) = (fields.u64(), fields.u64());
        let length = match segment.generation {
            Generation(0) => end.length,
            _ => length,
        };
        let is_whole =
            |length: u64| length.is_multiple_of(BLOCK_BYTES as u64) && length <= SEGMENT_BYTES_MAX;
        let is_last_of_all = end.last_group.0 == u64::MAX;
        if !is_whole(end.length) || !is_whole(length) || is_last_of_all {
            return Err(IndexDamage::Trailer);
        }
        Ok(Trailer {
            body_checksum,
            segment,
            end,
            sections,
            length,
            batch_bytes,
        })
    }
}

fn decode_sections(fields: &mut FieldReader<'_>, body: usize) -> Result<Sections, IndexDamage> {
    let mut at = 0;
    let mut next = |row: usize| {
        let (start, length) = (fields.u64(), fields.u64());
        let end = start.checked_add(length).filter(|end| *end <= body as u64);
        let whole = length.is_multiple_of(row as u64);
        match end {
            Some(end) if start == at && whole => {
                at = end;
                Ok(start as usize..end as usize)
            }
            _ => Err(IndexDamage::Trailer),
        }
    };
    let sections = Sections {
        states: next(1)?,
        names: next(1)?,
        runs: next(RUN_ROW_BYTES)?,
        streams: next(STREAM_ROW_BYTES)?,
        order: next(NAME_ROW_BYTES)?,
        buckets: next(1)?,
        released: next(RELEASED_ROW_BYTES)?,
        damaged: next(SPAN_ROW_BYTES)?,
    };
    match at == body as u64 {
        true => Ok(sections),
        false => Err(IndexDamage::Trailer),
    }
}
