//! Tests of made-up lines.

use super::*;

fn all(lines: u64) -> Vec<u8> {
    let mut receiver = chunks(lines, Timestamp(1_796_001_866_000_000)).unwrap();
    let mut text = Vec::new();
    while let Some(chunk) = receiver.blocking_recv() {
        text.extend_from_slice(&chunk.unwrap());
    }
    text
}

#[test]
fn there_are_as_many_lines_as_asked_for_and_they_are_the_same_each_time() {
    for lines in [0, 1, 999, 1_000, 2_500] {
        let text = all(lines);
        let found = text.iter().filter(|&&byte| byte == b'\n').count();
        assert_eq!(found as u64, lines);
        assert!(text == all(lines));
    }
}

#[test]
fn lines_look_like_those_of_a_log() {
    let text = String::from_utf8(all(1_000)).unwrap();
    for line in text.lines() {
        assert!(line.starts_with("2026-11-30T01:24:"), "{line}");
        assert!((150..300).contains(&line.len()), "{line}");
    }
    let mut different: Vec<_> = text.lines().collect();
    different.sort_unstable();
    different.dedup();
    assert_eq!(different.len(), 1_000);
    for status in [200, 304, 404, 500] {
        assert!(text.contains(&format!(" status={status} ")), "{status}");
    }
}
