//! Finds out, before anything is touched, whether this machine can run a star.
//!
//! ```text
//!  kernel, io_uring --> memory to lock, files to open --> direct I/O --> block sizes
//! ```
//!
//! What counts is what works: a ring is set up and closed again, and a nameless file is written
//! and read past the page cache. Kernels and file systems claim more than they do.
//!
//! # Invariants
//! - Nothing stays behind: the file that is tried has no name, or loses it before the answer.
//!
//! # Not here
//! - Whether the directory is nova's: [`crate::DataDirectory`].
//! - Speed: [`crate::baseline`].

use crate::layout::STAR_NAME;
use memmap2::MmapMut;
use nova_model::limits::BLOCK_BYTES;
use rustix::fs::{AtFlags, Mode, OFlags, StatxFlags};
use rustix::io::Errno;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// Memory that glommio must be allowed to lock.
pub const LOCKED_MEMORY_BYTES_MIN: u64 = 512 * 1024;
/// Files that a process must be allowed to have open: segments, their read handles, rings, sockets.
/// With fewer, reads would soon be refused, and the executor does not survive its start.
pub const OPEN_FILES_MIN: u64 = 256;
/// Oldest kernel that has all of io_uring that glommio needs.
const KERNEL_MIN: (u32, u32) = (5, 8);
const RING_ENTRIES: u32 = 2;
/// What glommio reads about a disk, and does not survive if it cannot.
const DEVICE_FILES: [&str; 8] = [
    "rotational",
    "minimum_io_size",
    "optimal_io_size",
    "logical_block_size",
    "physical_block_size",
    "max_sectors_kb",
    "max_segment_size",
    "write_cache",
];

/// What was found out about the machine and the directory's file system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProbeReport {
    /// The kernel's release.
    pub kernel: String,
    /// Smallest unit that the device addresses.
    pub logical_block_bytes: usize,
    /// Unit that the device writes as a whole.
    pub physical_block_bytes: usize,
    /// Alignment in memory that direct I/O asks for; 0 if the kernel does not say.
    pub memory_align_bytes: usize,
    /// Alignment in the file that direct I/O asks for; 0 if the kernel does not say.
    pub offset_align_bytes: usize,
    /// Largest request that the device takes in one piece, if there is a device.
    pub request_bytes_max: Option<usize>,
    /// Whether the file system lies in memory: what it holds does not survive a reboot.
    pub in_memory: bool,
}

/// Why this machine cannot run a star on this directory. Each says what to change.
#[derive(Debug, thiserror::Error)]
pub enum ProbeError {
    /// The kernel is older than glommio needs.
    #[error(
        "the kernel {found} is too old; nova needs Linux {}.{} or newer",
        KERNEL_MIN.0,
        KERNEL_MIN.1
    )]
    KernelTooOld {
        /// Its release.
        found: String,
    },
    /// The kernel has no io_uring.
    #[error("this kernel has no io_uring; run a kernel that is built with CONFIG_IO_URING")]
    NoRing,
    /// The kernel has io_uring, and this process may not use it.
    #[error("io_uring is forbidden to this process: {hint}")]
    RingForbidden {
        /// What forbids it, and what to change.
        hint: String,
    },
    /// Setting a ring up failed in another way.
    #[error("io_uring could not be set up: {source}")]
    RingFailed {
        /// What the system said.
        source: io::Error,
    },
    /// Too little memory may be locked.
    #[error(
        "only {found} bytes of memory may be locked and nova needs {LOCKED_MEMORY_BYTES_MIN}; \
         raise \"ulimit -l\" or LimitMEMLOCK= of the service"
    )]
    LockedMemory {
        /// The limit as it is.
        found: u64,
    },
    /// Too few files may be open.
    #[error(
        "only {found} files may be open and nova needs {OPEN_FILES_MIN}; raise \"ulimit -n\" or \
         LimitNOFILE= of the service"
    )]
    OpenFiles {
        /// The limit as it is.
        found: u64,
    },
    /// The directory is not there, and its parent neither.
    #[error("neither the data directory {0} nor its parent is there; make the parent first")]
    MissingParent(PathBuf),
    /// No file can be made in the directory.
    #[error("no file can be made in {path}: {source}; change its owner or its mount")]
    NotWritable {
        /// The directory.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The file system has no direct I/O.
    #[error(
        "the file system of {path} has no direct I/O (O_DIRECT): {source}; put the data directory \
         on ext4 or XFS"
    )]
    NoDirectIo {
        /// The directory.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The device or file system works in larger units than nova's block.
    #[error(
        "the {unit} under {path} is {found} bytes and nova's is {BLOCK_BYTES}; use another device"
    )]
    BlockTooLarge {
        /// The directory.
        path: PathBuf,
        /// Which unit.
        unit: &'static str,
        /// Its size.
        found: usize,
    },
    /// The kernel's description of the device cannot be read.
    #[error("{path}, which describes the disk, cannot be read: {source}; mount /sys readably")]
    DeviceUnknown {
        /// The file of the description.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The try file could not be written or read for another reason.
    #[error("{operation} a file in {path} failed: {source}")]
    Io {
        /// What was tried.
        operation: &'static str,
        /// The directory.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

/// Finds out whether a star can run with its data at `path`, which need not be there yet.
pub fn probe(path: &Path) -> Result<ProbeReport, ProbeError> {
    let kernel = check_kernel()?;
    check_locked_memory(getrlimit(Resource::Memlock).current)?;
    check_open_files(raise_open_files())?;
    check_ring(set_up_ring())?;
    let directory = existing_directory(path)?;
    let file = tried_file(&directory)?;
    let mut report = describe(&directory, &file)?;
    report.kernel = kernel;
    check_blocks(&directory, &report)?;
    Ok(report)
}

fn check_kernel() -> Result<String, ProbeError> {
    let found = rustix::system::uname()
        .release()
        .to_string_lossy()
        .into_owned();
    let mut numbers = found.split(['.', '-']).map(|word| word.parse::<u32>().ok());
    match (numbers.next().flatten(), numbers.next().flatten()) {
        (Some(major), Some(minor)) if (major, minor) < KERNEL_MIN => {
            Err(ProbeError::KernelTooOld { found })
        }
        _ => Ok(found),
    }
}

fn check_locked_memory(limit: Option<u64>) -> Result<(), ProbeError> {
    match limit {
        Some(found) if found < LOCKED_MEMORY_BYTES_MIN => Err(ProbeError::LockedMemory { found }),
        _ => Ok(()),
    }
}

/// Takes all the open files that this process is allowed to take by itself; how many these are.
fn raise_open_files() -> Option<u64> {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum,
        maximum: limit.maximum,
    };
    match setrlimit(Resource::Nofile, raised) {
        Ok(()) => raised.current,
        Err(_) => limit.current,
    }
}

fn check_open_files(limit: Option<u64>) -> Result<(), ProbeError> {
    match limit {
        Some(found) if found < OPEN_FILES_MIN => Err(ProbeError::OpenFiles { found }),
        _ => Ok(()),
    }
}

fn set_up_ring() -> rustix::io::Result<()> {
    let mut parameters = rustix::io_uring::io_uring_params::default();
    // SAFETY: the parameters name no other ring (ATTACH_WQ is not set), and the new ring is closed
    // at once without being used.
    unsafe { rustix::io_uring::io_uring_setup(RING_ENTRIES, &mut parameters) }.map(drop)
}

fn check_ring(outcome: rustix::io::Result<()>) -> Result<(), ProbeError> {
    match outcome {
        Ok(()) => Ok(()),
        Err(Errno::NOSYS) => Err(ProbeError::NoRing),
        Err(Errno::PERM | Errno::ACCESS) => {
            let setting = fs::read_to_string("/proc/sys/kernel/io_uring_disabled");
            let hint = match setting.as_deref().map(str::trim) {
                Ok("1") => "set the sysctl kernel.io_uring_disabled to 0, or kernel.io_uring_group",
                Ok("2") => "set the sysctl kernel.io_uring_disabled to 0",
                _ => {
                    "a container's seccomp profile does; allow io_uring_setup, io_uring_enter \
                      and io_uring_register"
                }
            };
            Err(ProbeError::RingForbidden {
                hint: hint.to_owned(),
            })
        }
        Err(Errno::NOMEM) => {
            let found = getrlimit(Resource::Memlock).current.unwrap_or(u64::MAX);
            Err(ProbeError::LockedMemory { found })
        }
        Err(error) => Err(ProbeError::RingFailed {
            source: error.into(),
        }),
    }
}

fn existing_directory(path: &Path) -> Result<PathBuf, ProbeError> {
    let parent = match path.parent() {
        Some(parent) if parent.as_os_str().is_empty() => Some(Path::new(".")),
        parent => parent,
    };
    [Some(path), parent]
        .into_iter()
        .flatten()
        .find(|candidate| candidate.is_dir())
        .map(Path::to_owned)
        .ok_or_else(|| ProbeError::MissingParent(path.to_owned()))
}

/// A file that was written and read past the page cache. On a full disk where a star has run before
/// it is the star's own, and was only opened so: want of space to try keeps no star from starting.
fn tried_file(directory: &Path) -> Result<File, ProbeError> {
    let tried = open_nameless(directory).and_then(|file| {
        try_direct_io(directory, &file)?;
        Ok(file)
    });
    match tried {
        Err(ProbeError::Io { source, .. }) if is_full(&source) && is_star(directory) => {
            let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::DIRECT;
            let opened = rustix::fs::open(directory.join(STAR_NAME), flags, Mode::empty());
            opened
                .map(File::from)
                .map_err(|error| io_error("opening", directory, error.into()))
        }
        tried => tried,
    }
}

fn is_full(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::StorageFull
}

fn is_star(directory: &Path) -> bool {
    directory.join(STAR_NAME).is_file()
}

/// A file without a name; where the file system has none, one that loses its name at once.
fn open_nameless(directory: &Path) -> Result<File, ProbeError> {
    let flags = OFlags::RDWR | OFlags::CLOEXEC | OFlags::DIRECT | OFlags::DSYNC;
    let mode = Mode::RUSR | Mode::WUSR;
    let opened = match rustix::fs::open(directory, flags | OFlags::TMPFILE, mode) {
        Err(Errno::OPNOTSUPP | Errno::ISDIR) => {
            let path = directory.join(format!("probe-{}.draft", std::process::id()));
            let opened = rustix::fs::open(&path, flags | OFlags::CREATE | OFlags::EXCL, mode);
            // A file system without direct I/O makes the file and then refuses to open it.
            match fs::remove_file(&path) {
                Err(source) if opened.is_ok() => {
                    return Err(io_error("removing", directory, source));
                }
                _ => opened,
            }
        }
        outcome => outcome,
    };
    opened.map(File::from).map_err(|error| {
        let (path, source) = (directory.to_owned(), io::Error::from(error));
        match error {
            Errno::INVAL => ProbeError::NoDirectIo { path, source },
            Errno::ACCESS | Errno::PERM | Errno::ROFS => ProbeError::NotWritable { path, source },
            _ => io_error("making", directory, source),
        }
    })
}

fn try_direct_io(directory: &Path, file: &File) -> Result<(), ProbeError> {
    let failed = |operation, source: io::Error| {
        let path = directory.to_owned();
        match Errno::from_io_error(&source) {
            Some(Errno::INVAL | Errno::OPNOTSUPP) => ProbeError::NoDirectIo { path, source },
            _ => ProbeError::Io {
                operation,
                path,
                source,
            },
        }
    };
    let allocate = |_| MmapMut::map_anon(BLOCK_BYTES).map_err(|error| failed("mapping", error));
    let (mut written, mut read) = (allocate(0)?, allocate(1)?);
    written.fill(0xA5);
    file.write_all_at(&written, 0)
        .map_err(|error| failed("writing", error))?;
    file.read_exact_at(&mut read, 0)
        .map_err(|error| failed("reading", error))?;
    if written[..] != read[..] {
        let source = io::Error::new(io::ErrorKind::InvalidData, "other bytes came back");
        return Err(failed("reading", source));
    }
    Ok(())
}

fn describe(directory: &Path, file: &File) -> Result<ProbeReport, ProbeError> {
    let mask = StatxFlags::BASIC_STATS | StatxFlags::DIOALIGN;
    let status = rustix::fs::statx(file, "", AtFlags::EMPTY_PATH, mask)
        .map_err(|error| io_error("describing", directory, error.into()))?;
    let in_memory = rustix::fs::fstatfs(file).is_ok_and(|system| system.f_type == TMPFS_MAGIC);
    let mut report = ProbeReport {
        kernel: String::new(),
        logical_block_bytes: 512,
        physical_block_bytes: BLOCK_BYTES,
        memory_align_bytes: status.stx_dio_mem_align as usize,
        offset_align_bytes: status.stx_dio_offset_align as usize,
        request_bytes_max: None,
        in_memory,
    };
    // A partition's own entry has no queue; that of its disk is above it.
    let (major, minor) = (status.stx_dev_major, status.stx_dev_minor);
    let device = PathBuf::from(format!("/sys/dev/block/{major}:{minor}"));
    let queue = [device.join("queue"), device.join("../queue")];
    if let Some(queue) = queue.iter().find(|queue| queue.is_dir()) {
        report.logical_block_bytes = read_number(&queue.join("logical_block_size"))?;
        report.physical_block_bytes = read_number(&queue.join("physical_block_size"))?;
        report.request_bytes_max = Some(read_number(&queue.join("max_sectors_kb"))? * 1024);
    }
    check_device_files(major)?;
    Ok(report)
}

/// `TMPFS_MAGIC` of the kernel's linux/magic.h.
const TMPFS_MAGIC: rustix::fs::FsWord = 0x0102_1994;

/// glommio describes every device by the entry with minor number 0 and panics on a part of it that
/// it cannot read.
fn check_device_files(major: u32) -> Result<(), ProbeError> {
    let device = PathBuf::from(format!("/sys/dev/block/{major}:0"));
    if !device.exists() {
        return Ok(());
    }
    for name in DEVICE_FILES {
        let path = device.join("queue").join(name);
        fs::read_to_string(&path).map_err(|source| ProbeError::DeviceUnknown { path, source })?;
    }
    let path = device.join("slaves");
    fs::read_dir(&path).map_err(|source| ProbeError::DeviceUnknown { path, source })?;
    Ok(())
}

fn read_number(path: &Path) -> Result<usize, ProbeError> {
    let text = fs::read_to_string(path);
    text.and_then(|text| text.trim().parse().map_err(io::Error::other))
        .map_err(|source| ProbeError::DeviceUnknown {
            path: path.to_owned(),
            source,
        })
}

fn check_blocks(directory: &Path, report: &ProbeReport) -> Result<(), ProbeError> {
    let units = [
        ("logical block", report.logical_block_bytes),
        ("physical block", report.physical_block_bytes),
        ("alignment of direct I/O", report.offset_align_bytes),
        ("memory alignment of direct I/O", report.memory_align_bytes),
    ];
    for (unit, found) in units {
        if found > BLOCK_BYTES {
            let path = directory.to_owned();
            return Err(ProbeError::BlockTooLarge { path, unit, found });
        }
    }
    Ok(())
}

fn io_error(operation: &'static str, directory: &Path, source: io::Error) -> ProbeError {
    let path = directory.to_owned();
    ProbeError::Io {
        operation,
        path,
        source,
    }
}

#[cfg(test)]
#[path = "probe_tests.rs"]
mod tests;
