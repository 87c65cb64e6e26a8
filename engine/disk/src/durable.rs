//! Small whole files, stored so that a crash leaves the old content or the new one.
//!
//! ```text
//!  NAME.draft: write, sync --> rename to NAME --> sync the directory
//!
//!  swapped:    NAME.draft: write over, sync --> exchange with NAME --> sync the directory
//! ```
//! A file that is swapped needs no space for its next content: the last but one lies as its draft,
//! and its blocks are written again. What a start has to write is stored so, since a full disk must
//! not keep a star from starting.
//!
//! # Invariants
//! - The directory is opened before anything is made, so that a lack of descriptors shows while
//!   there is nothing to undo.
//!
//! # Not here
//! - Segments, which are too large to be written twice: [`crate::segments`].

use crate::layout::DRAFT_ENDING;
use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::io::Errno;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::Path;

/// Stores `bytes` as `name` in `directory`, atomically and durably. Returns the open file.
pub(crate) fn store(directory: &Path, name: &str, bytes: &[u8]) -> io::Result<File> {
    let handle = File::open(directory)?;
    let draft = directory.join(format!("{name}{DRAFT_ENDING}"));
    let stored = write_whole(&draft, bytes).and_then(|file| {
        fs::rename(&draft, directory.join(name))?;
        Ok(file)
    });
    match stored {
        Ok(file) => {
            handle.sync_all()?;
            Ok(file)
        }
        Err(error) => {
            remove_if_there(&draft)?;
            Err(error)
        }
    }
}

/// Stores `bytes` as `name` in `directory` like [`store`], into the blocks of its last content but
/// one. Without any the file is stored anew, and blocks for the next time are taken if there are.
pub(crate) fn swap(directory: &Path, name: &str, bytes: &[u8]) -> io::Result<()> {
    let handle = File::open(directory)?;
    let draft = directory.join(format!("{name}{DRAFT_ENDING}"));
    let target = directory.join(name);
    write_whole(&draft, bytes)?;
    match renameat_with(CWD, &draft, CWD, &target, RenameFlags::EXCHANGE) {
        Ok(()) => return handle.sync_all(),
        // There is none yet.
        Err(Errno::NOENT) => {}
        // The file system has no exchange.
        Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {}
        Err(error) => return Err(error.into()),
    }
    fs::rename(&draft, &target)?;
    handle.sync_all()?;
    if let Err(error) = write_whole(&draft, bytes) {
        tracing::debug!(%error, path = %draft.display(), "no blocks for the next time");
    }
    Ok(())
}

/// Makes the names in a directory durable.
pub(crate) fn sync_directory(directory: &Path) -> io::Result<()> {
    File::open(directory)?.sync_all()
}

/// Removes a file; it is no failure when there is none.
pub(crate) fn remove_if_there(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Reads a file of at most `bytes_max` bytes; a longer one is `InvalidData`.
pub(crate) fn read_small(path: &Path, bytes_max: usize) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?
        .take(bytes_max as u64 + 1)
        .read_to_end(&mut bytes)?;
    if bytes.len() > bytes_max {
        let message = format!("it is longer than {bytes_max} bytes");
        return Err(io::Error::new(io::ErrorKind::InvalidData, message));
    }
    Ok(bytes)
}

fn write_whole(path: &Path, bytes: &[u8]) -> io::Result<File> {
    let mut file = File::options()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .open(path)?;
    // What is there is written over, so that its blocks are kept.
    file.write_all(bytes)?;
    file.set_len(bytes.len() as u64)?;
    file.sync_all()?;
    Ok(file)
}
