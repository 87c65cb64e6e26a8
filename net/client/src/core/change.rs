//! Requests that must not be repeated blindly: what is done when the answer of one is lost.
//!
//! A fence that is sent again five seconds later takes the stream back from whoever fenced in
//! between; settings, deletions alike. So such a request is preceded by a look, and followed by
//! another one when its answer is lost:
//!
//! ```text
//!   look -> send -> answered
//!             |     answer lost -> look -> as asked: done
//!             ^                         -> as before: not applied
//!             +----------------------------+
//!                                       -> anything else: tell, since somebody came in between
//! ```
//! A fence is sent on condition of the token that the look found. If that has changed meanwhile,
//! and nothing was in doubt, the change came before: it is looked at and sent anew.
//!
//! # Invariants
//! - A request is sent again only if it was not applied, or if nothing came after it.

/// What one sending came to, without an answer that it was applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Attempt {
    /// It was refused, and nothing was applied.
    Refused,
    /// It was refused since what the look found is not there any more; nothing was applied.
    Overtaken,
    /// It may have been applied.
    Doubtful,
}

/// What a look after that finds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Seen {
    /// What was asked for.
    Done,
    /// What the look before the sending found.
    Before,
    /// Neither.
    Other,
}

/// What is to be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Tell that it is done.
    Done,
    /// Send it again, on the old look.
    Again,
    /// Send it again, on the new look.
    Anew,
    /// Tell the refusal: nothing was applied.
    Refused,
    /// Tell that the outcome is not known, and what is there.
    Ambiguous,
}

/// Decides after an attempt; `is_doubtful` says whether this or an earlier one may have been
/// applied.
pub fn judge(attempt: Attempt, is_doubtful: bool, seen: Seen) -> Verdict {
    match (attempt, is_doubtful, seen) {
        (Attempt::Refused, false, _) => Verdict::Refused,
        (Attempt::Overtaken, false, _) => Verdict::Anew,
        (_, _, Seen::Done) => Verdict::Done,
        (Attempt::Doubtful, _, Seen::Before) => Verdict::Again,
        (Attempt::Refused, true, Seen::Before) => Verdict::Refused,
        // It was not there when the star looked, and is again: somebody came in between twice.
        (Attempt::Overtaken, true, Seen::Before) => Verdict::Ambiguous,
        (_, _, Seen::Other) => Verdict::Ambiguous,
    }
}

#[cfg(test)]
#[path = "change_tests.rs"]
mod tests;
