//! Names of buckets and streams: parsed once, valid ever after.
//!
//! The rules are the contract's (section 1). A name that came in an archive from outside was not
//! parsed, so whoever decodes one calls `check` before it is used.
//!
//! # Invariants
//! - A value made by `parse` obeys the rules; equality and order are those of the bytes.

use crate::error::Refusal;
use crate::limits::{BUCKET_NAME_BYTES_MAX, STREAM_KEY_BYTES_MAX};
use rkyv::{Archive, Deserialize, Serialize};
use std::fmt;

/// Name of a bucket: 1 to 64 bytes of `a-z 0-9 -`, first and last a letter or a digit.
#[derive(Archive, Serialize, Deserialize, Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BucketName(String);

impl BucketName {
    /// Parses a bucket name; the refusal is `INVALID` with field `bucket`.
    pub fn parse(text: &str) -> Result<BucketName, Refusal> {
        let name = BucketName(text.to_owned());
        name.check()?;
        Ok(name)
    }

    /// Checks a name that came from outside in an archive.
    pub fn check(&self) -> Result<(), Refusal> {
        let bytes = self.0.as_bytes();
        let limit = BUCKET_NAME_BYTES_MAX as u64;
        if bytes.is_empty() || bytes.len() > BUCKET_NAME_BYTES_MAX {
            return Err(Refusal::invalid(
                "bucket",
                Some(limit),
                format!(
                    "a bucket name has 1 to {limit} bytes, this one has {}",
                    bytes.len()
                ),
            ));
        }
        let edge = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
        let whole = bytes.iter().all(|&b| edge(b) || b == b'-');
        if !whole || !edge(bytes[0]) || !edge(bytes[bytes.len() - 1]) {
            return Err(Refusal::invalid(
                "bucket",
                None,
                "a bucket name is made of a-z, 0-9 and '-', and starts and ends with a letter or \
                 a digit"
                    .to_owned(),
            ));
        }
        Ok(())
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for BucketName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Key of a stream in its bucket: 1 to 512 bytes of UTF-8, not `.` or `..`; may hold `/`.
#[derive(Archive, Serialize, Deserialize, Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StreamKey(String);

impl StreamKey {
    /// Parses a stream key; the refusal is `INVALID` with field `key`.
    pub fn parse(text: &str) -> Result<StreamKey, Refusal> {
        let key = StreamKey(text.to_owned());
        key.check()?;
        Ok(key)
    }

    /// Checks a key that came from outside in an archive.
    pub fn check(&self) -> Result<(), Refusal> {
        let limit = STREAM_KEY_BYTES_MAX as u64;
        if self.0.is_empty() || self.0.len() > STREAM_KEY_BYTES_MAX {
            return Err(Refusal::invalid(
                "key",
                Some(limit),
                format!(
                    "a stream key has 1 to {limit} bytes, this one has {}",
                    self.0.len()
                ),
            ));
        }
        if self.0 == "." || self.0 == ".." {
            return Err(Refusal::invalid(
                "key",
                None,
                "a stream key is not '.' or '..'".to_owned(),
            ));
        }
        Ok(())
    }

    /// The key as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for StreamKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Full name of a stream, written `BUCKET/KEY`.
#[derive(Archive, Serialize, Deserialize, Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StreamName {
    /// The bucket.
    pub bucket: BucketName,
    /// The key in the bucket.
    pub key: StreamKey,
}

impl StreamName {
    /// Parses `BUCKET/KEY`: the key is everything after the first slash.
    pub fn parse(text: &str) -> Result<StreamName, Refusal> {
        let Some((bucket, key)) = text.split_once('/') else {
            return Err(Refusal::invalid(
                "stream",
                None,
                format!("a stream is named BUCKET/KEY, '{text}' has no slash"),
            ));
        };
        Ok(StreamName {
            bucket: BucketName::parse(bucket)?,
            key: StreamKey::parse(key)?,
        })
    }

    /// Checks a name that came from outside in an archive.
    pub fn check(&self) -> Result<(), Refusal> {
        self.bucket.check()?;
        self.key.check()
    }
}

impl fmt::Display for StreamName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.bucket, self.key)
    }
}

#[cfg(test)]
#[path = "names_tests.rs"]
mod tests;
