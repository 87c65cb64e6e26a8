//! A home's data directory on a file system on a [`crate::device`], and all that it takes.
//!
//! ```text
//!   device   power-disk in mounts of its own: a FUSE file                  orders, a line each
//!   holder   a copy of those mounts, plus the file system when it is there
//!            losetup --direct-io=on, mkfs, mount, umount                   each a child in it
//!   star     nsenter into the holder's mounts, killed with the test
//! ```
//! A file system is detached from its place without waiting for it: what it still wants to write is
//! of a life that the device refuses ([`crate::device::Life`]).
//!
//! # Invariants
//! - Mounts are seen by nobody else and go with the holder, also when the test is killed; a loop
//!   device goes with its mount.
//! - The device goes first: nothing that ends waits for it.

use crate::order::Order;
use nova_e2e::home::Home;
use nova_e2e::process::{Ended, Process};
use nova_e2e::small_disk::{Kind, run};
use rustix::fs::statvfs;
use rustix::process::Signal;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The place of the file system in the home's folder.
const PLACE: &str = "disk";

/// The device and the file system on it.
#[derive(Debug)]
pub struct PowerDisk {
    kind: Kind,
    file: PathBuf,
    place: PathBuf,
    orders: u64,
    loop_device: Option<String>,
    // What ends last is below.
    holder: Process,
    device: Process,
}

/// An order that may take its time to happen.
#[derive(Debug, Clone, Copy)]
#[must_use]
pub struct Ordered(u64);

impl PowerDisk {
    /// Makes one of so many MiB and moves the home there, not yet mounted; what this machine lacks
    /// if it cannot. The binary is `power-disk`.
    pub fn of(
        home: &mut Home,
        binary: &str,
        kind: Kind,
        mib: u64,
        seed: u64,
    ) -> Result<PowerDisk, String> {
        let (file, place) = (home.folder().join("device"), home.folder().join(PLACE));
        std::fs::write(&file, "").expect("a folder that is writable");
        std::fs::create_dir(&place).expect("a folder");
        needs(kind)?;
        let mut command = Command::new("unshare");
        command.args(["--mount", binary]).arg(&file);
        let sector = sector_bytes(kind).to_string();
        command.args([&mib.to_string(), &sector, &seed.to_string()]);
        let device = begin("a device", &mut command, "serving")?;
        let mut command = inside(&device, "unshare");
        command.args(["--mount", "sh", "-c", "echo holding; exec cat"]);
        let holder = begin("a holder of mounts", &mut command, "holding")?;
        home.set_data("disk/data");
        // A star that outlives a killed test would hold the mounts.
        let and_dies = ["setpriv", "--pdeathsig", "KILL", "--"];
        home.wrap(&[&["nsenter", &mounts_of(&holder), "--"], &and_dies[..]].concat());
        let mut disk = PowerDisk {
            kind,
            file,
            place,
            orders: 0,
            loop_device: None,
            holder,
            device,
        };
        disk.attach()?;
        disk.make()?;
        disk.detach();
        disk.mount()?;
        disk.unmount();
        Ok(disk)
    }

    /// A path below the data directory, as it can be read from outside while it is mounted.
    pub fn path(&self, below: impl AsRef<Path>) -> PathBuf {
        let root = format!("/proc/{}/root{}", self.holder.id(), self.place.display());
        PathBuf::from(root).join("data").join(below)
    }

    /// What anybody may still take of the file system while it is mounted.
    pub fn free_mib(&self) -> u64 {
        let system = statvfs(self.path("")).expect("it is mounted");
        (system.f_bavail * system.f_frsize) >> 20
    }

    /// Mounts the file system, which replays its journal; what the kernel said if it does not.
    pub fn mount(&mut self) -> Result<(), String> {
        self.attach()?;
        let loop_device = self.loop_device.as_deref().expect("just attached");
        let (kind, options) = match self.kind {
            Kind::Ext4 => ("ext4", "errors=remount-ro"),
            // The one before may not have come to its end yet.
            Kind::Xfs => ("xfs", "nouuid"),
        };
        let mut command = inside(&self.holder, "mount");
        command.args(["-t", kind, "-o", options, loop_device]);
        command.arg(&self.place);
        let mounted = said("mount", &mut command);
        // A loop device that is in use goes when it is not any more.
        self.detach();
        mounted.map(drop)
    }

    /// Takes the file system from its place. Nobody who uses it is waited for.
    pub fn unmount(&self) {
        let mut command = inside(&self.holder, "umount");
        command.arg("--lazy").arg(&self.place);
        said("umount", &mut command).expect("it was mounted");
    }

    /// Gives an order, which happens when it happens.
    pub fn begin(&mut self, order: Order) -> Ordered {
        self.orders += 1;
        let line = format!("{} {order}\n", self.orders);
        self.device.write(line.as_bytes());
        Ordered(self.orders)
    }

    /// Waits until an order has happened: what the device said.
    #[track_caller]
    pub fn wait_for(&self, order: Ordered) -> String {
        let beginning = format!("{} ", order.0);
        let line = self
            .device
            .wait_for_line(|line| line.starts_with(&beginning));
        line[beginning.len()..].to_owned()
    }

    /// Whether an order has happened.
    pub fn has_happened(&self, order: Ordered) -> bool {
        let beginning = format!("{} ", order.0);
        self.device.has_said(|line| line.starts_with(&beginning))
    }

    /// Gives an order and waits until it has happened.
    #[track_caller]
    pub fn order(&mut self, order: Order) -> String {
        let ordered = self.begin(order);
        self.wait_for(ordered)
    }

    /// Writes and flushes that the device has answered.
    pub fn counts(&mut self) -> (u64, u64) {
        let said = self.order(Order::Count);
        let mut numbers = said.split(' ').map(|word| word.parse::<u64>());
        let mut next = || numbers.next().and_then(Result::ok).expect("numbers");
        (next(), next())
    }

    /// Puts a loop device on the device.
    fn attach(&mut self) -> Result<(), String> {
        let mut command = inside(&self.holder, "losetup");
        command.args(["--find", "--show", "--direct-io=on", "--sector-size"]);
        command.arg(sector_bytes(self.kind).to_string());
        command.arg(&self.file);
        let name = said("losetup", &mut command)?.text().trim().to_owned();
        self.loop_device = Some(name.clone());
        let short = name.trim_start_matches("/dev/");
        let direct = std::fs::read_to_string(format!("/sys/block/{short}/loop/dio"));
        match direct.is_ok_and(|text| text.trim() == "1") {
            true => Ok(()),
            false => Err("no direct I/O from a loop device to a FUSE file".to_owned()),
        }
    }

    fn make(&self) -> Result<(), String> {
        let words = self.kind.make_words();
        let mut command = inside(&self.holder, words[0]);
        command.args(&words[1..]).args(&self.loop_device);
        said("mkfs", &mut command).map(drop)
    }

    fn detach(&mut self) {
        if let Some(loop_device) = self.loop_device.take() {
            let mut command = inside(&self.holder, "losetup");
            command.args(["--detach", &loop_device]);
            // It fails only if it is gone.
            let _gone = said("losetup", &mut command);
        }
    }
}

impl Drop for PowerDisk {
    fn drop(&mut self) {
        self.device.signal(Signal::KILL);
        self.detach();
    }
}

/// What the device does not tear. XFS sees in the first bytes of a block of 4 KiB whether its log
/// has anything to add, and so cannot mend a block of which only the first sector has landed; it is
/// on a disk whose sectors are as large. ext4 logs whole blocks.
fn sector_bytes(kind: Kind) -> usize {
    match kind {
        Kind::Ext4 => 512,
        Kind::Xfs => 4096,
    }
}

/// Whether this machine has what it takes.
fn needs(kind: Kind) -> Result<(), String> {
    if !Path::new("/dev/fuse").exists() || !Path::new("/dev/loop-control").exists() {
        return Err("no /dev/fuse or no /dev/loop-control".to_owned());
    }
    run(Command::new("unshare").args(["--mount", "true"]))?;
    run(Command::new("nsenter").arg("--version"))?;
    run(Command::new("losetup").arg("--version"))?;
    run(Command::new("setpriv").args(["--pdeathsig", "KILL", "true"]))?;
    run(Command::new(kind.make_words()[0]).arg("-V"))
}

/// Starts a child and waits until it says a word; what it said on stderr if it ends instead.
fn begin(what: &str, command: &mut Command, word: &str) -> Result<Process, String> {
    let process = Process::start(what, command);
    match process.wait_for_line_or_end(|line| line == word) {
        Some(_) => Ok(process),
        None => Err(format!("{what}: {}", process.errors().trim())),
    }
}

/// The option of `nsenter` for the mounts of a process.
fn mounts_of(process: &Process) -> String {
    format!("--mount=/proc/{}/ns/mnt", process.id())
}

/// A command with the mounts of a process.
fn inside(process: &Process, program: &str) -> Command {
    let mut command = Command::new("nsenter");
    command.args([&mounts_of(process), "--", program]);
    command
}

/// Runs a command to its end, in time; what it said on stderr if it fails.
fn said(what: &str, command: &mut Command) -> Result<Ended, String> {
    let ended = Process::start(what, command).wait_for_end();
    match ended.code() {
        Some(0) => Ok(ended),
        _ => Err(format!("{what}: {}", ended.stderr.trim())),
    }
}
