//! Tests of the reset key.

use super::*;

fn sign(key: &ResetKey, data: &[u8]) -> Vec<u8> {
    let mut signature = vec![0; key.signature_len()];
    key.sign(data, &mut signature);
    signature
}

#[test]
fn the_same_private_key_gives_the_same_tokens() {
    let (before, after) = (ResetKey::derive(b"secret"), ResetKey::derive(b"secret"));
    assert_eq!(sign(&before, b"id"), sign(&after, b"id"));
    assert_ne!(sign(&before, b"id"), sign(&before, b"ie"));
    assert_ne!(
        sign(&before, b"id"),
        sign(&ResetKey::derive(b"other"), b"id")
    );
}

#[test]
fn only_the_right_signature_verifies() {
    let key = ResetKey::derive(b"secret");
    let good = sign(&key, b"id");
    assert!(key.verify(b"id", &good).is_ok());
    for at in 0..good.len() {
        let mut bad = good.clone();
        bad[at] ^= 1;
        assert!(key.verify(b"id", &bad).is_err());
    }
    assert!(key.verify(b"id", &good[1..]).is_err());
}
