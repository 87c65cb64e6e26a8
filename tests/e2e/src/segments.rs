//! A stopped star's segments: which groups are in them, and ways to damage them.
//!
//! # Invariants
//! - Groups are found by the decoder that recovery uses; their bytes are changed here alone.

use bytes::Bytes;
use nova_core::entry::Entry;
use nova_core::segment::{SEGMENT_HEADER_BYTES, SegmentHeader, decode_group};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// A group in a segment's file.
#[derive(Debug, Clone)]
pub struct Place {
    /// Where it begins.
    pub offset: u64,
    /// Its bytes without padding.
    pub content: u64,
    /// Its bytes with padding.
    pub length: u64,
    /// The records in it: first sequence number and count, for each batch.
    pub batches: Vec<(u64, u64)>,
}

/// Files of a log that end like this, by name.
fn files(log: &Path, is_wanted: impl Fn(&str) -> bool) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = std::fs::read_dir(log)
        .expect("the log's folder is there")
        .map(|entry| entry.expect("the folder can be listed").path())
        .filter(|path| {
            path.file_name()
                .and_then(|name| name.to_str())
                .is_some_and(&is_wanted)
        })
        .collect();
    files.sort();
    files
}

/// The segments of a log, oldest first.
pub fn segments(log: &Path) -> Vec<PathBuf> {
    files(log, |name| {
        name.ends_with(".seg") && !name.starts_with("spare-")
    })
}

/// The spare files of a log.
pub fn spares(log: &Path) -> Vec<PathBuf> {
    files(log, |name| name.starts_with("spare-"))
}

/// The indexes of a log, oldest first.
pub fn indexes(log: &Path) -> Vec<PathBuf> {
    files(log, |name| name.ends_with(".idx"))
}

/// The groups of a segment, in order, up to the first place where there is none.
pub fn groups(segment: &Path) -> Vec<Place> {
    let bytes = Bytes::from(std::fs::read(segment).expect("the segment is there"));
    let Ok(Some(header)) = SegmentHeader::decode(&bytes) else {
        return Vec::new();
    };
    let mut groups = Vec::new();
    let mut at = SEGMENT_HEADER_BYTES;
    while at < bytes.len() {
        let Ok(group) = decode_group(&bytes.slice(at..), &header.id) else {
            break;
        };
        let batch = |entry: &Entry| match entry {
            Entry::Batch(batch) => Some((
                batch.stored.first.0,
                u64::from(batch.stored.batch.records()),
            )),
            _ => None,
        };
        groups.push(Place {
            offset: at as u64,
            content: u64::from(group.header.length),
            length: group.length as u64,
            batches: group.entries.iter().filter_map(batch).collect(),
        });
        at += group.length;
    }
    groups
}

/// The last segment of a log that has groups, and these.
pub fn last_with_groups(log: &Path) -> (PathBuf, Vec<Place>) {
    let newest_first = segments(log).into_iter().rev();
    let mut with_groups = newest_first.map(|path| (groups(&path), path));
    let found = with_groups.find(|(groups, _)| !groups.is_empty());
    let (groups, path) = found.expect("a log with groups");
    (path, groups)
}

/// The bytes of a file from `offset` on.
pub fn bytes_at(path: &Path, offset: u64, length: u64) -> Vec<u8> {
    let mut bytes = vec![0; length as usize];
    let file = File::open(path).expect("the file is there");
    file.read_exact_at(&mut bytes, offset)
        .expect("it has so many bytes");
    bytes
}

/// Writes over a file from `offset` on.
pub fn overwrite(path: &Path, offset: u64, bytes: &[u8]) {
    let file = File::options()
        .write(true)
        .open(path)
        .expect("the file is there");
    file.write_all_at(bytes, offset).expect("it can be written");
}

/// Turns one bit over.
pub fn flip_bit(path: &Path, offset: u64) {
    let byte = bytes_at(path, offset, 1)[0];
    overwrite(path, offset, &[byte ^ 0x10]);
}

/// Fills a file with zeros from its beginning to its end.
pub fn zero(path: &Path) {
    let length = std::fs::metadata(path).expect("the file is there").len();
    overwrite(path, 0, &vec![0; length as usize]);
}
