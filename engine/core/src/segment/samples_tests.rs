//! Entries, groups and whole segments for tests, and strategies that make many of them.

use super::*;
use crate::disk::SegmentFile;
use crate::entry::{BatchEntry, Entry};
use crate::index::ActiveIndex;
use crate::released::{NumberRange, Released};
use crate::state::StreamState;
use bytes::Bytes;
use nova_model::ids::Epoch;
use nova_model::request::BucketInfo;
use nova_model::settings::{BucketSettings, ProducerPolicy, StreamSettings, TimestampMode};
use nova_model::stored::Stamping;
use nova_model::{
    BucketName, Checksum, EncodedBatch, FencingToken, Generation, GroupNumber, Incarnation, LogId,
    Record, SegmentId, SegmentNumber, SequenceNumber, StarId, StoredBatch, StreamId, StreamName,
    Timestamp, WriterId, WriterStamp,
};
use proptest::prelude::*;

pub(crate) const STAR: StarId = StarId(0x5747_4152);
pub(crate) const LOG: LogId = LogId(3);

pub(crate) fn file(number: u64) -> SegmentFile {
    SegmentFile {
        log: LOG,
        number: SegmentNumber(number),
    }
}

pub(crate) fn id(incarnation: u64, number: u64) -> SegmentId {
    SegmentId {
        star: STAR,
        log: LOG,
        incarnation: Incarnation(incarnation),
        number: SegmentNumber(number),
        generation: Generation(0),
    }
}

/// A new stream named `bucket/stream-NUMBER`.
pub(crate) fn stream(number: u128) -> StreamState {
    let name = StreamName::parse(&format!("bucket/stream-{number}")).expect("legal");
    StreamState::new(
        StreamId(number),
        name,
        Timestamp(77),
        StreamSettings::default(),
    )
}

pub(crate) fn led(state: &StreamState) -> Entry {
    Entry::Led(Box::new(state.clone()))
}

/// A batch at the tail of `state`, which moves on; one record for each body.
pub(crate) fn batch_of(state: &mut StreamState, bodies: Vec<Vec<u8>>) -> Entry {
    let records: Vec<Record> = bodies.into_iter().map(Record::new).collect();
    let batch = EncodedBatch::encode(&records).expect("legal");
    let arrival = Timestamp(state.tail.timestamp.0 + 10);
    let stamping = Stamping {
        mode: TimestampMode::ClientPrefer,
        uncapped: false,
        arrival,
        floor: state.tail.timestamp,
    };
    let last_timestamp = stamping.last(&batch);
    let entry = Entry::Batch(BatchEntry {
        stream: state.id,
        stored: StoredBatch {
            first: state.tail.sequence,
            epoch: state.epoch,
            stamping,
            writer: None,
            batch,
        },
        last_timestamp,
    });
    state.apply(&entry);
    entry
}

/// A batch of one record of `bytes` bytes.
pub(crate) fn batch(state: &mut StreamState, bytes: usize) -> Entry {
    batch_of(state, vec![vec![b'x'; bytes]])
}

/// The parts with their padding, as the disk gets them.
pub(crate) fn joined(group: &SealedGroup) -> Bytes {
    let mut bytes: Vec<u8> = group.parts.iter().flatten().copied().collect();
    assert_eq!(bytes.len(), group.content);
    bytes.resize(group.length, 0);
    Bytes::from(bytes)
}

pub(crate) fn sealed(entries: &[Entry], context: &GroupContext) -> SealedGroup {
    let mut builder = GroupBuilder::new();
    entries.iter().for_each(|entry| builder.push(entry));
    builder.seal(context)
}

/// A segment being written, as bytes, with the index that goes with it.
pub(crate) struct Image {
    pub(crate) header: SegmentHeader,
    pub(crate) bytes: Vec<u8>,
    pub(crate) end: LogEnd,
    pub(crate) index: ActiveIndex,
    /// Offset and content length of each group.
    pub(crate) groups: Vec<(u64, usize)>,
}

impl Image {
    /// A segment without groups that follows `before`.
    pub(crate) fn new(id: SegmentId, before: LogEnd) -> Image {
        let header = SegmentHeader {
            id,
            file_length: 1 << 20,
            closed: false,
            predecessor: before.predecessor(),
            rewritten: None,
        };
        let file = SegmentFile {
            log: id.log,
            number: id.number,
        };
        Image {
            header,
            bytes: header.encode().to_vec(),
            end: before,
            index: ActiveIndex::new(file, id),
            groups: Vec::new(),
        }
    }

    pub(crate) fn file(&self) -> SegmentFile {
        self.index.file()
    }

    /// Adds a group that was written when all before it were durable.
    pub(crate) fn push(&mut self, entries: &[Entry]) {
        self.push_knowing(entries, self.end.last_group);
    }

    /// Adds bytes of a group behind the end that are no part of the segment: neither end nor index
    /// know of it.
    pub(crate) fn push_late(&mut self, entries: &[Entry]) {
        let end = self.end;
        self.push_unjudged(entries);
        self.end = end;
    }

    /// Adds a group without asking whether its entries fit.
    pub(crate) fn push_unjudged(&mut self, entries: &[Entry]) {
        self.push_bytes(entries, self.end.last_group);
    }

    /// Adds a group that was written when only the groups up to a number were durable.
    pub(crate) fn push_knowing(&mut self, entries: &[Entry], durable_through: GroupNumber) {
        let (offset, length) = self.push_bytes(entries, durable_through);
        self.index.apply_group(offset, length, entries);
    }

    fn push_bytes(&mut self, entries: &[Entry], durable_through: GroupNumber) -> (u64, usize) {
        let context = GroupContext {
            segment: self.header.id,
            number: self.end.last_group.next(),
            previous: self.end.last_checksum,
            durable_through,
        };
        let group = sealed(entries, &context);
        let offset = self.bytes.len() as u64;
        self.bytes.extend_from_slice(&joined(&group));
        self.groups.push((offset, group.content));
        self.end = LogEnd {
            segment: Some(self.header.id),
            length: self.bytes.len() as u64,
            last_group: context.number,
            last_checksum: group.checksum,
        };
        (offset, group.length)
    }
}

/// A set of released segments.
pub(crate) fn released(ranges: &[(u64, u64)]) -> Released {
    let mut numbers = Released::default();
    for &(first, last) in ranges {
        numbers.add(NumberRange { first, last });
    }
    numbers
}

/// One entry of each kind, in a legal order.
pub(crate) fn one_of_each() -> Vec<Entry> {
    let bucket = BucketName::parse("bucket").expect("legal");
    let mut state = stream(1);
    state.epoch = Epoch(4);
    let (stream, epoch) = (state.id, state.epoch);
    let introduced = led(&state);
    let mut stamped = batch_of(&mut state, vec![b"first".to_vec(), b"second".to_vec()]);
    if let Entry::Batch(batch) = &mut stamped {
        batch.stored.writer = Some(WriterStamp {
            writer: WriterId(9),
            sequence: 0,
        });
        batch.stored.stamping.uncapped = true;
    }
    vec![
        Entry::BucketPut(BucketInfo {
            name: bucket.clone(),
            settings: BucketSettings {
                create_stream_on_append: true,
                ..Default::default()
            },
            created: Timestamp(5),
        }),
        introduced,
        stamped,
        Entry::Fence {
            stream,
            epoch,
            token: FencingToken::parse("writer-7").expect("legal"),
        },
        Entry::Settings {
            stream,
            epoch,
            settings: StreamSettings {
                policy: Some(ProducerPolicy::Fenced),
                ..StreamSettings::default()
            },
        },
        Entry::Trim {
            stream,
            epoch,
            first: SequenceNumber(1),
            at: Timestamp(77),
        },
        Entry::Deleted { stream, epoch },
        Entry::BucketDeleted(bucket),
        Entry::Released {
            log: LOG,
            numbers: released(&[(1, 4), (6, 6)]),
        },
    ]
}

/// What happens to a stream in a step of a generated history.
#[derive(Debug, Clone)]
pub(crate) enum Step {
    Batch(Vec<usize>),
    Writer(u8, usize),
    Fence(String),
    Trim,
    Lead,
    Delete,
}

fn any_step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => proptest::collection::vec(0..3000usize, 1..6).prop_map(Step::Batch),
        3 => (0..3u8, 0..20_000usize).prop_map(|(writer, bytes)| Step::Writer(writer, bytes)),
        1 => "[a-z]{0,36}".prop_map(Step::Fence),
        1 => Just(Step::Trim),
        1 => Just(Step::Lead),
        1 => Just(Step::Delete),
    ]
}

/// Groups of a legal history of some streams.
pub(crate) fn any_groups() -> impl Strategy<Value = Vec<Vec<Entry>>> {
    let step = (0..5u128, any_step());
    let group = proptest::collection::vec(step, 1..12);
    proptest::collection::vec(group, 1..12).prop_map(|groups| history(&groups))
}

/// The entries of steps: a stream is led before anything else, and is new after it was deleted.
pub(crate) fn history(groups: &[Vec<(u128, Step)>]) -> Vec<Vec<Entry>> {
    let mut states: Vec<Option<StreamState>> = vec![None; 5];
    let mut generation = 0;
    let mut writer_sequences = std::collections::BTreeMap::new();
    let mut all = Vec::new();
    for group in groups {
        let mut entries = Vec::new();
        for (number, step) in group {
            let slot = &mut states[*number as usize];
            if slot.as_ref().is_none_or(|state| state.deleted) {
                generation += 1;
                let mut state = stream(*number);
                state.id = StreamId(number + 100 * generation);
                entries.push(led(&state));
                *slot = Some(state);
            }
            let state = slot.as_mut().expect("just made");
            entries.push(entry_of(state, step, &mut writer_sequences));
        }
        all.push(entries);
    }
    all
}

fn entry_of(
    state: &mut StreamState,
    step: &Step,
    sequences: &mut std::collections::BTreeMap<(StreamId, u8), u64>,
) -> Entry {
    let (stream, epoch) = (state.id, state.epoch);
    let entry = match step {
        Step::Batch(sizes) => {
            return batch_of(state, sizes.iter().map(|&size| vec![b'y'; size]).collect());
        }
        Step::Writer(writer, bytes) => {
            let mut before = state.clone();
            let mut entry = batch(&mut before, *bytes);
            let sequence = sequences.entry((stream, *writer)).or_insert(0);
            if let Entry::Batch(batch) = &mut entry {
                let writer = WriterId(u128::from(*writer) + 1);
                batch.stored.writer = Some(WriterStamp {
                    writer,
                    sequence: *sequence,
                });
            }
            *sequence += 1;
            entry
        }
        Step::Fence(token) => Entry::Fence {
            stream,
            epoch,
            token: FencingToken::parse(token).expect("legal"),
        },
        Step::Trim => Entry::Trim {
            stream,
            epoch,
            first: state.tail.sequence,
            at: Timestamp(state.tail.sequence.0),
        },
        Step::Lead => {
            let mut next = state.clone();
            next.epoch = next.epoch.next();
            led(&next)
        }
        Step::Delete => Entry::Deleted { stream, epoch },
    };
    state.apply(&entry);
    entry
}

/// A place for a group.
pub(crate) fn context(number: u64) -> GroupContext {
    GroupContext {
        segment: id(2, 7),
        number: GroupNumber(number),
        previous: Checksum(0x1234_5678),
        durable_through: GroupNumber(number - 1),
    }
}
