//! Tests of cutting bytes into lines.

use super::*;
use proptest::prelude::*;

fn split(chunks: &[&[u8]], bytes_max: usize) -> Result<Vec<Vec<u8>>, LineTooLong> {
    let mut splitter = LineSplitter::new(bytes_max);
    let mut lines = Vec::new();
    for chunk in chunks {
        splitter.push(Bytes::copy_from_slice(chunk));
        while let Some(line) = splitter.next_line()? {
            assert_eq!(line.number, lines.len() as u64 + 1);
            lines.push(line.body.to_vec());
        }
    }
    lines.extend(splitter.finish().map(|line| line.body.to_vec()));
    assert_eq!(splitter.finish(), None);
    Ok(lines)
}

#[test]
fn lines_are_cut_across_chunks() {
    let cases: [(&[&[u8]], &[&str]); 8] = [
        (&[], &[]),
        (&[b""], &[]),
        (&[b"\n"], &[""]),
        (&[b"a"], &["a"]),
        (&[b"a\n"], &["a"]),
        (&[b"one\ntw", b"o\nthr", b"ee"], &["one", "two", "three"]),
        (&[b"a", b"\n", b"\n", b"b"], &["a", "", "b"]),
        (&[b"with\r\nreturn\r\n"], &["with\r", "return\r"]),
    ];
    for (chunks, expected) in cases {
        let lines = split(chunks, 100).unwrap();
        let lines: Vec<_> = lines
            .iter()
            .map(|line| str::from_utf8(line).unwrap())
            .collect();
        assert_eq!(lines, expected, "{chunks:?}");
    }
}

#[test]
fn a_line_of_the_largest_size_is_taken_and_a_longer_one_is_named() {
    assert_eq!(split(&[b"abcd\nabcd"], 4).unwrap().len(), 2);
    let too_long = |number| {
        Err(LineTooLong {
            number,
            bytes_max: 4,
        })
    };
    assert_eq!(split(&[b"ab\nabcde\n"], 4), too_long(2));
    assert_eq!(split(&[b"ab\nab", b"cde\n"], 4), too_long(2));
    assert_eq!(split(&[b"\n\nabc", b"de"], 4), too_long(3));
    let text = LineTooLong {
        number: 7,
        bytes_max: 4,
    }
    .to_string();
    assert_eq!(
        text,
        "line 7 has more than 4 bytes, the most that a record holds"
    );
}

#[test]
fn an_endless_line_is_refused_before_it_is_kept() {
    let mut splitter = LineSplitter::new(10);
    splitter.push(Bytes::from_static(&[b'x'; 10]));
    assert_eq!(splitter.next_line(), Ok(None));
    splitter.push(Bytes::from_static(b"x"));
    assert!(splitter.next_line().is_err());
    assert!(splitter.begun.len() <= 10);
}

proptest! {
    #[test]
    fn however_the_bytes_are_cut_the_lines_are_the_same(
        text in proptest::collection::vec(prop_oneof![Just(b'\n'), any::<u8>()], 0..200),
        cuts in proptest::collection::vec(0_usize..200, 0..8),
    ) {
        let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(text.len())).collect();
        cuts.extend([0, text.len()]);
        cuts.sort_unstable();
        let chunks: Vec<&[u8]> = cuts.windows(2).map(|cut| &text[cut[0]..cut[1]]).collect();
        let mut expected: Vec<&[u8]> = text.split(|&byte| byte == b'\n').collect();
        if expected.last().is_some_and(|last| last.is_empty()) {
            expected.pop();
        }
        prop_assert_eq!(split(&chunks, 1000).unwrap(), expected);
    }
}
