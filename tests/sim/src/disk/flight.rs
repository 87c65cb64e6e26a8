//! Operations of a running shard, from their submission to their end.
//!
//! # Invariants
//! - An operation takes effect when it completes or at a crash, never before.

use super::{Inode, SECTOR_BYTES, SimDisk, failed, mapped};
use bytes::Bytes;
use nova_core::disk::{DiskFailure, DiskOp, DiskResult, SegmentFile};

/// A full disk has space for so much more.
const BLOCK: u64 = nova_model::limits::BLOCK_BYTES as u64;

/// Bytes of the whole disk, as it says.
const TOTAL_BYTES: u64 = 1 << 40;

/// An operation on its way, with the file it was opened on.
#[derive(Debug, Clone)]
pub struct Flight {
    pub(super) file: SegmentFile,
    pub(super) act: Act,
}

#[derive(Debug, Clone)]
pub(super) enum Act {
    Create {
        length: u64,
    },
    Write {
        inode: Inode,
        offset: u64,
        bytes: Bytes,
        is_group: bool,
    },
    Read {
        inode: Option<Inode>,
        offset: u64,
        length: usize,
    },
    StoreIndex {
        bytes: Bytes,
    },
    Finish {
        inode: Inode,
        length: u64,
    },
    Recycle,
    LetGo,
    Space,
}

impl Flight {
    /// What kind of operation it is and how many bytes it moves, for delays and traces.
    pub fn weight(&self) -> (&'static str, usize) {
        match &self.act {
            Act::Create { .. } => ("create", 0),
            Act::Write {
                bytes,
                is_group: true,
                ..
            } => ("write", bytes.len()),
            Act::Write { bytes, .. } => ("zero", bytes.len()),
            Act::Read { length, .. } => ("read", *length),
            Act::StoreIndex { bytes } => ("index", bytes.len()),
            Act::Finish { .. } => ("finish", 0),
            Act::Recycle => ("recycle", 0),
            Act::LetGo => ("let go", 0),
            Act::Space => ("space", 0),
        }
    }

    /// The segment's file.
    pub fn file(&self) -> SegmentFile {
        self.file
    }

    /// Where in the file.
    pub fn offset(&self) -> u64 {
        match &self.act {
            Act::Write { offset, .. } | Act::Read { offset, .. } => *offset,
            Act::Create { .. }
            | Act::StoreIndex { .. }
            | Act::Finish { .. }
            | Act::Recycle
            | Act::LetGo
            | Act::Space => 0,
        }
    }

    /// The bytes it writes.
    pub fn bytes(&self) -> &[u8] {
        match &self.act {
            Act::Write { bytes, .. } | Act::StoreIndex { bytes } => bytes,
            Act::Create { .. }
            | Act::Read { .. }
            | Act::Finish { .. }
            | Act::Recycle
            | Act::LetGo
            | Act::Space => &[],
        }
    }
}

impl SimDisk {
    /// An operation is submitted.
    ///
    /// # Panics
    /// If it writes to a segment that is not there, overlaps none of its blocks, or is misaligned.
    pub fn begin(&mut self, op: DiskOp) -> Flight {
        match op {
            DiskOp::CreateSegment { file, length } => Flight {
                file,
                act: Act::Create { length },
            },
            DiskOp::Write {
                file,
                offset,
                parts,
                length,
            } => {
                let mut bytes = Vec::with_capacity(length);
                for part in &parts {
                    bytes.extend_from_slice(part);
                }
                assert!(bytes.len() <= length, "the parts fit the length");
                bytes.resize(length, 0);
                self.write(file, offset, bytes, true)
            }
            DiskOp::Zero {
                file,
                offset,
                length,
            } => self.write(file, offset, vec![0; length], false),
            DiskOp::Read {
                file,
                offset,
                length,
            } => {
                let inode = self.segments.get(&file).copied();
                let act = Act::Read {
                    inode,
                    offset,
                    length,
                };
                Flight { file, act }
            }
            DiskOp::StoreIndex { file, bytes } => Flight {
                file,
                act: Act::StoreIndex { bytes },
            },
            DiskOp::Recycle { file } => Flight {
                file,
                act: Act::Recycle,
            },
            DiskOp::Space { log } => Flight {
                file: SegmentFile {
                    log,
                    number: nova_model::SegmentNumber(0),
                },
                act: Act::Space,
            },
            DiskOp::LetGo { file } => Flight {
                file,
                act: Act::LetGo,
            },
            DiskOp::FinishSegment { file, length } => {
                let inode = self.segments[&file];
                let act = Act::Finish { inode, length };
                Flight { file, act }
            }
        }
    }

    fn write(&self, file: SegmentFile, offset: u64, bytes: Vec<u8>, is_group: bool) -> Flight {
        let block = nova_model::limits::BLOCK_BYTES;
        assert!(
            offset.is_multiple_of(block as u64) && bytes.len().is_multiple_of(block),
            "a write is made of blocks"
        );
        let inode = self.segments[&file];
        let end = offset as usize + bytes.len();
        assert!(
            end <= self.inodes[&inode].len() || is_group,
            "zeros stay within the file"
        );
        let act = Act::Write {
            inode,
            offset,
            bytes: bytes.into(),
            is_group,
        };
        Flight { file, act }
    }

    /// An operation is done: it takes effect, durably.
    pub fn complete(&mut self, flight: Flight) -> DiskResult {
        let file = flight.file;
        match flight.act {
            Act::Create { length }
                if self.is_full && length > BLOCK && self.spares_of(file) == 0 =>
            {
                DiskResult::Failed(failed("create", file, DiskFailure::NoSpace))
            }
            Act::Create { length } => DiskResult::Created {
                written_before: self.create(file, length),
            },
            Act::Write {
                inode,
                offset,
                bytes,
                is_group,
            } => {
                if is_group && std::mem::take(&mut self.fails_next_write) {
                    let sectors = bytes.len() / SECTOR_BYTES / 2;
                    self.put(inode, offset, &bytes[..sectors * SECTOR_BYTES]);
                    return DiskResult::Failed(failed("write", file, DiskFailure::Io));
                }
                self.put(inode, offset, &bytes);
                DiskResult::Written
            }
            Act::Read {
                inode,
                offset,
                length,
            } => self.read_now(file, inode, offset, length),
            Act::StoreIndex { bytes } => {
                self.indexes.insert(file, bytes.clone());
                DiskResult::Mapped(mapped(bytes))
            }
            Act::Finish { inode, length } => {
                self.cut(inode, length);
                DiskResult::Finished
            }
            Act::Recycle => {
                self.recycle(file);
                DiskResult::Finished
            }
            Act::LetGo => DiskResult::Finished,
            Act::Space => DiskResult::Space {
                free: if self.is_full { 0 } else { TOTAL_BYTES / 2 },
                total: TOTAL_BYTES,
            },
        }
    }

    fn spares_of(&self, file: SegmentFile) -> usize {
        self.spares.get(&file.log).map_or(0, Vec::len)
    }

    fn read_now(
        &self,
        file: SegmentFile,
        inode: Option<Inode>,
        offset: u64,
        length: usize,
    ) -> DiskResult {
        let Some(bytes) = inode.and_then(|inode| self.inodes.get(&inode)) else {
            return DiskResult::Failed(failed("read", file, DiskFailure::NotFound));
        };
        let range = offset as usize..offset as usize + length;
        match bytes.get(range) {
            Some(bytes) => DiskResult::Read(Bytes::copy_from_slice(bytes)),
            None => DiskResult::Failed(failed("read", file, DiskFailure::Short)),
        }
    }
}
