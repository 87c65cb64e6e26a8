//! Gaps in a log: those that it says were released are accepted, all others are refused.

use super::memory_disk::{ALLOW, Log, MemoryDisk, found, run};
use super::*;
use crate::entry::Entry;
use crate::segment::samples::LOG;

/// A log of five segments of which the last states what was released.
fn log(released: &[(u64, u64)]) -> MemoryDisk {
    let mut log = Log::new(5, 2);
    if !released.is_empty() {
        let numbers = crate::segment::samples::released(released);
        log.last().push(&[Entry::Released { log: LOG, numbers }]);
    }
    log.disk()
}

fn lose(disk: &mut MemoryDisk, number: u64) {
    disk.files.remove(&number);
    disk.indexes.remove(&number);
}

fn numbers_kept(log: &RecoveredLog) -> Vec<u64> {
    log.indexes
        .iter()
        .map(|index| index.file().number.0)
        .collect()
}

fn reconciled(
    disk: &mut MemoryDisk,
    options: RecoveryOptions,
) -> Result<RecoveredLog, RecoveryError> {
    let mut log = run(disk, options)?;
    reconcile(disk, [&mut log], options)?;
    Ok(log)
}

#[test]
fn exactly_the_released_gaps_are_accepted() {
    let released: [&[(u64, u64)]; 5] = [&[], &[(1, 1)], &[(2, 2)], &[(1, 3)], &[(2, 4)]];
    for released in released {
        for missing in 0..16 {
            let missing: Vec<u64> = (1..=4).filter(|n| missing & 1 << (n - 1) != 0).collect();
            let mut disk = log(released);
            missing.iter().for_each(|number| lose(&mut disk, *number));
            let is_released = |n: &u64| released.iter().any(|(a, b)| (a..=b).contains(&n));
            let is_fine = missing.iter().all(is_released);
            // The last segment is sealed by none, and the one before it is named by it alone.
            let result = reconciled(&mut disk, RecoveryOptions::default());
            assert_eq!(
                result.is_ok(),
                is_fine,
                "{released:?} released, {missing:?} missing"
            );
            let Ok(log) = result else { continue };
            let kept: Vec<u64> = (1..=5).filter(|n| !is_released(n)).collect();
            assert_eq!(numbers_kept(&log), kept);
            assert!(kept.iter().all(|n| disk.files.contains_key(n)));
            assert_eq!(disk.files.len(), kept.len(), "what was released is gone");
        }
    }
}

#[test]
fn a_lost_segment_is_named_and_can_be_accepted() {
    let mut disk = log(&[(1, 1)]);
    lose(&mut disk, 1);
    lose(&mut disk, 3);
    let error = reconciled(&mut disk, RecoveryOptions::default()).expect_err("3 is lost");
    assert!(error.to_string().contains("00003.seg"), "{error}");
    assert!(error.to_string().contains("not released"), "{error}");
    let log = reconciled(&mut disk, ALLOW).expect("allowed");
    assert_eq!(numbers_kept(&log), [2, 4, 5]);
}

#[test]
fn a_start_that_dies_while_it_recycles_is_finished_by_the_next() {
    for half in [false, true] {
        let mut disk = log(&[(1, 2)]);
        if half {
            disk.indexes.remove(&1);
        }
        let mut log = found(&mut disk);
        disk.fails_at = Some((disk.calls, memory_disk::Fails::After));
        let options = RecoveryOptions::default();
        reconcile(&mut disk, [&mut log], options).expect_err("it dies");
        let mut disk = disk.restarted();
        let log = reconciled(&mut disk, options).expect("nothing is wrong");
        assert_eq!(numbers_kept(&log), [3, 4, 5]);
        assert_eq!(disk.files.len(), 3);
    }
}

#[test]
fn what_another_log_says_of_a_log_counts() {
    let mut other = log(&[]);
    lose(&mut other, 2);
    let mut here = run(&mut other, RecoveryOptions::default()).expect("each log by itself is fine");
    let mut speaker = log(&[(2, 2)]);
    let mut there = run(&mut speaker, RecoveryOptions::default()).expect("fine");
    there.log = nova_model::LogId(9);
    there.indexes.drain(..4);
    there.predecessors.clear();
    let options = RecoveryOptions::default();
    reconcile(&mut other, [&mut here, &mut there], options).expect("2 was released");
    assert_eq!(here.released, there.released);
    assert!(here.released[&LOG].contains(2));
}
