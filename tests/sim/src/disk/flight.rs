//! Operations of a running shard, from their submission to their end.
//!
//! # Invariants
//! - An operation takes effect when it completes or at a crash, never before.

use super::{Inode, SECTOR_BYTES, SimDisk, TOTAL_BYTES, failed};
use bytes::Bytes;
use nova_core::disk::{DiskFailure, DiskOp, DiskResult, SegmentFile};
use nova_model::Generation;
use std::sync::Arc;

/// A full disk has space for so much more.
const BLOCK: u64 = nova_model::limits::BLOCK_BYTES as u64;

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
        generation: Generation,
        offset: u64,
        bytes: Bytes,
        kind: &'static str,
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
    Recycle {
        generation: Generation,
    },
    Place {
        inode: Option<Inode>,
        generation: Generation,
        length: u64,
        index: Bytes,
    },
    Drop {
        generation: Generation,
    },
    LetGo,
    Space,
}

impl Flight {
    /// What kind of operation it is and how many bytes it moves, for delays and traces.
    pub fn weight(&self) -> (&'static str, usize) {
        match &self.act {
            Act::Create { .. } => ("create", 0),
            Act::Write { bytes, kind, .. } => (kind, bytes.len()),
            Act::Read { length, .. } => ("read", *length),
            Act::StoreIndex { bytes } => ("index", bytes.len()),
            Act::Finish { .. } => ("finish", 0),
            Act::Recycle { .. } => ("recycle", 0),
            Act::Place { index, .. } => ("place", index.len()),
            Act::Drop { .. } => ("drop", 0),
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
            | Act::Recycle { .. }
            | Act::Place { .. }
            | Act::Drop { .. }
            | Act::LetGo
            | Act::Space => 0,
        }
    }

    /// The bytes it writes.
    pub fn bytes(&self) -> &[u8] {
        match &self.act {
            Act::Write { bytes, .. }
            | Act::StoreIndex { bytes }
            | Act::Place { index: bytes, .. } => bytes,
            Act::Create { .. }
            | Act::Read { .. }
            | Act::Finish { .. }
            | Act::Recycle { .. }
            | Act::Drop { .. }
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
                let inode = self.written(file);
                write(file, inode, offset, joined(&parts, length), "write")
            }
            DiskOp::Zero {
                file,
                offset,
                length,
            } => {
                let inode = self.written(file);
                let end = offset as usize + length;
                let is_inside = end <= self.inodes[&inode].len();
                assert!(is_inside, "zeros stay within the file");
                write(file, inode, offset, vec![0; length], "zero")
            }
            DiskOp::Read {
                file,
                generation,
                offset,
                length,
            } => {
                let inode = self.segments.get(&(file, generation)).copied();
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
            DiskOp::Recycle { file, generation } => Flight {
                file,
                act: Act::Recycle { generation },
            },
            DiskOp::Space { log } => Flight {
                file: SegmentFile {
                    log,
                    number: nova_model::SegmentNumber(0),
                },
                act: Act::Space,
            },
            DiskOp::LetGo { file, .. } => Flight {
                file,
                act: Act::LetGo,
            },
            DiskOp::FinishSegment { file, length } => {
                let inode = self.written(file);
                let act = Act::Finish { inode, length };
                Flight { file, act }
            }
            op => self.begin_draft(op),
        }
    }

    /// An operation on a draft is submitted.
    fn begin_draft(&mut self, op: DiskOp) -> Flight {
        match op {
            DiskOp::WriteDraft {
                file,
                generation,
                offset,
                parts,
                length,
            } => {
                let known = self.drafts.get(&(file, generation)).copied();
                let inode = known.unwrap_or_else(|| self.new_inode(Arc::new(Vec::new())));
                self.drafts.insert((file, generation), inode);
                let mut flight = write(file, inode, offset, joined(&parts, length), "draft");
                if let Act::Write { generation: of, .. } = &mut flight.act {
                    *of = generation;
                }
                flight
            }
            DiskOp::PlaceDraft {
                file,
                generation,
                length,
                index,
            } => {
                let inode = self.drafts.get(&(file, generation)).copied();
                let act = Act::Place {
                    inode,
                    generation,
                    length,
                    index,
                };
                Flight { file, act }
            }
            DiskOp::DropDraft { file, generation } => {
                let act = Act::Drop { generation };
                Flight { file, act }
            }
            _ => unreachable!("no operation on a draft"),
        }
    }

    /// The file of a segment that is being written.
    fn written(&self, file: SegmentFile) -> Inode {
        self.segments[&(file, Generation(0))]
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
                kind,
                ..
            } => {
                if kind == "write" && std::mem::take(&mut self.fails_next_write) {
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
                self.indexes.insert((file, Generation(0)), bytes.clone());
                DiskResult::Mapped(Arc::new(bytes))
            }
            Act::Finish { inode, length } => {
                self.cut(inode, length);
                DiskResult::Finished
            }
            Act::Recycle { generation } => {
                self.recycle((file, generation));
                DiskResult::Finished
            }
            Act::Place {
                inode,
                generation,
                length,
                index,
            } => {
                let inode = inode.expect("a draft was written before it gets its name");
                self.cut(inode, length);
                self.drafts.remove(&(file, generation));
                self.placed.insert(file, generation);
                self.indexes.insert((file, generation), index.clone());
                self.segments.insert((file, generation), inode);
                DiskResult::Mapped(Arc::new(index))
            }
            Act::Drop { generation } => {
                self.drafts.remove(&(file, generation));
                self.indexes.remove(&(file, generation));
                DiskResult::Finished
            }
            Act::LetGo => DiskResult::Finished,
            Act::Space => DiskResult::Space {
                free: if self.is_full { 0 } else { self.free_bytes },
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

fn joined(parts: &[Bytes], length: usize) -> Vec<u8> {
    let mut bytes = parts.concat();
    assert!(bytes.len() <= length, "the parts fit the length");
    bytes.resize(length, 0);
    bytes
}

fn write(
    file: SegmentFile,
    inode: Inode,
    offset: u64,
    bytes: Vec<u8>,
    kind: &'static str,
) -> Flight {
    let block = nova_model::limits::BLOCK_BYTES;
    assert!(
        offset.is_multiple_of(block as u64) && bytes.len().is_multiple_of(block),
        "a write is made of blocks"
    );
    let act = Act::Write {
        inode,
        generation: Generation(0),
        offset,
        bytes: bytes.into(),
        kind,
    };
    Flight { file, act }
}
