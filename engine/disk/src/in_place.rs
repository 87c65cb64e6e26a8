//! When a small write or a flush is done by a blocking call on the core's own thread instead of the
//! ring.
//!
//! A durable 4 KiB write takes about as long as what the ring costs around it: the executor
//! parks, is woken, and polls its rings again, and whatever the ring hands to a worker of the
//! kernel waits for that one's turn on a CPU. On a core that has nothing else to do the blocking
//! call is faster by a third of the whole append (docs/decisions/0007). On a busy core the ring
//! wins, because its cost is shared and the device works beside the core; and on a slow device a
//! blocked core would keep readers waiting.
//!
//! So a write is done in place only if all of this holds:
//! - it is small;
//! - the executor worked for less than seven eighths of the time since the last look, a
//!   millisecond or longer ago; blocking writes count as work, spinning does not;
//! - the device was fast lately: the moving average of writes in place is low, and none took long.
//!   A core with time to spare may wait longer than what it saves (docs/decisions/0013).
//!
//! Answers that were given just before leave first, since nothing leaves a core that is blocked.
//!
//! A flush behind a write of the ring is short, and the ring would hand it to a worker. It is done
//! in place also on a busy core, as long as flushes in place are fast: faster than a write has to
//! be, since others wait for a busy core. Where they are not, a thread beside the core writes and
//! flushes (docs/decisions/0016).
//!
//! # Invariants
//! - Only calls in place count. What the ring takes tells nothing of them: on a busy machine it may
//!   take hundred times as long, and a core that believed it would never leave the ring again.
//! - A device that was slow is tried again: soon, since zeros that are written beside make a few
//!   calls slow, and after a time that doubles with each failure.
//!
//! # Not here
//! - How the write is done: [`crate::writable`].

use std::cell::Cell;
use std::time::{Duration, Instant};

/// Largest write in place: up to this size a write costs the device the same.
const BYTES_MAX: usize = 64 * 1024;

/// Above this average of writes the device is not waited for.
const WRITE_AVERAGE_MAX: Duration = Duration::from_micros(500);

/// Above this average of flushes the device is not waited for.
const FLUSH_AVERAGE_MAX: Duration = Duration::from_micros(150);

/// What a single call counts for at most in the average, as a multiple of the largest average, so
/// that one hiccup does not decide.
const SAMPLE_OVER: u32 = 2;

/// Behind a call in place that took this long none is made for a while: so long may readers wait.
const SLOW: Duration = Duration::from_millis(5);

/// For so long: a device that hangs takes a twentieth of the core, and ever less.
const PENALTY_SLOW: Duration = Duration::from_millis(100);

/// For so long none is made at first when the average is too high.
const PENALTY_MIN: Duration = Duration::from_millis(10);

/// For so long when it has failed again and again.
const PENALTY_MAX: Duration = Duration::from_secs(64);

/// How long answers take at most until they have left a core that is not blocked.
const ANSWERS_LEAVE: Duration = Duration::from_micros(20);

/// Least time between two looks at how busy the executor is.
const LOOK_INTERVAL: Duration = Duration::from_millis(1);

/// Share of a new call in the moving average, as 1 in this many.
const AVERAGE_OVER: u32 = 8;

/// What is known of the device and of the core.
pub(crate) struct InPlace {
    writes: Pace,
    flushes: Pace,
    /// When the last look was, and how long the executor had run tasks until then.
    looked: Cell<(Instant, Duration)>,
    is_idle: Cell<bool>,
    /// When answers were given last.
    answered: Cell<Option<Instant>>,
    /// For how long the executor has worked so far.
    worked: Box<dyn Fn() -> Duration>,
}

impl InPlace {
    /// Nothing is known yet of the core: the ring it is. `worked` tells for how long the executor
    /// has run tasks so far, without what they only waited.
    pub(crate) fn new(now: Instant, worked: impl Fn() -> Duration + 'static) -> InPlace {
        InPlace {
            writes: Pace::new(WRITE_AVERAGE_MAX),
            flushes: Pace::new(FLUSH_AVERAGE_MAX),
            looked: Cell::new((now, worked())),
            is_idle: Cell::new(false),
            answered: Cell::new(None),
            worked: Box::new(worked),
        }
    }

    /// Whether a write of `length` bytes is to be done in place now.
    pub(crate) fn permits_write(&self, length: usize, now: Instant) -> bool {
        self.look(now);
        length <= BYTES_MAX && self.is_idle.get() && self.writes.permits(now)
    }

    /// Answers were given at `now`, which leave the core through other tasks.
    pub(crate) fn note_answers(&self, now: Instant) {
        self.answered.set(Some(now));
    }

    /// Whether answers may still be on their way out of the core.
    pub(crate) fn has_answers(&self, now: Instant) -> bool {
        let is_recent = |at| now.saturating_duration_since(at) < ANSWERS_LEAVE;
        self.answered.get().is_some_and(is_recent)
    }

    /// A write in place, begun at `begun`, took `taken`.
    pub(crate) fn note_write(&self, begun: Instant, taken: Duration) {
        self.writes.note(begun + taken, taken);
    }

    /// Whether a flush is to be done in place now.
    pub(crate) fn permits_flush(&self, now: Instant) -> bool {
        self.flushes.permits(now)
    }

    /// A flush in place, begun at `begun`, took `taken`.
    pub(crate) fn note_flush(&self, begun: Instant, taken: Duration) {
        self.flushes.note(begun + taken, taken);
    }

    /// Looks how busy the executor is, if that is due.
    fn look(&self, now: Instant) {
        let (before, worked_before) = self.looked.get();
        let passed = now.saturating_duration_since(before);
        if passed < LOOK_INTERVAL {
            return;
        }
        let worked = (self.worked)();
        let busy = worked.saturating_sub(worked_before);
        self.is_idle.set(8 * busy < 7 * passed);
        self.looked.set((now, worked));
    }
}

/// How fast calls of one kind were.
#[derive(Debug)]
struct Pace {
    average_max: Duration,
    average: Cell<Duration>,
    barred_until: Cell<Option<Instant>>,
    penalty: Cell<Duration>,
}

impl Pace {
    fn new(average_max: Duration) -> Pace {
        Pace {
            average_max,
            average: Cell::new(average_max / 2),
            barred_until: Cell::new(None),
            penalty: Cell::new(PENALTY_MIN),
        }
    }

    fn permits(&self, now: Instant) -> bool {
        self.barred_until.get().is_none_or(|until| now >= until)
    }

    fn note(&self, now: Instant, taken: Duration) {
        let before = self.average.get();
        let sample = taken.min(SAMPLE_OVER * self.average_max);
        let average = before - before / AVERAGE_OVER + sample / AVERAGE_OVER;
        self.average.set(average);
        if taken > SLOW || average >= self.average_max {
            let least = if taken > SLOW {
                PENALTY_SLOW
            } else {
                PENALTY_MIN
            };
            let penalty = self.penalty.get().max(least);
            self.barred_until.set(Some(now + penalty));
            self.penalty.set((2 * penalty).min(PENALTY_MAX));
            // What is assumed of a device that is tried again.
            self.average.set(self.average_max / 2);
        } else if taken < self.average_max {
            self.penalty.set(PENALTY_MIN);
        }
    }
}

impl std::fmt::Debug for InPlace {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("InPlace")
            .field("writes", &self.writes)
            .field("flushes", &self.flushes)
            .field("is_idle", &self.is_idle)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
#[path = "in_place_tests.rs"]
mod tests;
