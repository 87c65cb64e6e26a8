//! The device as a file that the kernel sees: the only file of a FUSE mount, and its root.
//!
//! ```text
//!   kernel --- read, write, fsync --> a thread of the session --> gate --> Device --> answer
//!   stdin  --- orders -------------> the main thread ----------------------^   |
//!   stdout <-- an order has happened -------------------------------------------+
//! ```
//! At the gate a request waits while the device hangs or is slow. A flush is for what was answered
//! when it came, not when it leaves the gate.
//!
//! # Invariants
//! - No thread here touches a file but stdin and stdout.
//! - Without power nothing waits at the gate.
//!
//! # Not here
//! - What a request does: [`crate::device`].

use crate::device::{Device, Kind, Life};
use crate::order::Order;
use fuser::{
    Config, Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, INodeNo, InitFlags,
    KernelConfig, LockOwner, OpenFlags, ReplyAttr, ReplyData, ReplyEmpty, ReplyOpen, ReplyWrite,
    Request, WriteFlags,
};
use std::io;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, UNIX_EPOCH};

/// Requests that are served, or wait at the gate, at a time.
const THREADS: usize = 8;
/// Most that the kernel puts into one request.
const REQUEST_BYTES_MAX: u32 = 1 << 20;
/// What a disk answers when it has not done what was asked, whatever the reason.
const REFUSED: Errno = Errno::EIO;

/// The device and what is asked of it, for the kernel's requests and for orders.
#[derive(Debug, Clone)]
pub struct Served {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug)]
struct State {
    device: Device,
    delays: [Duration; 3],
    is_hanging: bool,
    /// The order to be answered when a request waits because the device hangs.
    hang: Option<u64>,
    /// The order to be answered when the power has gone.
    cut: Option<u64>,
}

/// Says that an order has happened.
fn say(order: u64, what: &str) {
    println!("{order} {what}");
}

impl State {
    /// Does what happens at once: the answer.
    fn take(&mut self, order: Order) -> String {
        match order {
            Order::Cut(_) | Order::Hang => unreachable!("they are answered when they happen"),
            Order::On => {
                self.device.power_on();
                self.is_hanging = false;
            }
            Order::Fail(kind, times) => self.device.fail(kind, times),
            Order::Spoil(offset, length) => {
                let spoiled = self.device.spoil(offset, length);
                spoiled.expect("a stretch of the device");
            }
            Order::Delay(kind, milliseconds) => {
                self.delays[kind as usize] = Duration::from_millis(milliseconds);
            }
            Order::Resume => self.is_hanging = false,
            Order::Lie => self.device.lie(),
            Order::Count => return self.device.counts().to_string(),
        }
        "done".to_owned()
    }

    /// Says so if the power has gone.
    fn tell(&mut self) {
        if let Some(report) = self.device.take_report() {
            let order = self.cut.take().expect("a cut was ordered");
            say(order, &report.to_string());
        }
    }
}

impl Served {
    /// Serves this device.
    pub fn new(device: Device) -> Served {
        let state = State {
            device,
            delays: [Duration::ZERO; 3],
            is_hanging: false,
            hang: None,
            cut: None,
        };
        Served {
            shared: Arc::new(Shared {
                state: Mutex::new(state),
                changed: Condvar::new(),
            }),
        }
    }

    /// Puts the device over an empty file, for as long as what is returned lives.
    pub fn mount(&self, over: &Path) -> io::Result<fuser::BackgroundSession> {
        let mut config = Config::default();
        config.n_threads = Some(THREADS);
        fuser::spawn_mount(self.clone(), over, &config)
    }

    /// Does what was ordered, and answers as soon as it has happened.
    pub fn take(&self, number: u64, order: Order) {
        let mut state = self.lock();
        match order {
            Order::Cut(cut) => {
                state.cut = Some(number);
                state.device.schedule(cut);
                state.tell();
            }
            Order::Hang => {
                state.is_hanging = true;
                state.hang = Some(number);
            }
            order => say(number, &state.take(order)),
        }
        drop(state);
        self.shared.changed.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        let locked = self.shared.state.lock();
        locked.unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits as the device hangs or is slow; not without power.
    fn pass_gate<'a>(
        &'a self,
        mut state: MutexGuard<'a, State>,
        kind: Kind,
    ) -> MutexGuard<'a, State> {
        let until = Instant::now() + state.delays[kind as usize];
        loop {
            let hangs = state.is_hanging && kind != Kind::Read;
            let left = until.saturating_duration_since(Instant::now());
            if !state.device.has_power() || !hangs && left.is_zero() {
                return state;
            }
            if hangs && let Some(order) = state.hang.take() {
                say(order, "hangs");
            }
            state = if hangs {
                let waited = self.shared.changed.wait(state);
                waited.unwrap_or_else(PoisonError::into_inner)
            } else {
                let waited = self.shared.changed.wait_timeout(state, left);
                waited.unwrap_or_else(PoisonError::into_inner).0
            };
        }
    }

    fn attributes(&self) -> FileAttr {
        let size = self.lock().device.bytes() as u64;
        FileAttr {
            ino: INodeNo::ROOT,
            size,
            blocks: size / 512,
            atime: UNIX_EPOCH,
            mtime: UNIX_EPOCH,
            ctime: UNIX_EPOCH,
            crtime: UNIX_EPOCH,
            kind: FileType::RegularFile,
            perm: 0o600,
            nlink: 1,
            uid: 0,
            gid: 0,
            rdev: 0,
            blksize: 4096,
            flags: 0,
        }
    }
}

impl Filesystem for Served {
    fn init(&mut self, _: &Request, config: &mut KernelConfig) -> io::Result<()> {
        let unfit = |_| io::Error::from(io::ErrorKind::Unsupported);
        config.set_max_write(REQUEST_BYTES_MAX).map_err(unfit)?;
        let async_direct = config.add_capabilities(InitFlags::FUSE_ASYNC_DIO);
        async_direct.map_err(|_| io::Error::from(io::ErrorKind::Unsupported))
    }

    fn getattr(&self, _: &Request, _: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        reply.attr(&Duration::MAX, &self.attributes());
    }

    fn open(&self, _: &Request, _: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        let life = self.lock().device.life();
        let flags = FopenFlags::FOPEN_DIRECT_IO | FopenFlags::FOPEN_PARALLEL_DIRECT_WRITES;
        reply.opened(FileHandle(life.0), flags);
    }

    /// A file is closed, which asks for nothing.
    fn flush(&self, _: &Request, _: INodeNo, _: FileHandle, _: LockOwner, reply: ReplyEmpty) {
        reply.ok();
    }

    fn read(
        &self,
        _: &Request,
        _: INodeNo,
        handle: FileHandle,
        offset: u64,
        size: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        let mut state = self.pass_gate(self.lock(), Kind::Read);
        let read = state.device.read(Life(handle.0), offset, size as usize);
        match read {
            Ok(bytes) => reply.data(bytes),
            Err(_) => reply.error(REFUSED),
        }
    }

    fn write(
        &self,
        _: &Request,
        _: INodeNo,
        handle: FileHandle,
        offset: u64,
        data: &[u8],
        _: WriteFlags,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        let mut state = self.pass_gate(self.lock(), Kind::Write);
        let written = state.device.write(Life(handle.0), offset, data);
        state.tell();
        match written {
            Ok(()) => reply.written(data.len() as u32),
            Err(_) => reply.error(REFUSED),
        }
    }

    fn fsync(&self, _: &Request, _: INodeNo, handle: FileHandle, _: bool, reply: ReplyEmpty) {
        let state = self.lock();
        let mark = state.device.mark();
        let mut state = self.pass_gate(state, Kind::Flush);
        let flushed = state.device.flush(Life(handle.0), mark);
        state.tell();
        match flushed {
            Ok(()) => reply.ok(),
            Err(_) => reply.error(REFUSED),
        }
    }
}
