//! Failures that need a process of its own: limits that are lowered, and a kill amid writes.

use crate::DataDirectory;
use crate::DirectoryError;
use crate::trial_tests::*;
use nova_core::disk::{BootDisk, DiskFailure, DiskResult};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::Stdio;

const MIB: u64 = 1024 * 1024;

fn lower(resource: Resource, current: u64) {
    let maximum = getrlimit(resource).maximum;
    setrlimit(
        resource,
        Rlimit {
            current: Some(current),
            maximum,
        },
    )
    .unwrap();
}

/// Takes all descriptors that the process has left.
fn take_descriptors() -> Vec<File> {
    let mut taken = Vec::new();
    while let Ok(file) = File::open("/dev/null") {
        taken.push(file);
    }
    taken
}

/// A limit on the size of files cuts a write short where the limit is, as a full device would.
#[test]
fn a_short_write_poisons_its_file_and_no_other() {
    let name = "writable::tests::a_short_write_poisons_its_file_and_no_other";
    in_child(name, || {
        let trial = Trial::new();
        on_core(async {
            let core = Core::new(&trial).await;
            created(core.create(1, MIB).await);
            created(core.create(2, MIB).await);
            assert_written(core.write(1, 0, vec![1; BLOCK]).await);
            lower(Resource::Fsize, 3 * BLOCK as u64);
            let error = failed(core.write(1, BLOCK as u64, vec![2; 4 * BLOCK]).await);
            assert_eq!(error.failure, DiskFailure::Short);
            assert_eq!(
                (error.offset, error.length),
                (BLOCK as u64, 4 * BLOCK as u64)
            );
            let error = failed(core.write(1, 0, vec![3; BLOCK]).await);
            assert_eq!(error.failure, DiskFailure::Io);
            assert!(error.message.contains("earlier write"), "{error}");
            assert_eq!(bytes(core.read(1, 0, BLOCK).await), vec![1; BLOCK]);
            assert_written(core.write(2, 0, vec![4; BLOCK]).await);
            core.driver.close().await;
        });
    });
}

#[test]
fn without_descriptors_nothing_is_made_and_readers_give_theirs_up() {
    let name = "writable::tests::without_descriptors_nothing_is_made_and_readers_give_theirs_up";
    in_child(name, || {
        let trial = Trial::new();
        on_core(async {
            let core = Core::with(&trial, crate::SyncMode::Dsync, 8).await;
            for number in 1..=4 {
                created(core.create(number, MIB).await);
                assert_finished(core.finish(number, BLOCK as u64).await);
            }
            lower(Resource::Nofile, 200);
            let taken = take_descriptors();
            let before = trial_names_without_listing(&core).await;
            drop(taken);
            assert_eq!(trial.names(), before);

            for number in 1..=4 {
                assert_eq!(bytes(core.read(number, 0, BLOCK).await).len(), BLOCK);
            }
            assert_eq!(core.driver.descriptors(), 4);
            let taken = take_descriptors();
            created(core.create(5, MIB).await);
            assert_eq!(core.driver.descriptors(), 1);
            assert_eq!(bytes(core.read(1, 0, BLOCK).await).len(), BLOCK);
            drop(taken);
            core.driver.close().await;
        });
    });
}

/// Every operation that needs a descriptor fails; listing the directory would need one too, so what
/// should be there is returned.
async fn trial_names_without_listing(core: &Core) -> Vec<String> {
    assert_eq!(
        failure(core.create(5, MIB).await),
        DiskFailure::NoDescriptor
    );
    assert_eq!(
        failure(core.read(1, 0, BLOCK).await),
        DiskFailure::NoDescriptor
    );
    let store = nova_core::disk::DiskOp::StoreIndex {
        file: segment(1),
        bytes: bytes::Bytes::from_static(b"index"),
    };
    match core.act(store).await {
        DiskResult::Failed(error) => assert_eq!(error.failure, DiskFailure::NoDescriptor),
        _ => panic!("an index was stored without a descriptor"),
    }
    (1..=4).map(|number| format!("{number:020}.seg")).collect()
}

const PATH_VARIABLE: &str = "NOVA_DISK_TEST_PATH";
const WRITES: u64 = 16;

/// The next start waits for the writes that the killed process left in the ring; afterwards none
/// lands any more, so what it reads stays as it is.
#[test]
fn the_next_start_waits_for_the_writes_of_a_process_that_was_killed() {
    let name = "writable::tests::the_next_start_waits_for_the_writes_of_a_process_that_was_killed";
    if is_child(name) {
        return write_for_ever(Path::new(&std::env::var(PATH_VARIABLE).unwrap()));
    }
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("data");
    let mut writer = child(name)
        .env(PATH_VARIABLE, &path)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(writer.stdout.take().unwrap()).lines();
    assert!(
        lines
            .map(Result::unwrap)
            .any(|line| line.ends_with("writing"))
    );
    let error = DataDirectory::open(&path).unwrap_err();
    let DirectoryError::InUse { pid, .. } = error else {
        panic!("{error}");
    };
    assert_eq!(pid, Some(writer.id()));
    writer.kill().unwrap();
    writer.wait().unwrap();

    let trial = Trial::at(&path);
    let mut boot = trial.boot();
    boot.lock(segment(1)).unwrap();
    let length = WRITES as usize * MIB as usize;
    let first = boot.read(segment(1), 0, length).unwrap();
    assert!(first.iter().any(|byte| *byte != 0));
    assert!(boot.read(segment(1), 0, length).unwrap() == first);
}

fn write_for_ever(path: &Path) {
    let trial = Trial::at(path);
    on_core(async {
        let core = Core::new(&trial).await;
        created(core.create(1, WRITES * MIB).await);
        let submit = |round: u64| {
            let offset = round % WRITES * MIB;
            core.submit(write(1, offset, vec![round as u8 + 1; MIB as usize]))
        };
        for round in 0..WRITES {
            submit(round);
        }
        for round in WRITES.. {
            assert_written(core.next().await.1);
            if round == 2 * WRITES {
                println!("writing");
            }
            submit(round);
        }
    });
}
