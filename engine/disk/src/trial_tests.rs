//! What the tests of this crate share: a data directory on a real file system, a core with a driver
//! on it, and a process of its own for tests that lower a limit.

use crate::{
    Completions, DataDirectory, Driver, DriverConfig, FileBootDisk, FileRegistry, Layout, SyncMode,
    raise_incarnation,
};
use bytes::Bytes;
use glommio::{LocalExecutorBuilder, Placement};
use nova_core::disk::{BootDisk, DiskError, DiskFailure, DiskOp, DiskResult, OpToken, SegmentFile};
use nova_model::{Generation, LogId, SegmentNumber};
use std::cell::Cell;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;
use tempfile::TempDir;

pub(crate) const LOG: LogId = LogId(0);
pub(crate) const BLOCK: usize = nova_model::limits::BLOCK_BYTES;

const CHILD_VARIABLE: &str = "NOVA_DISK_TEST_CHILD";

pub(crate) fn segment(number: u64) -> SegmentFile {
    SegmentFile {
        log: LOG,
        number: SegmentNumber(number),
    }
}

/// A data directory with one log, removed at the end.
pub(crate) struct Trial {
    directory: DataDirectory,
    #[expect(dead_code, reason = "it is removed when it is dropped")]
    temporary: Option<TempDir>,
}

impl Trial {
    pub(crate) fn new() -> Trial {
        let temporary = tempfile::tempdir().unwrap();
        let trial = Trial::at(&temporary.path().join("data"));
        Trial {
            temporary: Some(temporary),
            ..trial
        }
    }

    /// One that stays at the end.
    pub(crate) fn at(path: &Path) -> Trial {
        let directory = DataDirectory::open(path).unwrap();
        let mut registry = FileRegistry::open(directory.layout()).unwrap();
        raise_incarnation(&mut registry).unwrap();
        let trial = Trial {
            directory,
            temporary: None,
        };
        trial.boot().list(LOG).unwrap();
        trial
    }

    pub(crate) fn layout(&self) -> &Layout {
        self.directory.layout()
    }

    pub(crate) fn boot(&self) -> FileBootDisk {
        FileBootDisk::new(self.layout().clone())
    }

    /// The names in the log's directory, ascending.
    pub(crate) fn names(&self) -> Vec<String> {
        names(&self.layout().log(LOG))
    }

    pub(crate) fn size(&self, file: SegmentFile) -> u64 {
        fs::metadata(self.layout().segment(file)).unwrap().len()
    }
}

pub(crate) fn names(directory: &Path) -> Vec<String> {
    let mut names: Vec<_> = fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

/// Runs `body` on a glommio executor.
pub(crate) fn on_core<T>(body: impl Future<Output = T>) -> T {
    let builder = LocalExecutorBuilder::new(Placement::Unbound);
    builder.make().unwrap().run(body)
}

/// A driver and its completions.
pub(crate) struct Core {
    pub(crate) driver: Driver,
    pub(crate) completions: Completions,
    tokens: Cell<u64>,
}

impl Core {
    pub(crate) async fn new(trial: &Trial) -> Core {
        Core::with(trial, SyncMode::Dsync, 2).await
    }

    pub(crate) async fn with(trial: &Trial, sync: SyncMode, read_handles_max: usize) -> Core {
        let completions = Completions::new();
        let layout = trial.layout().clone();
        let config = DriverConfig {
            sync,
            read_handles_max,
            ..DriverConfig::new(layout)
        };
        let queue = completions.clone();
        let driver = Driver::new(
            config,
            || Duration::ZERO,
            move |token, result| {
                queue.push(token, result);
            },
        );
        let driver = driver.await.unwrap();
        Core {
            driver,
            completions,
            tokens: Cell::new(0),
        }
    }

    pub(crate) fn submit(&self, op: DiskOp) -> OpToken {
        let token = OpToken(self.tokens.get());
        self.tokens.set(token.0 + 1);
        self.driver.submit(token, op);
        token
    }

    pub(crate) async fn next(&self) -> (OpToken, DiskResult) {
        self.completions.next().await
    }

    /// Does one operation, with no other in flight.
    pub(crate) async fn act(&self, op: DiskOp) -> DiskResult {
        let token = self.submit(op);
        let (completed, result) = self.next().await;
        assert_eq!(completed, token);
        result
    }

    pub(crate) async fn create(&self, number: u64, length: u64) -> DiskResult {
        self.act(DiskOp::CreateSegment {
            file: segment(number),
            length,
        })
        .await
    }

    pub(crate) async fn write(&self, number: u64, offset: u64, bytes: Vec<u8>) -> DiskResult {
        self.act(write(number, offset, bytes)).await
    }

    pub(crate) async fn read(&self, number: u64, offset: u64, length: usize) -> DiskResult {
        let file = segment(number);
        self.act(DiskOp::Read {
            file,
            generation: Generation(0),
            offset,
            length,
        })
        .await
    }

    pub(crate) async fn finish(&self, number: u64, length: u64) -> DiskResult {
        self.act(DiskOp::FinishSegment {
            file: segment(number),
            length,
        })
        .await
    }
}

/// A write of one part that fills whole blocks.
pub(crate) fn write(number: u64, offset: u64, bytes: Vec<u8>) -> DiskOp {
    let length = bytes.len();
    let parts = vec![Bytes::from(bytes)];
    DiskOp::Write {
        file: segment(number),
        offset,
        parts,
        length,
    }
}

pub(crate) fn failed(result: DiskResult) -> DiskError {
    match result {
        DiskResult::Failed(error) => error,
        other => panic!("{} instead of a failure", name(&other)),
    }
}

pub(crate) fn failure(result: DiskResult) -> DiskFailure {
    failed(result).failure
}

pub(crate) fn bytes(result: DiskResult) -> Bytes {
    match result {
        DiskResult::Read(bytes) => bytes,
        other => panic!("{} instead of bytes", name(&other)),
    }
}

/// Whether the created segment's space was written before.
pub(crate) fn created(result: DiskResult) -> bool {
    match result {
        DiskResult::Created { written_before } => written_before,
        other => panic!("{} instead of a segment", name(&other)),
    }
}

#[track_caller]
pub(crate) fn assert_written(result: DiskResult) {
    assert!(matches!(result, DiskResult::Written), "{}", name(&result));
}

#[track_caller]
pub(crate) fn assert_finished(result: DiskResult) {
    assert!(matches!(result, DiskResult::Finished), "{}", name(&result));
}

fn name(result: &DiskResult) -> String {
    match result {
        DiskResult::Created { .. } => "Created".to_owned(),
        DiskResult::Written => "Written".to_owned(),
        DiskResult::Read(_) => "Read".to_owned(),
        DiskResult::Mapped(_) => "Mapped".to_owned(),
        DiskResult::Finished => "Finished".to_owned(),
        DiskResult::Space { .. } => "Space".to_owned(),
        DiskResult::Failed(error) => error.to_string(),
    }
}

/// Whether this process was started by [`child`] for the test called `name`.
pub(crate) fn is_child(name: &str) -> bool {
    std::env::var(CHILD_VARIABLE).is_ok_and(|child| child == name)
}

/// A process of its own in which the test called `name` is the only one.
pub(crate) fn child(name: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args([name, "--exact", "--nocapture"])
        .env(CHILD_VARIABLE, name);
    command
}

/// Runs `body` in a process of its own and waits for it.
pub(crate) fn in_child(name: &str, body: impl FnOnce()) {
    if is_child(name) {
        return body();
    }
    let output = child(name).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success(),
        "{:?}\n{text}\n{errors}",
        output.status
    );
    // A name that fits no test would pass silently.
    assert!(text.contains("1 passed"), "{text}");
}

pub(crate) fn recycle(number: u64, generation: u16) -> DiskOp {
    DiskOp::Recycle {
        file: segment(number),
        generation: Generation(generation),
    }
}

pub(crate) fn let_go(number: u64, generation: u16) -> DiskOp {
    DiskOp::LetGo {
        file: segment(number),
        generation: Generation(generation),
    }
}

/// Bytes that tell one place from another.
pub(crate) fn pattern(length: usize, seed: u8) -> Vec<u8> {
    (0..length)
        .map(|place| (place as u8).wrapping_mul(31).wrapping_add(seed))
        .collect()
}
