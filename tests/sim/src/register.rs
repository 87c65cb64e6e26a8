//! A value that is set by requests and told by answers: which values are possible at a time.
//!
//! ```text
//!   set a: asked ---- answered      set b: asked -------- answered
//!                                             told here: a or b      told here: b
//! ```
//! # Invariants
//! - A value is impossible only if another one was set wholly after it and wholly before the
//!   question; so nothing is demanded that is not certain.
//!
//! # Not here
//! - Which values there are: [`crate::settings`].

use crate::history::Mark;

#[derive(Debug, Clone, Copy)]
struct Write<T> {
    value: T,
    asked: Mark,
    /// When it was certain to be done.
    ended: Option<Mark>,
    is_initial: bool,
}

/// The value.
#[derive(Debug, Clone)]
pub struct Register<T> {
    writes: Vec<Write<T>>,
    /// Answers to what was asked before are not judged.
    since: Mark,
}

impl<T> Default for Register<T> {
    fn default() -> Register<T> {
        Register {
            writes: Vec::new(),
            since: Mark(0),
        }
    }
}

impl<T: Copy + PartialEq> Register<T> {
    /// One of the values that it may begin with; `now` it has begun.
    pub fn begin(&mut self, value: T, asked: Mark, now: Mark) {
        self.writes.push(Write {
            value,
            asked,
            ended: Some(now),
            is_initial: true,
        });
    }

    /// Of the values that it may begin with it was the one asked for then.
    pub fn began_with(&mut self, asked: Mark) {
        let is_it = |write: &Write<T>| !write.is_initial || write.asked == asked;
        if self.writes.iter().any(|w| w.is_initial && w.asked == asked) {
            self.writes.retain(is_it);
        }
    }

    /// Somebody wants to set it.
    pub fn ask(&mut self, value: T, asked: Mark) {
        self.writes.push(Write {
            value,
            asked,
            ended: None,
            is_initial: false,
        });
    }

    /// What was asked for then is done, or certainly was not.
    pub fn end(&mut self, asked: Mark, now: Mark, is_done: bool) {
        if is_done {
            let found = self.writes.iter_mut().find(|write| write.asked == asked);
            if let Some(write) = found {
                write.ended.get_or_insert(now);
            }
        } else {
            self.writes
                .retain(|write| write.asked != asked || write.is_initial);
        }
    }

    /// What was asked for then.
    pub fn asked(&self, asked: Mark) -> Option<T> {
        let found = self.writes.iter().find(|write| write.asked == asked);
        found.map(|write| write.value)
    }

    /// It certainly has this value, and nothing that was asked for before can change it.
    pub fn reset(&mut self, value: T, now: Mark) {
        self.writes.clear();
        self.begin(value, now, now);
        self.since = now;
    }

    /// Whether an answer to a question of `asked` can be judged.
    pub fn is_judged(&self, asked: Mark) -> bool {
        asked >= self.since && !self.writes.is_empty()
    }

    /// The values that it may have had between `from` and `to`.
    pub fn candidates(&self, from: Mark, to: Mark) -> impl Iterator<Item = T> {
        self.candidates_besides(None, from, to)
    }

    /// The same, not counting what was asked for at `besides`.
    pub fn candidates_besides(
        &self,
        besides: Option<Mark>,
        from: Mark,
        to: Mark,
    ) -> impl Iterator<Item = T> {
        let counted = move |write: &&Write<T>| Some(write.asked) != besides && write.asked < to;
        let is_over = move |write: &Write<T>| {
            let after = |later: &Write<T>| {
                Some(later.asked) != besides
                    && write.ended.is_some_and(|ended| later.asked > ended)
                    && later.ended.is_some_and(|ended| ended < from)
            };
            self.writes.iter().any(after)
        };
        let possible = self.writes.iter().filter(counted);
        possible
            .filter(move |write| !is_over(write))
            .map(|write| write.value)
    }

    /// It was told to have this value: if only one wish explains that, it was done by `now`.
    pub fn told(&mut self, value: T, now: Mark) {
        let mut same = self.writes.iter_mut().filter(|write| write.value == value);
        if let (Some(write), None) = (same.next(), same.next()) {
            write.ended.get_or_insert(now);
        }
    }
}

#[cfg(test)]
#[path = "register_tests.rs"]
mod tests;
