//! Buffers are freed by their own thread, wherever their last bytes are dropped.

use super::*;
use glommio::LocalExecutorBuilder;
use glommio::io::DmaFile;
use std::fs;
use std::rc::Rc;

const BLOCK: usize = 4096;

/// Runs `act` in an executor, with a file of two blocks of different content.
fn with_file(act: impl AsyncFnOnce(Rc<DmaFile>)) {
    let folder = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
    let path = folder.path().join("blocks");
    fs::write(&path, [[1; BLOCK], [2; BLOCK]].concat()).unwrap();
    let executor = LocalExecutorBuilder::default().make().unwrap();
    executor.run(async {
        let file = Rc::new(DmaFile::open(&path).await.unwrap());
        act(Rc::clone(&file)).await;
        file.close_rc().await.unwrap();
    });
}

async fn read(file: &DmaFile, home: &Arc<Home>) -> Bytes {
    home.lend(file.read_at_aligned(0, 2 * BLOCK).await.unwrap())
}

#[test]
fn bytes_are_those_of_the_file_and_slices_keep_them() {
    with_file(async |file| {
        let home = Home::here();
        let bytes = read(&file, &home).await;
        assert_eq!(bytes.len(), 2 * BLOCK);
        let part = bytes.slice(BLOCK - 1..BLOCK + 1);
        drop(bytes);
        drop(read(&file, &home).await);
        assert_eq!(&part[..], [1, 2]);
        drop(part);
        assert_eq!(home.astray(), 0, "it was dropped at home");
    });
}

#[test]
fn what_is_dropped_elsewhere_waits_for_its_own_thread() {
    with_file(async |file| {
        let home = Home::here();
        let bytes = read(&file, &home).await;
        let sum = thread::spawn(move || bytes.iter().map(|&byte| usize::from(byte)).sum());
        let sum: usize = sum.join().unwrap();
        assert_eq!(sum, 3 * BLOCK, "another thread reads them");
        assert_eq!(home.astray(), 1);
        home.sweep();
        assert_eq!(home.astray(), 0);
    });
}

#[test]
fn bytes_outlive_the_executor_and_their_home() {
    let mut kept = None;
    with_file(async |file| {
        let home = Home::here();
        kept = Some(read(&file, &home).await);
    });
    let kept = kept.unwrap();
    let dropped = thread::spawn(move || assert_eq!((kept[0], kept[2 * BLOCK - 1]), (1, 2)));
    dropped.join().unwrap();
}
