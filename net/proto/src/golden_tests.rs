//! The bytes of every frame, fixed in files: who changes one of them changes the protocol.
//!
//! `tests/golden/frames/NAME.bin` holds a frame, `NAME.txt` what it says. To write them anew, after
//! a change of the protocol on purpose: `BLESS=1 cargo test -p nova-proto golden`.

#![expect(clippy::disallowed_methods, reason = "the golden files are files")]

use crate::frame::{Frame, Kind};
use crate::samples_tests::{decode, encode, frames};
use bytes::Bytes;
use std::path::PathBuf;

fn path(kind: Kind, extension: &str) -> PathBuf {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/golden/frames");
    let number = kind as u8;
    PathBuf::from(format!("{root}/{number:02x}-{kind}.{extension}"))
}

fn golden(kind: Kind, extension: &str, bytes: &[u8]) -> Vec<u8> {
    let path = path(kind, extension);
    if std::env::var_os("BLESS").is_some_and(|value| value == "1") {
        std::fs::write(&path, bytes).expect("the golden file can be written");
    }
    std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn hex(bytes: &[u8]) -> String {
    let lines = bytes.chunks(16).enumerate().map(|(line, bytes)| {
        let digits: String = bytes.iter().map(|byte| format!(" {byte:02x}")).collect();
        format!("{:04x} {digits}\n", 16 * line)
    });
    lines.collect()
}

fn text(frame: &Frame, bytes: &[u8]) -> String {
    format!("{frame:#?}\n\n{}", hex(bytes))
}

#[test]
fn golden_frames_are_what_is_written_and_what_is_read() {
    let frames = frames();
    assert_eq!(frames.len(), Kind::ALL.len());
    for (frame, kind) in frames.iter().zip(Kind::ALL) {
        let encoded = encode(frame);
        assert_eq!(encoded[0], kind as u8, "samples are in the order of kinds");
        let bytes = golden(kind, "bin", &encoded);
        assert_eq!(hex(&encoded), hex(&bytes), "{kind} is written otherwise");
        let read = decode([Bytes::from(bytes.clone())]);
        let read = read.expect("a golden frame is legal").expect("and whole");
        assert_eq!(&read, frame, "{kind} is read otherwise");
        let written = golden(kind, "txt", text(frame, &encoded).as_bytes());
        assert_eq!(text(&read, &bytes).as_bytes(), written, "{kind}.txt");
    }
}

#[test]
fn canary_a_changed_byte_is_seen() {
    let frame = &frames()[8];
    let mut bytes = encode(frame);
    bytes[20] ^= 1;
    assert_ne!(decode([Bytes::from(bytes)]), Ok(Some(frame.clone())));
}

/// docs/PROTOCOL.md lists every kind and its number, and its example is a golden file.
#[test]
fn the_protocol_page_tells_the_truth() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/PROTOCOL.md");
    let page = std::fs::read_to_string(path).expect("the page is there");
    for kind in Kind::ALL {
        let number = kind as u8;
        let row = page
            .lines()
            .find(|line| line.starts_with(&format!("| 0x{number:02x} | `{kind}` |")));
        let row = row.unwrap_or_else(|| panic!("{kind} is not listed"));
        let head = kind.head_bytes();
        if head.start() == head.end() {
            let length = format!("| {} |", head.start());
            assert!(row.contains(&length), "{row}: its head has {length}");
        }
    }
    for code in 0x01..=0x0c {
        let row = format!("| {code:#04x} | `");
        assert!(page.contains(&row), "error {code:#04x} is not listed");
    }
    let acked = encode(&frames()[8]);
    assert!(page.contains(&hex(&acked)), "example");
}
