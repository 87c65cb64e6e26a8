//! The only door between the shard and storage.
//!
//! While it runs, the shard asks for [`DiskOp`]s and is told of each one's [`DiskResult`]. Before
//! it runs, recovery works through [`BootDisk`], one blocking call after the other: at that time
//! the core has nothing else to do.
//!
//! ```text
//!   Shard --poll_disk--> (OpToken, DiskOp) --> driver --> file
//!   Shard <--handle_disk-- (OpToken, DiskResult) <--'
//! ```
//!
//! # Invariants
//! - A completed [`DiskOp::Write`] is durable: it survives power loss.
//! - [`DiskOp::StoreIndex`] is atomic and durable with its directory entry when it completes.
//! - Operations are independent: the driver may run them in any order and at once. The shard never
//!   has two writes in flight that overlap.
//! - After a failed [`DiskOp::Write`] the shard sends nothing more to that segment.
//! - A generation of a segment has its name only once all of it is durable, and its index before.
//!
//! # Not here
//! - How it is done: `nova-disk` for real files, `tests/sim` for simulated ones.

use bytes::Bytes;
use nova_model::{Generation, LogId, SegmentNumber};
use rkyv::{Archive, Deserialize, Serialize};
use std::fmt;
use std::ops::{Deref, Range};
use std::sync::Arc;

/// A segment's file, by its place.
#[derive(
    Archive, Serialize, Deserialize, Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord,
)]
pub struct SegmentFile {
    /// The log.
    pub log: LogId,
    /// The segment's number in it.
    pub number: SegmentNumber,
}

impl fmt::Display for SegmentFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "core-{:03}/{:020}.seg", self.log.0, self.number.0)
    }
}

/// Names one operation between `poll_disk` and `handle_disk`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct OpToken(pub u64);

/// Bytes of a sealed index, mapped by the driver; any thread may read them.
pub type Mapped = Arc<dyn IndexBytes>;

/// Bytes that may still be on the device. Who looks at one that the device does not give is ended
/// by the system, without a word; so they are fetched first.
pub trait IndexBytes: Deref<Target = [u8]> + Send + Sync {
    /// Fetches the bytes of a range.
    fn fetch(&self, range: Range<usize>) -> Result<(), Unreadable>;
}

/// The device does not give bytes that were asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unreadable;

impl IndexBytes for Bytes {
    fn fetch(&self, _range: Range<usize>) -> Result<(), Unreadable> {
        Ok(())
    }
}

/// One thing to do with storage.
#[derive(Clone)]
pub enum DiskOp {
    /// Make the segment's file and lock it: `length` bytes allocated, from a spare file of the log
    /// if there is one. Durable with its directory entry when it completes.
    CreateSegment {
        /// The file.
        file: SegmentFile,
        /// Its size in bytes, a multiple of the block.
        length: u64,
    },
    /// Write `parts`, one after the other and zeros up to `length`, at `offset`; durable when it
    /// completes. The parts are copied once, into the buffer that the device reads.
    Write {
        /// The file.
        file: SegmentFile,
        /// Where, a multiple of the block.
        offset: u64,
        /// The pieces in their order.
        parts: Vec<Bytes>,
        /// How long it is with padding, a multiple of the block.
        length: usize,
    },
    /// Write zeros so that a later write finds space that was written before. In the background.
    Zero {
        /// The file.
        file: SegmentFile,
        /// Where, a multiple of the block.
        offset: u64,
        /// How many bytes, a multiple of the block.
        length: usize,
    },
    /// Read `length` bytes at `offset`.
    Read {
        /// The file.
        file: SegmentFile,
        /// Which of its generations.
        generation: Generation,
        /// Where, a multiple of the block.
        offset: u64,
        /// How many bytes, a multiple of the block.
        length: usize,
    },
    /// Store the sealed index of a segment under its final name and map it.
    StoreIndex {
        /// The segment that it belongs to.
        file: SegmentFile,
        /// Its bytes.
        bytes: Bytes,
    },
    /// Nothing in the segment is needed any more: its index goes, then its file becomes a spare one
    /// of the log, or is removed when there are spares enough. Durable when it completes.
    Recycle {
        /// The file.
        file: SegmentFile,
        /// Which of its generations; one that was rewritten makes no spare file.
        generation: Generation,
    },
    /// The segment will be recycled by its own core: no handle stays open on it here.
    LetGo {
        /// The file.
        file: SegmentFile,
        /// Which of its generations.
        generation: Generation,
    },
    /// Write `parts` and zeros up to `length` at `offset` of the draft of a generation, which is
    /// made if it is not there. In the background; durable when it completes.
    WriteDraft {
        /// The file.
        file: SegmentFile,
        /// The generation that it is to be.
        generation: Generation,
        /// Where, a multiple of the block.
        offset: u64,
        /// The pieces in their order.
        parts: Vec<Bytes>,
        /// How long it is with padding, a multiple of the block.
        length: usize,
    },
    /// The draft is whole: cut it to `length`, store its index, then give it its name. Durable, and
    /// the index mapped, when it completes. The older generation stays beside it.
    PlaceDraft {
        /// The file.
        file: SegmentFile,
        /// The generation that it is from then on.
        generation: Generation,
        /// Bytes that stay, a multiple of the block.
        length: u64,
        /// The bytes of its index.
        index: Bytes,
    },
    /// The draft is given up; it is no failure if there is none.
    DropDraft {
        /// The file.
        file: SegmentFile,
        /// The generation that it was to be.
        generation: Generation,
    },
    /// Tell how much space is free for this log.
    Space {
        /// The log.
        log: LogId,
    },
    /// The segment gets no more writes: cut the file to `length`, let its lock go.
    FinishSegment {
        /// The file.
        file: SegmentFile,
        /// Bytes that stay, a multiple of the block.
        length: u64,
    },
}

/// What an operation brought.
#[derive(Clone)]
pub enum DiskResult {
    /// The segment's file is there.
    Created {
        /// Whether its space was written before, so that no zeros are needed ahead.
        written_before: bool,
    },
    /// The write or the zeros are durable.
    Written,
    /// The bytes read.
    Read(Bytes),
    /// The index is stored; its bytes, mapped.
    Mapped(Mapped),
    /// It is done: the segment is finished, recycled, or let go, or its draft given up.
    Finished,
    /// What space there is.
    Space {
        /// Bytes that can be allocated, the log's spare files among them.
        free: u64,
        /// Bytes of the whole file system.
        total: u64,
    },
    /// It did not work.
    Failed(DiskError),
}

/// What kind of failure a disk operation met; what the shard does depends on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DiskFailure {
    /// No space is left. Met only by `CreateSegment`, by drafts and by indexes.
    NoSpace,
    /// No file descriptor is left.
    NoDescriptor,
    /// The file is not there.
    NotFound,
    /// Fewer bytes than asked for.
    Short,
    /// Another process holds the file's lock.
    Locked,
    /// Anything else.
    Io,
}

/// A failed disk operation: what, where, and what the system said.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{operation} of {path} at {offset} for {length} bytes failed: {message}")]
pub struct DiskError {
    /// The operation's name.
    pub operation: &'static str,
    /// The file.
    pub path: String,
    /// Where in it.
    pub offset: u64,
    /// How much.
    pub length: u64,
    /// The kind.
    pub failure: DiskFailure,
    /// What the system said.
    pub message: String,
}

/// A segment's file in a log's directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ListedSegment {
    /// The segment's number.
    pub number: SegmentNumber,
    /// Which of its generations.
    pub generation: Generation,
    /// Size of the file in bytes.
    pub size: u64,
}

/// What recovery finds in a log's directory.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LogListing {
    /// Segments, ascending; those of one number by generation.
    pub segments: Vec<ListedSegment>,
    /// Numbers and generations for which an index file exists, ascending.
    pub indexes: Vec<(SegmentNumber, Generation)>,
}

/// Storage as recovery uses it: blocking, one call after the other.
pub trait BootDisk {
    /// Lists the segments and indexes of a log; makes its directory if it is not there, and removes
    /// drafts.
    fn list(&mut self, log: LogId) -> Result<LogListing, DiskError>;
    /// This generation of a segment counts: all calls are about it from now on (about the one that
    /// was written first, before), and the others go with their indexes, durably.
    fn choose(&mut self, file: SegmentFile, generation: Generation) -> Result<(), DiskError>;
    /// Waits, within the driver's patience, until no process holds the segment's lock, and holds it
    /// from then on. Afterwards no write of an earlier process can land any more.
    fn lock(&mut self, file: SegmentFile) -> Result<(), DiskError>;
    /// Reads at most `length` bytes at `offset` (both multiples of the block); fewer at the end.
    fn read(&mut self, file: SegmentFile, offset: u64, length: usize) -> Result<Bytes, DiskError>;
    /// Where data begins at or after `offset`: space that was allocated and never written may be
    /// passed over, since it reads as zeros. None if there is no data up to the file's end. An
    /// implementation that cannot tell says `offset`.
    fn next_data(&mut self, file: SegmentFile, offset: u64) -> Result<Option<u64>, DiskError> {
        let _any = file;
        Ok(Some(offset))
    }
    /// Maps the index of a segment.
    fn map_index(&mut self, file: SegmentFile) -> Result<Mapped, DiskError>;
    /// Stores an index, atomically and durably, and maps it.
    fn store_index(&mut self, file: SegmentFile, bytes: Bytes) -> Result<Mapped, DiskError>;
    /// Makes a segment's file of one block, `header`, durably, and leaves it unlocked: the seal of
    /// a log that gets no more writes.
    fn create_closed(&mut self, file: SegmentFile, header: Bytes) -> Result<(), DiskError>;
    /// Cuts a segment's file to `length` and lets its lock go.
    fn finish(&mut self, file: SegmentFile, length: u64) -> Result<(), DiskError>;
    /// Makes a segment's file a spare one for a later `CreateSegment`, or removes it when there are
    /// spares enough. Its index goes too.
    fn recycle(&mut self, file: SegmentFile) -> Result<(), DiskError>;
}
