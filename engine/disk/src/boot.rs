//! Storage as recovery uses it: blocking calls, before a core's loop runs.
//!
//! Reads go through the page cache with the kernel's read-ahead: recovery reads one segment of each
//! log from front to back, and what it has read is dropped from the cache when it moves on.
//!
//! # Invariants
//! - A segment stays locked from [`BootDisk::lock`] until [`BootDisk::finish`] or the end of the
//!   [`FileBootDisk`].
//!
//! # Not here
//! - Anything while the core runs: [`crate::driver`].

use crate::failure::Attempt;
use crate::layout::Layout;
use crate::lock::{self, LOCK_PATIENCE};
use crate::segments;
use bytes::Bytes;
use nova_core::disk::{BootDisk, DiskError, DiskFailure, LogListing, Mapped, SegmentFile};
use nova_model::limits::BLOCK_BYTES;
use nova_model::{Generation, LogId};
use rustix::fs::{Advice, SeekFrom, fadvise, seek};
use rustix::io::Errno;
use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Storage of recovery, on real files.
#[derive(Debug)]
pub struct FileBootDisk {
    layout: Layout,
    patience: Duration,
    locked: BTreeMap<SegmentFile, File>,
    /// Of each segment that was rewritten: the generation that counts.
    chosen: BTreeMap<SegmentFile, Generation>,
    reading: Option<Reading>,
}

#[derive(Debug)]
struct Reading {
    of: SegmentFile,
    file: File,
}

impl FileBootDisk {
    /// The storage of a data directory.
    pub fn new(layout: Layout) -> FileBootDisk {
        let locked = BTreeMap::new();
        FileBootDisk {
            layout,
            patience: LOCK_PATIENCE,
            locked,
            chosen: BTreeMap::new(),
            reading: None,
        }
    }

    /// Waits for locks this long instead of 10 s.
    pub fn with_patience(mut self, patience: Duration) -> FileBootDisk {
        self.patience = patience;
        self
    }

    /// Gives back the space that spare files of a log hold: nobody writes it any more.
    pub fn drop_spares(&self, log: LogId) -> Result<(), DiskError> {
        let attempt = Attempt::new("remove spare files", &self.layout.log(log), 0, 0);
        segments::drop_spares(&self.layout, log).map_err(|error| attempt.failed(&error))
    }

    fn open_for_reading(&mut self, of: SegmentFile, path: &Path) -> io::Result<&File> {
        let reading = match self.reading.take() {
            Some(reading) if reading.of == of => reading,
            _ => {
                let file = File::open(path)?;
                fadvise(&file, 0, None, Advice::Sequential)?;
                Reading { of, file }
            }
        };
        Ok(&self.reading.insert(reading).file)
    }

    fn take_lock(&mut self, file: SegmentFile, path: &Path) -> Result<(), DiskError> {
        let attempt = Attempt::new("lock", path, 0, 0);
        let opened = File::options()
            .read(true)
            .write(true)
            .open(path)
            .map_err(|error| attempt.failed(&error))?;
        let locked = lock::lock_within(&opened, self.patience);
        if locked.map_err(|error| attempt.failed(&error))? {
            self.locked.insert(file, opened);
            return Ok(());
        }
        let process = match lock::holder(&opened) {
            Some(pid) => format!("process {pid}"),
            None => "another process".to_owned(),
        };
        let seconds = self.patience.as_secs_f32();
        let message = format!("{process} still holds it after {seconds} s; end that process");
        Err(attempt.because(DiskFailure::Locked, message))
    }

    fn generation(&self, file: SegmentFile) -> Generation {
        self.chosen.get(&file).copied().unwrap_or_default()
    }

    fn segment_path(&self, file: SegmentFile) -> PathBuf {
        self.layout.segment_of(file, self.generation(file))
    }

    fn index_attempt(&self, operation: &'static str, file: SegmentFile, length: usize) -> Attempt {
        let path = self.layout.index_of(file, self.generation(file));
        Attempt::new(operation, &path, 0, length as u64)
    }

    fn segment_attempt(
        &self,
        operation: &'static str,
        file: SegmentFile,
        length: u64,
    ) -> (PathBuf, Attempt) {
        let path = self.segment_path(file);
        let attempt = Attempt::new(operation, &path, 0, length);
        (path, attempt)
    }
}

impl BootDisk for FileBootDisk {
    fn list(&mut self, log: LogId) -> Result<LogListing, DiskError> {
        let attempt = Attempt::new("list", &self.layout.log(log), 0, 0);
        segments::list(&self.layout, log).map_err(|error| attempt.failed(&error))
    }

    fn choose(&mut self, file: SegmentFile, generation: Generation) -> Result<(), DiskError> {
        let path = self.layout.segment_of(file, generation);
        let attempt = Attempt::new("choose", &path, 0, 0);
        self.reading.take_if(|reading| reading.of == file);
        self.chosen.insert(file, generation);
        segments::choose(&self.layout, file, generation).map_err(|error| attempt.failed(&error))
    }

    fn lock(&mut self, file: SegmentFile) -> Result<(), DiskError> {
        if self.locked.contains_key(&file) {
            return Ok(());
        }
        let path = self.segment_path(file);
        self.take_lock(file, &path)
    }

    fn read(&mut self, file: SegmentFile, offset: u64, length: usize) -> Result<Bytes, DiskError> {
        let path = self.segment_path(file);
        let attempt = Attempt::new("read", &path, offset, length as u64);
        let opened = self.open_for_reading(file, &path);
        opened
            .and_then(|opened| read_at_most(opened, offset, length))
            .map_err(|error| attempt.failed(&error))
    }

    fn next_data(&mut self, file: SegmentFile, offset: u64) -> Result<Option<u64>, DiskError> {
        let path = self.segment_path(file);
        let attempt = Attempt::new("seek data in", &path, offset, 0);
        let opened = self.open_for_reading(file, &path);
        let opened = opened.map_err(|error| attempt.failed(&error))?;
        forget_beyond(opened, offset);
        match seek(opened, SeekFrom::Data(offset)) {
            Ok(data) => Ok(Some(data)),
            Err(Errno::NXIO) => Ok(None),
            // A file system that cannot tell; every byte is looked at then.
            Err(Errno::INVAL | Errno::OPNOTSUPP) => Ok(Some(offset)),
            Err(error) => Err(attempt.failed(&error.into())),
        }
    }

    fn map_index(&mut self, file: SegmentFile) -> Result<Mapped, DiskError> {
        let mapped = segments::map_index(&self.layout, file, self.generation(file));
        let attempt = self.index_attempt("map", file, 0);
        mapped
            .map(|map| map as Mapped)
            .map_err(|error| attempt.failed(&error))
    }

    fn store_index(&mut self, file: SegmentFile, bytes: Bytes) -> Result<Mapped, DiskError> {
        let mapped = segments::store_index(&self.layout, file, self.generation(file), &bytes);
        let attempt = self.index_attempt("store", file, bytes.len());
        mapped
            .map(|map| map as Mapped)
            .map_err(|error| attempt.failed(&error))
    }

    fn create_closed(&mut self, file: SegmentFile, header: Bytes) -> Result<(), DiskError> {
        let (_, attempt) = self.segment_attempt("create", file, header.len() as u64);
        segments::create_closed(&self.layout, file, &header).map_err(|error| attempt.failed(&error))
    }

    fn finish(&mut self, file: SegmentFile, length: u64) -> Result<(), DiskError> {
        assert!(length.is_multiple_of(BLOCK_BYTES as u64));
        let (path, attempt) = self.segment_attempt("finish", file, length);
        segments::cut(&path, length).map_err(|error| attempt.failed(&error))?;
        self.locked.remove(&file);
        Ok(())
    }

    fn recycle(&mut self, file: SegmentFile) -> Result<(), DiskError> {
        let (_, attempt) = self.segment_attempt("recycle", file, 0);
        self.reading.take_if(|reading| reading.of == file);
        self.locked.remove(&file);
        let generation = self.generation(file);
        segments::recycle(&self.layout, file, generation).map_err(|error| attempt.failed(&error))
    }
}

impl Drop for Reading {
    fn drop(&mut self) {
        // Only advice: the cache is better used by somebody else.
        if let Err(error) = fadvise(&self.file, 0, None, Advice::DontNeed) {
            tracing::debug!(%error, "the page cache keeps what recovery has read");
        }
    }
}

/// Space that was never written counts as data while zeros of it are in the page cache, and reading
/// ahead puts them there, always further than what is read: all of a segment that is nearly empty
/// was read. So what the cache has from here on is dropped, and nothing is read ahead any more.
fn forget_beyond(file: &File, offset: u64) {
    let no_more = fadvise(file, 0, None, Advice::Random);
    if let Err(error) = no_more.and_then(|()| fadvise(file, offset, None, Advice::DontNeed)) {
        tracing::debug!(%error, "space that was never written may be read");
    }
}

/// Reads `length` bytes or what there is of them; never allocates for more than there is.
fn read_at_most(file: &File, offset: u64, length: usize) -> io::Result<Bytes> {
    let there = file.metadata()?.len().saturating_sub(offset);
    let mut bytes = vec![0; there.min(length as u64) as usize];
    let mut done = 0;
    while done < bytes.len() {
        match file.read_at(&mut bytes[done..], offset + done as u64) {
            Ok(0) => break,
            Ok(count) => done += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    bytes.truncate(done);
    Ok(bytes.into())
}

#[cfg(test)]
#[path = "boot_tests.rs"]
mod tests;
