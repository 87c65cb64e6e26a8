//! The bytes of PostgreSQL's messages.

use super::*;

#[test]
fn a_message_counts_its_length_and_not_its_kind() {
    assert_eq!(message(b'S', b""), [b'S', 0, 0, 0, 4]);
    assert_eq!(message(b'Q', b"x\0"), [b'Q', 0, 0, 0, 6, b'x', 0]);
}

#[test]
fn an_array_says_its_shape_before_its_values() {
    let bytes = array(2);
    // One dimension, no nulls, type 17, two values, the first index 1; then 1024 bytes each.
    let head = [1, 0, 17, 2, 1, 1024_u32].map(u32::to_be_bytes).concat();
    assert_eq!(bytes[..head.len()], head);
    assert_eq!(bytes.len(), 20 + 2 * (4 + RECORD_BYTES));
    assert_eq!(
        bytes[20..20 + 4 + RECORD_BYTES],
        bytes[20 + 4 + RECORD_BYTES..]
    );
}
