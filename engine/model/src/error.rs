//! The one taxonomy of refusals, for the wire, HTTP, the SDK and the CLI (contract, section 8).
//!
//! Each refusal carries a code, two bits, a message for people and structured facts for programs.
//! `retry`: trying again can help. `clean`: it is certain that nothing was applied. Both travel
//! with the refusal, so a client needs no table; the table below is the star's.

#![allow(
    missing_docs,
    reason = "rkyv derives resolvers without docs; all items here have one"
)]

use crate::ids::Epoch;
use crate::limits::{ADDRESS_BYTES_MAX, MESSAGE_BYTES_MAX};
use crate::names::{BucketName, StreamName};
use crate::position::{Position, SequenceNumber};
use rkyv::{Archive, Deserialize, Serialize};
use std::fmt;

/// What kind of refusal this is.
#[derive(
    Archive, Serialize, Deserialize, Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord,
)]
#[repr(u8)]
pub enum Code {
    /// The request breaks a rule of form; the field and its limit are named.
    Invalid = 1,
    /// Who asks is not known.
    Unauthenticated = 2,
    /// Who asks may not do this.
    PermissionDenied = 3,
    /// No bucket of this name.
    BucketNotFound = 4,
    /// No stream of this name, or not this incarnation of it.
    StreamNotFound = 5,
    /// It is there already and the request said it must not be.
    AlreadyExists = 6,
    /// The stream's policy admits no further writer at the moment.
    PolicyBusy = 7,
    /// A writer's number was used before for other content.
    DuplicateMismatch = 8,
    /// A writer's number leaves a gap, or the writer is not remembered.
    WriterGap = 9,
    /// The fencing token is not the installed one.
    Fenced = 10,
    /// The tail is another one than the append requires.
    SeqMismatch = 11,
    /// A batch before this one in its session was rejected.
    BehindRejected = 12,
    /// The read starts behind the tail.
    PastTail = 13,
    /// The read starts at records that are forgotten.
    Trimmed = 14,
    /// Over a size limit.
    TooLarge = 15,
    /// Too many requests for the moment.
    RateLimited = 16,
    /// Another core or star leads the stream.
    NotOwner = 17,
    /// The core is handing its streams over.
    Draining = 18,
    /// The outcome is not known.
    Unavailable = 19,
    /// No space for appends; reads, trims and deletes go on.
    DiskFull = 20,
    /// Stored data is damaged.
    Corrupt = 21,
    /// A mistake of the star's.
    Internal = 22,
}

impl Code {
    /// All codes, in their order.
    pub const ALL: [Code; 22] = [
        Code::Invalid,
        Code::Unauthenticated,
        Code::PermissionDenied,
        Code::BucketNotFound,
        Code::StreamNotFound,
        Code::AlreadyExists,
        Code::PolicyBusy,
        Code::DuplicateMismatch,
        Code::WriterGap,
        Code::Fenced,
        Code::SeqMismatch,
        Code::BehindRejected,
        Code::PastTail,
        Code::Trimmed,
        Code::TooLarge,
        Code::RateLimited,
        Code::NotOwner,
        Code::Draining,
        Code::Unavailable,
        Code::DiskFull,
        Code::Corrupt,
        Code::Internal,
    ];

    /// The code's name in every text: `SEQ_MISMATCH`.
    pub fn name(self) -> &'static str {
        match self {
            Code::Invalid => "INVALID",
            Code::Unauthenticated => "UNAUTHENTICATED",
            Code::PermissionDenied => "PERMISSION_DENIED",
            Code::BucketNotFound => "BUCKET_NOT_FOUND",
            Code::StreamNotFound => "STREAM_NOT_FOUND",
            Code::AlreadyExists => "ALREADY_EXISTS",
            Code::PolicyBusy => "POLICY_BUSY",
            Code::DuplicateMismatch => "DUPLICATE_MISMATCH",
            Code::WriterGap => "WRITER_GAP",
            Code::Fenced => "FENCED",
            Code::SeqMismatch => "SEQ_MISMATCH",
            Code::BehindRejected => "BEHIND_REJECTED",
            Code::PastTail => "PAST_TAIL",
            Code::Trimmed => "TRIMMED",
            Code::TooLarge => "TOO_LARGE",
            Code::RateLimited => "RATE_LIMITED",
            Code::NotOwner => "NOT_OWNER",
            Code::Draining => "DRAINING",
            Code::Unavailable => "UNAVAILABLE",
            Code::DiskFull => "DISK_FULL",
            Code::Corrupt => "CORRUPT",
            Code::Internal => "INTERNAL",
        }
    }

    /// Whether trying again can help.
    pub fn retry(self) -> bool {
        matches!(
            self,
            Code::PolicyBusy
                | Code::BehindRejected
                | Code::RateLimited
                | Code::NotOwner
                | Code::Draining
                | Code::Unavailable
                | Code::DiskFull
                | Code::Internal
        )
    }

    /// Whether it is certain that nothing was applied.
    pub fn clean(self) -> bool {
        !matches!(self, Code::Unavailable | Code::Internal)
    }
}

/// The structured facts of a refusal.
#[derive(Archive, Serialize, Deserialize, Debug, Clone, PartialEq, Eq, Default)]
pub enum Facts {
    /// The code says it all.
    #[default]
    None,
    /// The field that is wrong, and the limit it breaks if there is one.
    Field {
        /// The field.
        field: String,
        /// Its limit.
        limit: Option<u64>,
    },
    /// The token that is installed.
    Token(String),
    /// The actual tail.
    Tail(Position),
    /// The first sequence number that is left.
    First(SequenceNumber),
    /// The writer sequence that is expected next.
    Expected(u64),
    /// Try again after this many microseconds.
    After(u64),
    /// Who leads the stream, as far as known.
    Holder {
        /// The leader's advertised address.
        address: Option<String>,
        /// The epoch of its leadership.
        epoch: Epoch,
    },
    /// Space on the disk, in bytes.
    Space {
        /// Free bytes.
        free: u64,
        /// The least that must stay free.
        floor: u64,
    },
    /// The damaged range of sequence numbers, `from` up to but without `to`.
    Range {
        /// First damaged.
        from: SequenceNumber,
        /// One past the last damaged.
        to: SequenceNumber,
    },
}

/// Why a request was not done: code, bits, message and facts.
#[derive(Archive, Serialize, Deserialize, Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}: {message}", code.name())]
pub struct Refusal {
    /// The kind.
    pub code: Code,
    /// Trying again can help.
    pub retry: bool,
    /// It is certain that nothing was applied.
    pub clean: bool,
    /// For people.
    pub message: String,
    /// For programs.
    pub facts: Facts,
}

impl Refusal {
    /// A refusal with the bits that the taxonomy gives its code.
    pub fn new(code: Code, message: impl Into<String>) -> Refusal {
        let mut message: String = message.into();
        if message.len() > MESSAGE_BYTES_MAX {
            let cut = (0..=MESSAGE_BYTES_MAX)
                .rev()
                .find(|&at| message.is_char_boundary(at));
            message.truncate(cut.unwrap_or(0));
        }
        Refusal {
            code,
            retry: code.retry(),
            clean: code.clean(),
            message,
            facts: Facts::None,
        }
    }

    /// The same refusal with facts.
    #[must_use]
    pub fn with(mut self, facts: Facts) -> Refusal {
        self.facts = facts;
        self
    }

    /// `INVALID` for a field, with the limit it breaks if there is one.
    pub fn invalid(field: &str, limit: Option<u64>, message: impl Into<String>) -> Refusal {
        let facts = Facts::Field {
            field: field.to_owned(),
            limit,
        };
        Refusal::new(Code::Invalid, message).with(facts)
    }

    /// `STREAM_NOT_FOUND` for a name.
    pub fn stream_not_found(name: &StreamName) -> Refusal {
        let message = format!("there is no stream {name}");
        Refusal::new(Code::StreamNotFound, message)
    }

    /// `BUCKET_NOT_FOUND` for a name.
    pub fn bucket_not_found(name: &BucketName) -> Refusal {
        Refusal::new(Code::BucketNotFound, format!("there is no bucket {name}"))
    }

    /// `TOO_LARGE` for a field: its limit and what it has.
    pub fn too_large(field: &str, limit: u64, found: u64) -> Refusal {
        let message = format!("a {field} has at most {limit} bytes, this one has {found}");
        let facts = Facts::Field {
            field: field.to_owned(),
            limit: Some(limit),
        };
        Refusal::new(Code::TooLarge, message).with(facts)
    }

    /// Whether the sizes of the texts are within their limits; for refusals from outside.
    pub fn is_bounded(&self) -> bool {
        let facts = match &self.facts {
            Facts::Field { field, .. } => field.len(),
            Facts::Token(token) => token.len(),
            Facts::Holder { address, .. } => address.as_ref().map_or(0, String::len),
            _ => 0,
        };
        self.message.len() <= MESSAGE_BYTES_MAX && facts <= ADDRESS_BYTES_MAX
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
#[path = "error_tests.rs"]
mod tests;
