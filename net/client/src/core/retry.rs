//! When to try again: exponential backoff with jitter, within a budget of time.
//!
//! A star that restarts is back within a second or two, and nothing tells when: what is sent to a
//! port without an owner is lost in silence. So it is dialled at a close pace at first, which
//! doubles only after some seconds, always with jitter, so that the clients of a star do not come
//! all at once. A refusal says that the star is there; its backoff doubles from the start.
//!
//! The budget runs from the first trouble until progress is made, so a link that opens and breaks
//! over and over without a single ack is given up too.

use crate::core::Moment;
use nova_model::Instant;

/// The first wait of a backoff, in microseconds.
pub const BACKOFF_US_MIN: u64 = 20_000;
/// The longest wait of a backoff, in microseconds.
pub const BACKOFF_US_MAX: u64 = 2_000_000;
/// The longest wait between the first attempts to reach a star, in microseconds.
pub const DIAL_US_QUICK: u64 = 100_000;
/// Attempts to reach a star with at most [`DIAL_US_QUICK`] between them: two to four seconds.
pub const DIALS_QUICK: u32 = 40;
/// Redirects that are followed at once, one after another, before a backoff.
pub const REDIRECTS_AT_ONCE_MAX: u32 = 4;

/// The wait after the `failures`-th failure in a row (from 0), between half and all of the step.
/// Example: the third wait is 40 to 80 ms.
pub fn backoff_us(failures: u32, random: u64) -> u64 {
    let step = BACKOFF_US_MIN
        .saturating_mul(1 << failures.min(16))
        .min(BACKOFF_US_MAX);
    jittered(step, random)
}

/// The wait after the `failures`-th attempt in a row (from 0) to reach a star that did not answer,
/// between half and all of the step. The steps are 20, 40, 80, then 100 ms up to the
/// [`DIALS_QUICK`]-th, then double up to [`BACKOFF_US_MAX`].
pub fn dial_us(failures: u32, random: u64) -> u64 {
    let step = match failures.checked_sub(DIALS_QUICK) {
        None => BACKOFF_US_MIN
            .saturating_mul(1 << failures.min(16))
            .min(DIAL_US_QUICK),
        Some(slow) => DIAL_US_QUICK
            .saturating_mul(2 << slow.min(16))
            .min(BACKOFF_US_MAX),
    };
    jittered(step, random)
}

fn jittered(step: u64, random: u64) -> u64 {
    let half = step / 2;
    half + random % (step - half + 1)
}

/// The pace at which a star that does not answer is probed while a handshake with it is under way:
/// the transport doubles the time before it repeats a packet, and would come too late. The pace
/// goes on over attempts that ended without an answer, and begins anew after a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Probes {
    begun: u32,
}

impl Probes {
    /// How long to wait for an answer before the next probe. The steps of [`dial_us`] that are
    /// shorter than a round trip may be are left out.
    pub fn next_us(&mut self, random: u64) -> u64 {
        const SKIPPED: u32 = 3;
        let wait = dial_us(self.begun.saturating_add(SKIPPED), random);
        self.begun = self.begun.saturating_add(1);
        wait
    }
}

/// Counts failures in a row and the time since the first of them.
#[derive(Debug, Clone, Copy)]
pub struct Patience {
    budget_us: u64,
    failures: u32,
    redirects: u32,
    since: Option<Instant>,
}

impl Patience {
    /// Fresh patience with this budget.
    pub fn new(budget_us: u64) -> Patience {
        Patience {
            budget_us,
            failures: 0,
            redirects: 0,
            since: None,
        }
    }

    /// There was progress: all is forgotten.
    pub fn reset(&mut self) {
        *self = Patience::new(self.budget_us);
    }

    /// Trouble began, unless it had begun before.
    pub fn begin(&mut self, now: Instant) {
        self.since.get_or_insert(now);
    }

    /// When the budget is spent, if there is trouble.
    pub fn deadline(&self) -> Option<Instant> {
        self.since.map(|since| since.plus_us(self.budget_us))
    }

    /// Whether the budget is spent.
    pub fn is_spent(&self, now: Instant) -> bool {
        self.deadline().is_some_and(|deadline| now >= deadline)
    }

    /// When to try again after a failure; not before `after_us` from now if the star said so.
    pub fn next_attempt(&mut self, at: Moment, after_us: Option<u64>) -> Instant {
        let wait = backoff_us(self.failures, at.random).max(after_us.unwrap_or(0));
        self.failures = self.failures.saturating_add(1);
        at.now.plus_us(wait)
    }

    /// When to try again after an attempt that the star did not answer, or a connection lost.
    pub fn next_dial(&mut self, at: Moment) -> Instant {
        let wait = dial_us(self.failures, at.random);
        self.failures = self.failures.saturating_add(1);
        at.now.plus_us(wait)
    }

    /// Whether one more redirect may be followed without a wait.
    pub fn redirect_at_once(&mut self) -> bool {
        self.redirects = self.redirects.saturating_add(1);
        self.redirects <= REDIRECTS_AT_ONCE_MAX
    }
}

#[cfg(test)]
#[path = "retry_tests.rs"]
mod tests;
