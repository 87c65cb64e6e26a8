//! A disk that forgets: what is durable, what is on its way, and what a crash leaves of it.
//!
//! ```text
//!   begin(op) -> Flight ----complete----> durable, answered
//!                  |--power cut--> whole, not at all, or any of its sectors
//!                  '--kill-------> lands later, when the process is gone: also after a new start,
//!                                  unless that waits for the segment's lock
//! ```
//! A write goes to an inode, as on a real system: the name it was opened under can change or go.
//! Names (segments, indexes, spare files) change atomically and durably when their act completes;
//! in flight at a crash each is there or not.
//!
//! # Invariants
//! - What was completed survives every crash, byte for byte.
//!
//! # Not here
//! - Recovery's view: [`boot`]. Which crash happens when: the plan of faults.

pub mod boot;
mod failing;
mod flight;
mod remains;

pub use failing::Background;
pub use flight::Flight;

use crate::rng::Rng;
use bytes::Bytes;
use nova_core::disk::{DiskError, DiskFailure, SegmentFile};
use nova_model::limits::SPARE_SEGMENTS_MAX;
use nova_model::{Generation, Incarnation, LogId};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The unit that a device writes as a whole.
pub const SECTOR_BYTES: usize = 512;
/// Bytes of the whole disk, as it says.
const TOTAL_BYTES: u64 = 1 << 40;

/// A file's number; names come and go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Inode(u64);

/// A generation of a segment: each is a file of its own.
type Key = (SegmentFile, Generation);

/// A write whose process was killed before it landed.
#[derive(Debug, Clone)]
struct Late {
    due: u64,
    file: Key,
    inode: Inode,
    offset: u64,
    bytes: Bytes,
}

/// Everything on the disk of one star.
#[derive(Debug, Clone)]
pub struct SimDisk {
    inodes: BTreeMap<Inode, Arc<Vec<u8>>>,
    segments: BTreeMap<Key, Inode>,
    indexes: BTreeMap<Key, Bytes>,
    drafts: BTreeMap<Key, Inode>,
    spares: BTreeMap<LogId, Vec<Inode>>,
    logs: BTreeSet<LogId>,
    last_inode: u64,
    late: Vec<Late>,
    incarnation: Incarnation,
    locks_work: bool,
    /// The newest generation of each segment that got its name.
    placed: BTreeMap<SegmentFile, Generation>,
    /// A segment of which a start took an older generation.
    pub gone_back: Option<SegmentFile>,
    /// Whether no further file finds space.
    pub is_full: bool,
    /// What is told to be free while it is not full, in bytes.
    pub free_bytes: u64,
    /// Whether the next write of a group fails.
    pub fails_next_write: bool,
    /// How it stands with what is done in the background.
    pub background: Background,
    /// Segments of which an operation has failed.
    troubled: BTreeSet<SegmentFile>,
}

impl SimDisk {
    /// An empty disk. Without working locks a start does not wait for writes of a killed process.
    pub fn new(locks_work: bool) -> SimDisk {
        SimDisk {
            inodes: BTreeMap::new(),
            segments: BTreeMap::new(),
            indexes: BTreeMap::new(),
            drafts: BTreeMap::new(),
            spares: BTreeMap::new(),
            logs: BTreeSet::new(),
            last_inode: 0,
            late: Vec::new(),
            incarnation: Incarnation(0),
            locks_work,
            placed: BTreeMap::new(),
            gone_back: None,
            is_full: false,
            free_bytes: TOTAL_BYTES / 2,
            fails_next_write: false,
            background: Background::Works,
            troubled: BTreeSet::new(),
        }
    }

    /// Raises the number of the star's start, durably.
    pub fn next_incarnation(&mut self) -> Incarnation {
        self.incarnation = Incarnation(self.incarnation.0 + 1);
        self.incarnation
    }

    /// The logs that there are.
    pub fn logs(&self) -> Vec<LogId> {
        self.logs.iter().copied().collect()
    }

    /// The same disk as another process would see it that waits for nothing.
    pub fn copy(&self) -> SimDisk {
        let mut copy = self.clone();
        copy.heal();
        if !copy.locks_work {
            copy.late.clear();
        }
        copy
    }

    /// From now on nothing fails.
    pub fn heal(&mut self) {
        self.make_space();
        self.fails_next_write = false;
        self.mend();
    }

    /// From now on there is space.
    pub fn make_space(&mut self) {
        self.is_full = false;
        self.free_bytes = TOTAL_BYTES / 2;
    }

    /// From now on what is done in the background does not fail.
    pub fn mend(&mut self) {
        self.background = Background::Works;
    }

    /// Segments with the bytes of their newest generations.
    pub fn segments(&self) -> impl Iterator<Item = (SegmentFile, &[u8])> {
        let segments = self.segments.iter();
        let newest = segments.filter(|((file, of), _)| self.newest(*file) == Some(*of));
        newest.map(|((file, _), inode)| (*file, &self.inodes[inode][..]))
    }

    /// How many segments have another generation than the first.
    pub fn rewritten(&self) -> usize {
        let newest = self.segments().map(|(file, _)| self.newest(file));
        newest.filter(|of| *of > Some(Generation(0))).count()
    }

    /// The newest generation of a segment.
    fn newest(&self, file: SegmentFile) -> Option<Generation> {
        let all = (file, Generation(0))..=(file, Generation(u16::MAX));
        let newest = self.segments.range(all).next_back();
        newest.map(|((_, generation), _)| *generation)
    }

    fn inode_of(&self, file: SegmentFile) -> Option<Inode> {
        self.segments.get(&(file, self.newest(file)?)).copied()
    }

    /// Turns one bit of a segment's file.
    pub fn flip_bit(&mut self, file: SegmentFile, byte: usize, bit: u8) {
        let inode = self.inode_of(file).expect("the segment is there");
        let bytes = self.inodes.get_mut(&inode).expect("a name has its inode");
        Arc::make_mut(bytes)[byte] ^= 1 << bit;
    }

    /// Whether a segment has its index.
    pub fn has_index(&self, file: SegmentFile) -> bool {
        let newest = self.newest(file);
        newest.is_some_and(|of| self.indexes.contains_key(&(file, of)))
    }

    /// Forgets the index of a segment.
    pub fn lose_index(&mut self, file: SegmentFile) {
        if let Some(newest) = self.newest(file) {
            self.indexes.remove(&(file, newest));
        }
    }

    /// Leaves a spare file with the content that a segment of the log has, as recycling leaves it.
    pub fn leave_old_spare(&mut self, file: SegmentFile) {
        let Some(inode) = self.inode_of(file) else {
            return;
        };
        let content = Arc::clone(&self.inodes[&inode]);
        let inode = self.new_inode(content);
        self.spares.entry(file.log).or_default().push(inode);
    }

    /// The same of about half of all segments.
    pub fn leave_old_spares(&mut self, rng: &mut Rng) {
        let files: Vec<_> = self.segments().map(|(file, _)| file).collect();
        for file in files {
            if rng.chance(50) {
                self.leave_old_spare(file);
            }
        }
    }

    fn new_inode(&mut self, content: Arc<Vec<u8>>) -> Inode {
        self.last_inode += 1;
        let inode = Inode(self.last_inode);
        self.inodes.insert(inode, content);
        inode
    }

    fn put(&mut self, inode: Inode, offset: u64, bytes: &[u8]) {
        let Some(file) = self.inodes.get_mut(&inode) else {
            return;
        };
        let file = Arc::make_mut(file);
        let (start, end) = (offset as usize, offset as usize + bytes.len());
        if file.len() < end {
            file.resize(end, 0);
        }
        file[start..end].copy_from_slice(bytes);
    }

    fn cut(&mut self, inode: Inode, length: u64) {
        let file = self.inodes.get_mut(&inode).expect("an open file is there");
        if file.len() != length as usize {
            Arc::make_mut(file).resize(length as usize, 0);
        }
    }

    /// Removes a segment's index and makes its file a spare one.
    fn recycle(&mut self, (file, generation): Key) {
        self.indexes.remove(&(file, generation));
        let inode = self.segments.remove(&(file, generation));
        self.late.retain(|late| Some(late.inode) != inode);
        let spares = self.spares.entry(file.log).or_default();
        if let Some(inode) = inode
            && generation == Generation(0)
            && spares.len() < SPARE_SEGMENTS_MAX
        {
            spares.push(inode);
        }
    }

    /// Removes all generations of a segment but one.
    fn choose(&mut self, file: SegmentFile, generation: Generation) {
        if self.placed.get(&file) > Some(&generation) {
            self.gone_back = Some(file);
        }
        let stays = |key: &Key| key.0 != file || key.1 == generation;
        self.segments.retain(|key, _| stays(key));
        self.indexes.retain(|key, _| stays(key));
    }

    /// Makes a segment's file, from a spare one if there is one; whether all of it was written.
    fn create(&mut self, file: SegmentFile, length: u64) -> bool {
        let spare = self.spares.get_mut(&file.log).and_then(Vec::pop);
        let inode = match spare {
            Some(inode) => inode,
            None => self.new_inode(Arc::new(Vec::new())),
        };
        let was_written = self.inodes[&inode].len() as u64 >= length;
        self.cut(inode, length);
        self.placed.remove(&file);
        self.segments.insert((file, Generation(0)), inode);
        self.logs.insert(file.log);
        was_written
    }
}

fn failed(operation: &'static str, file: SegmentFile, failure: DiskFailure) -> DiskError {
    DiskError {
        operation,
        path: file.to_string(),
        offset: 0,
        length: 0,
        failure,
        message: "the simulated disk says so".to_owned(),
    }
}
