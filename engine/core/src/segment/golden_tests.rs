//! The bytes of a segment and of its index, fixed in files: who changes one of them changes the
//! format of data that stars hold.
//!
//! `tests/golden/log/NAME.bin` holds the bytes, `NAME.txt` what they say. To write them anew, after
//! a change of the format on purpose: `BLESS=1 cargo test -p nova-core golden`.

#![expect(clippy::disallowed_methods, reason = "the golden files are files")]

use super::samples::{Image, batch, file, id, led, one_of_each, stream};
use super::*;
use crate::index::SealedIndex;
use crate::rewrite::Needed;
use crate::rewrite::samples::rewrite;
use crate::state::StreamState;
use bytes::Bytes;
use nova_model::{Checksum, GroupNumber, SequenceNumber, StreamId};
use std::path::PathBuf;
use std::sync::Arc;

fn golden(name: &str, bytes: &[u8]) -> Vec<u8> {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/golden/log");
    let path = PathBuf::from(format!("{root}/{name}"));
    if std::env::var_os("BLESS").is_some_and(|value| value == "1") {
        std::fs::create_dir_all(root).expect("the folder can be made");
        std::fs::write(&path, bytes).expect("the golden file can be written");
    }
    std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Lines of 16 bytes; those of zeros alone are left out.
fn hex(bytes: &[u8]) -> String {
    let lines = bytes.chunks(16).enumerate();
    let lines = lines.filter(|(_, bytes)| bytes.iter().any(|&byte| byte != 0));
    lines
        .map(|(line, bytes)| {
            let digits: String = bytes.iter().map(|byte| format!(" {byte:02x}")).collect();
            format!("{:05x} {digits}\n", 16 * line)
        })
        .collect()
}

/// A segment with a predecessor, a group with an entry of each kind, and one with a shared payload.
fn image() -> Image {
    image_and_stream().0
}

/// The same with the state of the stream that its last group is of.
fn image_and_stream() -> (Image, StreamState) {
    let before = LogEnd {
        segment: Some(id(6, 41)),
        length: 81_920,
        last_group: GroupNumber(1000),
        last_checksum: Checksum(0xfeed_f00d),
    };
    let mut image = Image::new(id(7, 42), before);
    image.push(&one_of_each());
    let mut other = stream(2);
    let entries = [led(&other), batch(&mut other, 2000), batch(&mut other, 1)];
    image.push(&entries);
    (image, other)
}

fn text(header: &SegmentHeader, groups: &[Group], bytes: &[u8]) -> String {
    let groups: String = groups
        .iter()
        .map(|group| format!("{:#?}\n{:#?}\n\n", group.header, group.entries))
        .collect();
    format!("{header:#?}\n\n{groups}{}", hex(bytes))
}

#[test]
fn golden_segment_is_what_is_written_and_what_is_read() {
    let image = image();
    let bytes = golden("segment.bin", &image.bytes);
    assert_eq!(
        hex(&image.bytes),
        hex(&bytes),
        "a segment is written otherwise"
    );
    let header = SegmentHeader::decode(&bytes)
        .expect("whole")
        .expect("there");
    assert_eq!(header, image.header);
    let bytes = Bytes::from(bytes);
    let mut groups = Vec::new();
    let mut at = SEGMENT_HEADER_BYTES;
    while at < bytes.len() {
        let group = decode_group(&bytes.slice(at..), &header.id).expect("whole");
        at += group.length;
        groups.push(group);
    }
    assert_eq!(groups[0].entries, one_of_each());
    assert_eq!(groups[1].header.previous, groups[0].header.checksum);
    let said = text(&header, &groups, &bytes);
    assert_eq!(
        said,
        String::from_utf8_lossy(&golden("segment.txt", said.as_bytes()))
    );
}

/// A segment of which the statement of one stream is left, and the last batch of another.
#[test]
fn golden_rewritten_segment_is_what_is_written_and_what_is_read() {
    let (mut image, mut other) = image_and_stream();
    image.push(&[batch(&mut other, 10_000)]);
    image.push(&[batch(&mut other, 5)]);
    let index = Arc::new(image.index.seal(&image.end));
    let index = Arc::new(SealedIndex::open(file(42), index).expect("sound"));
    let needed = |state: &StreamState| {
        let back = u64::from(state.id == StreamId(2));
        Needed::From(SequenceNumber(state.tail.sequence.0 - back))
    };
    let written = rewrite(&image.bytes, &index, needed).expect("smaller");
    let bytes = golden("rewritten.bin", &written.bytes);
    assert_eq!(
        hex(&written.bytes),
        hex(&bytes),
        "a rewritten segment is written otherwise"
    );
    let header = SegmentHeader::decode(&bytes)
        .expect("whole")
        .expect("there");
    let bytes = Bytes::from(bytes);
    let mut groups = Vec::new();
    let mut at = SEGMENT_HEADER_BYTES;
    while at < bytes.len() {
        let group = decode_group(&bytes.slice(at..), &header.id).expect("whole");
        at += group.length;
        groups.push(group);
    }
    let said = text(&header, &groups, &bytes);
    let trailer = &written.index[written.index.len() - 256..];
    let said = format!("{said}\n{}", hex(trailer));
    assert_eq!(
        said,
        String::from_utf8_lossy(&golden("rewritten.txt", said.as_bytes()))
    );
}

#[test]
fn golden_index_is_what_is_written_and_what_is_read() {
    let image = image();
    let written = image.index.seal(&image.end);
    let bytes = golden("index.bin", &written);
    assert_eq!(hex(&written), hex(&bytes), "an index is written otherwise");
    let index = SealedIndex::open(file(42), Arc::new(Bytes::from(bytes.clone()))).expect("sound");
    assert_eq!(index.end(), image.end);
    let streams = [StreamId(1), StreamId(2)].map(|id| {
        let runs = index.runs_from(id, SequenceNumber(0)).expect("sound");
        let runs: Vec<_> = runs.map(|run| run.expect("sound")).collect();
        format!(
            "{:#?}\n{runs:#?}\n",
            index.stream(id).expect("sound").expect("there")
        )
    });
    let said = format!(
        "{:#?}\n\n{}\n{}",
        index.end(),
        streams.concat(),
        hex(&bytes)
    );
    assert_eq!(
        said,
        String::from_utf8_lossy(&golden("index.txt", said.as_bytes()))
    );
}

#[test]
fn canary_a_changed_byte_is_seen() {
    let mut image = image();
    let whole = hex(&image.bytes);
    image.bytes[5000] ^= 1;
    assert_ne!(hex(&image.bytes), whole);
}
