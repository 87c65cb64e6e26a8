//! The bytes of s2-lite's sessions, as its proto file and its framing say them.

use super::*;

#[test]
fn a_batch_is_a_field_for_each_record_with_the_body_in_field_three() {
    let input = append_input(2);
    // Key of field 1, 1027 bytes; key of field 3, 1024 bytes.
    let head = [0x0a, 0x83, 0x08, 0x1a, 0x80, 0x08];
    assert_eq!(input.len(), 2 * (head.len() + RECORD_BYTES));
    let (first, second) = input.split_at(input.len() / 2);
    assert_eq!(first, second);
    assert_eq!(first[..head.len()], head);
    assert!(first[head.len()..].iter().all(|&byte| byte == b'x'));
}

#[test]
fn a_frame_counts_its_flags_and_a_chunk_does_not_count_its_ends() {
    assert_eq!(frame(b"ab"), [0, 0, 3, 0, b'a', b'b']);
    let long = frame(&vec![7; 0x1_0203]);
    assert_eq!(long[..4], [1, 2, 4, 0]);
    assert_eq!(chunk(&[b'z'; 26]), b"1a\r\nzzzzzzzzzzzzzzzzzzzzzzzzzz\r\n");
}

#[test]
fn a_frame_may_be_as_long_as_the_server_allows_and_not_empty() {
    for (head, is_legal) in [
        ([0, 0, 0], false),
        ([0, 0, 1], true),
        ([0x20, 0, 0], true),
        ([0x20, 0, 1], false),
        ([0xff, 0xff, 0xff], false),
    ] {
        assert_eq!(frame_length(head).is_ok(), is_legal, "{head:?}");
    }
}

/// A record as a reader gets it: number and time, a header, the body.
fn sequenced(body: &[u8]) -> Vec<u8> {
    let mut record = vec![0x08, 0x96, 0x01, 0x10, 0xff, 0xff, 0x03];
    let header = [field(1, b"name"), field(2, b"value")].concat();
    record.extend(field(3, &header));
    record.extend(field(READ_BODY, body));
    field(RECORDS, &record)
}

#[test]
fn read_records_are_counted_and_their_bodies_checked() {
    let whole = sequenced(&[b'x'; RECORD_BYTES]);
    let tail = field(2, &[0x08, 0x02]);
    assert_eq!(
        records_in(&[whole.repeat(3), tail.clone()].concat()).ok(),
        Some(3)
    );
    assert_eq!(records_in(&tail).ok(), Some(0), "a heartbeat");
    let short = sequenced(b"short");
    let refusal = records_in(&[whole.clone(), short].concat());
    let refusal = refusal.expect_err("a short body").to_string();
    assert!(refusal.contains("a record of 5 bytes"), "{refusal}");
    for length in 1..whole.len() {
        assert!(records_in(&whole[..length]).is_err(), "cut at {length}");
    }
}

#[test]
fn what_is_no_protobuf_is_refused() {
    for bytes in [
        &[0x0b][..],
        &[0x0a, 0xff],
        &[0x0a, 5, 1],
        &[0xff; 11],
        &[0x0d, 1, 2],
    ] {
        assert!(fields(bytes).is_err(), "{bytes:?}");
    }
    // Fixed numbers of eight and four bytes are passed over.
    let numbers = [&[0x09][..], &[1; 8], &[0x15], &[2; 4], &[0x1a, 1, 9]].concat();
    assert_eq!(fields(&numbers).ok(), Some(vec![(3, &[9][..])]));
}

#[test]
fn numbers_of_all_lengths_survive() {
    for shift in 0..64 {
        for value in [1_u64 << shift, (1_u64 << shift).wrapping_sub(1)] {
            let mut bytes = Vec::new();
            put_varint(&mut bytes, value);
            let mut rest = bytes.as_slice();
            assert_eq!(varint(&mut rest).ok(), Some(value));
            assert!(rest.is_empty());
        }
    }
}
