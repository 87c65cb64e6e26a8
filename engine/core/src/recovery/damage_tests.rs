//! Damage that no crash leaves: refused in words, or kept when that is allowed.

use super::memory_disk::{ALLOW, Log, MemoryDisk, found, run, summary};
use super::*;
use crate::segment::samples::{Image, batch, file, id, led, stream};
use crate::segment::{GROUP_HEADER_BYTES, GroupDamage, decode_group};
use bytes::Bytes;
use nova_model::limits::BLOCK_BYTES;
use nova_model::{SequenceNumber, Timestamp};

fn refused(disk: &mut MemoryDisk) -> (DamagedRange, Flaw) {
    match run(disk, RecoveryOptions::default()) {
        Err(RecoveryError::Damaged { range, flaw }) => (*range, flaw),
        Err(other) => panic!("refused for another reason: {other}"),
        Ok(_) => panic!("it was accepted"),
    }
}

/// A log whose last segment is damaged in its second of four groups.
fn damaged_in_the_middle() -> (Log, MemoryDisk) {
    let log = Log::new(2, 4);
    let mut disk = log.disk();
    disk.flip(2, log.images[1].groups[1].0 as usize + 300);
    (log, disk)
}

#[test]
fn a_flipped_bit_before_the_end_is_refused_with_file_place_and_streams() {
    let (log, mut disk) = damaged_in_the_middle();
    let before = disk.files.clone();
    let error = run(&mut disk, RecoveryOptions::default())
        .expect_err("refused")
        .to_string();
    for part in [
        "core-003/00000000000000000002.seg is damaged at byte 8192",
        "group 6 was durable and cannot be read",
        "bucket/stream-1, bucket/stream-2",
        "start with --allow-corrupt",
    ] {
        assert!(error.contains(part), "{error}");
    }
    assert_eq!(disk.files, before, "a refusal changes no segment");
    let (range, flaw) = refused(&mut disk.restarted());
    assert_eq!(
        (range.file, range.offset, range.length),
        (file(2), 8192, 4096)
    );
    assert_eq!(range.streams, [log.streams[0].id, log.streams[1].id]);
    assert!(matches!(
        flaw,
        Flaw::Group {
            expected: 6,
            damage: GroupDamage::Checksum { .. }
        }
    ));
}

#[test]
fn every_block_of_a_durable_group_is_guarded() {
    let mut log = Log::new(1, 1);
    log.push(30_000);
    log.push(10);
    let (offset, content) = log.images[0].groups[1];
    for at in (0..content).step_by(509) {
        let mut disk = log.disk();
        disk.flip(1, offset as usize + at);
        let (range, _) = refused(&mut disk);
        assert_eq!(range.offset, offset, "byte {at}");
        let recovered = run(&mut disk.restarted(), ALLOW).expect("allowed");
        assert_eq!(recovered.end, log.end(), "byte {at}");
    }
}

#[test]
fn damage_wider_than_any_crash_makes_is_not_taken_for_a_torn_end() {
    let mut log = Log::new(1, 2);
    let start = log.end().length as usize;
    (0..30).for_each(|_| log.push(500_000));
    let wide = log.end().length as usize;
    assert!((wide - start) as u64 > super::scan::LOOK_AHEAD_BYTES);
    log.push(10);
    let mut disk = log.disk();
    disk.file_mut(1)[start..wide].fill(0);
    let (range, _) = refused(&mut disk);
    assert_eq!(
        (range.offset, range.length),
        (start as u64, (wide - start) as u64)
    );
}

#[test]
fn a_sealed_segment_cut_short_is_accepted_once() {
    let log = Log::new(2, 3);
    let mut disk = log.disk();
    disk.indexes.clear();
    let bytes = disk.file_mut(1);
    bytes.truncate(bytes.len() - 4096);
    let first = run(&mut disk, ALLOW).expect("allowed");
    let second = found(&mut disk.restarted());
    assert_eq!(summary(&second), summary(&first));
    assert_eq!(second.damaged.len(), 1);
}

#[test]
fn allowed_damage_is_kept_and_read_as_damage() {
    let (log, mut disk) = damaged_in_the_middle();
    let recovered = run(&mut disk, ALLOW).expect("allowed");
    assert_eq!(recovered.end, log.end(), "all that is behind it counts");
    assert_eq!(recovered.report.groups, 3);
    let index = recovered.indexes.last().expect("there");
    for state in &log.streams {
        let found = index.stream(state.id).expect("sound").expect("there");
        assert!(found.bytes <= state.bytes, "what is lost has no size");
        let bytes = state.bytes;
        assert_eq!(
            StreamState { bytes, ..found },
            *state,
            "all else stands, the tail too"
        );
        // Record 5 lay in the damaged group: the run that a read of it begins with fails.
        let mut runs = index.runs_from(state.id, SequenceNumber(5)).expect("sound");
        let run = runs.next().expect("there is one").expect("sound");
        let range = run.offset as usize..run.end() as usize;
        assert_eq!(range, 8192..12288);
        let bytes = Bytes::copy_from_slice(&disk.files[&2][range]);
        assert!(matches!(
            decode_group(&bytes, &id(2, 2)),
            Err(GroupDamage::Checksum { .. })
        ));
        let next = runs.next().expect("it goes on").expect("sound");
        assert_eq!(next.first.sequence, SequenceNumber(6));
    }
    assert!(
        recovered
            .report
            .to_string()
            .contains("DAMAGED and answered with CORRUPT")
    );
}

#[test]
fn accepted_damage_is_told_again_at_every_start() {
    let (log, mut disk) = damaged_in_the_middle();
    let first = run(&mut disk, ALLOW).expect("allowed");
    let second = found(&mut disk.restarted());
    assert_eq!(summary(&second), summary(&first));
    assert_eq!(second.damaged.len(), 1);
    assert_eq!(second.damaged[0].names.len(), 2);
    assert_eq!(second.end, log.end());
}

#[test]
fn a_stream_that_ended_in_the_damage_does_not_get_its_numbers_twice() {
    let mut log = Log::new(1, 2);
    let mut third = stream(3);
    let entries = [led(&third), batch(&mut third, 100)];
    log.last().push(&entries);
    let entries = [batch(&mut third, 100), batch(&mut third, 100)];
    log.last().push(&entries);
    log.push(100);
    let mut disk = log.disk();
    let damaged = log.images[0].groups[3];
    disk.flip(1, damaged.0 as usize + damaged.1 - 1);
    let recovered = run(&mut disk, ALLOW).expect("allowed");
    let state = recovered.indexes[0]
        .stream(third.id)
        .expect("sound")
        .expect("there");
    assert_eq!(state.tail.sequence, SequenceNumber(3));
    assert!(recovered.damaged[0].names.contains(&third.name));
}

#[test]
fn a_stream_introduced_in_the_damage_comes_from_an_older_segment_or_is_told_lost() {
    let mut log = Log::new(1, 2);
    log.begin(2, 2);
    let mut fourth = stream(4);
    let mut entries = log.entries(100);
    entries.extend([led(&fourth), batch(&mut fourth, 100)]);
    log.last().push(&entries);
    log.push(100);
    let entries = [batch(&mut fourth, 100)];
    log.last().push(&entries);
    let mut disk = log.disk();
    disk.flip(2, BLOCK_BYTES + 60);
    let recovered = run(&mut disk, ALLOW).expect("allowed");
    let index = &recovered.indexes[1];
    for state in &log.streams {
        let read = index
            .stream(state.id)
            .expect("sound")
            .expect("from the older segment");
        assert_eq!(read.tail, state.tail);
        assert_eq!(read.previous, Some(file(1)));
    }
    assert_eq!(recovered.report.orphans, [fourth.id]);
    assert!(
        recovered
            .report
            .to_string()
            .contains("LOST with the damage")
    );
}

#[test]
fn a_damaged_last_group_of_a_sealed_segment_is_not_torn() {
    let log = Log::new(2, 3);
    let mut disk = log.disk();
    disk.indexes.clear();
    disk.flip(1, log.images[0].groups[2].0 as usize + 300);
    let (range, _) = refused(&mut disk);
    assert_eq!(
        (range.file, range.offset),
        (file(1), log.images[0].groups[2].0)
    );
    let recovered = run(&mut disk.restarted(), ALLOW).expect("allowed");
    assert_eq!(recovered.indexes.len(), 2);
    assert_eq!(
        recovered.indexes[0].end(),
        log.images[0].end,
        "the chain goes on"
    );
    let state = recovered.indexes[0]
        .stream(log.streams[0].id)
        .expect("sound")
        .expect("there");
    assert_eq!(state.tail.sequence, SequenceNumber(3));
}

#[test]
fn a_sealed_segment_that_is_shorter_than_its_seal_is_refused() {
    let log = Log::new(2, 3);
    for cut in [4096, 8192, 4096 * 3] {
        let mut disk = log.disk();
        disk.indexes.clear();
        let bytes = disk.file_mut(1);
        bytes.truncate(bytes.len() - cut);
        let (range, flaw) = refused(&mut disk);
        assert_eq!(range.file, file(1));
        assert!(matches!(flaw, Flaw::Cut { .. }), "{flaw}");
    }
}

#[test]
fn another_end_than_the_seal_says_is_refused() {
    let mut log = Log::new(1, 3);
    let mut other = Log::new(1, 2);
    other.push(101);
    log.begin(2, 2);
    log.push(100);
    let mut disk = log.disk();
    disk.indexes.clear();
    disk.put(&other.images[0]);
    let (range, flaw) = refused(&mut disk);
    assert_eq!(range.file, file(1));
    assert!(matches!(flaw, Flaw::Seal { .. }), "{flaw}");
}

#[test]
fn a_whole_group_in_a_wrong_place_is_refused() {
    let log = Log::new(1, 4);
    let mut disk = log.disk();
    let groups = &log.images[0].groups;
    let (from, to) = (groups[2].0 as usize, groups[1].0 as usize);
    let misdirected = disk.files[&1][from..from + 4096].to_vec();
    disk.file_mut(1)[to..to + 4096].copy_from_slice(&misdirected);
    let (range, flaw) = refused(&mut disk);
    assert_eq!(range.offset, groups[1].0);
    assert!(matches!(flaw, Flaw::Place { .. }), "{flaw}");
    let recovered = run(&mut disk.restarted(), ALLOW).expect("allowed");
    assert_eq!(recovered.end, log.end());
}

#[test]
fn a_group_that_contradicts_the_ones_before_is_refused() {
    let mut log = Log::new(1, 2);
    let mut other = log.streams[0].clone();
    batch(&mut other, 5);
    let skips = batch(&mut other, 5);
    let mut image = Image::new(id(1, 1), LogEnd::default());
    image.end = log.end();
    image.bytes = log.images[0].bytes.clone();
    image.push_unjudged(&[skips]);
    log.images[0].bytes = image.bytes;
    let mut disk = log.disk();
    let (_, flaw) = refused(&mut disk);
    assert!(matches!(flaw, Flaw::Misfit(_)), "{flaw}");
    assert!(run(&mut disk.restarted(), ALLOW).is_ok());
}

#[test]
fn a_lost_header_with_groups_behind_it_is_refused_and_without_them_is_not() {
    let log = Log::new(2, 3);
    for spoil in [0usize, 5, 40, 4000] {
        let mut disk = log.disk();
        if spoil == 0 {
            disk.file_mut(2)[..BLOCK_BYTES].fill(0);
        } else {
            disk.flip(2, spoil);
        }
        let (range, flaw) = refused(&mut disk);
        assert_eq!(range.file, file(2));
        assert!(matches!(flaw, Flaw::Header(_)), "{flaw}");
        assert!(disk.recycled.is_empty());
        let recovered = run(&mut disk.restarted(), ALLOW).expect("allowed");
        assert_eq!(recovered.end, log.end());
    }
}

#[test]
fn a_lost_header_of_a_segment_with_an_index_costs_nothing() {
    let log = Log::new(3, 3);
    let mut disk = log.disk();
    disk.flip(2, 50);
    let recovered = found(&mut disk);
    assert_eq!(recovered.end, log.end());
    assert_eq!(recovered.indexes.len(), 3);
    assert_eq!(recovered.report.headers_lost, [file(2)]);
}

#[test]
fn a_sealed_segment_of_which_nothing_is_left_is_refused() {
    let log = Log::new(3, 2);
    let mut disk = log.disk();
    disk.indexes.remove(&2);
    disk.file_mut(2).fill(0);
    let (range, flaw) = refused(&mut disk);
    assert_eq!((range.file, flaw), (file(2), Flaw::Emptied));
    let mut again = disk.restarted();
    let recovered = run(&mut again, ALLOW).expect("allowed");
    assert_eq!(recovered.end, log.end());
    assert_eq!(recovered.damaged.len(), 1);
    assert!(again.files.contains_key(&2), "the damage is kept");
}

#[test]
fn a_flipped_bit_in_a_cold_index_is_told_at_the_first_look() {
    let log = Log::new(3, 4);
    let mut disk = log.disk();
    disk.indexes.get_mut(&1).expect("there")[10] ^= 1;
    let recovered = found(&mut disk);
    assert_eq!(recovered.end, log.end());
    assert!(recovered.indexes[0].stream(log.streams[0].id).is_err());
    assert!(recovered.indexes[1].stream(log.streams[0].id).is_ok());
}

#[test]
fn a_flipped_bit_in_the_index_of_the_last_segment_is_repaired() {
    let log = Log::new(2, 4);
    let mut disk = log.disk();
    let first = summary(&found(&mut disk));
    let mut disk = disk.restarted();
    disk.indexes.get_mut(&2).expect("there")[10] ^= 1;
    let recovered = found(&mut disk);
    assert_eq!(summary(&recovered), first);
    assert_eq!(recovered.report.rebuilt.len(), 1);
}

#[test]
fn a_segment_behind_the_end_of_the_log_is_refused() {
    let mut log = Log::new(2, 3);
    let mut disk = log.disk();
    let stale = log.images[0].end;
    log.images.push(Image::new(id(3, 3), stale));
    disk.put(log.last());
    disk.put_index(&log.images[1]);
    let (_, flaw) = refused(&mut disk);
    assert!(matches!(flaw, Flaw::BehindEnd { .. }), "{flaw}");
}

#[test]
fn a_newer_format_is_refused_and_left_alone() {
    let log = Log::new(1, 1);
    let mut disk = log.disk();
    let bytes = disk.file_mut(1);
    bytes[12] = 9;
    let checksum = nova_model::Checksum::of(&bytes[12..BLOCK_BYTES]);
    bytes[8..12].copy_from_slice(&checksum.0.to_le_bytes());
    let error = run(&mut disk, ALLOW).expect_err("not readable");
    assert!(matches!(error, RecoveryError::Version { .. }), "{error}");
    assert!(disk.recycled.is_empty());
}

/// The story: a star of another build, which wrote entries in another way, was started on a log. It
/// could read no group, took the first for torn and cut all of the last segment off.
#[test]
fn a_last_group_that_landed_whole_and_cannot_be_read_is_not_torn() {
    let log = Log::new(1, 3);
    for group in [0, 2] {
        let mut disk = log.disk();
        let (offset, _) = log.images[0].groups[group];
        for &(offset, content) in &log.images[0].groups[group..] {
            let whole = &mut disk.file_mut(1)[offset as usize..offset as usize + content];
            whole[GROUP_HEADER_BYTES + 4] = 200;
            let checksum = nova_model::Checksum::of(&whole[12..]);
            whole[8..12].copy_from_slice(&checksum.0.to_le_bytes());
        }
        let before = disk.files.clone();
        let (range, flaw) = refused(&mut disk);
        assert_eq!(range.offset, offset);
        let expected_damage = matches!(
            flaw,
            Flaw::Group {
                damage: GroupDamage::Entry { .. },
                ..
            }
        );
        assert!(expected_damage, "{flaw}");
        assert_eq!(disk.files, before, "nothing is cut");
    }
}

#[test]
fn a_payload_that_looks_like_groups_is_not_taken_for_one() {
    // A record whose body is a whole group of the segment, block for block: it is inside a group
    // that is whole, so nobody looks for groups in it.
    let mut log = Log::new(1, 2);
    let inner = log.images[0].bytes[4096..8192].repeat(3);
    let mut state = log.streams[0].clone();
    let entry = crate::segment::samples::batch_of(&mut state, vec![inner]);
    log.last().push(&[entry]);
    assert_eq!(found(&mut log.disk()).end, log.end());
}

#[test]
fn a_time_is_found_behind_damage() {
    let (log, mut disk) = damaged_in_the_middle();
    let recovered = run(&mut disk, ALLOW).expect("allowed");
    let index = recovered.indexes.last().expect("there");
    let state = &log.streams[0];
    let last = index
        .run_at_time(state.id, state.tail.timestamp)
        .expect("sound");
    assert_eq!(last.expect("the newest record has that time").offset, 12288);
    let later = Timestamp(state.tail.timestamp.0 + 1);
    assert_eq!(index.run_at_time(state.id, later), Ok(None));
}

#[cfg(feature = "planted-bugs")]
mod planted {
    //! The bugs that the simulator plants do what they are named after.

    use super::*;
    use crate::planted::PlantedBug;

    fn with(bug: PlantedBug) -> RecoveryOptions {
        RecoveryOptions {
            planted: PlantedBugs::NONE.with(bug),
            ..Default::default()
        }
    }

    #[test]
    fn without_checksums_a_torn_group_is_adopted() {
        let mut log = Log::new(1, 2);
        let before = log.end();
        log.push(20_000);
        let torn = log.images[0].groups[2].0 as usize + 8192;
        let mut disk = log.disk();
        disk.file_mut(1)[torn..torn + 512].fill(0);
        assert_eq!(found(&mut disk.restarted()).end, before);
        let recovered = run(&mut disk, with(PlantedBug::NoGroupChecksum)).expect("blind");
        assert_eq!(recovered.end, log.end());
    }

    #[test]
    fn without_the_seal_a_late_write_is_adopted() {
        let mut log = Log::new(1, 2);
        let sealed = log.end();
        log.begin(2, 2);
        let late = log.entries(50);
        log.images[0].push_late(&late[1..2]);
        let mut disk = log.disk();
        disk.indexes.clear();
        assert_eq!(found(&mut disk.restarted()).end, sealed);
        let recovered = run(&mut disk, with(PlantedBug::NoSeal)).expect("blind");
        assert_eq!(recovered.end.last_group, sealed.last_group.next());
    }
}
