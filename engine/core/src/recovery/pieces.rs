//! Reading a segment front to back in large pieces.
//!
//! # Invariants
//! - Each read is at least [`PIECE_BYTES`] long where the file is, and reads no byte twice except
//!   those of a group that a piece ends in.

use crate::disk::{BootDisk, DiskError, SegmentFile};
use bytes::Bytes;
use nova_model::limits::{BLOCK_BYTES, GROUP_TARGET_BYTES, READ_CHUNK_BYTES};

/// Least bytes of one read: a full group of the usual target size fits in twice, so that few are
/// read again.
const PIECE_BYTES: usize = 4 * READ_CHUNK_BYTES;

const _: () = assert!(2 * GROUP_TARGET_BYTES <= PIECE_BYTES);

/// A segment's file with the piece of it that was read last.
pub(super) struct Pieces<'a> {
    disk: &'a mut dyn BootDisk,
    file: SegmentFile,
    size: u64,
    start: u64,
    piece: Bytes,
    /// Bytes read so far.
    pub(super) bytes_read: u64,
}

impl<'a> Pieces<'a> {
    /// Reads the first `size` bytes of the file, nothing behind them.
    pub(super) fn new(disk: &'a mut dyn BootDisk, file: SegmentFile, size: u64) -> Pieces<'a> {
        Pieces {
            disk,
            file,
            size,
            start: 0,
            piece: Bytes::new(),
            bytes_read: 0,
        }
    }

    /// The bytes from `offset`, a multiple of the block, `length` of them or as many as there are.
    pub(super) fn at(&mut self, offset: u64, length: usize) -> Result<Bytes, DiskError> {
        let end = self.size.min(offset + length as u64);
        if offset >= end {
            return Ok(Bytes::new());
        }
        let piece_end = self.start + self.piece.len() as u64;
        if offset < self.start || end > piece_end {
            self.fetch(offset, length)?;
        }
        let from = (offset - self.start) as usize;
        let wanted = (end - offset) as usize;
        let to = self.piece.len().min(from + wanted);
        Ok(self.piece.slice(from..to))
    }

    /// `offset`, or the first block behind it that may hold something where nothing was ever
    /// written between; the file's end if that is so up to there.
    pub(super) fn skip_unwritten(&mut self, offset: u64) -> Result<u64, DiskError> {
        let piece_end = self.start + self.piece.len() as u64;
        if (self.start..piece_end).contains(&offset) || offset >= self.size {
            return Ok(offset);
        }
        let data = self.disk.next_data(self.file, offset)?;
        let block = data.map(|data| data - data % BLOCK_BYTES as u64);
        Ok(block.map_or(self.size, |at| at.max(offset)))
    }

    fn fetch(&mut self, offset: u64, length: usize) -> Result<(), DiskError> {
        let left = self.size - offset;
        let wanted = left.min(length.max(PIECE_BYTES) as u64) as usize;
        let aligned = wanted.next_multiple_of(BLOCK_BYTES);
        let mut piece = self.disk.read(self.file, offset, aligned)?;
        piece.truncate(wanted);
        self.bytes_read += piece.len() as u64;
        self.start = offset;
        self.piece = piece;
        Ok(())
    }
}
