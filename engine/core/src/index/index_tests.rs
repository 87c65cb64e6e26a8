//! Both indexes give the same answers; runs; names; damage of the sealed one.

use super::*;
use crate::disk::{IndexBytes, Mapped, Unreadable};
use crate::entry::Entry;
use crate::segment::samples::{
    Image, any_groups, batch, file, id, led, one_of_each, sealed as seal_group, stream,
};
use crate::segment::{GroupContext, LogEnd, blocks};
use bytes::Bytes;
use nova_model::limits::{BLOCK_BYTES, INDEX_GAP_BYTES, READ_CHUNK_BYTES};
use nova_model::{BucketName, Checksum, GroupNumber, SequenceNumber, StreamId, Timestamp};
use proptest::prelude::*;
use std::ops::{Deref, Range};
use std::sync::Arc;

fn mapped(bytes: Bytes) -> Mapped {
    Arc::new(bytes)
}

fn open(image: &Image) -> SealedIndex {
    let bytes = image.index.seal(&image.end);
    SealedIndex::open(image.file(), mapped(bytes)).expect("just made")
}

fn image_of(groups: &[Vec<Entry>]) -> Image {
    let mut image = Image::new(id(1, 1), LogEnd::default());
    groups.iter().for_each(|group| image.push(group));
    image
}

/// All answers of both, compared.
fn compare(active: &ActiveIndex, sealed: &SealedIndex) {
    let ids: Vec<StreamId> = active.stream_ids().collect();
    let sealed_ids: Result<Vec<_>, _> = sealed.stream_ids().expect("sound").collect();
    assert_eq!(sealed_ids.expect("sound"), ids);
    for id in ids
        .iter()
        .copied()
        .chain([StreamId(u128::MAX), StreamId(0)])
    {
        assert_eq!(
            sealed.stream(id).expect("sound").as_ref(),
            active.stream(id)
        );
        assert_eq!(sealed.has_records(id), Ok(active.has_records(id)));
        assert_eq!(sealed.first_sequence(id), Ok(active.first_sequence(id)));
        let tail = active.stream(id).map_or(0, |state| state.tail.sequence.0);
        for sequence in (0..tail + 2).map(SequenceNumber) {
            let runs: Result<Vec<Run>, _> =
                sealed.runs_from(id, sequence).expect("sound").collect();
            let expected: Vec<Run> = active.runs_from(id, sequence).collect();
            assert_eq!(runs, Ok(expected));
        }
        let last = active.stream(id).map_or(0, |state| state.tail.timestamp.0);
        for time in (0..last + 2).map(Timestamp) {
            assert_eq!(
                sealed.run_at_time(id, time),
                Ok(active.run_at_time(id, time))
            );
        }
        if let Some(state) = active.stream(id) {
            let hash = NameHash::of(&state.name);
            let found = sealed.find_name(&state.name, hash).expect("sound");
            assert_eq!(found.as_ref(), active.find_name(&state.name));
        }
    }
    assert_eq!(sealed.buckets().as_ref(), Ok(active.buckets()));
    assert_eq!(sealed.damaged().as_deref(), Ok(active.damaged()));
    let bucket = BucketName::parse("bucket").expect("legal");
    for prefix in ["", "s", "stream-1", "zz"] {
        for after in ["", "stream-0", "stream-11", "stream-2", "zz"] {
            let expected: Vec<_> = active
                .names_after(&bucket, prefix, after)
                .cloned()
                .collect();
            let names = sealed.names_after(&bucket, prefix, after).expect("sound");
            let names: Result<Vec<_>, _> = names.collect();
            assert_eq!(names, Ok(expected), "{prefix:?} after {after:?}");
        }
    }
}

proptest! {
    #[test]
    fn both_indexes_give_the_same_answers(groups in any_groups()) {
        let image = image_of(&groups);
        compare(&image.index, &open(&image));
    }

    #[test]
    fn every_record_lies_in_the_runs_that_are_looked_in(groups in any_groups()) {
        let image = image_of(&groups);
        for (entries, (offset, _)) in groups.iter().zip(&image.groups) {
            for entry in entries {
                let Entry::Batch(batch) = entry else { continue };
                for sequence in batch.stored.first.0..batch.stored.end().0 {
                    let mut runs = image.index.runs_from(batch.stream, SequenceNumber(sequence));
                    let run = runs.next().expect("a record has a run");
                    prop_assert!(u64::from(run.offset) <= *offset && *offset < run.end());
                    prop_assert!(run.first.sequence.0 <= sequence);
                }
                let first = batch.start();
                let run = image.index.run_at_time(batch.stream, first.timestamp);
                prop_assert!(run.expect("not after the end").first.timestamp <= first.timestamp
                    || image.index.first_sequence(batch.stream) == Some(first.sequence));
            }
        }
    }

    #[test]
    fn noise_in_an_index_never_panics(
        noise in proptest::collection::vec(any::<u8>(), 0..2000),
        keep_trailer in any::<bool>(),
    ) {
        let image = image_of(&[one_of_each()]);
        let good = image.index.seal(&image.end);
        let mut bytes = noise;
        if keep_trailer {
            bytes.resize(good.len(), 0x5a);
            let trailer = good.len() - 256;
            bytes[trailer..].copy_from_slice(&good[trailer..]);
        }
        if let Ok(index) = SealedIndex::open(file(1), mapped(Bytes::from(bytes))) {
            prop_assert!(index.stream(StreamId(1)).is_err());
        }
    }
}

#[test]
fn every_flipped_bit_is_noticed_at_the_latest_when_it_is_looked_at() {
    let image = image_of(&[one_of_each()]);
    let good = image.index.seal(&image.end);
    for bit in 0..good.len() * 8 {
        let mut bytes = good.to_vec();
        bytes[bit / 8] ^= 1 << (bit % 8);
        let opened = SealedIndex::open(file(1), mapped(Bytes::from(bytes)));
        let Ok(index) = opened else { continue };
        assert!(index.verify().is_err(), "bit {bit}");
        assert!(index.stream(StreamId(1)).is_err(), "bit {bit}");
        assert_eq!(
            index.stream(StreamId(1)),
            index.stream(StreamId(2)),
            "the same answer"
        );
        assert!(index.buckets().is_err() && index.stream_ids().is_err());
    }
}

#[test]
fn an_index_of_another_file_or_cut_or_forged_is_refused() {
    let image = image_of(&[one_of_each()]);
    let bytes = image.index.seal(&image.end);
    let other = SealedIndex::open(file(2), mapped(bytes.clone()));
    assert_eq!(other.err(), Some(IndexDamage::OtherSegment(id(1, 1))));
    let short = SealedIndex::open(file(1), mapped(bytes.slice(..100)));
    assert_eq!(short.err(), Some(IndexDamage::Short(100)));
    let last_of_all = LogEnd {
        last_group: GroupNumber(u64::MAX),
        ..image.end
    };
    let forged = SealedIndex::open(file(1), Arc::new(image.index.seal(&last_of_all)));
    assert_eq!(forged.err(), Some(IndexDamage::Trailer));
    let opened = SealedIndex::open(file(1), mapped(bytes)).expect("its own");
    assert_eq!(opened.end(), image.end);
}

/// An index on a device that gives only the bytes from `given` on.
struct Spoiled {
    bytes: Bytes,
    given: usize,
}

impl Deref for Spoiled {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes
    }
}

impl IndexBytes for Spoiled {
    fn fetch(&self, range: Range<usize>) -> Result<(), Unreadable> {
        match range.start >= self.given {
            true => Ok(()),
            false => Err(Unreadable),
        }
    }
}

#[test]
fn bytes_that_the_device_does_not_give_are_damage() {
    let image = image_of(&[one_of_each()]);
    let bytes = image.index.seal(&image.end);
    let spoiled = |given| {
        let bytes = bytes.clone();
        SealedIndex::open(file(1), Arc::new(Spoiled { bytes, given }))
    };
    let unreadable = Some(IndexDamage::Unreadable);
    assert_eq!(spoiled(bytes.len()).err(), unreadable, "its trailer");
    let opened = spoiled(1).expect("its trailer is there");
    assert_eq!(opened.stream(StreamId(1)).err(), unreadable);
    assert_eq!(opened.verify().err(), unreadable);
    let sound = spoiled(0).expect("all of it is there");
    assert_eq!(sound.verify(), Ok(()));
}

/// The runs of stream 1, for groups at given places.
fn runs_of(places: &[(u64, usize)]) -> Vec<Run> {
    let mut index = ActiveIndex::new(file(1), id(1, 1));
    let mut state = stream(1);
    index.apply_group(BLOCK_BYTES as u64, BLOCK_BYTES, &[led(&state)]);
    for (offset, bytes) in places {
        let entry = batch(&mut state, *bytes);
        let context = GroupContext {
            segment: id(1, 1),
            number: GroupNumber(1),
            previous: Checksum(0),
            durable_through: GroupNumber(0),
        };
        let length = seal_group(std::slice::from_ref(&entry), &context).length;
        index.apply_group(*offset, length, &[entry]);
    }
    index.runs_from(StreamId(1), SequenceNumber(0)).collect()
}

#[test]
fn a_run_grows_until_it_is_long_and_not_over_a_wide_gap() {
    let near = INDEX_GAP_BYTES + 4096;
    assert_eq!(runs_of(&[(8192, 10), (8192 + near, 10)]).len(), 1);
    assert_eq!(runs_of(&[(8192, 10), (8192 + near + 4096, 10)]).len(), 2);
    let big = 70_000;
    let next = 8192 + blocks(big + 300) as u64;
    assert_eq!(runs_of(&[(8192, big), (next, 10)]).len(), 2);
    let sparse: Vec<(u64, usize)> = (0..64).map(|n| (8192 + n * 61_440, 10)).collect();
    let runs = runs_of(&sparse);
    assert!(
        runs.iter()
            .all(|run| run.length as usize <= READ_CHUNK_BYTES),
        "one read each"
    );
    assert!(
        runs.len() >= 3,
        "a sparse stream is found without reading all"
    );
}

#[test]
fn a_name_leads_to_the_living_stream_else_to_the_newest_deleted_one() {
    let mut old = stream(1);
    let deleted = Entry::Deleted {
        stream: old.id,
        epoch: old.epoch,
    };
    let mut new = stream(1);
    new.id = StreamId(2);
    let mut index = ActiveIndex::new(file(1), id(1, 1));
    index.apply_group(4096, 4096, &[led(&old), deleted.clone()]);
    assert!(index.find_name(&old.name).expect("deleted").deleted);
    index.apply_group(8192, 4096, &[led(&new)]);
    assert_eq!(index.find_name(&old.name).expect("alive").id, new.id);
    old.deleted = true;
    index.apply_group(12288, 4096, &[led(&old)]);
    assert_eq!(
        index.find_name(&old.name).expect("alive").id,
        new.id,
        "told late that it is deleted"
    );
    index.apply_group(
        16384,
        4096,
        &[Entry::Deleted {
            stream: new.id,
            epoch: new.epoch,
        }],
    );
    assert!(index.find_name(&old.name).expect("deleted").deleted);
}

#[test]
fn what_a_disk_gives_is_judged_before_it_is_applied() {
    let mut state = stream(1);
    let mut index = ActiveIndex::new(file(1), id(1, 1));
    let unknown = batch(&mut state, 3);
    let judged = index.try_apply_group(4096, 4096, std::slice::from_ref(&unknown));
    assert_eq!(judged, Err(Misfit::Unknown(StreamId(1))));
    index.apply_group(4096, 4096, &[led(&stream(1)), unknown]);
    batch(&mut state, 3);
    let gap = batch(&mut state, 3);
    let judged = index.try_apply_group(8192, 4096, &[gap]);
    let (tail, found) = (SequenceNumber(1), SequenceNumber(2));
    assert_eq!(
        judged,
        Err(Misfit::Tail {
            stream: StreamId(1),
            tail,
            found
        })
    );
    let trim = Entry::Trim {
        stream: StreamId(1),
        epoch: state.epoch,
        first: SequenceNumber(2),
        at: nova_model::Timestamp(0),
    };
    assert_eq!(
        index.try_apply_group(8192, 4096, &[trim]),
        Err(Misfit::Trim(StreamId(1)))
    );
}
