//! A star in memory for the tests of the fenced write: streams with conditions, reads up to the
//! tail, nothing else. What is appended is durable at once; what gets lost is the world's matter.

use crate::core::ReadCursor;
use crate::core::cursor::ReadBatch;
use nova_model::request::{ReadLimits, ReadOpen, ReadOpened, ReadStart};
use nova_model::stored::Stamping;
use nova_model::{
    Code, Conditions, EncodedBatch, Epoch, Facts, FencingToken, Position, Record, Refusal,
    SequenceNumber, StoredBatch, StreamId, StreamName, Timestamp,
};
use std::collections::BTreeMap;

pub fn entity(number: usize) -> StreamName {
    StreamName::parse(&format!("bucket/entity-{number}")).expect("a legal name")
}

#[derive(Default)]
pub struct ModelStar {
    pub streams: BTreeMap<StreamName, ModelStream>,
    /// Appends make the streams they need.
    pub creates: bool,
    made: u128,
}

pub struct ModelStream {
    pub id: StreamId,
    pub batches: Vec<StoredBatch>,
    pub first: SequenceNumber,
    pub tail: Position,
    pub fence: FencingToken,
}

/// A read that was answered.
#[derive(Debug)]
pub struct ReadAnswer {
    pub id: StreamId,
    pub start: SequenceNumber,
    pub batches: Vec<ReadBatch>,
}

impl ModelStar {
    pub fn create(&mut self, name: &StreamName) {
        self.made += 1;
        let stream = ModelStream {
            id: StreamId(self.made),
            batches: Vec::new(),
            first: SequenceNumber(0),
            tail: Position::default(),
            fence: FencingToken::default(),
        };
        self.streams.insert(name.clone(), stream);
    }

    pub fn stream(&mut self, name: &StreamName) -> &mut ModelStream {
        self.streams.get_mut(name).expect("it was created")
    }

    fn find(
        &mut self,
        name: &StreamName,
        id: Option<StreamId>,
    ) -> Result<&mut ModelStream, Refusal> {
        let found = self.streams.get_mut(name);
        let found = found.filter(|stream| id.is_none_or(|id| id == stream.id));
        found.ok_or_else(|| Refusal::stream_not_found(name))
    }

    pub fn append(
        &mut self,
        name: &StreamName,
        id: Option<StreamId>,
        conditions: &Conditions,
        records: &[Record],
    ) -> Result<(SequenceNumber, SequenceNumber), Refusal> {
        if self.creates && id.is_none() && !self.streams.contains_key(name) {
            self.create(name);
        }
        let stream = self.find(name, id)?;
        if conditions
            .fence
            .as_ref()
            .is_some_and(|token| *token != stream.fence)
        {
            let facts = Facts::Token(stream.fence.to_string());
            return Err(Refusal::new(Code::Fenced, "another token").with(facts));
        }
        let tail = stream.tail;
        if conditions
            .match_sequence
            .is_some_and(|at| at != tail.sequence)
        {
            return Err(Refusal::new(Code::SeqMismatch, "another tail").with(Facts::Tail(tail)));
        }
        let stored = StoredBatch {
            first: tail.sequence,
            epoch: Epoch(1),
            stamping: Stamping {
                arrival: Timestamp(tail.timestamp.0 + 1),
                floor: tail.timestamp,
                ..Stamping::default()
            },
            writer: None,
            batch: EncodedBatch::encode(records)?,
        };
        let end = stored.end();
        stream.tail = Position {
            sequence: end,
            timestamp: stored.stamping.arrival,
        };
        stream.batches.push(stored);
        Ok((tail.sequence, end))
    }

    pub fn read(
        &mut self,
        name: &StreamName,
        id: Option<StreamId>,
        start: ReadStart,
    ) -> Result<ReadAnswer, Refusal> {
        let stream = self.find(name, id)?;
        let tail = stream.tail;
        let start = match start {
            ReadStart::Sequence(start) => start,
            ReadStart::TailOffset(back) => {
                SequenceNumber(tail.sequence.0.saturating_sub(back)).max(stream.first)
            }
            ReadStart::Timestamp(_) => panic!("nobody reads by time here"),
        };
        if start > tail.sequence {
            return Err(Refusal::new(Code::PastTail, "past").with(Facts::Tail(tail)));
        }
        if start < stream.first {
            return Err(Refusal::new(Code::Trimmed, "gone").with(Facts::First(stream.first)));
        }
        let mut cursor = ReadCursor::new(ReadOpen {
            stream: name.clone(),
            stream_id: id,
            start: ReadStart::Sequence(start),
            limits: ReadLimits::default(),
            follow: false,
            clamp: false,
        });
        let stream_id = stream.id;
        cursor.handle_opened(&ReadOpened {
            stream_id,
            start,
            tail,
        });
        let batches = stream.batches.iter().filter_map(|stored| {
            let given = cursor.handle_batch(stored.clone());
            given.expect("the batches are dense")
        });
        Ok(ReadAnswer {
            id: stream_id,
            start,
            batches: batches.collect(),
        })
    }

    /// The records of a stream, by sequence number.
    pub fn records(&self, name: &StreamName) -> Vec<Record> {
        let Some(stream) = self.streams.get(name) else {
            return Vec::new();
        };
        let batches = stream.batches.iter();
        batches
            .flat_map(|stored| stored.batch.to_records())
            .collect()
    }
}
