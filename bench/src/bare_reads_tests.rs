//! All of the volume is read; files are gone afterwards.

use super::*;

#[test]
fn a_volume_is_in_whole_pieces_and_bounded() {
    let pieces = |volume, at_once| Reads { volume, at_once }.pieces();
    let piece = READ_CHUNK_BYTES as u64;
    assert_eq!(pieces(0, 4), 4, "one for each that is at the device");
    assert_eq!(pieces(10 * piece + 1, 4), 10);
    assert_eq!(pieces(u64::MAX, 4), VOLUME_BYTES_MAX / piece);
}

#[test]
fn the_whole_file_is_read_and_nothing_stays() {
    let folder = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
    let reads = Reads {
        volume: 5 * READ_CHUNK_BYTES as u64,
        at_once: 2,
    };
    assert!(bare_reads(folder.path(), reads, 0).unwrap() > 0.0);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}
