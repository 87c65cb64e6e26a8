//! The newest durable batches of all streams of a core, kept in memory for followers.
//!
//! They share the bytes that came from the producers; there is no copy for each reader. When the
//! budget is spent the oldest batch of the core goes first, whatever its stream.
//!
//! # Invariants
//! - What is kept of a stream has no gap and ends at its durable tail.

use crate::catalog::streams::{Stream, Streams};
use nova_model::StoredBatch;
use nova_model::ids::StreamId;
use nova_model::position::SequenceNumber;
use std::collections::VecDeque;

/// Bytes that a kept batch costs besides its payload.
const BATCH_OVERHEAD_BYTES: usize = 192;

/// The order and the bytes of what is kept; the batches are with their streams.
pub(crate) struct Recent {
    budget: usize,
    bytes: usize,
    order: VecDeque<(StreamId, SequenceNumber)>,
}

impl Recent {
    pub(crate) fn new(budget: usize) -> Recent {
        Recent {
            budget,
            bytes: 0,
            order: VecDeque::new(),
        }
    }

    /// Bytes that are kept.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Keeps a durable batch, letting the oldest go.
    pub(crate) fn add(&mut self, streams: &mut Streams, id: StreamId, batch: StoredBatch) {
        let Some(stream) = streams.get_mut(id) else {
            return;
        };
        self.bytes += cost(&batch);
        self.order.push_back((id, batch.first));
        stream.recent.push_back(batch);
        while self.bytes > self.budget {
            let Some((oldest, first)) = self.order.pop_front() else {
                return;
            };
            let Some(stream) = streams.get_mut(oldest) else {
                continue;
            };
            // A stream that was let go and came back holds newer batches only.
            if stream.recent_first() == Some(first)
                && let Some(gone) = stream.recent.pop_front()
            {
                self.bytes -= cost(&gone);
            }
        }
    }

    /// A stream left memory with what was kept of it.
    pub(crate) fn forget(&mut self, gone: &Stream) {
        self.bytes -= gone.recent.iter().map(cost).sum::<usize>();
    }
}

fn cost(batch: &StoredBatch) -> usize {
    BATCH_OVERHEAD_BYTES + batch.batch.bytes().len()
}

/// The kept batches of a stream from the one that holds `next` on.
pub(crate) fn from(stream: &Stream, next: SequenceNumber) -> impl Iterator<Item = &StoredBatch> {
    let at = stream.recent.partition_point(|batch| batch.end() <= next);
    stream.recent.range(at..)
}
