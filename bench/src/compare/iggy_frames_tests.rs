//! Bytes that the protocol's own crate, version 0.11.0, makes of the same requests.

use super::*;

const CALLER: Caller = Caller {
    client: 0x1122_3344_5566_7788_99aa_bbcc_ddee_ff01,
    session: 42,
    request: 7,
};

/// The fields of a header that are not zero: where they are, and their bytes.
fn not_zero(header: &[u8]) -> Vec<(usize, Vec<u8>)> {
    let mut fields: Vec<(usize, Vec<u8>)> = Vec::new();
    for (at, &byte) in header.iter().enumerate().filter(|(_, byte)| **byte != 0) {
        match fields.last_mut() {
            Some((begin, bytes)) if *begin + bytes.len() == at => bytes.push(byte),
            _ => fields.push((at, vec![byte])),
        }
    }
    fields
}

#[test]
fn a_request_has_its_fields_where_the_server_looks_for_them() {
    let client = CALLER.client.to_le_bytes().to_vec();
    let mut bytes = request(CALLER, Operation::SendMessages, b"abc");
    assert_eq!(bytes.len(), HEADER_BYTES + 3);
    assert_eq!(bytes[HEADER_BYTES..], *b"abc");
    // 259 bytes, command 5, client, request 7, operation 160, session 42.
    let expected = [
        (48, vec![3, 1]),
        (60, vec![5]),
        (128, client),
        (168, vec![7]),
        (176, vec![160]),
        (184, vec![42]),
    ];
    assert_eq!(not_zero(&bytes[..HEADER_BYTES]), expected);
    renumber(&mut bytes, 0x1_0008);
    assert_eq!(bytes[168..176], [8, 0, 1, 0, 0, 0, 0, 0]);
    let polling = request(CALLER, Operation::Poll, b"");
    assert_eq!(not_zero(&polling).last(), Some(&(196, vec![100])));
}

#[test]
fn a_session_is_opened_with_the_version_and_a_user() {
    let version = env!("CARGO_PKG_VERSION");
    let expected = [
        &[0, 0x2c, 0, 0, 10][..],
        b"nova-bench",
        &[version.len() as u8],
        version.as_bytes(),
        b"\x04iggy\x0anova-bench\0\0\0\0",
    ];
    assert_eq!(register("iggy", "nova-bench"), expected.concat());
}

#[test]
fn an_inner_stream_is_durable_by_an_option() {
    assert_eq!(create_stream("s0c1"), b"\x04s0c1");
    let expected = b"\x02\x04s0c1\x01\0\0\0\x07records\
        \x02\x0a\0\0\0durability\x02\x09\0\0\0persisted";
    assert_eq!(create_inner("s0c1"), expected);
}

#[test]
fn a_batch_has_the_checksums_that_the_server_computes_again() {
    let first = [0x52, 0x57, 0x29, 0x8a, 0x45, 0xf7, 0x7d, 0xff];
    for (records, checksum) in [
        (1, [0x04, 0xe4, 0x21, 0xdd, 0xeb, 0x4a, 0xc4, 0x8f]),
        (2, [0x04, 0x2f, 0xa7, 0xc0, 0x34, 0xc1, 0x77, 0x4b]),
    ] {
        let bytes = send_messages("s0c1", records, 77);
        // 25 bytes of route: both names with their heads, the partition, the count.
        let route = b"\x19\0\0\0\x02\x04s0c1\x02\x07records\x02\x04\0\0\0\0";
        assert_eq!(bytes[..route.len()], *route);
        assert_eq!(bytes[route.len()], records as u8);
        let batch = &bytes[route.len() + 4..];
        let message = MESSAGE_HEADER_BYTES + RECORD_BYTES;
        assert_eq!(batch.len(), HEADER_BYTES + records * message);
        assert_eq!(number_at(batch, 32) as usize, batch.len());
        assert_eq!(batch[40..48], checksum);
        assert_eq!(number_at(batch, 48) as usize, records);
        assert_eq!(batch[HEADER_BYTES..HEADER_BYTES + 8], first);
        assert_eq!(batch[HEADER_BYTES + 8], 77);
    }
}

#[test]
fn a_poll_names_the_partition_and_an_offset() {
    let expected = b"\x01\x01\x04\x01\0\0\0\x02\x04s0c1\x02\x07records\
        \x01\0\0\0\0\x01\x88\x13\0\0\0\0\0\0\xe8\x03\0\0\0";
    assert_eq!(poll("s0c1", 5000, 1000), expected);
}

/// The reply to a poll: partition, offset, count, and batches as they were sent.
fn reply(count: u32, batches: &[Vec<u8>]) -> Vec<u8> {
    let mut reply = vec![0; 12];
    reply.extend(count.to_le_bytes());
    batches.iter().for_each(|batch| reply.extend(&batch[29..]));
    reply
}

#[test]
fn polled_messages_are_counted_and_checked() {
    let batches = [send_messages("s0c1", 2, 1), send_messages("s0c1", 3, 9)];
    let whole = reply(5, &batches);
    assert_eq!(polled(&whole).ok(), Some(5));
    assert_eq!(polled(&reply(0, &[])).ok(), Some(0), "an empty stream");
    assert!(polled(&reply(4, &batches)).is_err(), "another count");
    for length in 0..whole.len() {
        assert!(polled(&whole[..length]).is_err(), "cut at {length}");
    }
    let mut short = whole;
    short[16 + HEADER_BYTES + 36] = 1;
    let refusal = polled(&short).expect_err("a shorter payload").to_string();
    assert!(refusal.contains("a record of 1025 bytes"), "{refusal}");
}

/// A reply's header: command, size, operation, status.
fn head(command: u8, size: u32, operation: u8, status: u32) -> Vec<u8> {
    let mut head = vec![0; HEADER_BYTES];
    head[48..52].copy_from_slice(&size.to_le_bytes());
    head[60] = command;
    head[208] = operation;
    head[216..220].copy_from_slice(&status.to_le_bytes());
    head
}

#[test]
fn a_length_is_checked_before_it_is_taken() {
    let most = (HEADER_BYTES + BODY_BYTES_MAX) as u32;
    for (size, length) in [
        (255, None),
        (256, Some(0)),
        (300, Some(44)),
        (most, Some(BODY_BYTES_MAX)),
        (most + 1, None),
        (u32::MAX, None),
    ] {
        assert_eq!(body_length(&head(8, size, 160, 0)).ok(), length, "{size}");
    }
    let mut evicted = head(13, 256, 0, 0);
    evicted[255] = 14;
    let refusal = body_length(&evicted).expect_err("an eviction").to_string();
    assert!(refusal.contains("reason 14"), "{refusal}");
    assert!(body_length(&head(9, 256, 0, 0)).is_err(), "another command");
}

#[test]
fn what_went_wrong_is_told_by_the_status_or_by_a_list() {
    let appended = vec![1, 0, 0, 0, 9];
    assert_eq!(
        payload(&head(8, 261, 160, 0), appended.clone()).ok(),
        Some(appended)
    );
    let session = [
        &[0; 4][..],
        &[1, 0, 0, 0],
        &[99, 0, 0, 0, 0, 0, 0, 0],
        &[0; 4],
    ]
    .concat();
    let opened = payload(&head(8, 276, 1, 0), session).expect("a session");
    assert_eq!(super::session(&opened).ok(), Some(99));
    assert!(super::session(&opened[..11]).is_err());
    for (status, body, why) in [
        (1234, vec![], "error 1234"),
        (0, vec![1, 0, 0, 0, 0, 0, 0, 0, 0xf4, 3, 0, 0], "error 1012"),
        (0, vec![1, 0, 0, 0, 0, 0], "without a result"),
        (0, vec![], "without a result"),
    ] {
        let refusal = payload(&head(8, 256, 128, status), body);
        let refusal = refusal.expect_err(why).to_string();
        assert!(refusal.contains(why), "{refusal}");
    }
}
