//! Tests of undoing content encodings.

use super::*;
use flate2::Compression;
use flate2::write::GzEncoder;
use std::io::Write;

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn zstandard(bytes: &[u8]) -> Vec<u8> {
    zstd::encode_all(bytes, 3).unwrap()
}

fn named(refused: &Refused) -> String {
    format!("{:?}", refused.refusal().facts)
}

#[test]
fn both_encodings_are_undone() {
    let text = b"it happened\n".repeat(1000);
    assert_eq!(undo(Encoding::Gzip, &gzip(&text)).unwrap(), text);
    assert_eq!(undo(Encoding::Zstd, &zstandard(&text)).unwrap(), text);
}

#[test]
fn what_swells_over_the_limit_is_refused() {
    let zeros = vec![0; HTTP_BODY_BYTES_MAX + 1];
    for (encoding, bytes) in [
        (Encoding::Gzip, gzip(&zeros)),
        (Encoding::Zstd, zstandard(&zeros)),
    ] {
        let refused = undo(encoding, &bytes).unwrap_err();
        assert_eq!(refused.refusal().code, Code::TooLarge, "{encoding:?}");
    }
    let most = &zeros[1..];
    assert_eq!(undo(Encoding::Gzip, &gzip(most)).unwrap().len(), most.len());
}

#[test]
fn what_is_not_encoded_so_is_refused() {
    let torn = &gzip(b"a text")[..12];
    for (encoding, bytes) in [
        (Encoding::Gzip, &b"plain"[..]),
        (Encoding::Gzip, torn),
        (Encoding::Zstd, b"plain"),
        (Encoding::Zstd, &zstandard(b"a text")[..9]),
    ] {
        let refused = undo(encoding, bytes).unwrap_err();
        assert!(named(&refused).contains("content-encoding"), "{encoding:?}");
    }
}

#[test]
fn only_one_known_encoding_is_taken() {
    let of = |values: &[&str]| {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(header::CONTENT_ENCODING, value.parse().unwrap());
        }
        Encoding::of(&headers).ok()
    };
    assert_eq!(of(&[]), Some(Encoding::None));
    assert_eq!(of(&["gzip"]), Some(Encoding::Gzip));
    assert_eq!(of(&["zstd"]), Some(Encoding::Zstd));
    assert_eq!(of(&["br"]), None);
    assert_eq!(of(&["gzip, zstd"]), None);
    assert_eq!(of(&["gzip", "gzip"]), None);
}
