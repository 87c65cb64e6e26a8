//! The batches that left the batcher and have no result yet, in their order, and the numbers they
//! carry as a writer's.
//!
//! ```text
//!   kept (refused, to be sent again) | in flight | to be sent
//!   ------------------------------------------------------------> order of the producer
//! ```
//! # Invariants
//! - Those that may have been applied by an earlier attempt come first, and their stamps are
//!   `expected, expected + 1, ...`: a star that has one of them has all before it.
//! - A stamp is given when a batch is sent. One that was certainly not applied loses its stamp
//!   when the queue is rewound, so that the numbers stay dense when a batch is given up.

use crate::core::batcher::{BatchNumber, Cut};
use crate::core::outcome::Ambiguity;
use nova_model::request::SessionAppend;
use nova_model::{EncodedBatch, Record, Refusal, SequenceNumber, StreamId};
use std::collections::VecDeque;

#[derive(Debug)]
enum Body {
    Records(Vec<Record>),
    Encoded(EncodedBatch),
}

/// A batch without a result.
#[derive(Debug)]
pub(super) struct Pending {
    pub(super) number: BatchNumber,
    pub(super) match_sequence: Option<SequenceNumber>,
    /// A session broke before it answered, or its answer was not certain.
    pub(super) maybe_applied: bool,
    pub(super) stamp: Option<u64>,
    body: Body,
    since: Option<SequenceNumber>,
}

impl Pending {
    pub(super) fn ambiguity(&self, id: Option<StreamId>, refusal: Option<Refusal>) -> Ambiguity {
        let since = self.since.unwrap_or_default();
        Ambiguity {
            stream_id: id,
            since,
            refusal,
        }
    }
}

/// What sending the next batch takes, or why it never can be sent.
pub(super) struct NextSend {
    pub(super) number: BatchNumber,
    pub(super) append: SessionAppend,
    pub(super) batch: Result<EncodedBatch, Refusal>,
    pub(super) emptied: Option<Vec<Record>>,
}

#[derive(Debug, Default)]
pub(super) struct Queue {
    items: VecDeque<Pending>,
    in_flight: usize,
    kept: Vec<Pending>,
    expected: u64,
    next_stamp: u64,
}

impl Queue {
    pub(super) fn len(&self) -> usize {
        self.kept.len() + self.items.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub(super) fn in_flight(&self) -> usize {
        self.in_flight
    }

    pub(super) fn push(&mut self, cut: Cut) {
        self.items.push_back(Pending {
            number: cut.number,
            match_sequence: cut.match_sequence,
            maybe_applied: false,
            stamp: None,
            body: Body::Records(cut.records),
            since: None,
        });
    }

    /// Takes the next batch to send into flight; `tail` is a position that it can't be before.
    pub(super) fn send(&mut self, writer: bool, tail: SequenceNumber) -> Option<NextSend> {
        let item = self.items.get_mut(self.in_flight)?;
        let (batch, emptied) = match &mut item.body {
            Body::Encoded(batch) => (Ok(batch.clone()), None),
            Body::Records(records) => {
                let mut records = std::mem::take(records);
                let encoded = EncodedBatch::encode(&records);
                records.clear();
                (encoded, Some(records))
            }
        };
        let number = item.number;
        let match_sequence = item.match_sequence;
        let Ok(encoded) = &batch else {
            self.items.remove(self.in_flight);
            let append = SessionAppend {
                writer_sequence: None,
                match_sequence,
            };
            return Some(NextSend {
                number,
                append,
                batch,
                emptied,
            });
        };
        item.body = Body::Encoded(encoded.clone());
        item.since.get_or_insert(match_sequence.unwrap_or(tail));
        if writer {
            let stamp = item.stamp.unwrap_or(self.next_stamp);
            item.stamp = Some(stamp);
            self.next_stamp = stamp + 1;
        }
        self.in_flight += 1;
        let append = SessionAppend {
            writer_sequence: item.stamp,
            match_sequence,
        };
        Some(NextSend {
            number,
            append,
            batch,
            emptied,
        })
    }

    /// Takes the batch that the next answer belongs to.
    pub(super) fn answered(&mut self) -> Option<Pending> {
        if self.in_flight == 0 {
            return None;
        }
        self.in_flight -= 1;
        self.items.pop_front()
    }

    /// The star has this batch.
    pub(super) fn applied(&mut self, pending: &Pending) {
        if let Some(stamp) = pending.stamp {
            self.expected = stamp + 1;
        }
    }

    /// The batch is to be sent again, before those that are still in flight.
    pub(super) fn keep(&mut self, pending: Pending) {
        self.kept.push(pending);
    }

    /// The session broke: what is in flight may have been applied.
    pub(super) fn doubt(&mut self) {
        for item in self.items.iter_mut().take(self.in_flight) {
            item.maybe_applied = true;
        }
    }

    /// A batch before all others was certainly not applied, so neither were those behind it.
    pub(super) fn clear_doubt(&mut self) {
        for item in self.kept.iter_mut().chain(&mut self.items) {
            item.maybe_applied = false;
        }
    }

    /// Nothing is in flight any more; all that has no result is to be sent from the front.
    pub(super) fn rewind(&mut self) {
        for item in self.kept.drain(..).rev() {
            self.items.push_front(item);
        }
        self.in_flight = 0;
        self.next_stamp = self.expected;
        for item in &mut self.items {
            if !item.maybe_applied {
                item.stamp = None;
            }
        }
    }

    /// Takes all those out, in order, that `leaves` says.
    pub(super) fn extract(&mut self, leaves: impl Fn(&Pending) -> bool) -> Vec<Pending> {
        assert!(
            self.in_flight == 0 && self.kept.is_empty(),
            "rewound before"
        );
        let (gone, stay): (VecDeque<_>, VecDeque<_>) = std::mem::take(&mut self.items)
            .into_iter()
            .partition(leaves);
        self.items = stay;
        gone.into()
    }

    /// The numbering starts again under a new writer; nothing may be in doubt.
    pub(super) fn renumber(&mut self) {
        assert!(
            self.items.iter().all(|item| !item.maybe_applied),
            "doubt is resolved before"
        );
        self.expected = 0;
        self.rewind();
    }
}
