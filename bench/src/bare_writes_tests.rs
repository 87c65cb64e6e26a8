//! Sizes are whole blocks; files are gone afterwards.

use super::*;

#[test]
fn a_size_is_in_whole_blocks() {
    for (bytes, blocks) in [(0, 1), (1, 1), (4096, 1), (4097, 2), (1 << 20, 256)] {
        assert_eq!(whole_blocks(bytes), blocks * BLOCK_BYTES);
    }
}

#[test]
fn every_write_has_its_time_and_nothing_stays() {
    let folder = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
    let times = bare_writes(folder.path(), 1000, 10, 0).unwrap();
    assert_eq!(times.count(), 10);
    assert!(times.most_us() > 0.0);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}
