//! Opens a data directory or makes a new one, and holds its lock.
//!
//! ```text
//!  look (touches nothing) --> LOCK --> look again, locked --> star, if it is a new one
//! ```
//!
//! # Invariants
//! - A directory that is refused is left as it was, except that a file `LOCK` may have been made
//!   in one that is empty or nova's.
//! - While a [`DataDirectory`] lives, no other process has the same directory open.
//!
//! # Not here
//! - Whether machine and file system are good enough: [`mod@crate::probe`], which comes first.

use crate::identity::{FORMAT_VERSION, IDENTITY_BYTES_MAX, Identity, IdentityFault};
use crate::layout::{self, Layout};
use crate::{durable, lock};
use nova_model::{LogId, StarId};
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// What `mkfs` leaves in a fresh file system.
const LOST_AND_FOUND: &str = "lost+found";

/// Why a data directory cannot be used. Each says what to change.
#[derive(Debug, thiserror::Error)]
pub enum DirectoryError {
    /// The directory would have to be made in one that is not there.
    #[error("the data directory {0} has no parent directory; make that first")]
    MissingParent(PathBuf),
    /// Something else has the directory's name.
    #[error("the data directory {0} is not a directory; name another one")]
    NotDirectory(PathBuf),
    /// It holds something that is not nova's.
    #[error("the directory {path} holds {found:?}, which is not nova's; name an empty directory")]
    Foreign {
        /// The directory.
        path: PathBuf,
        /// The first name found that is not nova's.
        found: String,
    },
    /// It is of a format that this version does not know. Nothing was changed.
    #[error(
        "the data directory {path} has format {found}, and this nova knows only format \
         {FORMAT_VERSION}; start the nova that wrote it"
    )]
    UnknownFormat {
        /// The directory.
        path: PathBuf,
        /// Its format.
        found: u32,
    },
    /// The identity or something that goes with it is damaged or missing.
    #[error("the data directory {path} is damaged: {reason}; restore it from a copy")]
    Damaged {
        /// The directory.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// Another star uses it.
    #[error(
        "the data directory {path} is in use by {}; stop that star or name another directory",
        process(*pid)
    )]
    InUse {
        /// The directory.
        path: PathBuf,
        /// The other star's process, where the system tells.
        pid: Option<u32>,
    },
    /// This user may not write there.
    #[error("the data directory {path} is not writable: {source}; change its owner or its mount")]
    NotWritable {
        /// The directory.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Anything else.
    #[error("{operation} of {path} failed: {source}")]
    Io {
        /// What was tried.
        operation: &'static str,
        /// On what.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

fn process(pid: Option<u32>) -> String {
    pid.map_or_else(
        || "another process".to_owned(),
        |pid| format!("process {pid}"),
    )
}

/// A data directory, open and locked.
#[derive(Debug)]
pub struct DataDirectory {
    layout: Layout,
    identity: Identity,
    logs: Vec<LogId>,
    fresh: bool,
    /// Holds the lock; closing it lets the lock go.
    _lock: File,
}

/// What is in a directory before it is opened.
struct Look {
    identity: Option<Identity>,
    logs: Vec<LogId>,
    registry: bool,
}

impl DataDirectory {
    /// Opens the data directory at `path`; makes one if there is none or an empty directory.
    pub fn open(path: &Path) -> Result<DataDirectory, DirectoryError> {
        let made = make_directory(path)?;
        let layout = Layout::new(fs::canonicalize(path).map_err(io_error("opening", path))?);
        look(&layout)?;
        let locked = take_lock(&layout)?;
        let found = look(&layout)?;
        let fresh = found.identity.is_none();
        let identity = match found.identity {
            Some(identity) => identity,
            None => write_identity(&layout)?,
        };
        if !found.registry && !found.logs.is_empty() {
            let path = layout.root().to_owned();
            let reason = "it has logs and no registry".to_owned();
            return Err(DirectoryError::Damaged { path, reason });
        }
        let star = identity.star;
        tracing::info!(%star, path = %layout.root().display(), fresh, made, "data directory");
        Ok(DataDirectory {
            layout,
            identity,
            logs: found.logs,
            fresh,
            _lock: locked,
        })
    }

    /// Where its files are.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Whose it is.
    pub fn identity(&self) -> Identity {
        self.identity
    }

    /// The logs that were found when it was opened, ascending.
    pub fn logs(&self) -> &[LogId] {
        &self.logs
    }

    /// Whether it was made just now.
    pub fn is_fresh(&self) -> bool {
        self.fresh
    }
}

/// A fresh 128-bit id from the system's randomness.
pub(crate) fn fresh_id() -> io::Result<u128> {
    let mut bytes = [0; 16];
    let filled = rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())?;
    // The kernel gives up to 256 bytes whole.
    assert_eq!(filled, bytes.len());
    Ok(u128::from_le_bytes(bytes))
}

fn make_directory(path: &Path) -> Result<bool, DirectoryError> {
    match fs::metadata(path) {
        Ok(status) if status.is_dir() => return Ok(false),
        Ok(_) => return Err(DirectoryError::NotDirectory(path.to_owned())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(source) => return Err(io_error("opening", path)(source)),
    }
    fs::create_dir(path).map_err(|source| match source.kind() {
        io::ErrorKind::NotFound => DirectoryError::MissingParent(path.to_owned()),
        _ => write_error("making", path, source),
    })?;
    let parent = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    durable::sync_directory(parent).map_err(io_error("syncing", parent))?;
    Ok(true)
}

/// Looks at what is there; changes nothing.
fn look(layout: &Layout) -> Result<Look, DirectoryError> {
    let root = layout.root();
    let identity = read_identity(layout)?;
    let (mut logs, mut registry, mut foreign) = (Vec::new(), false, None);
    for entry in fs::read_dir(root).map_err(io_error("listing", root))? {
        let name = entry.map_err(io_error("listing", root))?.file_name();
        let name = name.to_string_lossy().into_owned();
        if let Some(log) = layout::parse_log(&name) {
            logs.push(log);
        } else if name == layout::REGISTRY_NAME {
            registry = true;
        } else if !is_harmless(&name) {
            foreign = Some(name);
        }
    }
    logs.sort_unstable();
    if identity.is_none() && (registry || !logs.is_empty()) {
        let path = root.to_owned();
        let reason = "its file \"star\" is missing".to_owned();
        return Err(DirectoryError::Damaged { path, reason });
    }
    if let (None, Some(found)) = (identity, foreign) {
        let path = root.to_owned();
        return Err(DirectoryError::Foreign { path, found });
    }
    Ok(Look {
        identity,
        logs,
        registry,
    })
}

/// Names that may be in a directory that is about to become nova's: what an interrupted first start
/// leaves, and what `mkfs` does.
fn is_harmless(name: &str) -> bool {
    let ours = [layout::STAR_NAME, layout::LOCK_NAME, LOST_AND_FOUND];
    let draft = name.strip_suffix(layout::DRAFT_ENDING);
    ours.contains(&name) || draft == Some(layout::STAR_NAME)
}

fn read_identity(layout: &Layout) -> Result<Option<Identity>, DirectoryError> {
    let (root, file) = (layout.root(), layout.star());
    let bytes = match durable::read_small(&file, IDENTITY_BYTES_MAX) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) if error.kind() == io::ErrorKind::InvalidData => Vec::new(),
        Err(source) => return Err(io_error("reading", &file)(source)),
    };
    let path = root.to_owned();
    Identity::decode(&bytes)
        .map(Some)
        .map_err(|fault| match fault {
            IdentityFault::Foreign => {
                let found = layout::STAR_NAME.to_owned();
                DirectoryError::Foreign { path, found }
            }
            IdentityFault::Format(found) => DirectoryError::UnknownFormat { path, found },
            IdentityFault::Damaged(what) => {
                let reason = format!("its file \"star\" is not as it was written, {what}");
                DirectoryError::Damaged { path, reason }
            }
        })
}

fn take_lock(layout: &Layout) -> Result<File, DirectoryError> {
    let path = layout.lock();
    let mut file = File::options()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .open(&path)
        .map_err(|source| write_error("opening", &path, source))?;
    if !lock::try_lock(&file).map_err(io_error("locking", &path))? {
        let written = fs::read_to_string(&path).ok();
        let pid = lock::holder(&file).or_else(|| written?.trim().parse().ok());
        let path = layout.root().to_owned();
        return Err(DirectoryError::InUse { path, pid });
    }
    // For whoever is refused where the kernel's list of locks is not to be seen. A full disk is no
    // reason not to start.
    let line = format!("{}\n", std::process::id());
    let written = file
        .write_all(line.as_bytes())
        .and_then(|()| file.set_len(line.len() as u64));
    match written {
        Err(error) if error.kind() != io::ErrorKind::StorageFull => {
            Err(write_error("writing", &path, error))
        }
        _ => Ok(file),
    }
}

fn write_identity(layout: &Layout) -> Result<Identity, DirectoryError> {
    let path = layout.star();
    let star = fresh_id().map(StarId).map_err(io_error("naming", &path))?;
    let identity = Identity {
        format: FORMAT_VERSION,
        star,
    };
    durable::store(layout.root(), layout::STAR_NAME, &identity.encode())
        .map_err(|source| write_error("writing", &path, source))?;
    Ok(identity)
}

fn write_error(operation: &'static str, path: &Path, source: io::Error) -> DirectoryError {
    use io::ErrorKind::{PermissionDenied, ReadOnlyFilesystem};
    if matches!(source.kind(), PermissionDenied | ReadOnlyFilesystem) {
        let path = path.to_owned();
        return DirectoryError::NotWritable { path, source };
    }
    io_error(operation, path)(source)
}

fn io_error(operation: &'static str, path: &Path) -> impl Fn(io::Error) -> DirectoryError {
    let path = path.to_owned();
    move |source| DirectoryError::Io {
        operation,
        path: path.clone(),
        source,
    }
}

#[cfg(test)]
#[path = "directory_tests.rs"]
mod tests;
