//! Does the shard's disk operations with glommio, on the core's own thread.
//!
//! ```text
//!  submit(token, op) --> a task of glommio --> ring or blocking thread --> on_complete(token, ..)
//!     writes: a latency queue     zeros: a queue of few shares     others: the caller's queue
//! ```
//!
//! Writes, zeros and reads go through the ring, past the page cache. What io_uring does not offer
//! or glommio does not reach (rename, truncate, syncing a directory) is done by glommio's blocking
//! thread in one piece, so the core's thread never waits for a file system.
//!
//! glommio finds out at the first file that it opens on a device whether the device can be polled,
//! by reading the beginning of that file. From an empty file that read brings nothing, it wrongly
//! concludes that polling works, and every later read fails. So [`Driver::new`] opens the data
//! directory's identity file first, which always has content.
//!
//! # Invariants
//! - Each operation submitted is completed exactly once, and [`Driver::close`] waits for all.
//! - Offsets and lengths are multiples of the block; anything else is our own mistake and asserts.
//! - A segment is finished only when none of its writes and zeros is in flight, so none can make
//!   the file longer again.
//!
//! # Not here
//! - How many operations are in flight: the shard's limits bound it.
//! - What a failure means: the shard decides.

use crate::failure::Attempt;
use crate::handles::Handles;
use crate::in_flight::{Guard, InFlight};
use crate::layout::Layout;
use crate::segments::{self, Draft};
use crate::writable::Writable;
use bytes::{Bytes, BytesMut};
use glommio::io::{DmaBuffer, DmaFile};
use glommio::{Latency, Shares, TaskQueueHandle, executor, spawn_local, spawn_local_into};
use nova_core::disk::{DiskError, DiskFailure, DiskOp, DiskResult, Mapped, OpToken, SegmentFile};
use nova_model::limits::{BLOCK_BYTES, GROUP_BYTES_MAX, READ_CHUNK_BYTES, ZERO_CHUNK_BYTES};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

/// Read handles that a core keeps open.
pub const READ_HANDLES_DEFAULT: usize = 64;
/// Largest single read: a whole group or a chunk beyond one.
pub const READ_BYTES_MAX: usize = GROUP_BYTES_MAX + READ_CHUNK_BYTES;

const WRITE_SHARES: usize = 1000;
const ZERO_SHARES: usize = 10;
/// How soon a finished write is noticed while other tasks are busy.
const WRITE_LATENCY: Duration = Duration::from_micros(500);

/// How a write becomes durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SyncMode {
    /// The file is opened with `O_DSYNC`: the write itself is durable.
    #[default]
    Dsync,
    /// Each write is followed by an `fdatasync`.
    Fdatasync,
}

/// Settings of a driver.
#[derive(Debug, Clone)]
pub struct DriverConfig {
    /// The data directory, opened and locked by the star.
    pub layout: Layout,
    /// How writes become durable.
    pub sync: SyncMode,
    /// Most read handles that stay open.
    pub read_handles_max: usize,
}

impl DriverConfig {
    /// The default settings for a data directory.
    pub fn new(layout: Layout) -> DriverConfig {
        let sync = SyncMode::default();
        DriverConfig {
            layout,
            sync,
            read_handles_max: READ_HANDLES_DEFAULT,
        }
    }
}

/// The disk of one core.
pub struct Driver {
    inner: Rc<Inner>,
}

type Outcome = Result<DiskResult, DiskError>;

struct Inner {
    layout: Layout,
    sync: SyncMode,
    on_complete: Box<dyn Fn(OpToken, DiskResult)>,
    writables: RefCell<BTreeMap<SegmentFile, Rc<Writable>>>,
    handles: Handles,
    in_flight: Rc<InFlight>,
    write_queue: TaskQueueHandle,
    zero_queue: TaskQueueHandle,
    /// One chunk of zeros, shared by all background writes of that size.
    zeros: Rc<DmaBuffer>,
}

impl Driver {
    /// The driver of this thread's glommio executor. `on_complete` is called on this thread, once
    /// for each operation, from outside of [`Driver::submit`]; [`crate::Completions`] is a queue to
    /// give it.
    pub async fn new(
        config: DriverConfig,
        on_complete: impl Fn(OpToken, DiskResult) + 'static,
    ) -> Result<Driver, DiskError> {
        let zeros = probe_device(&config.layout.star()).await?;
        let write_queue = executor().create_task_queue(
            Shares::Static(WRITE_SHARES),
            Latency::Matters(WRITE_LATENCY),
            "disk writes",
        );
        let zero_queue = executor().create_task_queue(
            Shares::Static(ZERO_SHARES),
            Latency::NotImportant,
            "disk zeros",
        );
        let inner = Inner {
            layout: config.layout,
            sync: config.sync,
            on_complete: Box::new(on_complete),
            writables: RefCell::default(),
            handles: Handles::new(config.read_handles_max),
            in_flight: Rc::default(),
            write_queue,
            zero_queue,
            zeros: Rc::new(zeros),
        };
        Ok(Driver {
            inner: Rc::new(inner),
        })
    }

    /// Begins an operation.
    pub fn submit(&self, token: OpToken, op: DiskOp) {
        let inner = Rc::clone(&self.inner);
        match op {
            DiskOp::CreateSegment { file, length } => {
                self.spawn(token, None, async move { inner.create(file, length).await });
            }
            DiskOp::Write {
                file,
                offset,
                parts,
                length,
            } => {
                let queue = Some(inner.write_queue);
                self.spawn(token, queue, inner.write(file, offset, parts, length));
            }
            DiskOp::Zero {
                file,
                offset,
                length,
            } => {
                let queue = Some(inner.zero_queue);
                self.spawn(token, queue, inner.zero(file, offset, length));
            }
            DiskOp::Read {
                file,
                offset,
                length,
            } => {
                self.spawn(token, None, async move {
                    inner.read(file, offset, length).await
                });
            }
            DiskOp::StoreIndex { file, bytes } => {
                self.spawn(
                    token,
                    None,
                    async move { inner.store_index(file, bytes).await },
                );
            }
            DiskOp::FinishSegment { file, length } => {
                self.spawn(token, None, async move { inner.finish(file, length).await });
            }
        }
    }

    /// Operations that were submitted and are not completed.
    pub fn in_flight(&self) -> usize {
        self.inner.in_flight.count()
    }

    /// Descriptors of segments that are open.
    pub fn descriptors(&self) -> usize {
        self.inner.writables.borrow().len() + self.inner.handles.count()
    }

    /// Waits until every operation is completed, then closes all files and lets their locks go.
    pub async fn close(self) {
        self.inner.in_flight.idle().await;
        let writables = std::mem::take(&mut *self.inner.writables.borrow_mut());
        for (file, writable) in writables {
            let attempt = Attempt::new("close", &self.inner.layout.segment(file), 0, 0);
            if let Err(error) = close_writable(writable, &attempt).await {
                tracing::warn!(%error, "closing a segment failed");
            }
        }
        if let Err(error) = self.inner.handles.close_idle().await {
            tracing::warn!(%error, "closing a read handle failed");
        }
    }

    fn spawn(
        &self,
        token: OpToken,
        queue: Option<TaskQueueHandle>,
        work: impl Future<Output = Outcome> + 'static,
    ) {
        let inner = Rc::clone(&self.inner);
        let guard = inner.in_flight.enter();
        let task = async move {
            let result = work.await.unwrap_or_else(DiskResult::Failed);
            (inner.on_complete)(token, result);
            drop(guard);
        };
        match queue {
            None => spawn_local(task).detach(),
            Some(queue) => spawn_local_into(task, queue)
                .expect("the driver made the queue in this executor and never removes it")
                .detach(),
        };
    }
}

impl Inner {
    async fn create(&self, file: SegmentFile, length: u64) -> Outcome {
        assert!(length > 0 && length.is_multiple_of(BLOCK_BYTES as u64));
        assert!(
            !self.writables.borrow().contains_key(&file),
            "{file} is created once"
        );
        let attempt = Attempt::new("create", &self.layout.segment(file), 0, length);
        match self.try_create(file, length, &attempt).await {
            Err(error) if error.failure == DiskFailure::NoDescriptor => {
                // Handles of readers are worth less than appends.
                if !self.free_descriptors(&attempt).await? {
                    return Err(error);
                }
                self.try_create(file, length, &attempt).await
            }
            outcome => outcome,
        }
    }

    async fn try_create(&self, file: SegmentFile, length: u64, attempt: &Attempt) -> Outcome {
        let layout = self.layout.clone();
        let prepared = blocking(move || segments::prepare(&layout, file, length)).await;
        let draft = prepared.map_err(|error| attempt.failed(&error))?;
        match self.open_and_place(&draft, file, attempt).await {
            Ok(writable) => {
                self.writables.borrow_mut().insert(file, Rc::new(writable));
                let written_before = draft.written_before;
                Ok(DiskResult::Created { written_before })
            }
            Err(error) => {
                let given_up = blocking(move || segments::discard(&draft)).await;
                given_up.map_err(|error| attempt.failed(&error))?;
                Err(error)
            }
        }
    }

    async fn open_and_place(
        &self,
        draft: &Draft,
        file: SegmentFile,
        attempt: &Attempt,
    ) -> Result<Writable, DiskError> {
        let writable = Writable::open(&draft.path, self.sync, attempt).await?;
        let (layout, draft) = (self.layout.clone(), draft.clone());
        match blocking(move || segments::place(&layout, &draft, file)).await {
            Ok(()) => Ok(writable),
            Err(error) => {
                writable.close(attempt).await?;
                Err(attempt.failed(&error))
            }
        }
    }

    /// The file is looked up and counted at once, so that a later `FinishSegment` waits for this.
    fn write(
        &self,
        file: SegmentFile,
        offset: u64,
        parts: Vec<Bytes>,
        length: usize,
    ) -> impl Future<Output = Outcome> + use<> {
        check_stretch(offset, length, GROUP_BYTES_MAX);
        assert!(parts.iter().map(Bytes::len).sum::<usize>() <= length);
        let attempt = self.attempt("write", file, offset, length);
        let target = self.begin(file, &attempt);
        async move {
            let (target, _guard) = target?;
            target.write(parts, offset, length, &attempt).await?;
            Ok(DiskResult::Written)
        }
    }

    fn zero(
        &self,
        file: SegmentFile,
        offset: u64,
        length: usize,
    ) -> impl Future<Output = Outcome> + use<> {
        check_stretch(offset, length, GROUP_BYTES_MAX);
        let attempt = self.attempt("zero", file, offset, length);
        let target = self.begin(file, &attempt);
        let chunk = Rc::clone(&self.zeros);
        async move {
            let (target, _guard) = target?;
            let zeros = match chunk.len() == length {
                true => chunk,
                false => Rc::new(zeroed(target.file(), length)),
            };
            target.zero(zeros, offset, &attempt).await?;
            Ok(DiskResult::Written)
        }
    }

    async fn read(&self, file: SegmentFile, offset: u64, length: usize) -> Outcome {
        check_stretch(offset, length, READ_BYTES_MAX);
        let attempt = self.attempt("read", file, offset, length);
        let written = self
            .writables
            .borrow()
            .get(&file)
            .map(|target| Rc::clone(target.file()));
        let source = match written {
            Some(source) => source,
            None => self.read_handle(file, &attempt).await?,
        };
        if length <= READ_CHUNK_BYTES {
            return read_chunk(source, offset, length, attempt)
                .await
                .map(DiskResult::Read);
        }
        // All pieces at once: the device answers several reads much faster than one by one.
        let pieces: Vec<_> = (0..length)
            .step_by(READ_CHUNK_BYTES)
            .map(|begin| {
                let piece = (length - begin).min(READ_CHUNK_BYTES);
                let (source, attempt) = (Rc::clone(&source), attempt.clone());
                spawn_local(read_chunk(source, offset + begin as u64, piece, attempt))
            })
            .collect();
        let mut bytes = BytesMut::with_capacity(length);
        for piece in pieces {
            bytes.extend_from_slice(&piece.await?);
        }
        Ok(DiskResult::Read(bytes.freeze()))
    }

    async fn read_handle(
        &self,
        file: SegmentFile,
        attempt: &Attempt,
    ) -> Result<Rc<DmaFile>, DiskError> {
        let path = self.layout.segment(file);
        let failed = |error| attempt.failed_in_ring(&error);
        match self.handles.get(file, &path).await.map_err(failed) {
            Err(error) if error.failure == DiskFailure::NoDescriptor => {
                if !self.free_descriptors(attempt).await? {
                    return Err(error);
                }
                self.handles.get(file, &path).await.map_err(failed)
            }
            outcome => outcome,
        }
    }

    async fn store_index(&self, file: SegmentFile, bytes: Bytes) -> Outcome {
        let attempt = Attempt::new("store", &self.layout.index(file), 0, bytes.len() as u64);
        let layout = self.layout.clone();
        let stored = blocking(move || segments::store_index(&layout, file, &bytes)).await;
        let map = stored.map_err(|error| attempt.failed(&error))?;
        Ok(DiskResult::Mapped(map as Mapped))
    }

    async fn finish(&self, file: SegmentFile, length: u64) -> Outcome {
        assert!(length.is_multiple_of(BLOCK_BYTES as u64));
        let path = self.layout.segment(file);
        let attempt = Attempt::new("finish", &path, 0, length);
        let writable = self.writable(file, &attempt)?;
        writable.in_flight().idle().await;
        let cut = blocking(move || segments::cut(&path, length)).await;
        cut.map_err(|error| attempt.failed(&error))?;
        self.writables.borrow_mut().remove(&file);
        close_writable(writable, &attempt).await?;
        Ok(DiskResult::Finished)
    }

    /// The file with one more write in flight.
    fn begin(
        &self,
        file: SegmentFile,
        attempt: &Attempt,
    ) -> Result<(Rc<Writable>, Guard), DiskError> {
        let writable = self.writable(file, attempt)?;
        let guard = writable.in_flight().enter();
        Ok((writable, guard))
    }

    fn writable(&self, file: SegmentFile, attempt: &Attempt) -> Result<Rc<Writable>, DiskError> {
        let found = self.writables.borrow().get(&file).cloned();
        found.ok_or_else(|| attempt.because(DiskFailure::NotFound, "it is not open for writing"))
    }

    async fn free_descriptors(&self, attempt: &Attempt) -> Result<bool, DiskError> {
        let closed = self.handles.close_idle().await;
        let closed = closed.map_err(|error| attempt.failed_in_ring(&error))?;
        Ok(closed > 0)
    }

    fn attempt(
        &self,
        operation: &'static str,
        file: SegmentFile,
        offset: u64,
        length: usize,
    ) -> Attempt {
        Attempt::new(operation, &self.layout.segment(file), offset, length as u64)
    }
}

/// Closes a file that has no write in flight.
async fn close_writable(writable: Rc<Writable>, attempt: &Attempt) -> Result<(), DiskError> {
    match Rc::into_inner(writable) {
        Some(writable) => writable.close(attempt).await,
        None => unreachable!("only writes in flight share it, and there are none"),
    }
}

fn check_stretch(offset: u64, length: usize, length_max: usize) {
    assert!(offset.is_multiple_of(BLOCK_BYTES as u64), "offset {offset}");
    assert!(
        length > 0 && length.is_multiple_of(BLOCK_BYTES),
        "length {length}"
    );
    assert!(length <= length_max, "length {length}");
}

async fn read_chunk(
    source: Rc<DmaFile>,
    offset: u64,
    length: usize,
    attempt: Attempt,
) -> Result<Bytes, DiskError> {
    let read = source.read_at_aligned(offset, length).await;
    let read = read.map_err(|error| attempt.failed_in_ring(&error))?;
    if read.len() < length {
        return Err(attempt.short(read.len()));
    }
    // glommio's buffer belongs to this thread's ring and cannot leave it, so this is a copy.
    Ok(Bytes::copy_from_slice(&read))
}

/// Opens the first file on the device, which has content, and makes the shared chunk of zeros.
async fn probe_device(star: &Path) -> Result<DmaBuffer, DiskError> {
    let attempt = Attempt::new("open", star, 0, 0);
    let failed = |error| attempt.failed_in_ring(&error);
    let file = DmaFile::open(star).await.map_err(failed)?;
    if file.file_size().await.map_err(failed)? == 0 {
        let message = "it is empty, and a star's identity never is";
        return Err(attempt.because(DiskFailure::Io, message));
    }
    let zeros = zeroed(&file, ZERO_CHUNK_BYTES);
    file.close().await.map_err(failed)?;
    Ok(zeros)
}

fn zeroed(file: &DmaFile, length: usize) -> DmaBuffer {
    let mut zeros = file.alloc_dma_buffer(length);
    zeros.as_bytes_mut().fill(0);
    zeros
}

/// Runs `act` on glommio's blocking thread. A panic there would hang the waiting task for ever, so
/// it is caught and becomes an error.
async fn blocking<T: Send + 'static>(
    act: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    let caught = move || catch_unwind(AssertUnwindSafe(act));
    let panicked = |_| Err(io::Error::other("the operation panicked"));
    executor()
        .spawn_blocking(caught)
        .await
        .unwrap_or_else(panicked)
}

#[cfg(test)]
#[path = "driver_tests.rs"]
mod tests;
