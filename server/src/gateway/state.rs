//! What all requests of the gateway share.

use super::body::PIECE_BYTES;
use super::cores::Cores;
use super::durable::Turns;
use super::origins::Origins;
use crate::metrics::Metrics;
use nova_model::limits::HTTP_MEMORY_BYTES;
use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

/// The gateway as its handlers see it.
#[derive(Clone)]
pub(crate) struct Gateway {
    pub(crate) cores: Arc<Cores>,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) origins: Arc<Origins>,
    /// Whose turn it is to change a stream of the other protocol.
    pub(crate) turns: Arc<Turns>,
    memory: Arc<Semaphore>,
    stopping: watch::Receiver<bool>,
}

impl Gateway {
    pub(crate) fn new(
        cores: Arc<Cores>,
        metrics: Arc<Metrics>,
        allow_origins: Vec<String>,
        stopping: watch::Receiver<bool>,
    ) -> Gateway {
        Gateway {
            cores,
            metrics,
            origins: Arc::new(Origins::new(allow_origins)),
            turns: Arc::default(),
            memory: Arc::new(Semaphore::new(HTTP_MEMORY_BYTES / PIECE_BYTES)),
            stopping,
        }
    }

    /// A share of the gateway's memory, if there is that much.
    pub(crate) fn memory(&self, bytes: usize) -> Option<OwnedSemaphorePermit> {
        self.pieces(bytes.div_ceil(PIECE_BYTES))
    }

    /// What `more` bytes behind `had` take.
    pub(crate) fn memory_beyond(&self, had: usize, more: usize) -> Option<OwnedSemaphorePermit> {
        let pieces = (had + more).div_ceil(PIECE_BYTES) - had.div_ceil(PIECE_BYTES);
        self.pieces(pieces)
    }

    /// Bytes of the gateway's memory in use.
    pub(crate) fn memory_used(&self) -> usize {
        HTTP_MEMORY_BYTES - self.memory.available_permits() * PIECE_BYTES
    }

    /// Whether the star is on its way down.
    pub(crate) fn is_stopping(&self) -> bool {
        *self.stopping.borrow()
    }

    /// Waits until the star is on its way down.
    pub(crate) async fn stopping(&self) {
        let mut stopping = self.stopping.clone();
        // The other end is gone only when the star stops.
        let _stopping = stopping.wait_for(|is_stopping| *is_stopping).await;
    }

    fn pieces(&self, pieces: usize) -> Option<OwnedSemaphorePermit> {
        let pieces = u32::try_from(pieces).ok()?;
        Arc::clone(&self.memory).try_acquire_many_owned(pieces).ok()
    }
}
