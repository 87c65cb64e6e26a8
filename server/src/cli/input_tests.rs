//! Tests of reading in chunks.

use super::*;
use std::io::Write;

fn all(mut chunks: Chunks) -> (usize, Vec<u8>) {
    let (mut count, mut bytes) = (0, Vec::new());
    while let Some(chunk) = chunks.blocking_recv() {
        bytes.extend_from_slice(&chunk.unwrap());
        count += 1;
    }
    (count, bytes)
}

#[test]
fn a_file_comes_whole_and_in_big_chunks() {
    let mut file = tempfile::tempfile().unwrap();
    let written: Vec<u8> = (0..1_000_000_u32).map(|n| n as u8).collect();
    file.write_all(&written).unwrap();
    io::Seek::rewind(&mut file).unwrap();
    let (count, read) = all(chunks(file.into()).unwrap());
    assert!(read == written);
    assert!(count <= 4, "{count} chunks");
}

#[test]
fn a_pipe_ends_when_its_writer_is_gone() {
    let (reader, writer) = rustix::pipe::pipe().unwrap();
    rustix::io::write(&writer, b"one\n").unwrap();
    drop(writer);
    assert_eq!(all(chunks(reader).unwrap()).1, b"one\n");
}

#[test]
fn an_error_is_the_last_thing_that_comes() {
    let folder = tempfile::tempdir().unwrap();
    let file = std::fs::File::open(folder.path()).unwrap();
    let mut chunks = chunks(file.into()).unwrap();
    assert!(chunks.blocking_recv().unwrap().is_err());
    assert!(chunks.blocking_recv().is_none());
}

#[test]
fn an_empty_pipe_is_not_readable_until_it_is_closed() {
    let (reader, writer) = rustix::pipe::pipe().unwrap();
    assert!(!is_readable_within(&reader, 0).unwrap());
    drop(writer);
    assert!(is_readable_within(&reader, 0).unwrap());
}
