//! When a small write is done by a blocking call on the core's own thread instead of the ring.
//!
//! A durable 4 KiB write takes about as long as what the ring costs around it: the kernel hands a
//! synchronous direct write to a worker, the executor parks, is woken, and polls its rings again.
//! On a core that has nothing else to do the blocking call is faster by a third of the whole append
//! (docs/decisions/0003). On a busy core the ring wins, because its cost is shared and the device
//! works beside the core; and on a slow device a blocked core would keep readers waiting.
//!
//! So a write is done in place only if all of this holds:
//! - it is small;
//! - the thread used less than half of the time since the last look, a millisecond or longer ago;
//! - the device was fast lately: the moving average of writes is low, and no write in place took
//!   long within the last second.
//!
//! # Not here
//! - How the write is done: [`crate::writable`].

use rustix::time::{ClockId, clock_gettime};
use std::cell::Cell;
use std::time::{Duration, Instant};

/// Largest write in place: up to this size a write costs the device the same.
const BYTES_MAX: usize = 64 * 1024;

/// Above this average the device is not waited for.
const AVERAGE_MAX: Duration = Duration::from_micros(150);

/// A write in place that took this long sends the next ones to the ring.
const SLOW: Duration = Duration::from_millis(1);

/// For so long.
const PENALTY: Duration = Duration::from_secs(1);

/// Least time between two looks at the thread's use of its CPU.
const LOOK_INTERVAL: Duration = Duration::from_millis(1);

/// Share of a new write in the moving average, as 1 in this many.
const AVERAGE_OVER: u32 = 8;

/// What is known of the device and of the core.
#[derive(Debug)]
pub(crate) struct InPlace {
    average: Cell<Duration>,
    barred_until: Cell<Option<Instant>>,
    looked: Cell<(Instant, Duration)>,
    is_idle: Cell<bool>,
}

impl InPlace {
    /// Nothing is known yet: the ring it is.
    pub(crate) fn new() -> InPlace {
        InPlace {
            average: Cell::new(AVERAGE_MAX),
            barred_until: Cell::new(None),
            looked: Cell::new((Instant::now(), thread_time())),
            is_idle: Cell::new(false),
        }
    }

    /// Whether a write of `length` bytes is to be done in place now.
    pub(crate) fn permits(&self, length: usize, now: Instant) -> bool {
        self.look(now);
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
            .set(average - average / AVERAGE_OVER + taken / AVERAGE_OVER);
        if in_place && taken > SLOW {
            self.barred_until.set(Some(now + PENALTY));
        }
    }

    /// Looks how much of its CPU the thread has used, if that is due.
    fn look(&self, now: Instant) {
        let (before, used_before) = self.looked.get();
        let passed = now.saturating_duration_since(before);
        if passed < LOOK_INTERVAL {
            return;
        }
        let used = thread_time();
        self.is_idle
            .set(2 * used.saturating_sub(used_before) < passed);
        self.looked.set((now, used));
    }
}

/// CPU time that the calling thread has used.
fn thread_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    let whole = u64::try_from(time.tv_sec).unwrap_or_default();
    let nanos = u32::try_from(time.tv_nsec).unwrap_or_default();
    Duration::new(whole, nanos)
}

#[cfg(test)]
#[path = "in_place_tests.rs"]
mod tests;
