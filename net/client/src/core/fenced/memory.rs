//! What a writer knows of entities from its reads and its own writes.
//!
//! ```text
//!   stream:   ... | a . b c . d | e f
//!                 ^ known from  ^ next: read up to here; what is behind is not known
//! ```
//! # Invariants
//! - A memory holds durable facts of one incarnation only: it is never wrong, only incomplete,
//!   and a write on condition that the tail is `next` tells.
//! - It holds at most the ids of the newest `known_records` records before `next`.
//! - All memories together are bounded in entities and in ids; the one that was used longest ago
//!   is forgotten first, and is read again when it is needed.

use crate::core::cursor::ReadBatch;
use crate::core::fenced::update::Content;
use bytes::Bytes;
use nova_model::limits::{ENTITIES_REMEMBERED_MAX, ENTITY_IDS_REMEMBERED_MAX};
use nova_model::request::ReadStart;
use nova_model::{SequenceNumber, StreamId, StreamName};
use std::collections::{BTreeMap, VecDeque};

/// Where an update is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stored {
    pub(crate) at: SequenceNumber,
    pub(crate) content: Content,
}

/// What is known of one entity.
#[derive(Debug, Clone)]
pub struct Memory {
    known_records: u64,
    stream_id: Option<StreamId>,
    next: Option<SequenceNumber>,
    known: BTreeMap<Bytes, Stored>,
    order: VecDeque<(SequenceNumber, Bytes)>,
}

impl Memory {
    /// Nothing is known; the ids of the newest `known_records` records will be.
    pub fn new(known_records: u64) -> Memory {
        Memory {
            known_records,
            stream_id: None,
            next: None,
            known: BTreeMap::new(),
            order: VecDeque::new(),
        }
    }

    /// Ids that are known.
    pub fn ids(&self) -> usize {
        self.order.len()
    }

    pub(crate) fn known_records(&self) -> u64 {
        self.known_records
    }

    pub(crate) fn stream_id(&self) -> Option<StreamId> {
        self.stream_id
    }

    /// All before is known, as far back as ids are known; `None` if nothing is.
    pub(crate) fn next(&self) -> Option<SequenceNumber> {
        self.next
    }

    pub(crate) fn find(&self, id: &Bytes) -> Option<Stored> {
        self.known.get(id).copied()
    }

    /// Where a read has to start to learn the rest.
    pub(crate) fn read_start(&self) -> ReadStart {
        match (self.stream_id, self.next) {
            (Some(_), Some(next)) => ReadStart::Sequence(next),
            _ => ReadStart::TailOffset(self.known_records),
        }
    }

    /// A read of this incarnation has begun here.
    pub(crate) fn begin(&mut self, stream_id: StreamId, start: SequenceNumber) {
        if self.stream_id.replace(stream_id).is_none() {
            self.next = Some(start);
        }
        self.next.get_or_insert(start);
    }

    /// There is no stream: it is empty if it is created by the append.
    pub(crate) fn begin_absent(&mut self) {
        self.next = Some(SequenceNumber(0));
    }

    /// Records behind `next` are trimmed already: a read starts with the newest ones again.
    pub(crate) fn lose_place(&mut self) {
        self.next = None;
        self.known.clear();
        self.order.clear();
    }

    pub(crate) fn learn_batch(&mut self, batch: &ReadBatch) {
        batch.for_each(|position, record| {
            if let Some((id, content)) = Content::of_stored(record) {
                self.learn(position.sequence, id, content);
            }
        });
        self.advance(batch.end());
    }

    pub(crate) fn learn(&mut self, at: SequenceNumber, id: Bytes, content: Content) {
        self.known.insert(id.clone(), Stored { at, content });
        self.order.push_back((at, id));
    }

    /// All before `next` is known now; what is older than the newest is forgotten.
    pub(crate) fn advance(&mut self, next: SequenceNumber) {
        self.next = Some(next);
        while let Some((at, _)) = self.order.front()
            && at.0.saturating_add(self.known_records) < next.0
        {
            let Some((at, id)) = self.order.pop_front() else {
                break;
            };
            if self.known.get(&id).is_some_and(|stored| stored.at == at) {
                self.known.remove(&id);
            }
        }
    }
}

/// The memories of entities between their batches.
#[derive(Debug)]
pub struct Memories {
    known_records: u64,
    entities: BTreeMap<StreamName, (u64, Memory)>,
    by_use: BTreeMap<u64, StreamName>,
    uses: u64,
    ids: usize,
    ids_max: usize,
}

impl Memories {
    /// No memories yet; each will know this many records.
    pub fn new(known_records: u64) -> Memories {
        Memories {
            known_records,
            entities: BTreeMap::new(),
            by_use: BTreeMap::new(),
            uses: 0,
            ids: 0,
            ids_max: ENTITY_IDS_REMEMBERED_MAX,
        }
    }

    /// Takes the memory of an entity out, or begins one.
    pub fn take(&mut self, entity: &StreamName) -> Memory {
        let Some((used, memory)) = self.entities.remove(entity) else {
            return Memory::new(self.known_records);
        };
        self.by_use.remove(&used);
        self.ids -= memory.ids();
        memory
    }

    /// Keeps the memory of an entity, in place of what has not been used for longest.
    pub fn keep(&mut self, entity: StreamName, memory: Memory) {
        // At most one batch of an entity runs, so nothing was kept since it was taken out.
        drop(self.take(&entity));
        self.uses += 1;
        self.ids += memory.ids();
        self.by_use.insert(self.uses, entity.clone());
        self.entities.insert(entity, (self.uses, memory));
        while self.ids > self.ids_max || self.entities.len() > ENTITIES_REMEMBERED_MAX {
            let Some((_, oldest)) = self.by_use.pop_first() else {
                return;
            };
            if let Some((_, memory)) = self.entities.remove(&oldest) {
                self.ids -= memory.ids();
            }
        }
    }
}

#[cfg(test)]
#[path = "memory_tests.rs"]
mod tests;
