//! A small file system of its own for a home: an image on a loop device, which can be filled.
//!
//! ```text
//!   holder: unshare --mount, mount -o loop image disk, wait      keeps the namespace alive
//!     star: nsenter into it                                      killed and started at will
//!     test: the disk below the holder's root                     looks, and takes space
//! ```
//! The image lies in memory where there is room: a loop device on a file of a busy disk syncs that
//! file's journal, too, for each write.
//!
//! # Invariants
//! - The mount is seen by nobody else and goes with its holder, also when the test is killed.

use crate::home::Home;
use crate::process::Process;
use rustix::fs::{FallocateFlags, StatVfs, fallocate, ftruncate, statvfs};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::NamedTempFile;

/// A file system in memory.
const MEMORY: &str = "/dev/shm";
/// Images that have to find room there: those of some tests at once.
const IMAGES: u64 = 4;

/// A kind of file system and what makes it. None keeps space back for root, who may run the tests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// ext4.
    Ext4,
    /// XFS, which has 300 MiB at least.
    Xfs,
}

impl Kind {
    /// The command that makes one, without the place.
    pub fn make_words(self) -> &'static [&'static str] {
        match self {
            Kind::Ext4 => &["mkfs.ext4", "-q", "-F", "-m", "0"],
            Kind::Xfs => &["mkfs.xfs", "-q", "-f"],
        }
    }
}

/// The file system of a home's data directory.
#[derive(Debug)]
pub struct SmallDisk {
    root: PathBuf,
    filler: File,
    _holder: Process,
}

impl SmallDisk {
    /// Makes one of so many bytes and moves the home there; what this machine lacks if it cannot.
    pub fn of(home: &mut Home, kind: Kind, bytes: u64) -> Result<SmallDisk, String> {
        let disk = home.folder().join("disk");
        let has_room = |system: StatVfs| system.f_bavail * system.f_frsize >= IMAGES * bytes;
        let image = match statvfs(MEMORY).is_ok_and(has_room) {
            true => NamedTempFile::new_in(MEMORY),
            false => NamedTempFile::new_in(home.folder()),
        };
        let image = image.expect("a folder that is writable");
        image.as_file().set_len(bytes).expect("a sparse file");
        std::fs::create_dir(&disk).expect("a folder");
        let words = kind.make_words();
        run(Command::new(words[0]).args(&words[1..]).arg(image.path()))?;
        run(Command::new("unshare").args(["--mount", "true"]))?;
        run(Command::new("nsenter").arg("--version"))?;
        let mount = r#"if mount -o loop "$0" "$1"; then echo mounted; else echo refused; fi; cat"#;
        let mut command = Command::new("unshare");
        command.args(["--mount", "sh", "-c", mount]);
        command.arg(image.path()).arg(&disk);
        let holder = Process::start("a mount", &mut command);
        let said = holder.wait_for_line(|line| line == "mounted" || line == "refused");
        if said == "refused" {
            return Err(format!("no loop mount: {}", holder.errors().trim()));
        }
        let id = holder.id();
        home.set_data("disk/data");
        home.wrap(&["nsenter", &format!("--mount=/proc/{id}/ns/mnt"), "--"]);
        // The loop device holds the image, whose name is not needed any more.
        drop(image);
        let root = PathBuf::from(format!("/proc/{id}/root{}", disk.display()));
        let filler = File::create(root.join("filler")).expect("an empty disk has room");
        Ok(SmallDisk {
            root,
            filler,
            _holder: holder,
        })
    }

    /// A path below the data directory, as it can be reached from outside.
    pub fn path(&self, below: impl AsRef<Path>) -> PathBuf {
        self.root.join("data").join(below)
    }

    /// Bytes that anybody may still take.
    pub fn free_bytes(&self) -> u64 {
        let system = self.system();
        system.f_bavail * system.f_frsize
    }

    /// Bytes of the file system.
    pub fn total_bytes(&self) -> u64 {
        let system = self.system();
        system.f_blocks * system.f_frsize
    }

    /// Takes space beside the data directory until so many bytes are free, as far as that is to be
    /// had: others may take space, too.
    pub fn leave(&self, bytes: u64) {
        let mut step = self.total_bytes();
        while step > 0 {
            let spare = self.free_bytes().saturating_sub(bytes);
            let unit = self.system().f_frsize;
            step = step.min(spare) / unit * unit;
            let end = self.filler.metadata().expect("an open file").len();
            if step > 0 && fallocate(&self.filler, FallocateFlags::empty(), end, step).is_err() {
                step /= 2;
            }
        }
    }

    /// Gives all of that back but so many bytes.
    pub fn shrink(&self, bytes: u64) {
        ftruncate(&self.filler, bytes).expect("a file gives space back");
    }

    /// How much of the disk was taken beside the data directory.
    pub fn taken_bytes(&self) -> u64 {
        self.filler.metadata().expect("an open file").len()
    }

    fn system(&self) -> StatVfs {
        statvfs(&self.root).expect("it is mounted")
    }
}

/// Runs a command to its end; what does not work here if it fails.
pub fn run(command: &mut Command) -> Result<(), String> {
    let ran = command.output();
    match ran {
        Ok(output) if output.status.success() => Ok(()),
        other => Err(format!("`{command:?}` does not work here ({other:?})")),
    }
}
