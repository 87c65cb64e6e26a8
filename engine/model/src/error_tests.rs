//! The taxonomy is the contract's: bits, names, bounded texts.

use super::*;

#[test]
fn the_bits_are_those_of_the_contract() {
    let retry: Vec<&str> = Code::ALL
        .iter()
        .filter(|c| c.retry())
        .map(|c| c.name())
        .collect();
    assert_eq!(
        retry,
        [
            "POLICY_BUSY",
            "BEHIND_REJECTED",
            "RATE_LIMITED",
            "NOT_OWNER",
            "DRAINING",
            "UNAVAILABLE",
            "DISK_FULL",
            "INTERNAL"
        ]
    );
    let unclean: Vec<&str> = Code::ALL
        .iter()
        .filter(|c| !c.clean())
        .map(|c| c.name())
        .collect();
    assert_eq!(unclean, ["UNAVAILABLE", "INTERNAL"]);
}

#[test]
fn a_long_message_is_cut_at_a_character() {
    let refusal = Refusal::new(Code::Internal, "\u{e4}".repeat(MESSAGE_BYTES_MAX));
    assert_eq!(refusal.message.len(), MESSAGE_BYTES_MAX);
    assert!(refusal.is_bounded());
}
