//! The key that lets a restarted server tell its former peers so (stateless reset, RFC 9000,
//! section 10.3).
//!
//! A server that has lost a connection's state answers its packets with a token derived from the
//! connection's id and this key. The client knows the token from the handshake, and connects again
//! at once. quinn's default key is random at each start: then a client waits for the idle
//! timeout, 15 s. So the key is derived from the server's private key, which outlives a restart.
//!
//! # Invariants
//! - The same private key gives the same reset key, and the private key can't be found from it:
//!   it is HKDF-SHA-256 (RFC 5869) of the private key, used for nothing else.

use quinn_proto::crypto::{CryptoError, HmacKey};
use rustls::crypto::{
    ring::cipher_suite::TLS13_AES_128_GCM_SHA256,
    tls13::{Hkdf, OkmBlock},
};

/// Separates this use of the private key from any other.
const LABEL: &[u8] = b"nova stateless reset 1";

/// HMAC-SHA-256 under a key derived from the server's private key.
#[derive(Clone)]
pub(crate) struct ResetKey {
    key: OkmBlock,
}

impl ResetKey {
    pub(crate) fn derive(private_key: &[u8]) -> Self {
        let extracted = hkdf().extract_from_secret(Some(LABEL), private_key);
        Self {
            key: extracted.expand_block(&[LABEL]),
        }
    }

    fn tag(&self, data: &[u8]) -> rustls::crypto::hmac::Tag {
        hkdf().hmac_sign(&self.key, data)
    }
}

impl HmacKey for ResetKey {
    fn sign(&self, data: &[u8], signature_out: &mut [u8]) {
        signature_out.copy_from_slice(self.tag(data).as_ref());
    }

    fn signature_len(&self) -> usize {
        32
    }

    fn verify(&self, data: &[u8], signature: &[u8]) -> Result<(), CryptoError> {
        let tag = self.tag(data);
        let expected = tag.as_ref();
        if signature.len() != expected.len() {
            return Err(CryptoError);
        }
        // No early exit: the time must not tell how much of a forged tag was right.
        let differing = expected
            .iter()
            .zip(signature)
            .fold(0, |sum, (a, b)| sum | (a ^ b));
        if differing == 0 {
            Ok(())
        } else {
            Err(CryptoError)
        }
    }
}

fn hkdf() -> &'static dyn Hkdf {
    let suite = TLS13_AES_128_GCM_SHA256
        .tls13()
        .expect("the suite is one of TLS 1.3");
    suite.hkdf_provider
}

#[cfg(test)]
#[path = "reset_key_tests.rs"]
mod tests;
