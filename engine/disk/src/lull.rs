//! Whether a commit is likely to come soon, told from how often commits came.
//!
//! ```text
//!   write  write write   write ...........................| lull
//!      usual interval                 four of them
//! ```
//! Reads that fill the device delay a commit that meets them there, by a millisecond; reads that
//! leave it room take twice as long. So a core reads with all its might only in a lull: once no
//! write has begun for four times the usual interval between two. A producer that appends all the
//! time never meets such a read; one that has stopped does not slow the reader down that comes
//! right behind it. One that appends in bursts may find a read at the device with its first record
//! after a pause, and waits for it once.

use std::cell::Cell;
use std::time::{Duration, Instant};

/// Intervals without a write that make a lull.
const INTERVALS: u32 = 4;

/// No lull is told sooner than this behind a write: groups of a pipelined session come in bursts.
const LULL_MIN: Duration = Duration::from_millis(5);

/// For so long a lull is put off at most, however seldom writes come.
const LULL_MAX: Duration = Duration::from_millis(100);

/// Share of a new interval in the moving average, as 1 in this many.
const AVERAGE_OVER: u32 = 8;

/// When writes came.
#[derive(Debug)]
pub(crate) struct Lull {
    last: Cell<Option<Instant>>,
    /// Moving average of the times between two writes.
    interval: Cell<Duration>,
}

impl Lull {
    pub(crate) fn new() -> Lull {
        Lull {
            last: Cell::new(None),
            interval: Cell::new(LULL_MAX),
        }
    }

    /// A write begins.
    pub(crate) fn note_write(&self, now: Instant) {
        let Some(before) = self.last.replace(Some(now)) else {
            return;
        };
        let gap = now.saturating_duration_since(before).min(LULL_MAX);
        let interval = self.interval.get();
        self.interval
            .set(interval - interval / AVERAGE_OVER + gap / AVERAGE_OVER);
    }

    /// Whether no write is likely to come while a read is at the device.
    pub(crate) fn is_now(&self, now: Instant) -> bool {
        let least = (INTERVALS * self.interval.get()).clamp(LULL_MIN, LULL_MAX);
        let is_over = |last: Instant| now.saturating_duration_since(last) >= least;
        self.last.get().is_none_or(is_over)
    }
}

#[cfg(test)]
#[path = "lull_tests.rs"]
mod tests;
