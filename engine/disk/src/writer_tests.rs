//! The thread beside a core, on real files with direct I/O, and which writes it gets.

use super::*;
use crate::failure::Attempt;
use crate::in_place::InPlace;
use crate::trial_tests::{BLOCK, on_core, pattern};
use crate::writable::{Calls, Durable, Writable};
use bytes::Bytes;
use glommio::io::OpenOptions;
use nova_core::disk::{DiskError, DiskFailure};
use std::fs;
use std::future::poll_fn;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::task::Poll;
use std::time::{Duration, Instant};
use tempfile::TempDir;

const LARGE: usize = 4 * 1024 * 1024;

/// A directory with a file of `length` zeros.
fn file_of(length: usize) -> (TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("file");
    fs::write(&path, vec![0; length]).unwrap();
    (directory, path)
}

async fn open(path: &Path) -> Rc<DmaFile> {
    let mut options = OpenOptions::new();
    let opened = options.read(true).write(true).dma_open(path).await;
    Rc::new(opened.unwrap())
}

fn filled(file: &DmaFile, bytes: &[u8]) -> DmaBuffer {
    let mut buffer = file.alloc_dma_buffer(bytes.len());
    buffer.as_bytes_mut().copy_from_slice(bytes);
    buffer
}

#[test]
fn a_write_is_where_it_was_asked_for() {
    for sync in [SyncMode::Dsync, SyncMode::Fdatasync] {
        let (_directory, path) = file_of(4 * BLOCK);
        on_core(async {
            let file = open(&path).await;
            let writer = Writer::start().unwrap();
            let bytes = pattern(2 * BLOCK, 7);
            let buffer = filled(&file, &bytes);
            let written = writer.write(&file, buffer, BLOCK as u64, sync).await;
            assert_eq!(written.unwrap(), 2 * BLOCK);
            let found = fs::read(&path).unwrap();
            assert_eq!(found[BLOCK..3 * BLOCK], bytes);
            let is_zero = |byte: &u8| *byte == 0;
            assert!(
                found[..BLOCK]
                    .iter()
                    .chain(&found[3 * BLOCK..])
                    .all(is_zero)
            );
            file.close_rc().await.unwrap();
        });
    }
}

#[test]
fn what_the_system_refuses_is_told() {
    let (_directory, path) = file_of(BLOCK);
    on_core(async {
        let file = Rc::new(DmaFile::open(&path).await.unwrap());
        let writer = Writer::start().unwrap();
        let buffer = filled(&file, &pattern(BLOCK, 1));
        let refused = writer.write(&file, buffer, 0, SyncMode::Dsync).await;
        assert_eq!(refused.unwrap_err().raw_os_error(), Some(9), "EBADF");
        file.close_rc().await.unwrap();
    });
}

/// Given up right behind its begin, its memory goes only when it is done: all of it is there then.
#[test]
fn a_write_that_nobody_waits_for_keeps_its_memory() {
    let (_directory, path) = file_of(LARGE);
    on_core(async {
        let file = open(&path).await;
        let writer = Writer::start().unwrap();
        for round in 1..=8 {
            let bytes = pattern(LARGE, round);
            {
                let buffer = filled(&file, &bytes);
                let mut write = pin!(writer.write(&file, buffer, 0, SyncMode::Dsync));
                let begun = poll_fn(|context| Poll::Ready(write.as_mut().poll(context))).await;
                assert!(
                    begun.is_pending(),
                    "it was done before it could be given up"
                );
            }
            assert!(fs::read(&path).unwrap() == bytes, "round {round}");
        }
        file.close_rc().await.unwrap();
    });
}

/// What a core with a thread that has ended says of a write, given what it knows of flushes.
async fn write_with(path: &Path, flush: Option<Duration>) -> (Result<(), DiskError>, Writable) {
    let (jobs, _) = flume::bounded(1);
    let begun = Instant::now();
    let in_place = InPlace::new(begun, || Duration::ZERO);
    if let Some(taken) = flush {
        in_place.note_flush(begun, taken);
    }
    let writer = Writer { jobs };
    let durable = Durable {
        sync: SyncMode::Dsync,
        is_through: false,
    };
    let attempt = Attempt::new("write", path, 0, BLOCK as u64);
    let calls = Rc::new(Calls { in_place, writer });
    let file = Writable::open(path, durable, calls, &attempt).await;
    let file = file.unwrap();
    let parts = vec![Bytes::from(pattern(BLOCK, 3))];
    (file.write(parts, 0, BLOCK, &attempt).await, file)
}

#[test]
fn the_thread_writes_where_flushes_are_slow_and_nowhere_else() {
    let (_directory, path) = file_of(2 * BLOCK);
    let attempt = Attempt::new("close", &path, 0, 0);
    on_core(async {
        let (written, file) = write_with(&path, None).await;
        written.unwrap();
        assert_eq!(fs::read(&path).unwrap()[..BLOCK], pattern(BLOCK, 3));
        file.close(&attempt).await.unwrap();

        let (refused, file) = write_with(&path, Some(Duration::from_secs(1))).await;
        let error = refused.unwrap_err();
        assert_eq!(error.failure, DiskFailure::Io);
        assert!(error.message.contains("thread that writes"), "{error}");
        let parts = vec![Bytes::from(pattern(BLOCK, 4))];
        let again = file.write(parts, 0, BLOCK, &attempt).await;
        assert!(again.unwrap_err().message.contains("earlier write"));
        file.close(&attempt).await.unwrap();
    });
}
