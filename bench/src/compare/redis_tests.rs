//! The bytes of Redis' commands.

use super::*;

#[test]
fn a_command_is_an_array_of_strings_with_their_lengths() {
    let bytes = command_bytes(&[b"XADD", b"s", b"*", b"b", b"a\r\nb"]);
    let expected = "*5\r\n$4\r\nXADD\r\n$1\r\ns\r\n$1\r\n*\r\n$1\r\nb\r\n$4\r\na\r\nb\r\n";
    assert_eq!(String::from_utf8_lossy(&bytes), expected);
}
