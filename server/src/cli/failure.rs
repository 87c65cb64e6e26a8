//! Failures as people and scripts see them: what happened, why, what to do next, an exit code.
//!
//! ```text
//!   nova: nothing was appended to logs/web
//!     why:  BUCKET_NOT_FOUND: there is no bucket logs
//!     next: make it: nova bucket create logs
//! ```
//!
//! # Invariants
//! - The exit code follows from the bits of the refusal and from whether anything was sent, never
//!   from a text.
//!
//! # Not here
//! - What to do about each code: [`advice`].

mod advice;

use crate::cli::shapes;
use advice::Advice;
use nova_client::{ClientError, ConfigError, Refusal};
use nova_model::{BucketName, StreamName};
use serde_json::json;
use std::io::{self, Write};
use std::ops::{Deref, DerefMut};
use std::process::ExitCode;

/// What a command ends with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// Done.
    Done = 0,
    /// Reading or writing on this side failed.
    Local = 1,
    /// The command line or the configuration is wrong.
    Usage = 2,
    /// The star refused, and nothing was applied.
    Refused = 3,
    /// No star could be reached.
    Unreachable = 4,
    /// It is not known whether it was applied.
    Ambiguous = 5,
    /// What came back is not what was sent.
    Different = 6,
    /// What was measured does not keep a bound.
    Missed = 7,
    /// The data directory can't be used.
    Directory = 10,
    /// This machine can't run a star.
    Machine = 11,
    /// A UDP port can't be taken.
    Port = 12,
    /// The certificates can't be used.
    Certificates = 13,
    /// Stored data is damaged.
    Damaged = 14,
    /// The disk can't be trusted any more.
    Disk = 15,
    /// The star did not start, or stopped, for another reason.
    Star = 16,
    /// Interrupted by a signal.
    Interrupted = 130,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> ExitCode {
        ExitCode::from(exit as u8)
    }
}

/// What a command was about, for the advice.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Subject<'a> {
    /// The star as a whole.
    Star,
    /// A bucket.
    Bucket(&'a BucketName),
    /// A stream's records.
    Stream(&'a StreamName),
    /// A stream's token, settings or being.
    State(&'a StreamName),
}

/// Why a command did not do what it was asked to. Boxed, since it is the rare way out of most
/// functions here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Failure(Box<Parts>);

/// The parts of a [`Failure`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Parts {
    code: u8,
    /// What happened.
    pub(crate) what: String,
    /// Why.
    pub(crate) why: String,
    /// What to do next.
    pub(crate) next: String,
    /// The command that does it.
    command: Option<String>,
    refusal: Option<Refusal>,
    /// What another process has said already; the parts are empty then.
    relayed: Option<String>,
}

impl Deref for Failure {
    type Target = Parts;

    fn deref(&self) -> &Parts {
        &self.0
    }
}

impl DerefMut for Failure {
    fn deref_mut(&mut self) -> &mut Parts {
        &mut self.0
    }
}

impl Failure {
    /// A failure in its three parts.
    pub(crate) fn new(
        exit: Exit,
        what: impl Into<String>,
        why: impl Into<String>,
        next: impl Into<String>,
    ) -> Failure {
        Failure(Box::new(Parts {
            code: exit as u8,
            what: what.into(),
            why: why.into(),
            next: next.into(),
            command: None,
            refusal: None,
            relayed: None,
        }))
    }

    /// Reading or writing on this side failed.
    pub(crate) fn local(what: impl Into<String>, error: &io::Error) -> Failure {
        let next = "repair that and run the command again";
        Failure::new(Exit::Local, what, error.to_string(), next)
    }

    /// What a client's call came to.
    pub(crate) fn client(
        what: impl Into<String>,
        error: &ClientError,
        subject: Subject<'_>,
    ) -> Failure {
        let Advice { text, command } = advice::next(error, subject);
        let mut failure = Failure::new(exit_of(error), what, error.to_string(), text);
        failure.command = command;
        failure.refusal = error.refusal().cloned();
        if let ClientError::Handshake(handshake) = error {
            failure.why = handshake.cause();
        }
        match (error, &failure.refusal) {
            (ClientError::Unavailable { .. }, Some(refusal)) => {
                failure.why = format!("{}; the star said last: {refusal}", failure.why);
            }
            (ClientError::Ambiguous(_), Some(refusal)) => {
                failure.why = format!("its answer was lost; then: {refusal}");
            }
            _ => {}
        }
        failure
    }

    /// What a call that changes something came to: whether it `was not done`, or that this is not
    /// known.
    pub(crate) fn change(
        what: &str,
        done: &str,
        error: &ClientError,
        subject: Subject<'_>,
    ) -> Failure {
        let what = match error.is_clean() {
            true => format!("{what} was not {done}"),
            false => format!("it is not known whether {what} was {done}"),
        };
        Failure::client(what, error, subject)
    }

    /// A failure that another process has put in words and given a code.
    pub(crate) fn relayed(code: u8, text: String) -> Failure {
        let mut failure = Failure::new(Exit::Star, "", "", "");
        failure.code = code;
        failure.relayed = Some(text);
        failure
    }

    /// The same failure, with the flags that name the star behind the command that helps.
    pub(crate) fn with_flags(mut self, flags: &str) -> Failure {
        if let Some(command) = &mut self.command {
            command.push_str(flags);
        }
        self
    }

    /// What to do next, with the command if there is one.
    fn next_step(&self) -> String {
        match &self.command {
            Some(command) => format!("{}: {command}", self.next),
            None => self.next.clone(),
        }
    }

    /// The exit code.
    pub(crate) fn exit_code(&self) -> ExitCode {
        ExitCode::from(self.code)
    }

    /// The number of the exit code.
    #[cfg(test)]
    pub(crate) fn code(&self) -> u8 {
        self.code
    }

    /// Tells it on stderr.
    pub(crate) fn print(&self, is_json: bool) {
        let text = if is_json {
            format!("{}\n", self.to_json())
        } else {
            self.to_text()
        };
        // There is no other place to tell it.
        let _unread = io::stderr().write_all(text.as_bytes());
    }

    fn to_text(&self) -> String {
        match &self.relayed {
            Some(text) => text.clone(),
            None => format!(
                "nova: {}\n  why:  {}\n  next: {}\n",
                self.what,
                self.why.replace('\n', "\n        "),
                self.next_step().replace('\n', "\n        ")
            ),
        }
    }

    fn to_json(&self) -> serde_json::Value {
        let why = self.relayed.as_deref().unwrap_or(&self.why);
        let mut error = json!({
            "exit": self.code, "what": self.what, "why": why, "next": self.next_step(),
        });
        if let (Some(refusal), Some(members)) = (&self.refusal, error.as_object_mut()) {
            members.extend(shapes::refusal(refusal));
        }
        json!({ "error": error })
    }
}

fn exit_of(error: &ClientError) -> Exit {
    match error {
        ClientError::Refused(refusal) if refusal.clean => Exit::Refused,
        ClientError::Refused(_) | ClientError::Ambiguous(_) => Exit::Ambiguous,
        ClientError::Unavailable { sent: Some(_), .. } => Exit::Ambiguous,
        ClientError::Unavailable { last: Some(_), .. } => Exit::Refused,
        ClientError::Unavailable { .. } | ClientError::HolderUnresolvable { .. } => {
            Exit::Unreachable
        }
        ClientError::Handshake(_)
        | ClientError::Config(ConfigError::CaFile { .. } | ConfigError::Ca(_)) => Exit::Usage,
        ClientError::Config(ConfigError::Socket(_) | ConfigError::Randomness) => Exit::Local,
        ClientError::Closed => Exit::Local,
    }
}

#[cfg(test)]
#[path = "failure_tests.rs"]
mod tests;
