//! A crash at every call of a recovery, before and after it took effect: the next recovery gets
//! the same as one that was never cut short.

use super::memory_disk::{ALLOW, Fails, Log, MemoryDisk, found, run, summary};
use super::*;
use crate::segment::samples::{Image, id};
use proptest::prelude::*;

/// Logs that need work, each with the options it is recovered with.
fn logs() -> Vec<(&'static str, MemoryDisk, RecoveryOptions)> {
    let plain = RecoveryOptions::default();
    let closing = RecoveryOptions {
        closing: Some(Incarnation(9)),
        ..plain
    };
    let mut logs = Vec::new();
    let mut torn = Log::new(3, 3);
    torn.push(30_000);
    let at = torn.images[2].groups[3].0 as usize + 9000;
    let mut disk = torn.disk();
    disk.file_mut(3)[at..].fill(0);
    logs.push(("a torn end", disk.clone(), plain));
    logs.push(("a torn end of an adopted log", disk.clone(), closing));
    disk.files.insert(4, vec![0; 1 << 16]);
    logs.push(("a torn end and a segment never begun", disk.clone(), plain));
    disk.indexes.clear();
    logs.push(("no index at all", disk, plain));

    let mut empty = Log::new(2, 3);
    empty.last().bytes.extend_from_slice(&[7; 8192]);
    empty.begin(3, 3);
    let mut disk = empty.disk();
    logs.push(("sealed by a segment without groups", disk.clone(), plain));
    logs.push(("the same, adopted", disk.clone(), closing));
    disk.indexes.clear();
    logs.push(("the same without indexes", disk.clone(), plain));
    disk.files.retain(|number, _| *number == 3);
    logs.push(("only the last word is left", disk.clone(), ALLOW));
    let allowed = RecoveryOptions {
        allow_corrupt: true,
        ..closing
    };
    logs.push(("only the last word is left, adopted", disk, allowed));

    let damaged = Log::new(2, 4);
    let mut disk = damaged.disk();
    disk.flip(2, damaged.images[1].groups[1].0 as usize + 300);
    disk.files
        .insert(3, Image::new(id(77, 55), LogEnd::default()).bytes);
    logs.push(("damage in the middle", disk, ALLOW));

    let mut disk = Log::new(3, 2).disk();
    disk.files.remove(&2);
    disk.indexes.clear();
    logs.push(("a forgotten segment between", disk, plain));
    logs
}

#[test]
fn a_crash_at_any_call_changes_nothing_that_counts() {
    for (name, disk, options) in logs() {
        let mut whole = disk.restarted();
        let expected = summary(&run(&mut whole, options).expect(name));
        assert!(whole.calls >= 4, "{name}: there is something to cut short");
        for call in 0..whole.calls {
            for fails in [Fails::Before, Fails::After] {
                let mut cut = disk.restarted();
                cut.fails_at = Some((call, fails));
                let error = run(&mut cut, options).expect_err("the call fails");
                assert!(
                    matches!(error, RecoveryError::Disk(_)),
                    "{name}, call {call}: {error}"
                );
                let mut again = cut.restarted();
                let recovered = run(&mut again, options);
                let recovered = recovered
                    .unwrap_or_else(|error| panic!("{name}, call {call} {fails:?}: {error}"));
                assert_eq!(
                    summary(&recovered),
                    expected,
                    "{name}, call {call} {fails:?}"
                );
                assert!(
                    recovered.next_number
                        > recovered
                            .indexes
                            .last()
                            .map_or(SegmentNumber(0), |index| index.file().number),
                    "{name}, call {call}: a number is used once"
                );
                assert!(
                    again.locked.is_empty(),
                    "{name}, call {call}: locks {:?}",
                    again.locked
                );
            }
        }
    }
}

/// Bytes of any file overwritten, at a place given as a fraction of it.
#[derive(Debug, Clone)]
struct Overwrite {
    number: u64,
    in_index: bool,
    at: u16,
    bytes: Vec<u8>,
}

fn any_overwrite() -> impl Strategy<Value = Overwrite> {
    let bytes = prop_oneof![
        proptest::collection::vec(any::<u8>(), 1..4),
        Just(vec![0; 512]),
        Just(vec![0; 4096]),
    ];
    (1..4u64, any::<bool>(), any::<u16>(), bytes).prop_map(|(number, in_index, at, bytes)| {
        Overwrite {
            number,
            in_index,
            at,
            bytes,
        }
    })
}

fn overwrite(disk: &mut MemoryDisk, what: &Overwrite) {
    let files = if what.in_index {
        &mut disk.indexes
    } else {
        &mut disk.files
    };
    let Some(file) = files.get_mut(&what.number) else {
        return;
    };
    let at = file.len() * usize::from(what.at) / (usize::from(u16::MAX) + 1);
    file[at..]
        .iter_mut()
        .zip(&what.bytes)
        .for_each(|(byte, new)| *byte = *new);
}

proptest! {
    #[test]
    fn whatever_bytes_change_no_more_than_the_last_group_is_lost_silently(
        changes in proptest::collection::vec(any_overwrite(), 1..4),
        without_indexes in any::<bool>(),
    ) {
        let log = Log::new(3, 4);
        let mut disk = log.disk();
        if without_indexes {
            disk.indexes.clear();
        }
        changes.iter().for_each(|change| overwrite(&mut disk, change));
        let mut strict = disk.restarted();
        if let Ok(recovered) = run(&mut strict, RecoveryOptions::default()) {
            prop_assert!(recovered.damaged.is_empty());
            // What is cut are neighbours at the very end, all of them hit: of those nobody can
            // tell whether they were answered from.
            let kept = recovered.end.last_group.0;
            let hit = |number: u64| {
                let (offset, content) = log.images[2].groups[number as usize - 9];
                let place = offset as usize..offset as usize + content;
                disk.files[&3][place.clone()] != log.images[2].bytes[place]
            };
            prop_assert!(kept >= 8 && (kept + 1..=12).all(hit), "kept {kept}");
            prop_assert_eq!(recovered.indexes.len(), if kept == 8 { 2 } else { 3 });
        }
        let mut allowed = disk.restarted();
        if let Ok(recovered) = run(&mut allowed, ALLOW) {
            let again = run(&mut allowed.restarted(), ALLOW).expect("accepted once");
            prop_assert_eq!(again.end, recovered.end);
        }
    }
}

/// Two starts without groups gave their segments 1 and 2 back, and the next one began with 1 again.
/// Its segment 2 is a spare file, and the crash came before its header: the old one is there, says
/// nothing of the end of segment 1, and is of an earlier start. The simulator saw the start
/// refused, seed 315693.
#[test]
fn the_header_of_an_earlier_start_in_a_new_segment_is_none() {
    for end in [LogEnd::default(), Log::new(1, 1).end()] {
        let mut log = Log::new(1, 3);
        log.last().bytes.extend_from_slice(&[0; 8192]);
        let mut disk = log.disk();
        disk.put(&Image::new(id(0, 2), end));
        let recovered = found(&mut disk);
        assert_eq!(recovered.end, log.end());
        assert_eq!(recovered.report.recycled, 1);
    }
}
