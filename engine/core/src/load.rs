//! How busy a stream is: what was appended and read of late.
//!
//! Each count is a sum that forgets: every quarter of a second a fortieth of it goes. Under a
//! steady rate it settles at ten seconds' worth, and what is ten seconds back counts a third (a
//! time constant of ten seconds). Integers alone, no clock: time is an argument, and an append
//! costs one comparison and two additions.
//!
//! # Not here
//! - What follows from load: [`crate::rebalance`].

use nova_model::Instant;

/// Time between two losses.
const TICK_US: u64 = 250_000;
/// A tick takes one part of this many away.
const TICKS_KEPT: u64 = 40;
/// Ticks after which nothing is left that would count: a sum of 2^48 is below 1 then.
const TICKS_MAX: u64 = 1_400;
/// Seconds of a steady rate that a sum holds.
const SECONDS_HELD: u64 = 10;
/// Sums count in these parts, so that a few records in a second are not rounded away.
const PARTS: u64 = 256;
/// What a record costs besides its bytes, in bytes.
const RECORD_COST_BYTES: u64 = 64;

/// What was done of late.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Load {
    tick: u64,
    appended_bytes: u64,
    appended_records: u64,
    read_bytes: u64,
}

/// What is done in a second.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Rates {
    pub(crate) appended_bytes: u64,
    pub(crate) appended_records: u64,
    pub(crate) read_bytes: u64,
}

impl Load {
    /// A batch was appended.
    pub(crate) fn note_append(&mut self, now: Instant, bytes: u64, records: u64) {
        self.forget(now);
        add(&mut self.appended_bytes, bytes);
        add(&mut self.appended_records, records);
    }

    /// Batches were handed to a reader.
    pub(crate) fn note_read(&mut self, now: Instant, bytes: u64) {
        self.forget(now);
        add(&mut self.read_bytes, bytes);
    }

    /// Takes another one's over.
    pub(crate) fn add(&mut self, now: Instant, mut other: Load) {
        self.forget(now);
        other.forget(now);
        self.appended_bytes = self.appended_bytes.saturating_add(other.appended_bytes);
        self.appended_records = self.appended_records.saturating_add(other.appended_records);
        self.read_bytes = self.read_bytes.saturating_add(other.read_bytes);
    }

    /// The rates of now.
    pub(crate) fn rates(mut self, now: Instant) -> Rates {
        self.forget(now);
        Rates {
            appended_bytes: self.appended_bytes / (PARTS * SECONDS_HELD),
            appended_records: self.appended_records / (PARTS * SECONDS_HELD),
            read_bytes: self.read_bytes / (PARTS * SECONDS_HELD),
        }
    }

    fn forget(&mut self, now: Instant) {
        let tick = now.0 / TICK_US;
        if tick <= self.tick {
            return;
        }
        let ticks = tick - self.tick;
        self.tick = tick;
        if ticks > TICKS_MAX {
            self.appended_bytes = 0;
            self.appended_records = 0;
            self.read_bytes = 0;
            return;
        }
        for sum in [
            &mut self.appended_bytes,
            &mut self.appended_records,
            &mut self.read_bytes,
        ] {
            for _ in 0..ticks {
                if *sum == 0 {
                    break;
                }
                *sum -= sum.div_ceil(TICKS_KEPT);
            }
        }
    }
}

fn add(sum: &mut u64, count: u64) {
    *sum = sum.saturating_add(count.saturating_mul(PARTS));
}

impl Rates {
    /// Both together.
    pub(crate) fn plus(self, other: Rates) -> Rates {
        Rates {
            appended_bytes: self.appended_bytes.saturating_add(other.appended_bytes),
            appended_records: self.appended_records.saturating_add(other.appended_records),
            read_bytes: self.read_bytes.saturating_add(other.read_bytes),
        }
    }

    /// One number to compare by: bytes in a second, a record costing some more.
    pub(crate) fn weight(self) -> u64 {
        let records = self.appended_records.saturating_mul(RECORD_COST_BYTES);
        let bytes = self.appended_bytes.saturating_add(self.read_bytes);
        bytes.saturating_add(records)
    }
}

#[cfg(test)]
#[path = "load_tests.rs"]
mod tests;
