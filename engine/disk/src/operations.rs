//! The disk operations of one core, each on its own: from the boundary's words to files.
//!
//! Zeros and reads go through the ring, writes as [`crate::writable`] has it, all of them past the
//! page cache. What io_uring does not offer or glommio does not reach (rename, truncate, syncing a
//! directory) is done by glommio's blocking thread in one piece: no core waits for such a thing.
//!
//! glommio finds out at the first file that it opens on a device whether the device can be polled,
//! by reading the beginning of that file. From an empty file that read brings nothing, it wrongly
//! concludes that polling works, and every later read fails. So [`Operations::new`] opens the data
//! directory's identity file first, which always has content.
//!
//! # Invariants
//! - Offsets and lengths are multiples of the block; anything else is our own mistake and asserts.
//! - A segment is finished only when none of its writes and zeros is in flight, so none can make
//!   the file longer again.
//!
//! # Not here
//! - Tasks, queues and tokens: [`crate::driver`].

use crate::driver::{DriverConfig, READ_BYTES_MAX, SyncMode};
use crate::failure::Attempt;
use crate::handles::Handles;
use crate::in_flight::Guard;
use crate::layout::Layout;
use crate::lull::Lull;
use crate::read_buffer::Home;
use crate::segments::{self, Draft};
use crate::writable::{Calls, Durable, Writable};
use crate::write_through::writes_through;
use bytes::{Bytes, BytesMut};
use glommio::executor;
use glommio::io::{DmaBuffer, DmaFile};
use glommio::sync::Semaphore;
use nova_core::disk::{DiskError, DiskFailure, DiskResult, Mapped, SegmentFile};
use nova_model::limits::{BLOCK_BYTES, GROUP_BYTES_MAX};
use nova_model::{Generation, LogId};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

/// Beside commits, reads and zeros are done in pieces of this size, one after the other, because a
/// commit that meets one at the device waits for it. Measured on virtio with a write-back cache, a
/// 4 KiB commit takes 45 us alone; beside zeros 390 us with pieces of 1 MiB and 150 us with
/// 256 KiB; beside reads 980 us and 240 us, while the reads themselves stay at 1 GB/s.
const PIECE_BYTES: usize = 256 * 1024;
/// Reads that are at the device together while no commit could wait for them: it goes on with the
/// second when it is done with the first, however late the core looks. Beside commits it is one.
const READS_AT_ONCE: u64 = 2;

/// What an operation brought, or how it failed.
pub(crate) type Outcome = Result<DiskResult, DiskError>;

/// The files of one core.
pub(crate) struct Operations {
    layout: Layout,
    durable: Durable,
    calls: Rc<Calls>,
    writables: RefCell<BTreeMap<SegmentFile, Rc<Writable>>>,
    handles: Handles,
    /// One piece of zeros, shared by all background writes of that size.
    zeros: Rc<DmaBuffer>,
    /// When writes began.
    lull: Lull,
    /// Where buffers of reads come back to.
    home: Arc<Home>,
    /// Room for reads at the device, in the order in which they ask.
    at_device: Semaphore,
}

impl Operations {
    pub(crate) async fn new(config: DriverConfig, calls: Calls) -> Result<Operations, DiskError> {
        let zeros = probe_device(&config.layout.star()).await?;
        let root = config.layout.root().to_owned();
        let is_through = blocking(move || Ok(writes_through(&root))).await;
        let durable = Durable {
            sync: config.sync,
            is_through: config.sync == SyncMode::Dsync && is_through.unwrap_or(false),
        };
        Ok(Operations {
            layout: config.layout,
            durable,
            calls: Rc::new(calls),
            writables: RefCell::default(),
            handles: Handles::new(config.read_handles_max),
            zeros: Rc::new(zeros),
            lull: Lull::new(),
            home: Home::here(),
            at_device: Semaphore::new(READS_AT_ONCE),
        })
    }

    /// Answers were given just now.
    pub(crate) fn note_answers(&self) {
        self.calls.in_place.note_answers(Instant::now());
    }

    /// Descriptors that are open.
    pub(crate) fn descriptors(&self) -> usize {
        self.writables.borrow().len() + self.handles.count()
    }

    /// Closes all files; none has an operation in flight.
    pub(crate) async fn close(&self) {
        self.home.sweep();
        let writables = std::mem::take(&mut *self.writables.borrow_mut());
        for (file, writable) in writables {
            let attempt = Attempt::new("close", &self.layout.segment(file), 0, 0);
            if let Err(error) = close_writable(writable, &attempt).await {
                tracing::warn!(%error, "closing a segment failed");
            }
        }
        if let Err(error) = self.handles.close_idle().await {
            tracing::warn!(%error, "closing a read handle failed");
        }
    }

    pub(crate) async fn create(&self, file: SegmentFile, length: u64) -> Outcome {
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
        let writable =
            Writable::open(&draft.path, self.durable, Rc::clone(&self.calls), attempt).await?;
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
    pub(crate) fn write(
        &self,
        file: SegmentFile,
        offset: u64,
        parts: Vec<Bytes>,
        length: usize,
    ) -> impl Future<Output = Outcome> + use<> {
        check_stretch(offset, length, GROUP_BYTES_MAX);
        assert!(parts.iter().map(Bytes::len).sum::<usize>() <= length);
        self.lull.note_write(Instant::now());
        let attempt = self.attempt("write", file, offset, length);
        let target = self.begin(file, &attempt);
        async move {
            let (target, _guard) = target?;
            target.write(parts, offset, length, &attempt).await?;
            Ok(DiskResult::Written)
        }
    }

    pub(crate) fn zero(
        &self,
        file: SegmentFile,
        offset: u64,
        length: usize,
    ) -> impl Future<Output = Outcome> + use<> {
        check_stretch(offset, length, GROUP_BYTES_MAX);
        let attempt = self.attempt("zero", file, offset, length);
        let target = self.begin(file, &attempt);
        let shared = Rc::clone(&self.zeros);
        async move {
            let (target, _guard) = target?;
            let mut done = 0;
            while done < length {
                let zeros = match length - done {
                    rest if rest < PIECE_BYTES => Rc::new(zeroed(target.file(), rest)),
                    _ => Rc::clone(&shared),
                };
                let begin = offset + done as u64;
                done += zeros.len();
                target.zero(zeros, begin, &attempt).await?;
            }
            target.flush_zeros(&attempt).await?;
            Ok(DiskResult::Written)
        }
    }

    pub(crate) async fn read(
        &self,
        (file, generation): (SegmentFile, Generation),
        offset: u64,
        length: usize,
    ) -> Outcome {
        check_stretch(offset, length, READ_BYTES_MAX);
        let key = (file, generation);
        let path = self.layout.segment_of(file, generation);
        let attempt = Attempt::new("read", &path, offset, length as u64);
        let room = match self.lull.is_now(Instant::now()) {
            true => 1,
            false => READS_AT_ONCE,
        };
        // Reads that wait hold no descriptor.
        let room = self.at_device.acquire_permit(room).await;
        let _room = room.map_err(|error| attempt.failed_in_ring(&error))?;
        self.home.sweep();
        let written = self
            .writables
            .borrow()
            .get(&file)
            .filter(|_| generation == Generation(0))
            .map(|target| Rc::clone(target.file()));
        let source = match written {
            Some(source) => source,
            None => self.read_handle(key, &path, &attempt).await?,
        };
        match self.lull.is_now(Instant::now()) {
            true => self.read_whole(&source, offset, length, &attempt).await,
            false => self.read_pieces(&source, offset, length, &attempt).await,
        }
        .map(DiskResult::Read)
    }

    /// While no commit could wait for it: in one piece, whose buffer is handed out.
    async fn read_whole(
        &self,
        source: &Rc<DmaFile>,
        offset: u64,
        length: usize,
        attempt: &Attempt,
    ) -> Result<Bytes, DiskError> {
        let read = source.read_at_aligned(offset, length).await;
        let read = read.map_err(|error| attempt.failed_in_ring(&error))?;
        if read.len() < length {
            // In pieces it is seen whether the file ends there or the device gave less than asked.
            return self.read_pieces(source, offset, length, attempt).await;
        }
        Ok(self.home.lend(read))
    }

    /// Beside commits: in small pieces, one after the other, that are put together.
    async fn read_pieces(
        &self,
        source: &Rc<DmaFile>,
        offset: u64,
        length: usize,
        attempt: &Attempt,
    ) -> Result<Bytes, DiskError> {
        let mut bytes = BytesMut::with_capacity(length);
        while bytes.len() < length {
            let piece = (length - bytes.len()).min(PIECE_BYTES);
            let read = source.read_at_aligned(offset + bytes.len() as u64, piece);
            let read = read.await.map_err(|error| attempt.failed_in_ring(&error))?;
            bytes.extend_from_slice(&read);
            if read.len() < piece {
                return Err(attempt.short(bytes.len()));
            }
        }
        Ok(bytes.freeze())
    }

    async fn read_handle(
        &self,
        key: (SegmentFile, Generation),
        path: &Path,
        attempt: &Attempt,
    ) -> Result<Rc<DmaFile>, DiskError> {
        let failed = |error| attempt.failed_in_ring(&error);
        match self.handles.get(key, path).await.map_err(failed) {
            Err(error) if error.failure == DiskFailure::NoDescriptor => {
                if !self.free_descriptors(attempt).await? {
                    return Err(error);
                }
                self.handles.get(key, path).await.map_err(failed)
            }
            outcome => outcome,
        }
    }

    pub(crate) async fn store_index(&self, file: SegmentFile, bytes: Bytes) -> Outcome {
        let attempt = Attempt::new("store", &self.layout.index(file), 0, bytes.len() as u64);
        let layout = self.layout.clone();
        let stored =
            blocking(move || segments::store_index(&layout, file, Generation(0), &bytes)).await;
        let map = stored.map_err(|error| attempt.failed(&error))?;
        Ok(DiskResult::Mapped(map as Mapped))
    }

    pub(crate) async fn finish(&self, file: SegmentFile, length: u64) -> Outcome {
        assert!(length.is_multiple_of(BLOCK_BYTES as u64));
        let path = self.layout.segment(file);
        let attempt = Attempt::new("finish", &path, 0, length);
        // From here on a write to the file is refused, and those before it are waited for.
        let found = self.writables.borrow_mut().remove(&file);
        let writable = found.ok_or_else(|| not_writable(&attempt))?;
        writable.in_flight().idle().await;
        if let Err(error) = writable.cut(length, &attempt).await {
            self.writables.borrow_mut().insert(file, writable);
            return Err(error);
        }
        close_writable(writable, &attempt).await?;
        Ok(DiskResult::Finished)
    }

    pub(crate) async fn recycle(&self, file: SegmentFile, generation: Generation) -> Outcome {
        let path = self.layout.segment_of(file, generation);
        let attempt = Attempt::new("recycle", &path, 0, 0);
        assert!(
            !self.writables.borrow().contains_key(&file),
            "{file} is finished before it is recycled"
        );
        self.let_go(file, generation).await?;
        let layout = self.layout.clone();
        let recycled = blocking(move || segments::recycle(&layout, file, generation)).await;
        recycled.map_err(|error| attempt.failed(&error))?;
        Ok(DiskResult::Finished)
    }

    pub(crate) async fn space(&self, log: LogId) -> Outcome {
        let attempt = Attempt::new("space", &self.layout.log(log), 0, 0);
        let layout = self.layout.clone();
        let space = blocking(move || segments::space(&layout, log)).await;
        let (free, total) = space.map_err(|error| attempt.failed(&error))?;
        Ok(DiskResult::Space { free, total })
    }

    pub(crate) async fn write_draft(
        &self,
        of: (SegmentFile, Generation),
        offset: u64,
        parts: Vec<Bytes>,
        length: usize,
    ) -> Outcome {
        check_stretch(offset, length, GROUP_BYTES_MAX);
        let path = self.layout.draft_of(of.0, of.1);
        let attempt = Attempt::new("write", &path, offset, length as u64);
        let layout = self.layout.clone();
        let write = move || segments::write_draft(&layout, of, offset, &parts, length);
        let written = blocking(write).await;
        written.map_err(|error| attempt.failed(&error))?;
        Ok(DiskResult::Written)
    }

    pub(crate) async fn place_draft(
        &self,
        of: (SegmentFile, Generation),
        length: u64,
        index: Bytes,
    ) -> Outcome {
        assert!(length.is_multiple_of(BLOCK_BYTES as u64));
        let path = self.layout.draft_of(of.0, of.1);
        let attempt = Attempt::new("place", &path, 0, length);
        let layout = self.layout.clone();
        let place = move || segments::place_draft(&layout, of, length, &index);
        let map = blocking(place).await;
        let map = map.map_err(|error| attempt.failed(&error))?;
        Ok(DiskResult::Mapped(map as Mapped))
    }

    pub(crate) async fn drop_draft(&self, file: SegmentFile, generation: Generation) -> Outcome {
        let path = self.layout.draft_of(file, generation);
        let attempt = Attempt::new("drop", &path, 0, 0);
        let layout = self.layout.clone();
        let dropped = blocking(move || segments::drop_draft(&layout, file, generation)).await;
        dropped.map_err(|error| attempt.failed(&error))?;
        Ok(DiskResult::Finished)
    }

    pub(crate) async fn let_go(&self, file: SegmentFile, generation: Generation) -> Outcome {
        let attempt = self.attempt("let go", file, 0, 0);
        let closed = self.handles.close((file, generation)).await;
        let finished = closed.map(|()| DiskResult::Finished);
        finished.map_err(|error| attempt.failed_in_ring(&error))
    }

    /// The file with one more write in flight.
    fn begin(
        &self,
        file: SegmentFile,
        attempt: &Attempt,
    ) -> Result<(Rc<Writable>, Guard), DiskError> {
        let found = self.writables.borrow().get(&file).cloned();
        let writable = found.ok_or_else(|| not_writable(attempt))?;
        let guard = writable.in_flight().enter();
        Ok((writable, guard))
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

fn not_writable(attempt: &Attempt) -> DiskError {
    attempt.because(DiskFailure::NotFound, "it is not open for writing")
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

/// Opens the first file on the device, which has content, and makes the shared piece of zeros.
async fn probe_device(star: &Path) -> Result<DmaBuffer, DiskError> {
    let attempt = Attempt::new("open", star, 0, 0);
    let failed = |error| attempt.failed_in_ring(&error);
    let file = DmaFile::open(star).await.map_err(failed)?;
    if file.file_size().await.map_err(failed)? == 0 {
        let message = "it is empty, and a star's identity never is";
        return Err(attempt.because(DiskFailure::Io, message));
    }
    let zeros = zeroed(&file, PIECE_BYTES);
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
