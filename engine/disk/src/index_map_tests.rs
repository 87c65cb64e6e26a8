//! Bytes that are there, and bytes that a look would be ended for.

use super::*;
use std::fs::File;
use std::io::Write;

const PAGE: usize = 4096;

/// A map of a file of four pages, and the file.
fn mapped() -> (IndexMap, File) {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(&[7; 4 * PAGE]).unwrap();
    // SAFETY: nothing behind the file's end is looked at.
    let map = unsafe { Mmap::map(&file) }.unwrap();
    (IndexMap(map), file)
}

#[test]
fn what_the_file_has_is_fetched() {
    let (map, _file) = mapped();
    assert_eq!(map.fetch(0..4 * PAGE), Ok(()));
    assert_eq!(map.fetch(4 * PAGE - 10..4 * PAGE), Ok(()));
    assert_eq!(map[4 * PAGE - 1], 7);
}

#[test]
fn what_a_look_would_be_ended_for_is_told() {
    let (map, file) = mapped();
    file.set_len(2 * PAGE as u64).unwrap();
    assert_eq!(map.fetch(4 * PAGE - 10..4 * PAGE), Err(Unreadable));
    assert_eq!(map.fetch(0..4 * PAGE), Err(Unreadable));
    assert_eq!(map.fetch(0..2 * PAGE), Ok(()));
    assert_eq!(map[2 * PAGE - 1], 7);
}
