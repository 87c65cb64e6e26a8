//! When to try again: exponential backoff with jitter, within a budget of time.
//!
//! The budget runs from the first trouble until progress is made, so a link that opens and breaks
//! over and over without a single ack is given up too.

use crate::core::Moment;
use nova_model::Instant;

/// The first wait of a backoff, in microseconds.
pub const BACKOFF_US_MIN: u64 = 20_000;
/// The longest wait of a backoff, in microseconds.
pub const BACKOFF_US_MAX: u64 = 2_000_000;
/// Redirects that are followed at once, one after another, before a backoff.
pub const REDIRECTS_AT_ONCE_MAX: u32 = 4;

/// The wait after the `failures`-th failure in a row (from 0), between half and all of the step.
/// Example: the third wait is 40 to 80 ms.
pub fn backoff_us(failures: u32, random: u64) -> u64 {
    let step = BACKOFF_US_MIN
        .saturating_mul(1 << failures.min(16))
        .min(BACKOFF_US_MAX);
    let half = step / 2;
    half + random % (step - half + 1)
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

    /// Whether one more redirect may be followed without a wait.
    pub fn redirect_at_once(&mut self) -> bool {
        self.redirects = self.redirects.saturating_add(1);
        self.redirects <= REDIRECTS_AT_ONCE_MAX
    }
}

#[cfg(test)]
#[path = "retry_tests.rs"]
mod tests;
