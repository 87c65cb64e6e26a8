//! What one thread has measured since it was looked at last.
//!
//! # Invariants
//! - The times of a record that was given up unsent are in the latencies, too: it is as late as it
//!   was when it was given up.

use crate::series::Times;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// What was measured.
#[derive(Debug, Clone, Default)]
pub struct Recorder {
    /// From the intended send time to the durable ack.
    pub latency: Times,
    /// The star's part: from arrival until the group was sent to the disk.
    pub queued: Times,
    /// The star's part: from then until it was durable.
    pub written: Times,
    /// The star's part: from arrival until the answer.
    pub inside: Times,
    /// From the arrival in the star, by its clock, to a follower on the same machine.
    pub delivered: Times,
    /// Records that are durable.
    pub acked: u64,
    /// Bytes of their bodies.
    pub acked_bytes: u64,
    /// Records that were due so long before that they were never sent.
    pub given_up: u64,
    /// Records that have no positions.
    pub failed: u64,
    /// The most records of one session that were due and not sent.
    pub behind_max: u64,
    /// Records that readers were given.
    pub read: u64,
    /// Bytes of their bodies.
    pub read_bytes: u64,
    /// When the last record was acked or read.
    pub last: Option<Instant>,
}

impl Recorder {
    /// Adds what another one has.
    pub fn merge(&mut self, other: &Recorder) {
        self.latency.merge(&other.latency);
        self.queued.merge(&other.queued);
        self.written.merge(&other.written);
        self.inside.merge(&other.inside);
        self.delivered.merge(&other.delivered);
        self.acked += other.acked;
        self.acked_bytes += other.acked_bytes;
        self.given_up += other.given_up;
        self.failed += other.failed;
        self.behind_max = self.behind_max.max(other.behind_max);
        self.read += other.read;
        self.read_bytes += other.read_bytes;
        self.last = self.last.max(other.last);
    }

    /// Takes down records that were given up, the first of them so late.
    pub fn give_up(&mut self, records: u64, late: Duration) {
        self.given_up += records;
        self.latency.record_many(late, records);
    }
}

/// A recorder that its thread writes and another one takes.
#[derive(Debug, Clone, Default)]
pub struct Shared(Arc<Mutex<Recorder>>);

impl Shared {
    /// Changes it.
    pub fn with<T>(&self, change: impl FnOnce(&mut Recorder) -> T) -> T {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// What was measured since the last time.
    pub fn take(&self) -> Recorder {
        let fresh = Recorder::default();
        self.with(|recorder| std::mem::replace(recorder, fresh))
    }
}
