//! The whole state of a stream, and how each entry of the log changes it.
//!
//! There is one function for that, [`StreamState::apply`]. The shard uses it when it admits an
//! entry, the index when a group becomes durable, recovery when it reads the group again; so the
//! three cannot disagree.
//!
//! # Not here
//! - Whether an entry may be admitted: `admission`. Where records lie: `index`.

use crate::disk::SegmentFile;
use crate::entry::{BatchEntry, Entry};
use nova_model::condition::{FencingToken, WriterStamp};
use nova_model::ids::{Epoch, StreamId, WriterId};
use nova_model::limits::{STREAM_WRITERS_MAX, WRITER_BATCHES_MAX};
use nova_model::position::{Position, SequenceNumber};
use nova_model::settings::StreamSettings;
use nova_model::{Checksum, StreamName, Timestamp};
use rkyv::{Archive, Deserialize, Serialize};
use std::collections::BTreeMap;

/// Everything about a stream but its records.
#[derive(Archive, Serialize, Deserialize, Debug, Clone, PartialEq, Eq)]
pub struct StreamState {
    /// Its incarnation.
    pub id: StreamId,
    /// Its name.
    pub name: StreamName,
    /// When it was created.
    pub created: Timestamp,
    /// What it says itself of its settings.
    pub settings: StreamSettings,
    /// The fencing token installed; empty if none.
    pub fence: FencingToken,
    /// First record that is left.
    pub trimmed: SequenceNumber,
    /// When that changed last, by the star's clock; 0 if it never did.
    pub trimmed_at: Timestamp,
    /// The tail.
    pub tail: Position,
    /// When its last record arrived, by the star's clock; when it was created, before the first.
    pub arrived: Timestamp,
    /// Metered bytes of all records that it ever took.
    pub bytes: u64,
    /// Epoch of the last leadership; 0 before the first.
    pub epoch: Epoch,
    /// Whether it is deleted.
    pub deleted: bool,
    /// The newest segment before this one, of any log, that holds records of the stream.
    pub previous: Option<SegmentFile>,
    /// Its writers' latest batches.
    pub writers: WriterTable,
}

impl StreamState {
    /// A stream that was just created.
    pub fn new(
        id: StreamId,
        name: StreamName,
        created: Timestamp,
        settings: StreamSettings,
    ) -> StreamState {
        StreamState {
            id,
            name,
            created,
            settings,
            fence: FencingToken::default(),
            trimmed: SequenceNumber(0),
            trimmed_at: Timestamp(0),
            tail: Position::default(),
            arrived: created,
            bytes: 0,
            epoch: Epoch(0),
            deleted: false,
            previous: None,
            writers: WriterTable::default(),
        }
    }

    /// Changes the state as `entry` says.
    ///
    /// # Panics
    /// If the entry belongs to another stream or to none, or a batch does not start at the tail:
    /// the caller checked that, at admission or when the group was read.
    pub fn apply(&mut self, entry: &Entry) {
        assert_eq!(entry.stream(), Some(self.id), "an entry of another stream");
        match entry {
            Entry::Batch(batch) => self.apply_batch(batch),
            Entry::Led(state) => *self = (**state).clone(),
            Entry::Fence { token, .. } => self.fence = token.clone(),
            Entry::Trim { first, at, .. } if *first > self.trimmed => {
                (self.trimmed, self.trimmed_at) = (*first, *at);
            }
            Entry::Trim { .. } => {}
            Entry::Settings { settings, .. } => self.settings = *settings,
            Entry::Deleted { .. } => self.deleted = true,
            Entry::BucketPut(_) | Entry::BucketDeleted(_) | Entry::Released { .. } => {
                unreachable!("belongs to no stream")
            }
        }
    }

    /// Names the first rule that a state read from disk breaks: names, order, bounds.
    pub fn check(&self) -> Result<(), &'static str> {
        let rules = [
            ("stream name", self.name.check().is_ok()),
            ("settings", self.settings.check().is_ok()),
            ("fencing token", self.fence.check().is_ok()),
            ("trim point", self.trimmed <= self.tail.sequence),
            ("writer table", self.writers.is_sound()),
        ];
        match rules.into_iter().find(|(_, holds)| !holds) {
            Some((rule, _)) => Err(rule),
            None => Ok(()),
        }
    }

    fn apply_batch(&mut self, batch: &BatchEntry) {
        assert_eq!(
            batch.stored.first, self.tail.sequence,
            "a batch starts at the tail"
        );
        let end = batch.end();
        if let Some(stamp) = batch.stored.writer {
            self.writers.remember(
                stamp,
                WriterBatch {
                    sequence: stamp.sequence,
                    start: batch.start(),
                    end,
                    checksum: batch.stored.batch.checksum(),
                },
            );
        }
        self.tail = end;
        self.arrived = batch.stored.stamping.arrival;
        self.bytes += u64::from(batch.stored.batch.metered_bytes());
    }
}

/// What is remembered of one batch of a writer.
#[derive(Archive, Serialize, Deserialize, Debug, Clone, Copy, PartialEq, Eq)]
pub struct WriterBatch {
    /// The writer's number of it.
    pub sequence: u64,
    /// Where its first record went.
    pub start: Position,
    /// One past its last record.
    pub end: Position,
    /// Checksum of the encoded batch.
    pub checksum: Checksum,
}

/// The latest batches of one writer, ascending and dense, at least one.
#[derive(Archive, Serialize, Deserialize, Debug, Clone, PartialEq, Eq, Default)]
pub struct WriterState {
    /// The batches.
    pub batches: Vec<WriterBatch>,
}

/// The writers of a stream (contract, section 2.7): at most 1,024, the one whose last batch is
/// oldest is forgotten first; of each the last 32 batches.
#[derive(Archive, Serialize, Deserialize, Debug, Clone, PartialEq, Eq, Default)]
pub struct WriterTable {
    #[rkyv(with = rkyv::with::AsVec)]
    writers: BTreeMap<WriterId, WriterState>,
}

/// What the table says of a batch that a writer numbered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriterVerdict {
    /// It is the next one.
    Next,
    /// It was applied before: there.
    Repeat(WriterBatch),
    /// Its number was used for other content; this one is expected.
    Mismatch {
        /// The number that would be accepted.
        expected: u64,
    },
    /// Its number leaves a gap or is too old to be remembered; this one is expected.
    Gap {
        /// The number that would be accepted.
        expected: u64,
    },
}

impl WriterTable {
    /// Judges a batch by its number and content.
    pub fn judge(&self, stamp: WriterStamp, checksum: Checksum, records: u32) -> WriterVerdict {
        let Some(known) = self.writers.get(&stamp.writer) else {
            return match stamp.sequence {
                0 => WriterVerdict::Next,
                _ => WriterVerdict::Gap { expected: 0 },
            };
        };
        let newest = known
            .batches
            .last()
            .expect("a writer is known by a batch")
            .sequence;
        if stamp.sequence == newest + 1 {
            return WriterVerdict::Next;
        }
        match known
            .batches
            .iter()
            .find(|batch| batch.sequence == stamp.sequence)
        {
            None => WriterVerdict::Gap {
                expected: newest + 1,
            },
            Some(batch) => {
                let same_length =
                    batch.end.sequence.0 - batch.start.sequence.0 == u64::from(records);
                if same_length && batch.checksum == checksum {
                    WriterVerdict::Repeat(*batch)
                } else {
                    WriterVerdict::Mismatch {
                        expected: newest + 1,
                    }
                }
            }
        }
    }

    /// Writers that are remembered.
    pub fn len(&self) -> usize {
        self.writers.len()
    }

    /// Whether none is.
    pub fn is_empty(&self) -> bool {
        self.writers.is_empty()
    }

    fn is_sound(&self) -> bool {
        let sound = |state: &WriterState| {
            let grows = |pair: &[WriterBatch]| pair[0].sequence < pair[1].sequence;
            (1..=WRITER_BATCHES_MAX).contains(&state.batches.len())
                && state.batches.windows(2).all(grows)
        };
        self.writers.len() <= STREAM_WRITERS_MAX && self.writers.values().all(sound)
    }

    fn remember(&mut self, stamp: WriterStamp, batch: WriterBatch) {
        let is_new = !self.writers.contains_key(&stamp.writer);
        if is_new && self.writers.len() == STREAM_WRITERS_MAX {
            self.forget_oldest();
        }
        let known = self.writers.entry(stamp.writer).or_default();
        if known.batches.len() == WRITER_BATCHES_MAX {
            known.batches.remove(0);
        }
        known.batches.push(batch);
    }

    fn forget_oldest(&mut self) {
        let last_use = |state: &WriterState| state.batches.last().map(|batch| batch.end.sequence);
        let oldest = self.writers.iter().min_by_key(|(_, state)| last_use(state));
        if let Some(writer) = oldest.map(|(writer, _)| *writer) {
            self.writers.remove(&writer);
        }
    }
}

#[cfg(test)]
#[path = "state_tests.rs"]
mod tests;
