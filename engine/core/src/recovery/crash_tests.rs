//! A crash at every call of a recovery, before and after it took effect: the next recovery gets
//! the same as one that was never cut short.

use super::memory_disk::{ALLOW, Fails, Log, MemoryDisk, run, summary};
use super::*;
use crate::segment::samples::{Image, id};

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
    logs.push(("only the last word is left", disk.clone(), plain));
    logs.push(("only the last word is left, adopted", disk, closing));

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
