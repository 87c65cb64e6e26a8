//! When a small write is done by a blocking call on the core's own thread instead of the ring.
//!
//! A durable 4 KiB write takes about as long as what the ring costs around it: the kernel hands a
//! synchronous direct write to a worker, the executor parks, is woken, and polls its rings again.
//! On a core that has nothing else to do the blocking call is faster by a third of the whole append
//! (docs/decisions/0002). On a busy core the ring wins, because its cost is shared and the device
//! works beside the core; and on a slow device a blocked core would keep readers waiting.
//!
//! So a write is done in place only if all of this holds:
//! - it is small;
//! - the executor ran tasks for less than seven eighths of the time since the last look, a
//!   millisecond or longer ago; what it spent in blocking writes counts as running;
//! - the device was fast lately: the moving average of writes is low, and no write in place took
//!   long within the last second.
//!
//! # Not here
//! - How the write is done: [`crate::writable`].

use std::cell::Cell;
use std::time::{Duration, Instant};

/// Largest write in place: up to this size a write costs the device the same.
const BYTES_MAX: usize = 64 * 1024;

/// Above this average the device is not waited for.
const AVERAGE_MAX: Duration = Duration::from_micros(150);

/// What a single write counts for at most in the average, so that one hiccup does not decide.
const SAMPLE_MAX: Duration = Duration::from_micros(300);

/// A write in place that took this long sends the next ones to the ring: so long may readers wait.
const SLOW: Duration = Duration::from_millis(5);

/// For so long.
const PENALTY: Duration = Duration::from_secs(1);

/// Least time between two looks at how busy the executor is.
const LOOK_INTERVAL: Duration = Duration::from_millis(1);

/// Share of a new write in the moving average, as 1 in this many.
const AVERAGE_OVER: u32 = 8;

/// What is known of the device and of the core.
#[derive(Debug)]
pub(crate) struct InPlace {
    average: Cell<Duration>,
    barred_until: Cell<Option<Instant>>,
    /// When the last look was, and how long the executor had run tasks until then.
    looked: Cell<(Instant, Duration)>,
    is_idle: Cell<bool>,
}

impl InPlace {
    /// Nothing is known yet: the ring it is.
    pub(crate) fn new(now: Instant, run: Duration) -> InPlace {
        InPlace {
            average: Cell::new(AVERAGE_MAX),
            barred_until: Cell::new(None),
            looked: Cell::new((now, run)),
            is_idle: Cell::new(false),
        }
    }

    /// Whether a write of `length` bytes is to be done in place now; `run` tells how long the
    /// executor has run tasks so far.
    pub(crate) fn permits(
        &self,
        length: usize,
        now: Instant,
        run: impl FnOnce() -> Duration,
    ) -> bool {
        self.look(now, run);
        let is_barred = self.barred_until.get().is_some_and(|until| now < until);
        length <= BYTES_MAX && self.is_idle.get() && self.average.get() < AVERAGE_MAX && !is_barred
    }

    /// A small write took `taken`, in place or not.
    pub(crate) fn note(&self, length: usize, taken: Duration, in_place: bool, now: Instant) {
        if length > BYTES_MAX {
            return;
        }
        let average = self.average.get();
        self.average
            .set(average - average / AVERAGE_OVER + taken.min(SAMPLE_MAX) / AVERAGE_OVER);
        if in_place && taken > SLOW {
            self.barred_until.set(Some(now + PENALTY));
        }
    }

    /// Looks how busy the executor is, if that is due.
    fn look(&self, now: Instant, run: impl FnOnce() -> Duration) {
        let (before, run_before) = self.looked.get();
        let passed = now.saturating_duration_since(before);
        if passed < LOOK_INTERVAL {
            return;
        }
        let run = run();
        let busy = run.saturating_sub(run_before);
        self.is_idle.set(8 * busy < 7 * passed);
        self.looked.set((now, run));
    }
}

#[cfg(test)]
#[path = "in_place_tests.rs"]
mod tests;
