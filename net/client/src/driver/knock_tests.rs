//! What is a knock, and what is an answer to it.

use super::*;

const ID: [u8; ID_BYTES] = *b"own-id-0";

#[test]
fn a_knock_is_a_full_packet_of_a_version_that_nobody_speaks() {
    let packet = knock(ID);
    assert_eq!(&packet[..5], &[0xc0, 0x1a, 0x2a, 0x3a, 0x4a]);
    assert_eq!((packet[5], &packet[6..14]), (8, &ID[..]));
    assert_eq!((packet[14], &packet[15..23]), (8, &ID[..]));
    assert!(packet[23..].iter().all(|byte| *byte == 0));
    assert!(!is_answer(&packet, ID), "an echo is no answer");
}

#[test]
fn an_answer_lists_versions_for_the_id_of_the_knock() {
    let mut answer = vec![0x80, 0, 0, 0, 0, 8];
    answer.extend(ID);
    answer.extend([8; 9]);
    answer.extend([0, 0, 0, 1]);
    assert!(is_answer(&answer, ID));
    assert!(!is_answer(&answer, *b"other-id"));
    for length in 0..14 {
        assert!(!is_answer(&answer[..length], ID), "{length}");
    }
    answer[0] = 0x40;
    assert!(!is_answer(&answer, ID), "a short header");
}
