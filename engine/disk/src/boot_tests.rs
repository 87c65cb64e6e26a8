//! Recovery's storage on real files.

use super::*;
use crate::trial_tests::*;
use nova_core::disk::ListedSegment;
use nova_model::SegmentNumber;
use nova_model::limits::SPARE_SEGMENTS_MAX;
use rustix::fs::FallocateFlags;
use std::fs;
use std::sync::mpsc;
use std::time::Instant;

fn put(trial: &Trial, number: u64, bytes: &[u8]) {
    fs::write(trial.layout().segment(segment(number)), bytes).unwrap();
}

#[test]
fn a_listing_names_what_is_whole_and_removes_what_is_not() {
    let trial = Trial::new();
    let log = trial.layout().log(LOG);
    put(&trial, 10, &[0; 3 * BLOCK]);
    put(&trial, 9, b"");
    for name in ["spare-000.seg", "00000000000000000009.idx", "notes"] {
        fs::write(log.join(name), b"x").unwrap();
    }
    for name in [
        "00000000000000000011.seg.draft",
        "00000000000000000010.idx.draft",
    ] {
        fs::write(log.join(name), b"half").unwrap();
    }
    let listing = trial.boot().list(LOG).unwrap();
    let listed = |number, size| ListedSegment {
        number: SegmentNumber(number),
        generation: Generation(0),
        size,
    };
    let segments = vec![listed(9, 0), listed(10, 3 * BLOCK as u64)];
    assert_eq!(
        listing,
        LogListing {
            segments,
            indexes: vec![(SegmentNumber(9), Generation(0))]
        }
    );
    assert!(trial.names().iter().all(|name| !name.ends_with("draft")));
    assert_eq!(trial.names().len(), 5);

    let fresh = LogId(3);
    assert_eq!(trial.boot().list(fresh).unwrap(), LogListing::default());
    assert!(trial.layout().log(fresh).is_dir());
}

#[test]
fn a_read_brings_what_there_is() {
    let trial = Trial::new();
    let content: Vec<u8> = (0..3 * BLOCK)
        .map(|place| place as u8 ^ (place >> 8) as u8)
        .collect();
    put(&trial, 1, &content);
    put(&trial, 2, &[7; BLOCK]);
    let mut boot = trial.boot();
    let block = BLOCK as u64;
    assert_eq!(
        boot.read(segment(1), block, BLOCK).unwrap(),
        content[BLOCK..2 * BLOCK]
    );
    assert_eq!(
        boot.read(segment(2), 0, usize::MAX).unwrap(),
        vec![7; BLOCK]
    );
    assert_eq!(
        boot.read(segment(1), 2 * block, 1 << 40).unwrap(),
        content[2 * BLOCK..]
    );
    assert!(boot.read(segment(1), 9 * block, BLOCK).unwrap().is_empty());
    let error = boot.read(segment(3), 0, BLOCK).unwrap_err();
    assert_eq!(error.failure, DiskFailure::NotFound);
}

/// Seen before: a start read all of the segment that was written last, 256 MiB of zeros.
#[test]
fn space_that_was_never_written_is_no_data_however_far_was_read() {
    const MIB: usize = 1024 * 1024;
    const WRITTEN: usize = 4 * MIB;
    let trial = Trial::new();
    put(&trial, 1, &vec![1; WRITTEN]);
    let path = trial.layout().segment(segment(1));
    let file = File::options().write(true).open(path).unwrap();
    rustix::fs::fallocate(&file, FallocateFlags::empty(), 0, 64 * MIB as u64).unwrap();
    file.sync_all().unwrap();
    let mut boot = trial.boot();
    for offset in (0..WRITTEN).step_by(MIB) {
        let piece = boot.read(segment(1), offset as u64, MIB).unwrap();
        assert_eq!(piece, vec![1; MIB]);
    }
    let next = |boot: &mut FileBootDisk, from: usize| boot.next_data(segment(1), from as u64);
    let ahead = next(&mut boot, WRITTEN).unwrap();
    assert_eq!(ahead, None);
    assert_eq!(next(&mut boot, 0).unwrap(), Some(0));

    // Further reads do not make any of it data.
    let far = 48 * MIB;
    file.write_at(&[2], far as u64).unwrap();
    boot.read(segment(1), WRITTEN as u64, MIB).unwrap();
    let ahead = next(&mut boot, WRITTEN + MIB).unwrap();
    assert_eq!(ahead, Some(far as u64));
}

#[test]
fn a_held_lock_is_waited_for_and_then_names_its_holder() {
    let trial = Trial::new();
    put(&trial, 1, &[0; BLOCK]);
    let held = File::open(trial.layout().segment(segment(1))).unwrap();
    assert!(lock::try_lock(&held).unwrap());
    let patience = Duration::from_millis(30);
    let begin = Instant::now();
    let error = trial
        .boot()
        .with_patience(patience)
        .lock(segment(1))
        .unwrap_err();
    assert!(begin.elapsed() >= patience);
    assert_eq!(error.failure, DiskFailure::Locked);
    assert!(error.path.ends_with("00000000000000000001.seg"), "{error}");
    assert!(
        error
            .message
            .contains(&format!("process {}", std::process::id())),
        "{error}"
    );
}

#[test]
fn a_lock_that_is_let_go_meanwhile_is_taken_and_kept() {
    let trial = Trial::new();
    put(&trial, 1, &[0; 2 * BLOCK]);
    let path = trial.layout().segment(segment(1));
    let held = File::open(&path).unwrap();
    assert!(lock::try_lock(&held).unwrap());
    let (begun, begins) = mpsc::channel();
    let holder = std::thread::spawn(move || {
        begins.recv().unwrap();
        drop(held);
    });
    let mut boot = trial.boot();
    begun.send(()).unwrap();
    boot.lock(segment(1)).unwrap();
    boot.lock(segment(1)).unwrap();
    holder.join().unwrap();

    let other = File::open(&path).unwrap();
    assert!(!lock::try_lock(&other).unwrap());
    boot.finish(segment(1), BLOCK as u64).unwrap();
    assert!(lock::try_lock(&other).unwrap());
    assert_eq!(trial.size(segment(1)), BLOCK as u64);
}

#[test]
fn a_closed_segment_holds_its_header_and_is_not_locked() {
    let trial = Trial::new();
    let mut boot = trial.boot();
    boot.create_closed(segment(4), Bytes::from_static(b"header"))
        .unwrap();
    let content = boot.read(segment(4), 0, 2 * BLOCK).unwrap();
    assert_eq!(content.len(), BLOCK);
    assert!(content.starts_with(b"header\0"));
    assert!(lock::try_lock(File::open(trial.layout().segment(segment(4))).unwrap()).unwrap());
    assert_eq!(trial.names(), ["00000000000000000004.seg"]);
}

#[test]
fn an_index_is_stored_and_mapped() {
    let trial = Trial::new();
    let mut boot = trial.boot();
    let missing = boot.map_index(segment(1)).map(drop).unwrap_err();
    assert_eq!(missing.failure, DiskFailure::NotFound);
    let stored = boot
        .store_index(segment(1), Bytes::from_static(b"index"))
        .unwrap();
    assert_eq!(stored[..], *b"index");
    assert_eq!(boot.map_index(segment(1)).unwrap()[..], *b"index");
}

#[test]
fn a_log_that_nobody_writes_has_no_spare_files() {
    let trial = Trial::new();
    for number in 1..=3 {
        put(&trial, number, &[number as u8; BLOCK]);
    }
    trial.boot().recycle(segment(1)).unwrap();
    let mut boot = FileBootDisk::new(trial.layout().of_cores(LOG.0));
    boot.recycle(segment(2)).unwrap();
    let last = "00000000000000000003.seg";
    assert_eq!(trial.names(), [last, "spare-000.seg"]);
    boot.drop_spares(LOG).unwrap();
    assert_eq!(trial.names(), [last]);
}

#[test]
fn recycled_segments_become_spare_until_there_are_enough() {
    let trial = Trial::new();
    let mut boot = trial.boot();
    let many = SPARE_SEGMENTS_MAX as u64 + 2;
    for number in 1..=many {
        put(&trial, number, &[number as u8; BLOCK]);
        boot.store_index(segment(number), Bytes::from_static(b"index"))
            .unwrap();
    }
    for number in 1..=many {
        boot.recycle(segment(number)).unwrap();
    }
    let spares: Vec<_> = (0..SPARE_SEGMENTS_MAX)
        .map(|n| format!("spare-{n:03}.seg"))
        .collect();
    assert_eq!(trial.names(), spares);
    let error = boot.recycle(segment(1)).unwrap_err();
    assert_eq!(error.failure, DiskFailure::NotFound);
}

#[test]
fn of_two_generations_the_chosen_one_is_read_and_the_other_goes() {
    let trial = Trial::new();
    put(&trial, 1, &[1; BLOCK]);
    put(&trial, 2, &[7; BLOCK]);
    let newer = trial.layout().segment_of(segment(1), Generation(2));
    fs::write(newer, [2; BLOCK]).unwrap();
    for name in ["00000000000000000001.idx", "00000000000000000001-00002.idx"] {
        fs::write(trial.layout().log(LOG).join(name), name).unwrap();
    }
    let mut boot = trial.boot();
    let listed = boot.list(LOG).unwrap();
    let generations: Vec<_> = listed.segments.iter().map(|s| s.generation.0).collect();
    assert_eq!(generations, [0, 2, 0]);
    assert_eq!(boot.read(segment(1), 0, BLOCK).unwrap(), [1; BLOCK][..]);
    boot.choose(segment(1), Generation(2)).unwrap();
    assert_eq!(boot.read(segment(1), 0, BLOCK).unwrap(), [2; BLOCK][..]);
    let index = boot.map_index(segment(1)).unwrap();
    assert_eq!(&index[..], b"00000000000000000001-00002.idx");
    let names = [
        "00000000000000000001-00002.idx",
        "00000000000000000001-00002.seg",
        "00000000000000000002.seg",
    ];
    assert_eq!(trial.names(), names);
}
