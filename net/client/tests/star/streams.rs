//! The streams of the test star: positions, conditions, repeats.

use nova_model::request::{Ack, ServerTimes, StreamInfo};
use nova_model::settings::{BucketSettings, EffectiveSettings, StreamSettings};
use nova_model::stored::Stamping;
use nova_model::{
    BucketName, Code, Conditions, EncodedBatch, Epoch, Facts, FencingToken, Position, Refusal,
    SequenceNumber, StoredBatch, StreamId, StreamName, Timestamp, WriterId, WriterStamp,
};
use std::collections::BTreeMap;

#[derive(Default)]
pub struct Streams {
    pub buckets: BTreeMap<BucketName, BucketSettings>,
    pub streams: BTreeMap<StreamName, Stream>,
    made: u128,
}

pub struct Stream {
    pub id: StreamId,
    pub settings: StreamSettings,
    pub batches: Vec<StoredBatch>,
    pub first: SequenceNumber,
    pub tail: Position,
    pub fence: FencingToken,
    writers: BTreeMap<WriterId, Vec<Ack>>,
}

impl Streams {
    /// Makes a stream unless it is there; whether it was made.
    pub fn ensure(&mut self, name: &StreamName, settings: StreamSettings) -> bool {
        if self.streams.contains_key(name) {
            return false;
        }
        self.made += 1;
        let stream = Stream {
            id: StreamId(self.made),
            settings,
            batches: Vec::new(),
            first: SequenceNumber(0),
            tail: Position::default(),
            fence: FencingToken::default(),
            writers: BTreeMap::new(),
        };
        self.streams.insert(name.clone(), stream);
        true
    }

    pub fn get(&mut self, name: &StreamName) -> Result<&mut Stream, Refusal> {
        let missing = || Refusal::new(Code::StreamNotFound, "no such stream");
        self.streams.get_mut(name).ok_or_else(missing)
    }
}

impl Stream {
    pub fn info(&self, name: &StreamName) -> StreamInfo {
        StreamInfo {
            name: name.clone(),
            id: self.id,
            settings: EffectiveSettings::resolve(&self.settings, &StreamSettings::default()),
            fence: self.fence.clone(),
            first: self.first,
            tail: self.tail,
            epoch: Epoch(1),
            created: Timestamp(1),
        }
    }

    /// The first record that is no older than `time`.
    pub fn first_at(&self, time: Timestamp) -> SequenceNumber {
        let mut found = None;
        for stored in &self.batches {
            stored.for_each(|position, _| {
                if position.timestamp >= time {
                    found.get_or_insert(position.sequence);
                }
            });
        }
        found.unwrap_or(self.tail.sequence)
    }

    /// Refuses a request that means another incarnation.
    pub fn is_meant(&self, name: &StreamName, wanted: Option<StreamId>) -> Result<(), Refusal> {
        match wanted.is_none_or(|wanted| wanted == self.id) {
            true => Ok(()),
            false => Err(Refusal::stream_not_found(name)),
        }
    }

    pub fn conditions(&self, conditions: &Conditions) -> Result<(), Refusal> {
        if conditions
            .fence
            .as_ref()
            .is_some_and(|token| *token != self.fence)
        {
            let facts = Facts::Token(self.fence.to_string());
            return Err(Refusal::new(Code::Fenced, "another token").with(facts));
        }
        if conditions
            .match_sequence
            .is_some_and(|at| at != self.tail.sequence)
        {
            let facts = Facts::Tail(self.tail);
            return Err(Refusal::new(Code::SeqMismatch, "another tail").with(facts));
        }
        Ok(())
    }

    pub fn append(
        &mut self,
        batch: EncodedBatch,
        conditions: &Conditions,
        writer: Option<WriterStamp>,
    ) -> Result<Ack, Refusal> {
        if let Some(stamp) = writer {
            let known = self.writers.entry(stamp.writer).or_default();
            if let Some(ack) = known.get(stamp.sequence as usize) {
                return Ok(Ack {
                    duplicate: true,
                    tail: self.tail,
                    ..*ack
                });
            }
            if stamp.sequence != known.len() as u64 {
                return Err(Refusal::new(Code::WriterGap, "a gap"));
            }
        }
        self.conditions(conditions)?;
        let arrival = Timestamp(self.tail.timestamp.0 + 1);
        let stamping = Stamping {
            arrival,
            floor: self.tail.timestamp,
            ..Stamping::default()
        };
        let start = Position {
            sequence: self.tail.sequence,
            timestamp: arrival,
        };
        let first = self.tail.sequence;
        let stored = StoredBatch {
            first,
            epoch: Epoch(1),
            stamping,
            writer,
            batch,
        };
        self.tail = Position {
            sequence: stored.end(),
            timestamp: arrival,
        };
        self.batches.push(stored);
        let (end, times) = (self.tail, ServerTimes::default());
        let ack = Ack {
            start,
            end,
            tail: end,
            duplicate: false,
            times,
        };
        if let Some(stamp) = writer {
            self.writers.entry(stamp.writer).or_default().push(ack);
        }
        Ok(ack)
    }
}
