//! How far a read that has an end has come, on stderr, if a person may be looking.
//!
//! # Invariants
//! - Nothing is shown where records and progress would be mixed: on a terminal that both go to.

use indicatif::{ProgressBar, ProgressStyle};
use nova_client::{ReadLimits, Reader};
use std::io::{IsTerminal, stdout};

/// A bar, or nothing.
pub(super) struct Progress(ProgressBar);

impl Progress {
    /// Nothing.
    pub(super) fn hidden() -> Progress {
        Progress(ProgressBar::hidden())
    }

    /// A bar on stderr, for a read that has just been opened; nothing if stderr is no terminal, or
    /// stdout is one.
    pub(super) fn begin(reader: &Reader, limits: &ReadLimits) -> Progress {
        let next = reader.next_sequence().unwrap_or_default().0;
        let bar = ProgressBar::new(total(next, reader.tail().sequence.0, limits));
        if stdout().is_terminal() || bar.is_hidden() {
            return Progress::hidden();
        }
        let shape = "{bar:40} {human_pos}/{human_len} records, {per_sec}, {eta} to go";
        if let Ok(style) = ProgressStyle::with_template(shape) {
            bar.set_style(style);
        }
        Progress(bar)
    }

    /// Records were read.
    pub(super) fn note(&mut self, records: u32) {
        self.0.inc(u64::from(records));
    }

    /// The read is over.
    pub(super) fn end(self) {
        self.0.finish_and_clear();
    }
}

/// The most records that a read gives. What bytes and times cut off is not known ahead.
fn total(next: u64, tail: u64, limits: &ReadLimits) -> u64 {
    let until = limits
        .until_sequence
        .map_or(tail, |until| until.0.min(tail));
    let left = until.saturating_sub(next);
    limits.count.map_or(left, |count| count.min(left))
}

#[cfg(test)]
#[path = "progress_tests.rs"]
mod tests;
