//! What a lane is at the moment, and which frames may come then.
//!
//! # Invariants
//! - A frame is judged by its kind alone, as soon as its header is there: what a lane does not
//!   carry is never kept in memory.

use super::control::Control;
use super::session::Session;
use crate::error::ProtocolError;
use crate::frame::Kind;

/// See the drawing in [`super`].
#[derive(Debug)]
pub(super) enum State {
    /// No frame has come yet.
    New,
    /// `OpenAppend` is with the shard. Whether it named a writer.
    AppendOpening { has_writer: bool },
    /// The session is open.
    Appending(Session),
    /// `OpenRead` is with the shard.
    ReadOpening,
    /// The reader is open.
    Reading,
    /// Requests are answered.
    Control(Control),
    /// The last word is said, or nobody wants to hear it. What still comes in is dropped.
    Closed,
    /// The peer broke the protocol.
    Failed,
}

impl State {
    /// Whether a frame of this kind may come now; asked before its bytes are kept.
    pub(super) fn permit(&self, kind: Kind) -> Result<(), ProtocolError> {
        let window = match (self, kind) {
            (State::New, Kind::OpenAppend | Kind::OpenRead | Kind::Request | Kind::AppendOnce) => {
                None
            }
            (State::Appending(session), Kind::Append) => session.window_exceeded(),
            (State::Appending(session), Kind::Resume) if session.may_resume() => None,
            (State::Control(control), Kind::Request | Kind::AppendOnce) => {
                control.window_exceeded()
            }
            _ => {
                let lane = self.name();
                return Err(ProtocolError::OutOfPlace { kind, lane });
            }
        };
        match window {
            None => Ok(()),
            Some(window) => Err(ProtocolError::Window { kind, window }),
        }
    }

    /// What the lane is, in an error's words.
    pub(super) fn name(&self) -> &'static str {
        match self {
            State::New => "new",
            State::AppendOpening { .. } => "an append session being opened",
            State::Appending(_) => "an append session",
            State::ReadOpening => "a reader being opened",
            State::Reading => "a reader",
            State::Control(_) => "a control lane",
            State::Closed => "closed",
            State::Failed => "failed",
        }
    }
}
