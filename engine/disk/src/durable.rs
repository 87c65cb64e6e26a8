//! Small whole files, stored so that a crash leaves the old content or the new one.
//!
//! ```text
//!  NAME.draft: write, sync --> rename to NAME --> sync the directory
//! ```
//!
//! # Invariants
//! - The directory is opened before anything is made, so that a lack of descriptors shows while
//!   there is nothing to undo.
//!
//! # Not here
//! - Segments, which are too large to be written twice: [`crate::segments`].

use crate::layout::DRAFT_ENDING;
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
        .truncate(true)
        .open(path)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    Ok(file)
}
