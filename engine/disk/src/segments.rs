//! Blocking acts on the files of a log; the start of a star and glommio's blocking thread use them.
//!
//! ```text
//!  spare-NNN.seg or N.seg.draft --prepare--> right length --place--> N.seg ... --recycle--> spare
//! ```
//!
//! # Invariants
//! - An act that fails leaves the directory as it was: nothing half-made under a final name.
//! - A draft that a crash leaves behind is removed by the next [`list`].
//!
//! # Not here
//! - Writing and reading segments while a core runs: [`crate::driver`].

use crate::durable;
use crate::index_map::IndexMap;
use crate::layout::{self, Layout, LogEntry};
use bytes::Bytes;
use memmap2::{Mmap, MmapMut};
use nova_core::disk::{ListedSegment, LogListing, SegmentFile};
use nova_model::limits::{BLOCK_BYTES, GROUP_BYTES_MAX, SPARE_SEGMENTS_MAX, ZERO_CHUNK_BYTES};
use nova_model::{Generation, LogId};
use rustix::fs::{FallocateFlags, OFlags};
use rustix::io::Errno;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Most of a spare file that is filled with zeros when it is taken. A segment that was full when it
/// was finished lacks less than one group and a block.
const FILL_BYTES_MAX: u64 = (GROUP_BYTES_MAX + BLOCK_BYTES) as u64;

/// Bytes of a draft that are written at once, so that no commit waits long behind them.
const DRAFT_PIECE_BYTES: usize = 256 * 1024;

/// A file of the right length that still has another name.
#[derive(Debug, Clone)]
pub(crate) struct Draft {
    /// Where it is.
    pub(crate) path: PathBuf,
    /// Whether all of its space was written before.
    pub(crate) written_before: bool,
    is_spare: bool,
}

/// Lists a log; makes its directory if it is not there and removes drafts.
pub(crate) fn list(layout: &Layout, log: LogId) -> io::Result<LogListing> {
    let directory = layout.log(log);
    match fs::create_dir(&directory) {
        Ok(()) => durable::sync_directory(layout.root())?,
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        Err(error) => return Err(error),
    }
    let mut listing = LogListing::default();
    for entry in fs::read_dir(&directory)? {
        let entry = entry?;
        match entry.file_name().to_str().and_then(layout::parse) {
            Some(LogEntry::Segment(number, generation)) => {
                let size = entry.metadata()?.len();
                listing.segments.push(ListedSegment {
                    number,
                    generation,
                    size,
                });
            }
            Some(LogEntry::Index(number, of)) => listing.indexes.push((number, of)),
            Some(LogEntry::Spare(_)) => {}
            Some(LogEntry::Draft) => fs::remove_file(entry.path())?,
            None => tracing::warn!(path = %entry.path().display(), "a file that is not nova's"),
        }
    }
    listing.segments.sort_unstable();
    listing.indexes.sort_unstable();
    Ok(listing)
}

/// Makes a file of `length` bytes ready to become `file`, out of a spare one if there is one.
pub(crate) fn prepare(layout: &Layout, file: SegmentFile, length: u64) -> io::Result<Draft> {
    if fs::exists(layout.segment(file))? {
        return Err(io::ErrorKind::AlreadyExists.into());
    }
    for number in (0..SPARE_SEGMENTS_MAX).rev() {
        let path = layout.spare(file.log, number);
        let opened = File::options().read(true).write(true).open(&path);
        match opened {
            Ok(spare) => {
                let written_before = resize_spare(&path, &spare, length)?;
                return Ok(Draft {
                    path,
                    written_before,
                    is_spare: true,
                });
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    let path = layout.draft(file);
    let made = File::options()
        .write(true)
        .create(true)
        .truncate(true)
        .open(&path)?;
    let draft = Draft {
        path,
        written_before: false,
        is_spare: false,
    };
    if let Err(error) = allocate(&made, length).and_then(|()| made.sync_all()) {
        discard(&draft)?;
        return Err(error);
    }
    Ok(draft)
}

/// Gives a prepared file its final name, durably.
pub(crate) fn place(layout: &Layout, draft: &Draft, file: SegmentFile) -> io::Result<()> {
    let directory = File::open(layout.log(file.log))?;
    let path = layout.segment(file);
    fs::rename(&draft.path, &path)?;
    if let Err(error) = directory.sync_all() {
        fs::remove_file(&path)?;
        return Err(error);
    }
    Ok(())
}

/// Gives up a prepared file; a spare one stays a spare one.
pub(crate) fn discard(draft: &Draft) -> io::Result<()> {
    if draft.is_spare {
        return Ok(());
    }
    durable::remove_if_there(&draft.path)
}

/// Cuts a file to `length`, durably.
pub(crate) fn cut(path: &Path, length: u64) -> io::Result<()> {
    let file = File::options().write(true).open(path)?;
    file.set_len(length)?;
    file.sync_all()
}

/// Makes a segment a spare file, or removes it when there are enough; its index goes first. One
/// that was rewritten is too short for a spare file, and a log that nobody writes needs none.
pub(crate) fn recycle(
    layout: &Layout,
    file: SegmentFile,
    generation: Generation,
) -> io::Result<()> {
    let directory = File::open(layout.log(file.log))?;
    durable::remove_if_there(&layout.index_of(file, generation))?;
    let path = layout.segment_of(file, generation);
    let spares = match generation {
        Generation(0) if layout.is_written(file.log) => SPARE_SEGMENTS_MAX,
        _ => 0,
    };
    for number in 0..spares {
        let spare = layout.spare(file.log, number);
        if !fs::exists(&spare)? {
            fs::rename(&path, &spare)?;
            return directory.sync_all();
        }
    }
    fs::remove_file(&path)?;
    directory.sync_all()
}

/// Writes `parts` and zeros up to `length` at `offset` of a draft, durably and past the page cache.
pub(crate) fn write_draft(
    layout: &Layout,
    (file, generation): (SegmentFile, Generation),
    offset: u64,
    parts: &[Bytes],
    length: usize,
) -> io::Result<()> {
    let draft = File::options()
        .write(true)
        .create(true)
        .truncate(false)
        .custom_flags((OFlags::DIRECT | OFlags::DSYNC).bits() as i32)
        .open(layout.draft_of(file, generation))?;
    let mut buffer = MmapMut::map_anon(length)?;
    let mut at = 0;
    for part in parts {
        buffer[at..at + part.len()].copy_from_slice(part);
        at += part.len();
    }
    for (piece, at) in buffer.chunks(DRAFT_PIECE_BYTES).zip(0..) {
        draft.write_all_at(piece, offset + at * DRAFT_PIECE_BYTES as u64)?;
    }
    Ok(())
}

/// Cuts a draft to `length`, stores its index and gives it its name; maps the index. Nothing is
/// named before it is durable.
pub(crate) fn place_draft(
    layout: &Layout,
    (file, generation): (SegmentFile, Generation),
    length: u64,
    index: &[u8],
) -> io::Result<Arc<IndexMap>> {
    let draft = layout.draft_of(file, generation);
    cut(&draft, length)?;
    let index = store_index(layout, file, generation, index)?;
    let directory = File::open(layout.log(file.log))?;
    fs::rename(&draft, layout.segment_of(file, generation))?;
    directory.sync_all()?;
    Ok(index)
}

/// Gives a draft up, and its index if that was stored.
pub(crate) fn drop_draft(
    layout: &Layout,
    file: SegmentFile,
    generation: Generation,
) -> io::Result<()> {
    durable::remove_if_there(&layout.draft_of(file, generation))?;
    durable::remove_if_there(&layout.index_of(file, generation))
}

/// Removes all generations of a segment but one, and their indexes.
pub(crate) fn choose(layout: &Layout, file: SegmentFile, generation: Generation) -> io::Result<()> {
    let directory = layout.log(file.log);
    for entry in fs::read_dir(&directory)? {
        let entry = entry?;
        let goes = match entry.file_name().to_str().and_then(layout::parse) {
            Some(LogEntry::Segment(number, of) | LogEntry::Index(number, of)) => {
                number == file.number && of != generation
            }
            Some(LogEntry::Spare(_) | LogEntry::Draft) | None => false,
        };
        if goes {
            fs::remove_file(entry.path())?;
        }
    }
    durable::sync_directory(&directory)
}

/// Bytes that a log can still use, its spare files among them, and those of the file system.
pub(crate) fn space(layout: &Layout, log: LogId) -> io::Result<(u64, u64)> {
    let directory = layout.log(log);
    let system = rustix::fs::statvfs(&directory)?;
    let mut free = system.f_bavail.saturating_mul(system.f_frsize);
    for number in 0..SPARE_SEGMENTS_MAX {
        match fs::metadata(layout.spare(log, number)) {
            Ok(spare) => free = free.saturating_add(spare.len()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Ok((free, system.f_blocks.saturating_mul(system.f_frsize)))
}

/// Removes the spare files of a log.
pub(crate) fn drop_spares(layout: &Layout, log: LogId) -> io::Result<()> {
    for number in 0..SPARE_SEGMENTS_MAX {
        durable::remove_if_there(&layout.spare(log, number))?;
    }
    Ok(())
}

/// Makes a segment's file that holds `header` and nothing else, atomically and durably.
pub(crate) fn create_closed(layout: &Layout, file: SegmentFile, header: &[u8]) -> io::Result<()> {
    let mut bytes = header.to_vec();
    bytes.resize(header.len().next_multiple_of(BLOCK_BYTES), 0);
    let name = layout::segment_name(file.number, Generation(0));
    durable::store(&layout.log(file.log), &name, &bytes)?;
    Ok(())
}

/// Stores an index under its final name, atomically and durably, and maps it.
pub(crate) fn store_index(
    layout: &Layout,
    file: SegmentFile,
    generation: Generation,
    bytes: &[u8],
) -> io::Result<Arc<IndexMap>> {
    let name = layout::index_name(file.number, generation);
    map(&durable::store(&layout.log(file.log), &name, bytes)?)
}

/// Maps an index.
pub(crate) fn map_index(
    layout: &Layout,
    file: SegmentFile,
    generation: Generation,
) -> io::Result<Arc<IndexMap>> {
    map(&File::open(layout.index_of(file, generation))?)
}

fn map(file: &File) -> io::Result<Arc<IndexMap>> {
    // SAFETY: an index is never changed in place: it is stored by renaming a new file over the
    // name and given up by removing the name, and both leave the mapped file as it is. The data
    // directory's lock keeps other stars away. Somebody who truncates the file by hand would break
    // this: reading behind its end then stops the process with SIGBUS.
    let map = unsafe { Mmap::map(file) }?;
    Ok(Arc::new(IndexMap(map)))
}

/// Gives a spare file its length. Returns whether all of its space was written before.
fn resize_spare(path: &Path, spare: &File, length: u64) -> io::Result<bool> {
    let before = spare.metadata()?.len();
    if before > length {
        spare.set_len(length)?;
    } else if before < length
        && let Err(error) = allocate(spare, length)
    {
        spare.set_len(before)?;
        return Err(error);
    }
    let written = written_bytes(spare)?.min(length);
    if written < length && length - written <= FILL_BYTES_MAX {
        fill(path, written, length)?;
    }
    spare.sync_all()?;
    Ok(written_bytes(spare)? >= length)
}

/// How many bytes from the beginning have been written: the place of the first hole. Space that is
/// allocated and was never written counts as one.
fn written_bytes(file: &File) -> io::Result<u64> {
    Ok(rustix::fs::seek(file, rustix::fs::SeekFrom::Hole(0))?)
}

/// Writes zeros from `begin` to `end`, past the page cache as later writes will.
fn fill(path: &Path, begin: u64, end: u64) -> io::Result<()> {
    let block = BLOCK_BYTES as u64;
    assert!(end.is_multiple_of(block));
    let file = File::options()
        .write(true)
        .custom_flags((OFlags::DIRECT | OFlags::DSYNC).bits() as i32)
        .open(path)?;
    let zeros = MmapMut::map_anon(ZERO_CHUNK_BYTES)?;
    let mut offset = begin / block * block;
    while offset < end {
        let length = (end - offset).min(ZERO_CHUNK_BYTES as u64);
        file.write_all_at(&zeros[..length as usize], offset)?;
        offset += length;
    }
    Ok(())
}

/// Allocates the whole of a file. Free space is looked at first: without that, a file system takes
/// all the space there is before it says that this was not enough.
fn allocate(file: &File, length: u64) -> io::Result<()> {
    let status = rustix::fs::fstat(file)?;
    let has = (status.st_blocks.max(0) as u64) * 512;
    let system = rustix::fs::fstatvfs(file)?;
    let free = system.f_bavail.saturating_mul(system.f_frsize);
    if length.saturating_sub(has) > free {
        return Err(Errno::NOSPC.into());
    }
    Ok(rustix::fs::fallocate(
        file,
        FallocateFlags::empty(),
        0,
        length,
    )?)
}
