//! When each record is meant to be sent.
//!
//! ```text
//!   all records of a run, at R a second:   0    1    2    3    4    5    6 ...   k / R seconds
//!   session 0 of 3                         *              *              *
//!   session 1 of 3                              *              *
//!   session 2 of 3                                   *              *
//! ```
//! The times are fixed before the first record is sent. A star that is slow makes records late; it
//! does not make the next ones due later, so what waited is seen in the latencies of all records
//! that were due meanwhile (no coordinated omission).
//!
//! # Invariants
//! - The sessions together send record `k` at `k / R`, none twice, none left out.
//! - Times are exact to the nanosecond over a whole run: they are computed from the number of a
//!   record, not by adding intervals.

use std::time::Duration;

const NS: u128 = 1_000_000_000;

/// When the records of one session are due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Schedule {
    per_second: u64,
    sessions: u64,
    session: u64,
}

impl Schedule {
    /// The schedule of session `session` of `sessions`, which send `per_second` records together.
    pub fn new(per_second: u64, sessions: usize, session: usize) -> Schedule {
        assert!(per_second > 0 && session < sessions, "a session of a rate");
        Schedule {
            per_second,
            sessions: sessions as u64,
            session: session as u64,
        }
    }

    /// When the session's record `number` is due, since the start.
    pub fn due(&self, number: u64) -> Duration {
        let all = u128::from(number) * u128::from(self.sessions) + u128::from(self.session);
        nanos(all * NS / u128::from(self.per_second))
    }

    /// How many of the session's records are due at a time since the start.
    pub fn due_by(&self, time: Duration) -> u64 {
        let last = ((time.as_nanos() + 1) * u128::from(self.per_second) - 1) / NS;
        match last.checked_sub(u128::from(self.session)) {
            None => 0,
            Some(behind) => whole(behind / u128::from(self.sessions)) + 1,
        }
    }
}

/// How long so many records take at a rate.
pub fn time_of(records: u64, per_second: u64) -> Duration {
    nanos(u128::from(records) * NS / u128::from(per_second.max(1)))
}

fn nanos(ns: u128) -> Duration {
    Duration::from_nanos(whole(ns))
}

fn whole(number: u128) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX)
}

#[cfg(test)]
#[path = "schedule_tests.rs"]
mod tests;
