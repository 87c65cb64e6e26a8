//! Every operation on real files, past the page cache, in both sync modes.

use super::*;
use crate::trial_tests::*;
use crate::{lock, segments};
use bytes::Bytes;
use nova_core::disk::BootDisk;
use nova_core::disk::{DiskFailure, SegmentFile};
use nova_model::Generation;
use nova_model::limits::ZERO_CHUNK_BYTES;
use std::fs::{self, File};

const MODES: [SyncMode; 2] = [SyncMode::Dsync, SyncMode::Fdatasync];
const MIB: u64 = 1024 * 1024;

#[test]
fn every_operation_does_what_it_says_in_both_sync_modes() {
    for sync in MODES {
        let trial = Trial::new();
        on_core(async {
            let core = Core::with(&trial, sync, 2).await;
            assert!(!created(core.create(1, MIB).await));
            assert_eq!(trial.size(segment(1)), MIB);
            assert_eq!(trial.names(), ["00000000000000000001.seg"]);

            let zero = DiskOp::Zero {
                file: segment(1),
                offset: 0,
                length: 256 * 1024,
            };
            assert_written(core.act(zero).await);
            let written = pattern(2 * BLOCK, 1);
            assert_written(core.write(1, BLOCK as u64, written.clone()).await);
            let read = bytes(core.read(1, 0, 4 * BLOCK).await);
            assert!(read[..BLOCK].iter().all(|byte| *byte == 0));
            assert_eq!(read[BLOCK..3 * BLOCK], written);
            assert!(read[3 * BLOCK..].iter().all(|byte| *byte == 0));

            let index = Bytes::from(pattern(1_000, 2));
            let store = DiskOp::StoreIndex {
                file: segment(1),
                bytes: index.clone(),
            };
            let DiskResult::Mapped(mapped) = core.act(store).await else {
                panic!("the index is not mapped");
            };
            assert_eq!(mapped[..], index);

            assert_finished(core.finish(1, 3 * BLOCK as u64).await);
            assert_eq!(trial.size(segment(1)), 3 * BLOCK as u64);
            let read = bytes(core.read(1, BLOCK as u64, 2 * BLOCK).await);
            assert_eq!(read, written);
            core.driver.close().await;
        });
        let names = ["00000000000000000001.idx", "00000000000000000001.seg"];
        assert_eq!(trial.names(), names);
    }
}

#[test]
fn parts_of_any_size_are_joined_and_padded_over_old_content() {
    let cases: [&[usize]; 7] = [
        &[],
        &[0, 1, 0],
        &[4_095, 1],
        &[BLOCK],
        &[1, BLOCK, 4_094],
        &[3; 1_500],
        &[100_003, 7],
    ];
    let trial = Trial::new();
    on_core(async {
        let core = Core::new(&trial).await;
        created(core.create(1, MIB).await);
        for (seed, sizes) in cases.iter().enumerate() {
            let parts: Vec<_> = sizes
                .iter()
                .map(|size| pattern(*size, seed as u8).into())
                .collect();
            let mut expected = parts.iter().flatten().copied().collect::<Vec<u8>>();
            let length = expected.len().max(1).next_multiple_of(BLOCK);
            expected.resize(length, 0);
            assert_written(core.write(1, 0, vec![0xFF; length]).await);
            let write = DiskOp::Write {
                file: segment(1),
                offset: 0,
                parts,
                length,
            };
            assert_written(core.act(write).await);
            assert_eq!(bytes(core.read(1, 0, length).await), expected, "{sizes:?}");
        }
        core.driver.close().await;
    });
}

#[test]
fn many_writes_may_be_in_flight_and_a_long_read_brings_them_all() {
    let (pieces, piece) = (11, 300 * 1024);
    let trial = Trial::new();
    on_core(async {
        let core = Core::new(&trial).await;
        created(core.create(1, 16 * MIB).await);
        let begin = |number: usize| (number * piece) as u64;
        for number in 0..pieces {
            core.submit(write(1, begin(number), pattern(piece, number as u8)));
        }
        assert_eq!(core.driver.in_flight(), pieces);
        for _ in 0..pieces {
            assert_written(core.next().await.1);
        }
        let read = bytes(core.read(1, 0, pieces * piece).await);
        for (number, chunk) in read.chunks(piece).enumerate() {
            assert_eq!(chunk, pattern(piece, number as u8));
        }
        core.driver.close().await;
    });
}

/// Without writes several pieces of a read are at the device together; they come in their order,
/// and a file that ends among them is told like any other.
#[test]
fn a_quiet_core_reads_pieces_together_and_in_order() {
    let (pieces, rest) = (9, 3 * BLOCK);
    let trial = Trial::new();
    on_core(async {
        let mut content: Vec<u8> = (0..pieces)
            .flat_map(|number| pattern(256 * 1024, number as u8))
            .collect();
        content.extend(pattern(rest, 99));
        let core = Core::new(&trial).await;
        fs::write(trial.layout().segment(segment(1)), &content).unwrap();
        let read = bytes(core.read(1, 0, content.len()).await);
        assert!(read == content, "the pieces are not in their order");
        let inside = bytes(core.read(1, BLOCK as u64, content.len() - rest).await);
        assert!(inside == content[BLOCK..content.len() - rest + BLOCK]);
        let error = failed(core.read(1, 0, content.len() + 2 * 1024 * 1024).await);
        assert_eq!(error.failure, DiskFailure::Short);
        core.driver.close().await;
    });
}

#[test]
fn closing_waits_for_everything_in_flight_and_lets_the_locks_go() {
    let trial = Trial::new();
    on_core(async {
        let core = Core::new(&trial).await;
        created(core.create(1, 8 * MIB).await);
        let length = ZERO_CHUNK_BYTES;
        for number in 0..8 {
            core.submit(DiskOp::Zero {
                file: segment(1),
                offset: number * MIB,
                length,
            });
        }
        let Core {
            driver,
            completions,
            ..
        } = core;
        driver.close().await;
        for _ in 0..8 {
            assert_written(completions.pop().unwrap().1);
        }
        assert!(completions.pop().is_none());
    });
    trial.boot().lock(segment(1)).unwrap();
}

#[test]
fn a_segment_is_locked_while_it_can_be_written() {
    let trial = Trial::new();
    on_core(async {
        let core = Core::new(&trial).await;
        created(core.create(1, MIB).await);
        let other = File::open(trial.layout().segment(segment(1))).unwrap();
        assert!(!lock::try_lock(&other).unwrap());
        assert_finished(core.finish(1, BLOCK as u64).await);
        assert!(lock::try_lock(&other).unwrap());
        core.driver.close().await;
    });
}

#[test]
fn finishing_waits_for_zeros_so_that_none_makes_the_file_longer_again() {
    let trial = Trial::new();
    on_core(async {
        let core = Core::new(&trial).await;
        created(core.create(1, 8 * MIB).await);
        let length = ZERO_CHUNK_BYTES;
        for number in 0..8 {
            core.submit(DiskOp::Zero {
                file: segment(1),
                offset: number * MIB,
                length,
            });
        }
        let last = core.submit(DiskOp::FinishSegment {
            file: segment(1),
            length: BLOCK as u64,
        });
        for _ in 0..8 {
            assert_written(core.next().await.1);
        }
        let (token, result) = core.next().await;
        assert_eq!(token, last);
        assert_finished(result);
        assert_eq!(trial.size(segment(1)), BLOCK as u64);
        assert_eq!(
            failure(core.write(1, 0, vec![1; BLOCK]).await),
            DiskFailure::NotFound
        );
        core.driver.close().await;
    });
}

#[test]
fn reads_that_cannot_be_served_say_why() {
    let trial = Trial::new();
    on_core(async {
        let core = Core::new(&trial).await;
        assert_eq!(failure(core.read(9, 0, BLOCK).await), DiskFailure::NotFound);
        created(core.create(1, MIB).await);
        let past_the_end = MIB - BLOCK as u64;
        assert_eq!(
            failure(core.read(1, past_the_end, 2 * BLOCK).await),
            DiskFailure::Short
        );
        let error = failed(core.read(1, MIB, BLOCK).await);
        assert_eq!((error.failure, error.offset), (DiskFailure::Short, MIB));
        assert!(
            error.path.ends_with("core-000/00000000000000000001.seg"),
            "{error}"
        );
        assert_eq!(failure(core.finish(9, 0).await), DiskFailure::NotFound);
        core.driver.close().await;
    });
}

#[test]
fn read_handles_are_bounded_and_come_back_when_they_are_needed() {
    let trial = Trial::new();
    on_core(async {
        let core = Core::with(&trial, SyncMode::Dsync, 2).await;
        for number in 1..=5 {
            created(core.create(number, MIB).await);
            assert_written(core.write(number, 0, pattern(BLOCK, number as u8)).await);
            assert_finished(core.finish(number, BLOCK as u64).await);
        }
        for number in [1, 2, 3, 4, 5, 1, 5, 3, 3, 2] {
            let read = bytes(core.read(number, 0, BLOCK).await);
            assert_eq!(read, pattern(BLOCK, number as u8));
            assert!(core.driver.descriptors() <= 2);
        }
        for number in [1, 2, 3, 4, 5, 1, 2] {
            core.submit(DiskOp::Read {
                file: segment(number),
                generation: Generation(0),
                offset: 0,
                length: BLOCK,
            });
        }
        for _ in 0..7 {
            assert_eq!(bytes(core.next().await.1).len(), BLOCK);
        }
        core.driver.close().await;
    });
}

#[test]
fn a_spare_file_is_used_again_with_what_it_holds() {
    // (length of the spare, written up to, length asked for) -> written before
    let cases = [
        (MIB, MIB, MIB, true),
        (2 * MIB, 2 * MIB, MIB, true),
        (MIB - BLOCK as u64, MIB - BLOCK as u64, MIB, true),
        (MIB, MIB, 12 * MIB, true),
        (BLOCK as u64, BLOCK as u64, 32 * MIB, false),
        (32 * MIB, MIB, 32 * MIB, false),
    ];
    for (spare, written, length, written_before) in cases {
        let trial = Trial::new();
        let old = pattern(written as usize, 7);
        on_core(async {
            let core = Core::new(&trial).await;
            created(core.create(1, spare).await);
            for (number, part) in old.chunks(MIB as usize).enumerate() {
                assert_written(core.write(1, number as u64 * MIB, part.to_vec()).await);
            }
            assert_finished(core.finish(1, spare).await);
            core.driver.close().await;
        });
        trial.boot().recycle(segment(1)).unwrap();
        assert_eq!(trial.names(), ["spare-000.seg"]);
        on_core(async {
            let core = Core::new(&trial).await;
            assert_eq!(
                created(core.create(2, length).await),
                written_before,
                "{spare} {length}"
            );
            assert_eq!(trial.names(), ["00000000000000000002.seg"]);
            assert_eq!(trial.size(segment(2)), length);
            assert_eq!(bytes(core.read(2, 0, BLOCK).await), old[..BLOCK]);
            assert_written(core.write(2, 0, pattern(BLOCK, 8)).await);
            core.driver.close().await;
        });
    }
}

#[test]
fn a_spare_file_that_somebody_holds_is_left_alone() {
    let trial = Trial::new();
    let spare = trial.layout().spare(LOG, 0);
    fs::write(&spare, vec![1; BLOCK]).unwrap();
    let held = File::open(&spare).unwrap();
    assert!(lock::try_lock(&held).unwrap());
    on_core(async {
        let core = Core::new(&trial).await;
        assert_eq!(failure(core.create(1, MIB).await), DiskFailure::Locked);
        assert_eq!(trial.names(), ["spare-000.seg"]);
        lock::unlock(&held).unwrap();
        created(core.create(1, MIB).await);
        core.driver.close().await;
    });
}

#[test]
fn a_segment_is_never_made_over_another_one() {
    let trial = Trial::new();
    fs::write(trial.layout().segment(segment(1)), b"old").unwrap();
    on_core(async {
        let core = Core::new(&trial).await;
        assert_eq!(failure(core.create(1, MIB).await), DiskFailure::Io);
        core.driver.close().await;
    });
    assert_eq!(
        fs::read(trial.layout().segment(segment(1))).unwrap(),
        b"old"
    );
    assert_eq!(trial.names(), ["00000000000000000001.seg"]);
}

#[test]
fn a_full_disk_is_met_when_a_segment_is_made_and_leaves_nothing() {
    let trial = Trial::new();
    let system = rustix::fs::statvfs(trial.layout().root()).unwrap();
    let too_much = (system.f_bfree * system.f_frsize + (1 << 40)).next_multiple_of(BLOCK as u64);
    on_core(async {
        let core = Core::new(&trial).await;
        assert_eq!(
            failure(core.create(1, too_much).await),
            DiskFailure::NoSpace
        );
        assert!(trial.names().is_empty());
        let spare = trial.layout().spare(LOG, 0);
        fs::write(&spare, vec![1; BLOCK]).unwrap();
        assert_eq!(
            failure(core.create(1, too_much).await),
            DiskFailure::NoSpace
        );
        assert_eq!(trial.names(), ["spare-000.seg"]);
        assert_eq!(fs::read(&spare).unwrap(), vec![1; BLOCK]);
        created(core.create(1, MIB).await);
        core.driver.close().await;
    });
}

#[test]
fn an_index_is_replaced_whole_and_old_readers_keep_the_old_one() {
    let trial = Trial::new();
    let draft = trial
        .layout()
        .log(LOG)
        .join("00000000000000000001.idx.draft");
    fs::write(draft, b"torn").unwrap();
    let [old, new] = [Bytes::from(pattern(70_000, 1)), Bytes::new()];
    on_core(async {
        let core = Core::new(&trial).await;
        let mut mapped = Vec::new();
        for bytes in [&old, &new] {
            let store = DiskOp::StoreIndex {
                file: segment(1),
                bytes: bytes.clone(),
            };
            match core.act(store).await {
                DiskResult::Mapped(map) => mapped.push(map),
                other => panic!("{}", failed(other)),
            }
        }
        assert_eq!(mapped[0][..], old);
        assert_eq!(mapped[1][..], new);
        let elsewhere = SegmentFile {
            log: nova_model::LogId(5),
            number: segment(1).number,
        };
        let store = DiskOp::StoreIndex {
            file: elsewhere,
            bytes: old.clone(),
        };
        assert_eq!(failure(core.act(store).await), DiskFailure::NotFound);
        core.driver.close().await;
    });
    assert_eq!(trial.names(), ["00000000000000000001.idx"]);
    assert_eq!(
        segments::map_index(trial.layout(), segment(1), Generation(0)).unwrap()[..],
        new
    );
}

#[test]
fn a_recycled_segment_is_the_next_ones_file_and_its_space_is_free() {
    let trial = Trial::new();
    on_core(async {
        let core = Core::new(&trial).await;
        created(core.create(1, MIB).await);
        assert_written(core.write(1, 0, pattern(BLOCK, 1)).await);
        let store = DiskOp::StoreIndex {
            file: segment(1),
            bytes: Bytes::from_static(b"index"),
        };
        core.act(store).await;
        assert_finished(core.finish(1, MIB).await);
        assert_eq!(bytes(core.read(1, 0, BLOCK).await), pattern(BLOCK, 1));
        assert_eq!(core.driver.descriptors(), 1, "a handle to read with");
        let free = |result| match result {
            DiskResult::Space { free, total } if free <= total => free,
            other => panic!("{}", failed(other)),
        };
        let space = || DiskOp::Space { log: LOG };
        assert!(free(core.act(space()).await) > 0);
        assert_finished(core.act(recycle(1, 0)).await);
        assert_eq!(core.driver.descriptors(), 0);
        assert_eq!(trial.names(), ["spare-000.seg"]);
        assert_finished(core.act(let_go(1, 0)).await);
        created(core.create(2, MIB).await);
        assert_eq!(trial.names(), ["00000000000000000002.seg"]);
        assert_eq!(bytes(core.read(2, 0, BLOCK).await), pattern(BLOCK, 1));
        core.driver.close().await;
    });
}

/// The first file that glommio opens on a device decides whether it polls the device, and an empty
/// one misleads it: every later read failed with EOPNOTSUPP.
#[test]
fn an_empty_identity_is_refused_before_it_misleads_glommio() {
    let trial = Trial::new();
    fs::write(trial.layout().star(), b"").unwrap();
    on_core(async {
        let config = DriverConfig::new(trial.layout().clone());
        let error = Driver::new(config, || Duration::ZERO, |_, _| ()).await;
        let error = error.map(drop).unwrap_err();
        assert!(error.path.ends_with("star"), "{error}");
    });
}
