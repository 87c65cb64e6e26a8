//! A start without space for an index: what is behind the last group gives it, also to the lost
//! index of an older segment.

use super::memory_disk::{ALLOW, Fails, Log, MemoryDisk, found, run, summary};
use super::*;

/// A log whose last segment has space behind its last group, as an allocated file has.
fn allocated(log: &mut Log) -> MemoryDisk {
    log.last().bytes.extend_from_slice(&[0; 8192]);
    let mut disk = log.disk();
    disk.indexes.remove(&1);
    disk.is_full = true;
    disk
}

fn is_full(recovered: Result<RecoveredLog, RecoveryError>) -> bool {
    let error = recovered.err();
    matches!(error, Some(RecoveryError::Disk(error)) if error.failure == DiskFailure::NoSpace)
}

#[test]
fn the_end_of_the_last_segment_makes_room_for_its_index() {
    let mut log = Log::new(2, 3);
    let mut roomy = allocated(&mut log);
    roomy.is_full = false;
    let expected = summary(&found(&mut roomy));
    let mut disk = roomy.restarted();
    (disk.files, disk.is_full) = (log.disk().files, true);
    disk.indexes.clear();
    assert_eq!(summary(&found(&mut disk)), expected);
    assert_eq!(disk.files, roomy.files, "cut as it is with space");
    assert_eq!(disk.indexes, roomy.indexes);
    assert!(disk.locked.is_empty(), "every lock is let go");
}

#[test]
fn a_crash_at_any_call_of_it_changes_nothing_that_counts() {
    let mut log = Log::new(2, 3);
    let disk = allocated(&mut log);
    let mut whole = disk.clone();
    let expected = summary(&found(&mut whole));
    assert!(whole.calls > 5);
    for at in 0..whole.calls {
        for fails in [Fails::Before, Fails::After] {
            let mut stopped = disk.clone();
            stopped.fails_at = Some((at, fails));
            assert!(run(&mut stopped, RecoveryOptions::default()).is_err());
            let mut again = stopped.restarted();
            again.is_full = stopped.is_full;
            assert_eq!(summary(&found(&mut again)), expected, "{at} {fails:?}");
        }
    }
}

#[test]
fn without_anything_to_cut_the_start_says_that_the_disk_is_full() {
    let log = Log::new(2, 3);
    let mut disk = log.disk();
    disk.is_full = true;
    assert!(is_full(run(&mut disk, RecoveryOptions::default())));
    assert_eq!(disk.files, log.disk().files);
}

#[test]
fn damage_is_not_cut_before_an_index_tells_of_it() {
    let mut log = Log::new(2, 4);
    let mut disk = allocated(&mut log);
    disk.flip(2, log.images[1].groups[1].0 as usize + 300);
    let files = disk.files.clone();
    assert!(is_full(run(&mut disk, ALLOW)));
    assert_eq!(disk.files, files);
}
