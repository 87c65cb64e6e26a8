//! Whatever a start concludes from a log, it concludes the same when segments of it were rewritten:
//! streams, positions, buckets, released numbers, and every record that is left, byte for byte.

use super::memory_disk::{Fails, Log, MemoryDisk, found, run, summary};
use super::*;
use crate::entry::{BatchEntry, Entry};
use crate::index::NameHash;
use crate::rewrite::samples::{Rewrite, rewrite};
use crate::rewrite::{Abandoned, Needed};
use crate::segment::decode_group_of;
use crate::segment::samples::{Image, any_groups, file, id, led, released};
use bytes::Bytes;
use nova_model::request::BucketInfo;
use nova_model::settings::BucketSettings;
use nova_model::{BucketName, SequenceNumber, Timestamp};
use proptest::prelude::*;

/// A log of these groups with `each` of them in a segment, and its last segment is not sealed. Each
/// segment states what it must: streams, buckets and what was released.
fn log_of(groups: &[Vec<Entry>], each: usize) -> Vec<Image> {
    let mut images: Vec<Image> = Vec::new();
    let mut states: BTreeMap<StreamId, StreamState> = BTreeMap::new();
    for (number, groups) in (1..).zip(groups.chunks(each)) {
        let before = images.last().map(|image| image.end).unwrap_or_default();
        let mut image = Image::new(id(1, number), before);
        image.push(&preamble(number));
        for group in groups {
            let mut entries = Vec::new();
            for entry in group {
                let stream = entry.stream().expect("a history is of streams");
                if image.index.stream(stream).is_none()
                    && !entries.iter().any(|e: &Entry| e.stream() == Some(stream))
                    && !matches!(entry, Entry::Led(_))
                {
                    entries.push(led(&states[&stream]));
                }
                entries.push(entry.clone());
            }
            image.push(&entries);
            for entry in entries {
                let stream = entry.stream().expect("a history is of streams");
                let known = image.index.stream(stream).expect("it was applied");
                let mut state = known.clone();
                if image.index.has_records(stream) {
                    state.previous = Some(file(number));
                }
                states.insert(stream, state);
            }
        }
        images.push(image);
    }
    images
}

fn preamble(number: u64) -> Vec<Entry> {
    let bucket = BucketInfo {
        name: BucketName::parse("bucket").expect("legal"),
        settings: BucketSettings::default(),
        created: Timestamp(5),
    };
    let mut entries = vec![Entry::BucketPut(bucket)];
    if number > 1 {
        let numbers = released(&[(100, 100 + number)]);
        let log = LogId(77);
        entries.push(Entry::Released { log, numbers });
    }
    entries
}

fn disk_of(images: &[Image]) -> MemoryDisk {
    let mut disk = MemoryDisk::default();
    for (at, image) in images.iter().enumerate() {
        disk.put(image);
        if at + 1 < images.len() {
            disk.put_index(image);
        }
    }
    disk
}

/// All batches of a stream that a segment holds, as a reader takes them.
fn batches(disk: &MemoryDisk, index: &SealedIndex, stream: StreamId) -> Vec<BatchEntry> {
    let mut found: Vec<BatchEntry> = Vec::new();
    let bytes = Bytes::copy_from_slice(&disk.files[&index.file().number.0]);
    for run in index.runs_from(stream, SequenceNumber(0)).expect("sound") {
        let run = run.expect("sound");
        let mut rest = bytes.slice(run.offset as usize..run.end() as usize);
        let mut is_first = true;
        while !rest.is_empty() {
            let group = decode_group_of(&rest, &index.id(), stream).expect("whole");
            rest = rest.slice(group.length..);
            for entry in group.entries {
                let Entry::Batch(batch) = entry else { continue };
                if std::mem::take(&mut is_first) {
                    assert_eq!(
                        batch.start(),
                        run.first,
                        "a run begins with its first record"
                    );
                    assert_eq!(batch.stored.stamping.arrival, run.arrival);
                }
                found.push(batch);
            }
        }
    }
    found
}

/// What is needed of a stream in this test: by what chance says, but nothing only if a later
/// segment states the stream.
fn needed_of(chance: u64, state: &StreamState, is_stated_later: bool) -> Needed {
    let spread = chance.wrapping_mul(u64::from(state.id.0 as u32) * 2 + 1) >> 3;
    match spread % 4 {
        0 if is_stated_later => Needed::Nothing,
        1 => Needed::From(state.tail.sequence),
        _ => Needed::From(SequenceNumber((spread >> 2) % (state.tail.sequence.0 + 1))),
    }
}

/// Compares what a segment tells before and after, as far as something of it is needed.
fn compare(
    (old_disk, old): (&MemoryDisk, &SealedIndex),
    (new_disk, new): (&MemoryDisk, &SealedIndex),
    needed: impl Fn(&StreamState) -> Needed,
) {
    assert_eq!(old.end(), new.end(), "it stands for the same");
    assert_eq!(old.buckets(), new.buckets());
    assert_eq!(old.released(), new.released());
    let ids = old.stream_ids().expect("sound");
    for stream in ids.map(|id| id.expect("sound")) {
        let state = old.stream(stream).expect("sound").expect("listed");
        let Needed::From(from) = needed(&state) else {
            assert_eq!(new.stream(stream), Ok(None));
            continue;
        };
        let mut told = new.stream(stream).expect("sound").expect("kept");
        let mut left = batches(old_disk, old, stream);
        let had_records = !left.is_empty();
        left.retain(|batch| batch.stored.end() > from);
        assert_eq!(left, batches(new_disk, new, stream), "records of {state:?}");
        if left.is_empty() && had_records {
            assert_eq!(told.previous, None, "nothing to read before it");
            told.previous = state.previous;
        }
        assert_eq!(told, state);
        let bytes = left.iter().map(|batch| batch.stored.batch.metered_bytes());
        let bytes: u64 = bytes.map(u64::from).sum();
        if let Some(run) = new.first_run(stream).expect("sound") {
            assert_eq!(run.before, state.bytes - bytes, "sums of bytes go on");
        }
        let named = |index: &SealedIndex| {
            let named = index
                .find_name(&state.name, NameHash::of(&state.name))
                .expect("sound");
            named.map(|named| named.id)
        };
        if named(old) == Some(stream) {
            assert_eq!(named(new), Some(stream), "its name leads to it");
        }
    }
}

/// Puts the next generation of a segment in place of the one that is there.
fn replace(disk: &mut MemoryDisk, number: u64, rewritten: &Rewrite, with_index: bool) {
    disk.files.insert(number, rewritten.bytes.clone());
    disk.indexes.remove(&number);
    if with_index {
        disk.indexes.insert(number, rewritten.index.clone());
    }
    *disk.generations.entry(number).or_default() += 1;
}

fn index_of(log: &RecoveredLog, number: u64) -> Arc<SealedIndex> {
    let mut indexes = log.indexes.iter();
    let index = indexes.find(|index| index.file() == file(number));
    Arc::clone(index.expect("the segment is there"))
}

/// The next generation of a segment; none if it would not become smaller.
fn next_generation(
    disk: &MemoryDisk,
    index: &Arc<SealedIndex>,
    needed: impl Fn(&StreamState) -> Needed,
) -> Option<Rewrite> {
    match rewrite(&disk.files[&index.file().number.0], index, needed) {
        Ok(rewritten) => Some(rewritten),
        Err(Abandoned::NoGain) => None,
        Err(why) => panic!("{why}"),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn a_rewritten_log_tells_what_it_told(
        groups in any_groups(),
        each in 1..5usize,
        chances in proptest::collection::vec(any::<u64>(), 2),
        with_index: bool,
        is_last_too: bool,
    ) {
        let images = log_of(&groups, each);
        let disk = disk_of(&images);
        let mut original = disk.restarted();
        let before = found(&mut original);
        let mut now = original.restarted();
        // Twice, so that a rewritten segment is rewritten, too.
        for chance in chances {
            let log = found(&mut now.restarted());
            let numbers = 1..images.len() as u64 + u64::from(is_last_too);
            for number in numbers.filter(|number| (chance >> number) & 1 == 1) {
                let index = index_of(&log, number);
                let later = |id| images.iter().any(|image| {
                    image.file().number.0 > number && image.index.stream(id).is_some()
                });
                let needed = |state: &StreamState| needed_of(chance, state, later(state.id));
                let old = now.clone();
                let Some(rewritten) = next_generation(&now, &index, needed) else {
                    continue;
                };
                replace(&mut now, number, &rewritten, with_index);
                let mut after = now.restarted();
                let new = index_of(&found(&mut after), number);
                prop_assert_eq!(new.length(), rewritten.bytes.len() as u64);
                prop_assert_eq!(new.id().generation.0, index.id().generation.0 + 1);
                compare((&old, &index), (&now, &new), needed);
            }
        }
        let after = found(&mut now.restarted());
        prop_assert_eq!(before.end, after.end);
        prop_assert_eq!(before.next_number, after.next_number);
        prop_assert_eq!(&before.predecessors, &after.predecessors);
        prop_assert_eq!(before.indexes.len(), after.indexes.len());
    }
}

/// Three segments, of which the second has a next generation beside it.
fn two_generations() -> (MemoryDisk, Rewrite) {
    let mut log = Log::new(3, 6);
    log.push(100);
    let disk = log.disk();
    let index = index_of(&found(&mut disk.restarted()), 2);
    let rewritten = next_generation(&disk, &index, |state| Needed::From(state.tail.sequence));
    (disk, rewritten.expect("smaller"))
}

#[test]
fn of_two_generations_the_newest_counts_and_the_other_goes() {
    let (disk, rewritten) = two_generations();
    for index in [Some(rewritten.index.clone()), None] {
        let mut both = disk.restarted();
        let newest = (rewritten.bytes.clone(), index);
        both.rewritten.insert((2, 1), newest);
        let log = found(&mut both);
        assert_eq!(index_of(&log, 2).id().generation, Generation(1));
        assert!(both.rewritten.is_empty());
        assert_eq!(both.files[&2], rewritten.bytes);
        assert_eq!(both.indexes[&2], rewritten.index);
        assert_eq!(log.end, found(&mut disk.restarted()).end);
    }
}

#[test]
fn a_crash_between_two_generations_changes_nothing_that_counts() {
    let (disk, rewritten) = two_generations();
    let mut both = disk.restarted();
    let newest = (rewritten.bytes, Some(rewritten.index));
    both.rewritten.insert((2, 1), newest);
    let whole = summary(&found(&mut both.restarted()));
    for fails in [Fails::Before, Fails::After] {
        for call in 0.. {
            let mut disk = both.restarted();
            disk.fails_at = Some((call, fails));
            let is_over = run(&mut disk, RecoveryOptions::default()).is_ok();
            assert_eq!(
                summary(&found(&mut disk.restarted())),
                whole,
                "{fails:?} {call}"
            );
            if is_over {
                break;
            }
        }
    }
}

#[test]
fn an_index_of_another_generation_is_built_again() {
    let (disk, rewritten) = two_generations();
    let mut mixed = disk.restarted();
    replace(&mut mixed, 2, &rewritten, false);
    let old = found(&mut disk.restarted());
    let old = index_of(&old, 2);
    mixed.indexes.insert(2, disk.indexes[&2].clone());
    assert_eq!(old.id().generation, Generation(0));
    let log = found(&mut mixed);
    assert_eq!(log.report.rebuilt, [(file(2), RebuildReason::OtherEnd)]);
    assert_eq!(mixed.indexes[&2], rewritten.index);
}

#[test]
fn a_rewritten_segment_that_stands_for_another_end_is_refused() {
    let (disk, rewritten) = two_generations();
    let mut other = disk.restarted();
    replace(&mut other, 2, &rewritten, false);
    let mut header = SegmentHeader::decode(&rewritten.bytes[..BLOCK_BYTES])
        .expect("whole")
        .expect("there");
    let now = header.rewritten.as_mut().expect("it was rewritten");
    now.stands_for.last_checksum.0 ^= 1;
    other.file_mut(2)[..BLOCK_BYTES].copy_from_slice(&header.encode());
    assert!(run(&mut other, RecoveryOptions::default()).is_err());
}

#[test]
fn what_is_cut_off_a_rewritten_segment_is_missed() {
    let (disk, rewritten) = two_generations();
    let mut cut = disk.restarted();
    replace(&mut cut, 2, &rewritten, true);
    let length = rewritten.bytes.len() - BLOCK_BYTES;
    cut.file_mut(2).truncate(length);
    assert!(run(&mut cut, RecoveryOptions::default()).is_err());
}

#[test]
fn a_damaged_segment_stays_as_it_is() {
    let log = Log::new(3, 6);
    let mut disk = log.disk();
    let index = index_of(&found(&mut disk.restarted()), 2);
    disk.flip(2, log.images[1].groups[5].0 as usize + 300);
    let from = |state: &StreamState| Needed::From(SequenceNumber(state.tail.sequence.0 - 1));
    let outcome = rewrite(&disk.files[&2], &index, from);
    assert!(matches!(outcome, Err(Abandoned::Group { .. })));
}
