//! A boot disk in memory that counts its calls, can fail at any of them, and knows who locked what;
//! and logs made of segments for it.

use super::*;
use crate::disk::{DiskError, DiskFailure, ListedSegment, LogListing, Mapped};
use crate::entry::Entry;
use crate::index::Run;
use crate::segment::samples::{Image, LOG, STAR, batch, id, led, stream};
use bytes::Bytes;
use nova_model::SequenceNumber;
use std::collections::{BTreeMap, BTreeSet};

/// When a failing call fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fails {
    /// Before it did anything.
    Before,
    /// After it did everything.
    After,
}

/// A generation of a segment, and its index if that is there.
type Newer = (Vec<u8>, Option<Vec<u8>>);

#[derive(Clone, Default)]
pub(super) struct MemoryDisk {
    pub(super) files: BTreeMap<u64, Vec<u8>>,
    pub(super) indexes: BTreeMap<u64, Vec<u8>>,
    /// Newer generations, with their indexes if they are there.
    pub(super) rewritten: BTreeMap<(u64, u16), Newer>,
    /// The generation of each file that has another than 0.
    pub(super) generations: BTreeMap<u64, u16>,
    pub(super) locked: BTreeSet<u64>,
    pub(super) recycled: Vec<u64>,
    pub(super) calls: usize,
    pub(super) fails_at: Option<(usize, Fails)>,
    /// There is no space for an index until a segment is made shorter.
    pub(super) is_full: bool,
    /// Bytes read of each segment.
    pub(super) read: BTreeMap<u64, u64>,
}

impl MemoryDisk {
    /// What a process that starts now finds: the files, no locks.
    pub(super) fn restarted(&self) -> MemoryDisk {
        MemoryDisk {
            files: self.files.clone(),
            indexes: self.indexes.clone(),
            rewritten: self.rewritten.clone(),
            generations: self.generations.clone(),
            ..MemoryDisk::default()
        }
    }

    pub(super) fn put(&mut self, image: &Image) {
        self.files
            .insert(image.file().number.0, image.bytes.clone());
    }

    pub(super) fn put_index(&mut self, image: &Image) {
        let bytes = image.index.seal(&image.end).to_vec();
        self.indexes.insert(image.file().number.0, bytes);
    }

    pub(super) fn file_mut(&mut self, number: u64) -> &mut Vec<u8> {
        self.files.get_mut(&number).expect("the file is there")
    }

    pub(super) fn flip(&mut self, number: u64, at: usize) {
        self.file_mut(number)[at] ^= 0x10;
    }

    fn generation(&self, number: u64) -> Generation {
        Generation(self.generations.get(&number).copied().unwrap_or(0))
    }

    fn call<T>(&mut self, does: impl FnOnce(&mut Self) -> T) -> Result<T, DiskError> {
        let number = self.calls;
        self.calls += 1;
        match self.fails_at {
            Some((at, Fails::Before)) if at == number => Err(failure()),
            Some((at, Fails::After)) if at == number => {
                does(self);
                Err(failure())
            }
            _ => Ok(does(self)),
        }
    }
}

fn listed_segment((number, generation, size): (SegmentNumber, Generation, u64)) -> ListedSegment {
    ListedSegment {
        number,
        generation,
        size,
    }
}

fn failure() -> DiskError {
    failure_of(DiskFailure::Io)
}

fn failure_of(failure: DiskFailure) -> DiskError {
    DiskError {
        operation: "any",
        path: "memory".to_owned(),
        offset: 0,
        length: 0,
        failure,
        message: "the test wants it".to_owned(),
    }
}

impl BootDisk for MemoryDisk {
    fn list(&mut self, _log: LogId) -> Result<LogListing, DiskError> {
        self.call(|disk| {
            let mut listing = LogListing::default();
            for (number, bytes) in &disk.files {
                let generation = disk.generation(*number);
                let listed = (SegmentNumber(*number), generation, bytes.len() as u64);
                listing.segments.push(listed_segment(listed));
                if disk.indexes.contains_key(number) {
                    listing.indexes.push((SegmentNumber(*number), generation));
                }
            }
            for ((number, generation), (bytes, index)) in &disk.rewritten {
                let (number, generation) = (SegmentNumber(*number), Generation(*generation));
                let listed = (number, generation, bytes.len() as u64);
                listing.segments.push(listed_segment(listed));
                listing
                    .indexes
                    .extend(index.as_ref().map(|_| (number, generation)));
            }
            listing.segments.sort_unstable();
            listing.indexes.sort_unstable();
            listing
        })
    }

    fn choose(&mut self, file: SegmentFile, generation: Generation) -> Result<(), DiskError> {
        self.call(|disk| {
            let number = file.number.0;
            let chosen = disk.rewritten.remove(&(number, generation.0));
            disk.rewritten.retain(|(other, _), _| *other != number);
            if let Some((bytes, index)) = chosen {
                disk.files.insert(number, bytes);
                disk.indexes.remove(&number);
                disk.indexes.extend(index.map(|index| (number, index)));
                disk.generations.insert(number, generation.0);
            }
        })
    }

    fn lock(&mut self, file: SegmentFile) -> Result<(), DiskError> {
        self.call(|disk| assert!(disk.locked.insert(file.number.0), "locked twice"))
    }

    fn read(&mut self, file: SegmentFile, offset: u64, length: usize) -> Result<Bytes, DiskError> {
        assert!(
            offset.is_multiple_of(4096) && length.is_multiple_of(4096),
            "aligned"
        );
        self.call(|disk| {
            let bytes = &disk.files[&file.number.0];
            let start = bytes.len().min(offset as usize);
            let end = bytes.len().min(start + length);
            *disk.read.entry(file.number.0).or_default() += (end - start) as u64;
            Bytes::copy_from_slice(&bytes[start..end])
        })
    }

    fn map_index(&mut self, file: SegmentFile) -> Result<Mapped, DiskError> {
        self.call(|disk| -> Mapped {
            Arc::new(Bytes::copy_from_slice(&disk.indexes[&file.number.0]))
        })
    }

    fn store_index(&mut self, file: SegmentFile, bytes: Bytes) -> Result<Mapped, DiskError> {
        if self.is_full {
            return Err(failure_of(DiskFailure::NoSpace));
        }
        self.call(|disk| -> Mapped {
            disk.indexes.insert(file.number.0, bytes.to_vec());
            Arc::new(bytes)
        })
    }

    fn create_closed(&mut self, file: SegmentFile, header: Bytes) -> Result<(), DiskError> {
        self.call(|disk| {
            let before = disk.files.insert(file.number.0, header.to_vec());
            assert!(before.is_none(), "a segment's number is used once");
        })
    }

    fn finish(&mut self, file: SegmentFile, length: u64) -> Result<(), DiskError> {
        self.call(|disk| {
            assert!(
                disk.locked.remove(&file.number.0),
                "finished without its lock"
            );
            let bytes = disk
                .files
                .get_mut(&file.number.0)
                .expect("the file is there");
            assert!(
                bytes.len() as u64 >= length,
                "finishing never makes a file longer"
            );
            disk.is_full &= bytes.len() as u64 == length;
            bytes.truncate(length as usize);
        })
    }

    fn recycle(&mut self, file: SegmentFile) -> Result<(), DiskError> {
        self.call(|disk| {
            disk.locked.remove(&file.number.0);
            disk.files.remove(&file.number.0);
            disk.indexes.remove(&file.number.0);
            disk.recycled.push(file.number.0);
        })
    }
}

pub(super) fn run(
    disk: &mut MemoryDisk,
    options: RecoveryOptions,
) -> Result<RecoveredLog, RecoveryError> {
    recover(disk, LOG, STAR, options)
}

/// Recovers and expects that it works.
pub(super) fn found(disk: &mut MemoryDisk) -> RecoveredLog {
    run(disk, RecoveryOptions::default()).expect("nothing is wrong")
}

pub(super) const ALLOW: RecoveryOptions = RecoveryOptions {
    allow_corrupt: true,
    closing: None,
    planted: PlantedBugs::NONE,
};

/// What a stream is like in a segment.
type StreamSummary = (StreamState, Vec<Run>);

/// All that a start makes of a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Summary {
    pub(super) end: LogEnd,
    pub(super) segments: Vec<(SegmentFile, LogEnd, Vec<StreamSummary>)>,
    pub(super) damaged: Vec<(SegmentFile, u64, u64)>,
}

pub(super) fn summary(log: &RecoveredLog) -> Summary {
    let segments = log.indexes.iter().map(|index| {
        let ids: Vec<_> = index
            .stream_ids()
            .expect("sound")
            .map(|id| id.expect("sound"))
            .collect();
        let streams = ids.into_iter().map(|id| {
            let runs = index.runs_from(id, SequenceNumber(0)).expect("sound");
            let runs = runs.map(|run| run.expect("sound")).collect();
            (index.stream(id).expect("sound").expect("listed"), runs)
        });
        (index.file(), index.end(), streams.collect())
    });
    Summary {
        end: log.end,
        segments: segments.collect(),
        damaged: log
            .damaged
            .iter()
            .map(|range| (range.file, range.offset, range.length))
            .collect(),
    }
}

/// A log of whole segments, each sealed by the next, with the streams 1 and 2 in each.
pub(super) struct Log {
    pub(super) images: Vec<Image>,
    pub(super) streams: Vec<StreamState>,
}

impl Log {
    /// `segments` of `groups` groups; the last one is not sealed.
    pub(super) fn new(segments: u64, groups: usize) -> Log {
        let mut log = Log {
            images: Vec::new(),
            streams: vec![stream(1), stream(2)],
        };
        for number in 1..=segments {
            log.begin(number, number);
            (0..groups).for_each(|_| log.push(100));
        }
        log
    }

    /// Begins a segment after the last one; the streams are introduced with its first group.
    pub(super) fn begin(&mut self, incarnation: u64, number: u64) {
        let before = self
            .images
            .last()
            .map(|image| image.end)
            .unwrap_or_default();
        self.images
            .push(Image::new(id(incarnation, number), before));
        for state in &mut self.streams {
            let earlier = number.checked_sub(1).filter(|earlier| *earlier > 0);
            state.previous = earlier.map(crate::segment::samples::file);
        }
    }

    pub(super) fn last(&mut self) -> &mut Image {
        self.images.last_mut().expect("a segment was begun")
    }

    /// Adds a group with a batch of each stream; its records have `bytes` bytes.
    pub(super) fn push(&mut self, bytes: usize) {
        let entries = self.entries(bytes);
        self.last().push(&entries);
    }

    pub(super) fn entries(&mut self, bytes: usize) -> Vec<Entry> {
        let is_first = self.last().groups.is_empty();
        let mut entries = Vec::new();
        for state in &mut self.streams {
            if is_first {
                entries.push(led(state));
            }
            entries.push(batch(state, bytes));
        }
        entries
    }

    /// The log as it is when everything was done: indexes of all but the last segment.
    pub(super) fn disk(&self) -> MemoryDisk {
        let mut disk = MemoryDisk::default();
        for (at, image) in self.images.iter().enumerate() {
            disk.put(image);
            if at + 1 < self.images.len() && !image.groups.is_empty() {
                disk.put_index(image);
            }
        }
        disk
    }

    pub(super) fn end(&self) -> LogEnd {
        self.images
            .last()
            .map(|image| image.end)
            .unwrap_or_default()
    }
}
