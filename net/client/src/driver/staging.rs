//! What the callers of a producer and its task share: the staged records and who waits for them.
//!
//! ```text
//!   callers: room (bytes, in the order of asking) -> lock -> batcher -> ticket
//!   task:    lock -> pump -> unlock -> room freed ... lock -> cell of a batch -> unlock -> set
//! ```
//! # Invariants
//! - Permits of `room` plus staged bytes are the bound of the batcher.
//! - There is a cell for each batch from `settled` up to the batcher's next number that has no
//!   result; a batch below `settled` has its result.
//! - The lock is held for no more than a push, a cut or a look; nothing is encoded under it.

use crate::core::{BatchNumber, Batcher, BatcherConfig, PushError, Pushed, Share};
use crate::driver::outcome_cell::OutcomeCell;
use crate::error::ClientError;
use nova_model::limits::CLIENT_STAGED_BYTES_MAX;
use nova_model::{Instant, Record, Refusal, SequenceNumber};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::{Notify, Semaphore};

/// How the producer goes on.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Phase {
    /// Appends are taken.
    Taking,
    /// What is staged is sent and waited for; then the task ends.
    Draining,
    /// All is resolved now, with errors; then the task ends.
    Abandoned,
    /// The task has ended, or every append fails like this.
    Over(ClientError),
}

#[derive(Debug)]
pub(crate) struct Staged {
    pub(crate) batcher: Batcher,
    pub(crate) phase: Phase,
    pub(crate) first_failure: Option<ClientError>,
    cells: VecDeque<Option<Arc<OutcomeCell>>>,
    settled: u64,
}

impl Staged {
    /// All batches below this number have their result.
    pub(crate) fn settled(&self) -> BatchNumber {
        BatchNumber(self.settled)
    }

    /// Takes the cell of a batch whose result is there.
    pub(crate) fn settle(&mut self, batch: BatchNumber) -> Option<Arc<OutcomeCell>> {
        let at = batch.0.checked_sub(self.settled)? as usize;
        let cell = self.cells.get_mut(at)?.take();
        while let Some(None) = self.cells.front() {
            self.cells.pop_front();
            self.settled += 1;
        }
        cell
    }

    fn cell(&mut self, share: &Share) -> Arc<OutcomeCell> {
        if share.offset == 0 {
            self.cells.push_back(Some(Arc::default()));
        }
        let last = self.cells.back().and_then(Option::as_ref);
        Arc::clone(last.expect("the batch that was pushed to has no result yet"))
    }
}

#[derive(Debug)]
pub(crate) struct Staging {
    staged: Mutex<Staged>,
    lingers: bool,
    room: Semaphore,
    /// There is work for the task.
    pub(crate) work: Notify,
    /// `settled` grew.
    pub(crate) settling: Notify,
}

impl Staging {
    pub(crate) fn new(config: BatcherConfig) -> Staging {
        Staging {
            staged: Mutex::new(Staged {
                batcher: Batcher::new(config),
                phase: Phase::Taking,
                first_failure: None,
                cells: VecDeque::new(),
                settled: 0,
            }),
            lingers: config.linger_us > 0,
            room: Semaphore::new(CLIENT_STAGED_BYTES_MAX),
            work: Notify::new(),
            settling: Notify::new(),
        }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Staged> {
        self.staged.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a push needs the time at all.
    pub(crate) fn lingers(&self) -> bool {
        self.lingers
    }

    /// Waits until `metered` bytes may be staged; they are the caller's to stage.
    pub(crate) async fn reserve(&self, metered: usize) -> Result<(), ClientError> {
        let bytes = metered as u32;
        let permit = match self.room.try_acquire_many(bytes) {
            Ok(permit) => permit,
            Err(_) => match self.room.acquire_many(bytes).await {
                Ok(permit) => permit,
                Err(_) => return Err(self.over()),
            },
        };
        permit.forget();
        Ok(())
    }

    /// Bytes have left the batcher.
    pub(crate) fn release(&self, metered: usize) {
        if metered > 0 {
            self.room.add_permits(metered);
        }
    }

    /// Stages one record of the size reserved.
    pub(crate) fn push(
        &self,
        now: Instant,
        record: Record,
    ) -> Result<(Share, Arc<OutcomeCell>), ClientError> {
        self.push_with(|batcher| batcher.push(now, record))
    }

    /// Stages records of the size reserved as one.
    pub(crate) fn push_batch(
        &self,
        now: Instant,
        records: Vec<Record>,
        match_sequence: Option<SequenceNumber>,
    ) -> Result<(Share, Arc<OutcomeCell>), ClientError> {
        self.push_with(|batcher| batcher.push_batch(now, records, match_sequence))
    }

    fn push_with(
        &self,
        push: impl FnOnce(&mut Batcher) -> Result<Pushed, PushError>,
    ) -> Result<(Share, Arc<OutcomeCell>), ClientError> {
        let (share, cell, wake) = {
            let mut staged = self.lock();
            match &staged.phase {
                Phase::Taking => {}
                Phase::Draining | Phase::Abandoned => return Err(ClientError::Closed),
                Phase::Over(error) => return Err(error.clone()),
            }
            let Pushed { share, wake } = push(&mut staged.batcher).map_err(push_error)?;
            let cell = staged.cell(&share);
            (share, cell, wake)
        };
        if wake {
            self.work.notify_one();
        }
        Ok((share, cell))
    }

    /// Moves on to draining or abandoning.
    pub(crate) fn enter(&self, phase: Phase) {
        {
            let mut staged = self.lock();
            if matches!(staged.phase, Phase::Over(_)) {
                return;
            }
            staged.phase = phase;
            staged.batcher.flush();
        }
        self.work.notify_one();
    }

    /// No append is taken any more: each fails with this.
    pub(crate) fn end(&self, error: ClientError) {
        {
            let mut staged = self.lock();
            if matches!(staged.phase, Phase::Over(_)) {
                return;
            }
            staged.phase = Phase::Over(error);
        }
        self.room.close();
        self.settling.notify_waiters();
    }

    fn over(&self) -> ClientError {
        match &self.lock().phase {
            Phase::Over(error) => error.clone(),
            Phase::Taking | Phase::Draining | Phase::Abandoned => ClientError::Closed,
        }
    }
}

fn push_error(error: PushError) -> ClientError {
    match error {
        PushError::Refused(refusal) => ClientError::Refused(refusal),
        PushError::Full => {
            let message = "the staged records are more than was reserved for them";
            ClientError::Refused(Refusal::invalid("batch", None, message))
        }
    }
}
