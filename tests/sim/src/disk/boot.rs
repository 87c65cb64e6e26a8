//! The disk as recovery uses it, with a crash at one of its calls if the plan says so.
//!
//! # Invariants
//! - After the crash every call fails.

use super::{SimDisk, failed};
use crate::rng::Rng;
use bytes::Bytes;
use nova_core::disk::{
    BootDisk, DiskError, DiskFailure, ListedSegment, LogListing, Mapped, SegmentFile,
};
use nova_model::{Generation, LogId};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Storage of one recovery.
pub struct Boot<'a> {
    disk: &'a mut SimDisk,
    rng: Rng,
    calls_left: Option<u64>,
    chosen: BTreeMap<SegmentFile, Generation>,
}

impl<'a> Boot<'a> {
    /// Storage that fails for good at the call after `calls_left` more, if that is given.
    pub fn new(disk: &'a mut SimDisk, calls_left: Option<u64>, rng: Rng) -> Boot<'a> {
        Boot {
            disk,
            rng,
            calls_left,
            chosen: BTreeMap::new(),
        }
    }

    fn key(&self, file: SegmentFile) -> (SegmentFile, Generation) {
        (file, self.chosen.get(&file).copied().unwrap_or_default())
    }

    /// Forgets which generations were chosen, as another view of the disk does not know it.
    pub fn forget_chosen(&mut self) {
        self.chosen.clear();
    }

    /// Whether the planned crash has happened.
    pub fn is_crashed(&self) -> bool {
        self.calls_left == Some(0)
    }

    /// Counts a call; fails if the process is gone, perhaps just after the call took effect.
    fn call(
        &mut self,
        operation: &'static str,
        file: SegmentFile,
        effect: impl FnOnce(&mut SimDisk),
    ) -> Result<(), DiskError> {
        let is_alive = !self.is_crashed();
        if let Some(left) = &mut self.calls_left {
            *left = left.saturating_sub(1);
        }
        if self.is_crashed() {
            if is_alive && self.rng.chance(50) {
                effect(self.disk);
            }
            return Err(failed(operation, file, DiskFailure::Io));
        }
        effect(self.disk);
        Ok(())
    }
}

fn any_of(log: LogId) -> SegmentFile {
    SegmentFile {
        log,
        number: nova_model::SegmentNumber(0),
    }
}

impl BootDisk for Boot<'_> {
    fn list(&mut self, log: LogId) -> Result<LogListing, DiskError> {
        self.call("list", any_of(log), |disk| {
            disk.logs.insert(log);
            disk.drafts.retain(|(file, _), _| file.log != log);
        })?;
        let segments = self.disk.segments.iter();
        let indexes = self.disk.indexes.keys();
        Ok(LogListing {
            segments: segments
                .filter(|((file, _), _)| file.log == log)
                .map(|((file, generation), inode)| ListedSegment {
                    number: file.number,
                    generation: *generation,
                    size: self.disk.inodes[inode].len() as u64,
                })
                .collect(),
            indexes: indexes
                .filter(|(file, _)| file.log == log)
                .map(|(file, generation)| (file.number, *generation))
                .collect(),
        })
    }

    fn choose(&mut self, file: SegmentFile, generation: Generation) -> Result<(), DiskError> {
        self.chosen.insert(file, generation);
        self.call("choose", file, |disk| disk.choose(file, generation))
    }

    fn lock(&mut self, file: SegmentFile) -> Result<(), DiskError> {
        let key = self.key(file);
        self.call("lock", file, |disk| {
            if disk.locks_work {
                disk.land_all_of(disk.segments[&key]);
            }
        })
    }

    fn read(&mut self, file: SegmentFile, offset: u64, length: usize) -> Result<Bytes, DiskError> {
        self.call("read", file, |_| {})?;
        let inode = self.disk.segments.get(&self.key(file));
        let inode = inode.ok_or_else(|| failed("read", file, DiskFailure::NotFound))?;
        let bytes = &self.disk.inodes[inode];
        let start = bytes.len().min(offset as usize);
        let end = bytes.len().min(offset as usize + length);
        Ok(Bytes::copy_from_slice(&bytes[start..end]))
    }

    fn map_index(&mut self, file: SegmentFile) -> Result<Mapped, DiskError> {
        self.call("map", file, |_| {})?;
        let bytes = self.disk.indexes.get(&self.key(file)).cloned();
        let bytes = bytes.ok_or_else(|| failed("map", file, DiskFailure::NotFound))?;
        Ok(Arc::new(bytes))
    }

    fn store_index(&mut self, file: SegmentFile, bytes: Bytes) -> Result<Mapped, DiskError> {
        let key = self.key(file);
        self.call("store", file, |disk| {
            disk.indexes.insert(key, bytes.clone());
        })?;
        Ok(Arc::new(bytes))
    }

    fn create_closed(&mut self, file: SegmentFile, header: Bytes) -> Result<(), DiskError> {
        self.call("create", file, |disk| {
            let inode = disk.new_inode(Arc::new(header.to_vec()));
            disk.segments.insert((file, Generation(0)), inode);
        })
    }

    fn finish(&mut self, file: SegmentFile, length: u64) -> Result<(), DiskError> {
        let key = self.key(file);
        self.call("finish", file, |disk| disk.cut(disk.segments[&key], length))
    }

    fn recycle(&mut self, file: SegmentFile) -> Result<(), DiskError> {
        let key = self.key(file);
        self.call("recycle", file, |disk| disk.recycle(key))
    }
}
