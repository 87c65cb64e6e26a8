//! Does the shard's disk operations with glommio, from the core's own thread.
//!
//! ```text
//!  submit(token, op) --> a task of glommio --> ring or another thread --> on_complete(token, ..)
//!     zeros, drafts: few shares        others: the caller's queue
//! ```
//!
//! An append costs one task, one copy and one trip through the ring with a flush behind it where
//! the device needs one, or one blocking call: of an idle core with a fast device by itself, and of
//! a thread beside the core where flushes are slow.
//!
//! # Invariants
//! - Each operation submitted is completed exactly once, and [`Driver::close`] waits for all.
//! - `on_complete` may be called from inside of [`Driver::submit`]: it must only take note.
//!
//! # Not here
//! - How each operation is done: [`crate::operations`].
//! - How many operations are in flight: the shard's limits bound it.
//! - What a failure means: the shard decides.

use crate::failure::Attempt;
use crate::in_flight::InFlight;
use crate::in_place::InPlace;
use crate::layout::Layout;
use crate::operations::{Operations, Outcome};
use crate::writable::Calls;
use crate::writer::Writer;
use glommio::{Latency, Shares, TaskQueueHandle, executor, spawn_local, spawn_local_into};
use nova_core::disk::{DiskError, DiskOp, DiskResult, OpToken};
use nova_model::limits::{GROUP_BYTES_MAX, READ_CHUNK_BYTES};
use std::rc::Rc;
use std::time::{Duration, Instant};

/// Read handles that a core keeps open.
pub const READ_HANDLES_DEFAULT: usize = 64;
/// Largest single read: a whole group or a chunk beyond one.
pub const READ_BYTES_MAX: usize = GROUP_BYTES_MAX + READ_CHUNK_BYTES;

const ZERO_SHARES: usize = 10;

/// How a write becomes durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SyncMode {
    /// Each write is durable by itself: with `O_DSYNC` where the device takes such a write as one;
    /// else with the same flag in blocking calls, and with a flush behind writes of the ring.
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
    operations: Rc<Operations>,
    on_complete: Rc<dyn Fn(OpToken, DiskResult)>,
    in_flight: Rc<InFlight>,
    zero_queue: TaskQueueHandle,
}

impl Driver {
    /// The driver of this thread's glommio executor. `spun` tells for how long tasks of it have run
    /// only to wait, which does not make the core busy. `on_complete` is called on this thread,
    /// once for each operation; [`crate::Completions`] is a queue to give it.
    pub async fn new(
        config: DriverConfig,
        spun: impl Fn() -> Duration + 'static,
        on_complete: impl Fn(OpToken, DiskResult) + 'static,
    ) -> Result<Driver, DiskError> {
        let worked = move || executor_run().saturating_sub(spun());
        let attempt = Attempt::new("start writing", config.layout.root(), 0, 0);
        let writer = Writer::start().map_err(|error| attempt.failed(&error))?;
        let in_place = InPlace::new(Instant::now(), worked);
        let operations = Operations::new(config, Calls { in_place, writer }).await?;
        let zero_queue = executor().create_task_queue(
            Shares::Static(ZERO_SHARES),
            Latency::NotImportant,
            "disk zeros",
        );
        Ok(Driver {
            operations: Rc::new(operations),
            on_complete: Rc::new(on_complete),
            in_flight: Rc::default(),
            zero_queue,
        })
    }

    /// Begins an operation.
    pub fn submit(&self, token: OpToken, op: DiskOp) {
        let operations = Rc::clone(&self.operations);
        match op {
            DiskOp::CreateSegment { file, length } => {
                let work = async move { operations.create(file, length).await };
                self.spawn(token, None, work);
            }
            DiskOp::Write {
                file,
                offset,
                parts,
                length,
            } => {
                let work = operations.write(file, offset, parts, length);
                self.spawn(token, None, work);
            }
            DiskOp::Zero {
                file,
                offset,
                length,
            } => {
                let work = operations.zero(file, offset, length);
                self.spawn(token, Some(self.zero_queue), work);
            }
            DiskOp::Read {
                file,
                generation,
                offset,
                length,
            } => {
                let of = (file, generation);
                let work = async move { operations.read(of, offset, length).await };
                self.spawn(token, None, work);
            }
            DiskOp::StoreIndex { file, bytes } => {
                let work = async move { operations.store_index(file, bytes).await };
                self.spawn(token, None, work);
            }
            DiskOp::Recycle { file, generation } => {
                let work = async move { operations.recycle(file, generation).await };
                self.spawn(token, None, work);
            }
            DiskOp::Space { log } => {
                let work = async move { operations.space(log).await };
                self.spawn(token, None, work);
            }
            DiskOp::LetGo { file, generation } => {
                let work = async move { operations.let_go(file, generation).await };
                self.spawn(token, None, work);
            }
            DiskOp::FinishSegment { file, length } => {
                let work = async move { operations.finish(file, length).await };
                self.spawn(token, None, work);
            }
            op => self.submit_draft(token, op),
        }
    }

    /// Begins an operation on a draft, in the background.
    fn submit_draft(&self, token: OpToken, op: DiskOp) {
        let operations = Rc::clone(&self.operations);
        match op {
            DiskOp::WriteDraft {
                file,
                generation,
                offset,
                parts,
                length,
            } => {
                let of = (file, generation);
                let work = async move { operations.write_draft(of, offset, parts, length).await };
                self.spawn(token, Some(self.zero_queue), work);
            }
            DiskOp::PlaceDraft {
                file,
                generation,
                length,
                index,
            } => {
                let of = (file, generation);
                let work = async move { operations.place_draft(of, length, index).await };
                self.spawn(token, Some(self.zero_queue), work);
            }
            DiskOp::DropDraft { file, generation } => {
                let work = async move { operations.drop_draft(file, generation).await };
                self.spawn(token, Some(self.zero_queue), work);
            }
            _ => unreachable!("no operation on a draft"),
        }
    }

    /// Answers to clients were given just now. They leave the core before it blocks for a write.
    pub fn note_answers(&self) {
        self.operations.note_answers();
    }

    /// Operations that were submitted and are not completed.
    pub fn in_flight(&self) -> usize {
        self.in_flight.count()
    }

    /// Descriptors of segments that are open.
    pub fn descriptors(&self) -> usize {
        self.operations.descriptors()
    }

    /// Waits until every operation is completed, then closes all files and lets their locks go.
    pub async fn close(self) {
        self.in_flight.idle().await;
        self.operations.close().await;
    }

    fn spawn(
        &self,
        token: OpToken,
        queue: Option<TaskQueueHandle>,
        work: impl Future<Output = Outcome> + 'static,
    ) {
        let on_complete = Rc::clone(&self.on_complete);
        let guard = self.in_flight.enter();
        let task = async move {
            let result = work.await.unwrap_or_else(DiskResult::Failed);
            on_complete(token, result);
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

/// How long this thread's executor has run tasks so far.
fn executor_run() -> Duration {
    executor().executor_stats().executor_runtime()
}

#[cfg(test)]
#[path = "drafts_tests.rs"]
mod drafts_tests;
#[cfg(test)]
#[path = "driver_tests.rs"]
mod tests;
