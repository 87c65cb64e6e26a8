//! The index of a sealed segment, read where its file is mapped.
//!
//! Opening one looks at its trailer alone, so that a star with many segments starts quickly. The
//! first look-up compares the checksum of the whole file, once for all cores. A look-up is a binary
//! search over rows of one size; only the state of the one stream asked for is built. Among 20,000
//! streams that takes 0.3 us by id and 0.5 us by name, all rows checked, so nothing here is unsafe;
//! the checksum of their 4 MiB takes 0.4 ms once. Most look-ups by name of what is not there end at
//! a filter in memory ([`super::names`]).
//!
//! # Invariants
//! - No byte of the file can make a look-up panic or reach outside the file.
//! - Damage found once is the answer of every later look-up too.
//!
//! # Not here
//! - Rebuilding a damaged index from its segment: [`crate::recovery`].

use super::archive::{
    ArchivedNameRow, ArchivedReleasedRow, ArchivedRunRow, ArchivedStreamRow, NAME_ROW_BYTES,
    RELEASED_ROW_BYTES, RUN_ROW_BYTES, SPAN_ROW_BYTES, STREAM_ROW_BYTES, TRAILER_BYTES, Trailer,
};
use super::damage::IndexDamage;
use super::names::{NameFilter, NameHash};
use super::{ArchivedDamagedSpan, DamagedSpan, Expiry, Run};
use crate::disk::{Mapped, SegmentFile};
use crate::released::{NumberRange, Released};
use crate::segment::LogEnd;
use crate::state::StreamState;
use nova_model::position::{Position, SequenceNumber};
use nova_model::request::BucketInfo;
use nova_model::{BucketName, Checksum, LogId, SegmentId, StreamId, StreamName, Timestamp};
use rkyv::rancor::Failure;
use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::sync::OnceLock;

/// The index of a sealed segment.
pub struct SealedIndex {
    file: SegmentFile,
    mapped: Mapped,
    trailer: Trailer,
    verdict: OnceLock<Result<(), IndexDamage>>,
    /// The filter of its names, from the first look-up by name on; only of a sound index.
    names: OnceLock<NameFilter>,
}

impl fmt::Debug for SealedIndex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SealedIndex({}, {} bytes)", self.file, self.mapped.len())
    }
}

impl SealedIndex {
    /// Opens the index of a segment. Cheap: looks at the trailer alone.
    pub fn open(file: SegmentFile, mapped: Mapped) -> Result<SealedIndex, IndexDamage> {
        let trailer = mapped.len().saturating_sub(TRAILER_BYTES)..mapped.len();
        mapped.fetch(trailer)?;
        let trailer = Trailer::decode(&mapped)?;
        let segment = trailer.segment;
        if segment.log != file.log || segment.number != file.number {
            return Err(IndexDamage::OtherSegment(segment));
        }
        Ok(SealedIndex {
            file,
            mapped,
            trailer,
            verdict: OnceLock::new(),
            names: OnceLock::new(),
        })
    }

    /// The segment's file.
    pub fn file(&self) -> SegmentFile {
        self.file
    }

    /// The segment.
    pub fn id(&self) -> SegmentId {
        self.trailer.segment
    }

    /// Where the segment ends, or ended before it was rewritten: what the one behind it says.
    pub fn end(&self) -> LogEnd {
        self.trailer.end
    }

    /// Bytes of the segment's file that count.
    pub fn length(&self) -> u64 {
        self.trailer.length
    }

    /// Bytes of its batches, as they lie in groups; none if that was not counted.
    pub(crate) fn batch_bytes(&self) -> Option<u64> {
        Some(self.trailer.batch_bytes).filter(|bytes| *bytes > 0)
    }

    /// Bytes of the archive of the state in row `n` of the table.
    pub(crate) fn state_bytes(&self, n: usize) -> Result<u64, IndexDamage> {
        Ok(u64::from(self.stream_row(n)?.state_length.to_native()))
    }

    /// The first run of a stream, if the segment holds records of it.
    pub(crate) fn first_run(&self, id: StreamId) -> Result<Option<Run>, IndexDamage> {
        let first = self.run_numbers(id)?.next();
        first.map(|n| self.run(n)).transpose()
    }

    /// Bytes of the index.
    pub fn bytes(&self) -> usize {
        self.mapped.len()
    }

    /// Compares the checksum of the whole file, the first time; each look-up begins with this.
    pub fn verify(&self) -> Result<(), IndexDamage> {
        *self.verdict.get_or_init(|| {
            let length = self.mapped.len() - TRAILER_BYTES;
            self.mapped.fetch(0..length)?;
            let body = &self.mapped[..length];
            let (declared, found) = (self.trailer.body_checksum, Checksum::of(body));
            match declared == found {
                true => Ok(()),
                false => Err(IndexDamage::Checksum { declared, found }),
            }
        })
    }

    /// State of a stream.
    pub fn stream(&self, id: StreamId) -> Result<Option<StreamState>, IndexDamage> {
        self.find(id)?.map(|row| self.state(row)).transpose()
    }

    /// The streams that this segment introduces, ascending.
    pub fn stream_ids(
        &self,
    ) -> Result<impl Iterator<Item = Result<StreamId, IndexDamage>> + '_, IndexDamage> {
        self.verify()?;
        let ids =
            (0..self.stream_count()).map(|n| Ok(StreamId(self.stream_row(n)?.id.to_native())));
        Ok(ids)
    }

    /// State of the stream of that name, also if it is deleted. `hash` is that of the name: who
    /// asks many indexes makes it once.
    pub fn find_name(
        &self,
        name: &StreamName,
        hash: NameHash,
    ) -> Result<Option<StreamState>, IndexDamage> {
        if !self.name_filter()?.may_hold(hash) {
            return Ok(None);
        }
        let wanted = (
            name.bucket.as_str().as_bytes(),
            name.key.as_str().as_bytes(),
        );
        let at = self.first_name_where(|found| found >= wanted)?;
        if at == self.name_count() || self.name(self.named_row(at)?)? != wanted {
            return Ok(None);
        }
        self.state(self.named_row(at)?).map(Some)
    }

    fn name_filter(&self) -> Result<&NameFilter, IndexDamage> {
        if let Some(known) = self.names.get() {
            return Ok(known);
        }
        self.verify()?;
        Ok(self.names.get_or_init(|| {
            let mut filter = NameFilter::with_room(self.name_count());
            for n in 0..self.name_count() {
                match self.named_row(n).and_then(|row| self.name(row)) {
                    Ok((bucket, key)) => filter.add(NameHash::of_parts(bucket, key)),
                    // Whoever looks comes upon the damage.
                    Err(_) => return NameFilter::unknowing(),
                }
            }
            filter
        }))
    }

    /// Whether the segment holds records of the stream.
    pub fn has_records(&self, id: StreamId) -> Result<bool, IndexDamage> {
        Ok(!self.run_numbers(id)?.is_empty())
    }

    /// First record of the stream that the segment holds.
    pub fn first_sequence(&self, id: StreamId) -> Result<Option<SequenceNumber>, IndexDamage> {
        let first = self.run_numbers(id)?.next();
        first.map(|n| Ok(self.run(n)?.first.sequence)).transpose()
    }

    /// The runs in which to look for the record and all later ones, in order.
    pub fn runs_from(
        &self,
        id: StreamId,
        sequence: SequenceNumber,
    ) -> Result<impl Iterator<Item = Result<Run, IndexDamage>> + '_, IndexDamage> {
        let runs = self.run_numbers(id)?;
        let behind = partition(
            runs.clone(),
            |n| Ok(self.run(n)?.first.sequence <= sequence),
        )?;
        let from = behind.saturating_sub(1).max(runs.start);
        Ok((from..runs.end).map(|n| self.run(n)))
    }

    /// The run in which to begin looking for the first record at or after a time; none if all
    /// records are before it.
    pub fn run_at_time(&self, id: StreamId, time: Timestamp) -> Result<Option<Run>, IndexDamage> {
        let Some(row) = self.find(id)? else {
            return Ok(None);
        };
        let runs = self.run_numbers(id)?;
        if Timestamp(row.tail_timestamp.to_native()) < time || runs.is_empty() {
            return Ok(None);
        }
        let before = partition(runs.clone(), |n| Ok(self.run(n)?.first.timestamp < time))?;
        self.run(before.saturating_sub(1).max(runs.start)).map(Some)
    }

    /// The first record that stays when what has expired goes; none if nothing here has.
    pub(crate) fn first_kept(
        &self,
        id: StreamId,
        expiry: &Expiry,
    ) -> Result<Option<SequenceNumber>, IndexDamage> {
        let runs = self.run_numbers(id)?;
        let passed = partition(runs.clone(), |n| Ok(expiry.passes(&self.run(n)?)))?;
        if passed == runs.start {
            return Ok(None);
        }
        Ok(Some(self.run(passed - 1)?.first.sequence))
    }

    /// How many streams the segment names.
    pub(crate) fn streams(&self) -> usize {
        self.stream_count()
    }

    /// State of the stream in row `n` of the table; none behind the last.
    pub(crate) fn nth(&self, n: usize) -> Result<Option<StreamState>, IndexDamage> {
        self.verify()?;
        if n >= self.stream_count() {
            return Ok(None);
        }
        self.state(self.stream_row(n)?).map(Some)
    }

    /// States of a bucket's streams whose keys begin with `prefix` and are greater than
    /// `start_after`, in the order of their keys; deleted ones too.
    pub fn names_after<'a>(
        &'a self,
        bucket: &'a BucketName,
        prefix: &'a str,
        start_after: &str,
    ) -> Result<impl Iterator<Item = Result<StreamState, IndexDamage>> + 'a, IndexDamage> {
        self.verify()?;
        let bucket = bucket.as_str().as_bytes();
        let start = (bucket, start_after.as_bytes());
        let at = match start_after < prefix {
            true => self.first_name_where(|found| found >= (bucket, prefix.as_bytes()))?,
            false => self.first_name_where(|found| found > start)?,
        };
        let states = (at..self.name_count()).map_while(move |n| {
            let row = self.named_row(n).and_then(|row| Ok((row, self.name(row)?)));
            match row {
                Err(damage) => Some(Err(damage)),
                Ok((row, (found, key))) => {
                    let wanted = found == bucket && key.starts_with(prefix.as_bytes());
                    wanted.then(|| self.state(row))
                }
            }
        });
        Ok(states)
    }

    /// The buckets as this segment leaves them; empty outside the buckets' home log.
    pub fn buckets(&self) -> Result<BTreeMap<BucketName, BucketInfo>, IndexDamage> {
        self.verify()?;
        let bytes = &self.mapped[self.trailer.sections.buckets.clone()];
        let buckets = rkyv::from_bytes::<Vec<BucketInfo>, Failure>(bytes)
            .map_err(|_| IndexDamage::Content)?;
        let named = |info: BucketInfo| (info.name.clone(), info);
        Ok(buckets.into_iter().map(named).collect())
    }

    /// Released segments of each log, as this segment states them.
    pub fn released(&self) -> Result<BTreeMap<LogId, Released>, IndexDamage> {
        self.verify()?;
        let mut released: BTreeMap<LogId, Released> = BTreeMap::new();
        let section = self.trailer.sections.released.clone();
        for row in self.mapped[section].chunks_exact(RELEASED_ROW_BYTES) {
            let row = rkyv::access::<ArchivedReleasedRow, Failure>(row);
            let row = row.map_err(|_| IndexDamage::Content)?;
            let (first, last) = (row.first.to_native(), row.last.to_native());
            if first > last || last == u64::MAX {
                return Err(IndexDamage::Content);
            }
            let numbers = released.entry(LogId(row.log.to_native())).or_default();
            numbers.add(NumberRange { first, last });
        }
        Ok(released)
    }

    /// Whether there is accepted damage; looks at the trailer alone.
    pub fn has_damage(&self) -> bool {
        !self.trailer.sections.damaged.is_empty()
    }

    /// States of the streams that a damaged span of the segment may have held records of.
    pub fn streams_in(&self, span: DamagedSpan) -> Result<Vec<StreamState>, IndexDamage> {
        self.verify()?;
        let mut found = Vec::new();
        for n in 0..self.stream_count() {
            let row = self.stream_row(n)?;
            for run in self.run_numbers(StreamId(row.id.to_native()))? {
                let run = self.run(run)?;
                if (run.offset, run.length) == (span.offset, span.length) {
                    found.push(self.state(row)?);
                }
            }
        }
        Ok(found)
    }

    /// Damage of the segment that was accepted.
    pub fn damaged(&self) -> Result<Vec<DamagedSpan>, IndexDamage> {
        self.verify()?;
        let rows = self.mapped[self.trailer.sections.damaged.clone()].chunks_exact(SPAN_ROW_BYTES);
        rows.map(|row| {
            let span = rkyv::access::<ArchivedDamagedSpan, Failure>(row);
            let span = span.map_err(|_| IndexDamage::Content)?;
            Ok(DamagedSpan {
                offset: span.offset.to_native(),
                length: span.length.to_native(),
            })
        })
        .collect()
    }

    fn stream_count(&self) -> usize {
        self.trailer.sections.streams.len() / STREAM_ROW_BYTES
    }

    fn name_count(&self) -> usize {
        self.trailer.sections.order.len() / NAME_ROW_BYTES
    }

    /// The bytes of row `n` of a table.
    fn row(&self, table: &Range<usize>, size: usize, n: usize) -> Result<&[u8], IndexDamage> {
        let start = n
            .checked_mul(size)
            .and_then(|at| at.checked_add(table.start));
        let start = start.ok_or(IndexDamage::Content)?;
        match start.checked_add(size) {
            Some(end) if end <= table.end => Ok(&self.mapped[start..end]),
            _ => Err(IndexDamage::Content),
        }
    }

    fn stream_row(&self, n: usize) -> Result<&ArchivedStreamRow, IndexDamage> {
        let row = self.row(&self.trailer.sections.streams, STREAM_ROW_BYTES, n)?;
        rkyv::access::<ArchivedStreamRow, Failure>(row).map_err(|_| IndexDamage::Content)
    }

    fn named_row(&self, n: usize) -> Result<&ArchivedStreamRow, IndexDamage> {
        let row = self.row(&self.trailer.sections.order, NAME_ROW_BYTES, n)?;
        let row = rkyv::access::<ArchivedNameRow, Failure>(row);
        let row = row.map_err(|_| IndexDamage::Content)?;
        self.stream_row(row.stream.to_native() as usize)
    }

    fn run(&self, n: usize) -> Result<Run, IndexDamage> {
        let row = self.row(&self.trailer.sections.runs, RUN_ROW_BYTES, n)?;
        let row = rkyv::access::<ArchivedRunRow, Failure>(row);
        let row = row.map_err(|_| IndexDamage::Content)?;
        Ok(Run {
            first: Position {
                sequence: SequenceNumber(row.sequence.to_native()),
                timestamp: Timestamp(row.timestamp.to_native()),
            },
            arrival: Timestamp(row.arrival.to_native()),
            before: row.before.to_native(),
            offset: row.offset.to_native(),
            length: row.length.to_native(),
        })
    }

    fn find(&self, id: StreamId) -> Result<Option<&ArchivedStreamRow>, IndexDamage> {
        self.verify()?;
        let is_before = |n| Ok(self.stream_row(n)?.id.to_native() < id.0);
        let at = partition(0..self.stream_count(), is_before)?;
        if at == self.stream_count() {
            return Ok(None);
        }
        let row = self.stream_row(at)?;
        Ok((row.id.to_native() == id.0).then_some(row))
    }

    /// Numbers of the stream's rows in the table of runs.
    fn run_numbers(&self, id: StreamId) -> Result<Range<usize>, IndexDamage> {
        Ok(self.find(id)?.map_or(0..0, |row| {
            let first = row.runs_first.to_native() as usize;
            first..first + row.runs_count.to_native() as usize
        }))
    }

    fn first_name_where(
        &self,
        wanted: impl Fn((&[u8], &[u8])) -> bool,
    ) -> Result<usize, IndexDamage> {
        partition(0..self.name_count(), |n| {
            Ok(!wanted(self.name(self.named_row(n)?)?))
        })
    }

    /// Bucket and key.
    fn name(&self, row: &ArchivedStreamRow) -> Result<(&[u8], &[u8]), IndexDamage> {
        let bucket = usize::from(row.bucket_length.to_native());
        let length = bucket + usize::from(row.key_length.to_native());
        let bytes = self.inside(&self.trailer.sections.names, row.name_offset.into(), length)?;
        Ok(bytes.split_at(bucket))
    }

    fn state(&self, row: &ArchivedStreamRow) -> Result<StreamState, IndexDamage> {
        let length = row.state_length.to_native() as usize;
        let bytes = self.inside(
            &self.trailer.sections.states,
            row.state_offset.into(),
            length,
        )?;
        let state = rkyv::from_bytes::<StreamState, Failure>(bytes);
        let state = state.map_err(|_| IndexDamage::Content)?;
        match state.check().is_ok() && state.id.0 == row.id.to_native() {
            true => Ok(state),
            false => Err(IndexDamage::Content),
        }
    }

    fn inside(
        &self,
        section: &Range<usize>,
        offset: u64,
        length: usize,
    ) -> Result<&[u8], IndexDamage> {
        let start = usize::try_from(offset).map_err(|_| IndexDamage::Content)?;
        let end = start.checked_add(length).ok_or(IndexDamage::Content)?;
        if start < section.start || end > section.end {
            return Err(IndexDamage::Content);
        }
        Ok(&self.mapped[start..end])
    }
}

/// The first of `numbers` for which `is_before` does not hold; those for which it does come first.
fn partition(
    numbers: Range<usize>,
    is_before: impl Fn(usize) -> Result<bool, IndexDamage>,
) -> Result<usize, IndexDamage> {
    let Range { mut start, mut end } = numbers;
    while start < end {
        let middle = start + (end - start) / 2;
        match is_before(middle)? {
            true => start = middle + 1,
            false => end = middle,
        }
    }
    Ok(start)
}
