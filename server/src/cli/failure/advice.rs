//! What to do next about each kind of failure, in one short line.
//!
//! # Invariants
//! - Every code has its own line: a new code does not compile until somebody has thought of one.

use crate::cli::failure::Subject;
use nova_client::{ClientError, Code, ConfigError, Facts, Refusal};

/// What to do next.
pub(super) fn next(error: &ClientError, subject: Subject<'_>) -> String {
    match error {
        ClientError::Refused(refusal) => after_refusal(refusal, subject),
        ClientError::Ambiguous(ambiguity) => look(subject, ambiguity.since.0),
        ClientError::Unavailable {
            sent: Some(sent), ..
        } => look(subject, sent.since.0),
        ClientError::Unavailable {
            last: Some(refusal),
            ..
        } => after_refusal(refusal, subject),
        ClientError::Unavailable { .. } => {
            "see whether the star runs and can be reached, then run the command again".to_owned()
        }
        ClientError::HolderUnresolvable { .. } => {
            "start the star with an --advertise that this machine can resolve".to_owned()
        }
        ClientError::Config(error) => match error {
            ConfigError::CaFile { .. } | ConfigError::Ca(_) => {
                "name with --ca a copy of the star's tls/ca.pem".to_owned()
            }
            ConfigError::Socket(_) | ConfigError::Randomness => {
                "repair that and run the command again".to_owned()
            }
        },
        ClientError::Closed => "run the command again".to_owned(),
    }
}

/// How to find out what was applied.
fn look(subject: Subject<'_>, since: u64) -> String {
    match subject {
        Subject::Stream(name) => {
            format!("see what is there: nova read {name} --from {since}")
        }
        Subject::Bucket(name) => format!("see what is there: nova bucket describe {name}"),
        Subject::Star => "see what is there: nova star".to_owned(),
    }
}

fn after_refusal(refusal: &Refusal, subject: Subject<'_>) -> String {
    let stream = match subject {
        Subject::Stream(name) => name.to_string(),
        Subject::Bucket(_) | Subject::Star => "BUCKET/KEY".to_owned(),
    };
    let bucket = match subject {
        Subject::Stream(name) => name.bucket.to_string(),
        Subject::Bucket(name) => name.to_string(),
        Subject::Star => "BUCKET".to_owned(),
    };
    match refusal.code {
        Code::Invalid => match &refusal.facts {
            Facts::Field { field, .. } => format!("correct {field}; --help tells the forms"),
            _ => "correct the command; --help tells the forms".to_owned(),
        },
        Code::Unauthenticated | Code::PermissionDenied => {
            "ask who runs the star for the right to do this".to_owned()
        }
        Code::BucketNotFound => format!("nova bucket create {bucket}"),
        Code::StreamNotFound => format!("nova stream create {stream}"),
        Code::AlreadyExists => "take it as it is with --ensure, or choose another name".to_owned(),
        Code::PolicyBusy => format!(
            "wait until the other producer ends, or take over: nova stream fence {stream} TOKEN"
        ),
        Code::DuplicateMismatch | Code::WriterGap => {
            format!("see what is there, then append what is absent: nova read {stream} --tail 10")
        }
        Code::Fenced => match &refusal.facts {
            Facts::Token(token) => format!("if this writer is the right one: --fence '{token}'"),
            _ => format!("nova stream describe {stream} tells the token; present it with --fence"),
        },
        Code::SeqMismatch => match &refusal.facts {
            Facts::Tail(tail) => format!("the tail is {}; decide again from there", tail.sequence),
            _ => format!("decide again from the tail: nova tail {stream}"),
        },
        Code::PastTail => match &refusal.facts {
            Facts::Tail(tail) => format!("start at {} or before", tail.sequence),
            _ => format!("start at the tail or before: nova tail {stream}"),
        },
        Code::Trimmed => match &refusal.facts {
            Facts::First(first) => format!("start at the first that is left: --from {first}"),
            _ => "leave --from out to start at the first that is left".to_owned(),
        },
        Code::TooLarge => "make it smaller".to_owned(),
        Code::BehindRejected | Code::Draining => "run the command again".to_owned(),
        Code::RateLimited => "wait a moment and run the command again".to_owned(),
        Code::NotOwner => match &refusal.facts {
            Facts::Holder {
                address: Some(address),
                ..
            } => {
                format!("ask the star that leads it: --star {address}")
            }
            _ => "run the command again".to_owned(),
        },
        Code::Unavailable => "see whether the star is well, then run the command again".to_owned(),
        Code::DiskFull => "free space on the star's disk: trim or delete what can go".to_owned(),
        Code::Corrupt => match &refusal.facts {
            Facts::Range { to, .. } => format!("read on behind the damage: --from {to}"),
            _ => "restore the data from a copy".to_owned(),
        },
        Code::Internal => "look at the star's log, and report what is there".to_owned(),
    }
}
