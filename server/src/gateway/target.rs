//! The names in a path: each is one percent-encoded segment, so a key may hold `/` as `%2F`.
//!
//! ```text
//!   /v1/streams/logs/app%2Fweb/records   bucket `logs`, key `app/web`
//! ```
//!
//! # Invariants
//! - A path is split before it is decoded.
//! - A wrong percent-encoding is refused, never taken for itself.

use super::refuse::Refused;
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use nova_model::names::{BucketName, StreamKey, StreamName};

/// Segments before the first name: the empty one, `v1`, `streams` or `buckets`.
const SEGMENTS_BEFORE: usize = 3;

/// The stream that a path names.
pub(crate) struct StreamTarget(pub(crate) StreamName);

/// The bucket that a path names.
pub(crate) struct BucketTarget(pub(crate) BucketName);

impl<S: Sync> FromRequestParts<S> for StreamTarget {
    type Rejection = Refused;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Refused> {
        let path = parts.uri.path();
        let key = segment(path, SEGMENTS_BEFORE + 1, "key")?;
        Ok(StreamTarget(StreamName {
            bucket: bucket(path)?,
            key: StreamKey::parse(&key).map_err(Refused::from)?,
        }))
    }
}

impl<S: Sync> FromRequestParts<S> for BucketTarget {
    type Rejection = Refused;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Refused> {
        Ok(BucketTarget(bucket(parts.uri.path())?))
    }
}

fn bucket(path: &str) -> Result<BucketName, Refused> {
    let name = segment(path, SEGMENTS_BEFORE, "bucket")?;
    BucketName::parse(&name).map_err(Refused::from)
}

fn segment(path: &str, at: usize, field: &str) -> Result<String, Refused> {
    let encoded = path.split('/').nth(at).unwrap_or_default();
    decode(encoded, field)
}

/// Undoes percent-encoding.
pub(crate) fn decode(encoded: &str, field: &str) -> Result<String, Refused> {
    let mut bytes = Vec::with_capacity(encoded.len());
    let mut rest = encoded.as_bytes();
    while let Some((&first, behind)) = rest.split_first() {
        if first != b'%' {
            bytes.push(first);
            rest = behind;
            continue;
        }
        let digits = behind.get(..2).and_then(hex);
        let Some(byte) = digits else {
            let message = "a % is followed by two hexadecimal digits; write % itself as %25";
            return Err(Refused::form(field, message));
        };
        bytes.push(byte);
        rest = &behind[2..];
    }
    String::from_utf8(bytes).map_err(|_| Refused::form(field, "it is not UTF-8 when decoded"))
}

fn hex(digits: &[u8]) -> Option<u8> {
    let value = |digit: u8| char::from(digit).to_digit(16);
    let (high, low) = (value(digits[0])?, value(digits[1])?);
    u8::try_from(high * 16 + low).ok()
}

#[cfg(test)]
#[path = "target_tests.rs"]
mod tests;
