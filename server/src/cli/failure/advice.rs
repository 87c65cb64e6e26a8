//! What to do next about each kind of failure, in one short line.
//!
//! A command that would help is apart from the text, so that the flags which name the star can be
//! put behind it.
//!
//! # Invariants
//! - Every code has its own line: a new code does not compile until somebody has thought of one.

use crate::cli::failure::Subject;
use nova_client::{
    ClientError, Code, ConfigError, Facts, HandshakeFailure, HandshakeProblem, Refusal,
};

/// What to do next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Advice {
    /// In words.
    pub(super) text: String,
    /// The command that does it, without the flags that name the star.
    pub(super) command: Option<String>,
}

impl From<&str> for Advice {
    fn from(text: &str) -> Advice {
        text.to_owned().into()
    }
}

impl From<String> for Advice {
    fn from(text: String) -> Advice {
        Advice {
            text,
            command: None,
        }
    }
}

fn run(text: &str, command: String) -> Advice {
    Advice {
        text: text.to_owned(),
        command: Some(command),
    }
}

/// What to do next.
pub(super) fn next(error: &ClientError, subject: Subject<'_>) -> Advice {
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
            "see whether the star runs and can be reached, then run the command again".into()
        }
        ClientError::HolderUnresolvable { .. } => {
            "start the star with an --advertise that this machine can resolve".into()
        }
        ClientError::Handshake(handshake) => handshake_advice(handshake),
        ClientError::Config(ConfigError::CaFile { .. } | ConfigError::Ca(_)) => {
            "name with --ca a copy of the star's tls/ca.pem".into()
        }
        ClientError::Config(ConfigError::Socket(_) | ConfigError::Randomness) => {
            "repair that and run the command again".into()
        }
        ClientError::Closed => "run the command again".into(),
    }
}

/// What to change before a handshake can succeed, in the flags of this program.
fn handshake_advice(failure: &HandshakeFailure) -> Advice {
    match failure.problem {
        HandshakeProblem::UnknownAuthority => {
            "name with --ca a copy of tls/ca.pem in the data directory of that star".into()
        }
        HandshakeProblem::WrongName => format!(
            "start the star with --tls-names {}, or name with --server-name one that it has",
            failure.server_name
        )
        .into(),
        HandshakeProblem::InvalidName => "correct --server-name or --star".into(),
        HandshakeProblem::Expired | HandshakeProblem::Incompatible | HandshakeProblem::Alert(_) => {
            failure.remedy().into()
        }
    }
}

/// How to find out what was applied.
fn look(subject: Subject<'_>, since: u64) -> Advice {
    let command = match subject {
        Subject::Stream(name) => format!("nova read {name} --from {since}"),
        Subject::State(name) => format!("nova stream describe {name}"),
        Subject::Bucket(name) => format!("nova bucket describe {name}"),
        Subject::Star => "nova admin status".to_owned(),
    };
    run("see what is there", command)
}

fn after_refusal(refusal: &Refusal, subject: Subject<'_>) -> Advice {
    let stream = match subject {
        Subject::Stream(name) | Subject::State(name) => name.to_string(),
        Subject::Bucket(_) | Subject::Star => "BUCKET/KEY".to_owned(),
    };
    let bucket = match subject {
        Subject::Stream(name) | Subject::State(name) => name.bucket.to_string(),
        Subject::Bucket(name) => name.to_string(),
        Subject::Star => "BUCKET".to_owned(),
    };
    match refusal.code {
        Code::Invalid => "change the request as it says; --help tells the forms".into(),
        Code::Unauthenticated | Code::PermissionDenied => {
            "ask who runs the star for the right to do this".into()
        }
        Code::BucketNotFound => run("make it", format!("nova bucket create {bucket}")),
        Code::StreamNotFound => run("make it", format!("nova stream create {stream}")),
        Code::AlreadyExists => "take it as it is with --ensure, or choose another name".into(),
        Code::PolicyBusy => run(
            "wait until the other producer ends, or take over",
            format!("nova stream fence {stream} TOKEN"),
        ),
        Code::DuplicateMismatch | Code::WriterGap => run(
            "see what is there, then append what is absent",
            format!("nova read {stream} --tail 10"),
        ),
        Code::Fenced => match &refusal.facts {
            Facts::Token(token) => {
                format!("if this writer is the right one: --fence '{token}'").into()
            }
            _ => run(
                "present with --fence the token that is installed",
                format!("nova stream describe {stream}"),
            ),
        },
        Code::SeqMismatch => run("decide again from the tail", format!("nova tail {stream}")),
        Code::PastTail => match &refusal.facts {
            Facts::Tail(tail) => format!("start at {} or before", tail.sequence).into(),
            _ => run("start at the tail or before", format!("nova tail {stream}")),
        },
        Code::Trimmed => match &refusal.facts {
            Facts::First(first) => {
                format!("start at the first that is left: --from {first}").into()
            }
            _ => "leave --from out to start at the first that is left".into(),
        },
        Code::TooLarge => "make it smaller".into(),
        Code::BehindRejected => "run the command again".into(),
        Code::Draining => draining(refusal),
        Code::RateLimited => "wait a moment and run the command again".into(),
        Code::NotOwner => match &refusal.facts {
            Facts::Holder {
                address: Some(address),
                ..
            } => format!("ask the star that leads it: --star {address}").into(),
            _ => "run the command again".into(),
        },
        Code::Unavailable => "see whether the star is well, then run the command again".into(),
        Code::DiskFull => "free space on the star's disk: trim or delete what can go".into(),
        Code::Corrupt => match &refusal.facts {
            Facts::Range { to, .. } => format!("read on behind the damage: --from {to}").into(),
            _ => "restore the data from a copy".into(),
        },
        Code::Internal => "look at the star's log, and report what is there".into(),
    }
}

/// A stream on its way has an address to go to; one of a star that stops or is closed has none.
fn draining(refusal: &Refusal) -> Advice {
    match &refusal.facts {
        Facts::Holder { address: None, .. } => run(
            "start the star if it has stopped; if its cores are drained, let them lead",
            "nova admin undrain --all".to_owned(),
        ),
        _ => "run the command again".into(),
    }
}
