//! One session under load: an open loop by a schedule, or a closed loop.
//!
//! ```text
//!   open:    schedule --due--> send --ticket--> collect        two halves of one task
//!                                ^ waits when the SDK or the tickets are full; the schedule does
//!                                  not: what is due meanwhile is sent later, late
//!   closed:  send while fewer than N are unanswered, then wait for the first
//! ```
//! What is due and not sent is a number, not a queue. It is bounded all the same: what is later
//! than [`PATIENCE`] is given up, counted, and in the latencies as late as it then was.
//!
//! # Invariants
//! - Every record that was sent is either in the digest or counted as failed.
//! - The latency of a record counts from the time that the schedule has for it.

use crate::error::BenchError;
use crate::run::bodies::{Bodies, Digest};
use crate::run::pacer::Pacer;
use crate::run::recorder::Shared;
use crate::run::schedule::Schedule;
use nova_client::{Appended, Producer, Record, Ticket};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tokio::sync::mpsc;

/// How late a record of an open loop may be sent.
pub const PATIENCE: Duration = Duration::from_secs(10);
/// Records of a session that are sent and whose result was not looked at.
const TICKETS_MAX: usize = 32 * 1024;

/// What all sessions of a thread have.
#[derive(Debug, Clone)]
pub struct Drive {
    /// When the first record of all is due.
    pub start: Instant,
    /// What is due before is sent and not counted.
    pub warm_up: Duration,
    /// What is due then is not sent any more.
    pub end: Duration,
    /// Counted records of a session at most.
    pub records_max: u64,
    /// Where times go.
    pub recorder: Shared,
    /// What is sent.
    pub bodies: Arc<Bodies>,
    /// The clock.
    pub pacer: Pacer,
    /// Ends the load early.
    pub is_over: Arc<AtomicBool>,
}

/// What a session came to.
#[derive(Debug, Clone, Default)]
pub struct SessionEnd {
    /// All that was acked.
    pub digest: Digest,
    /// Appends without a result.
    pub failed: u64,
    /// Why the first of them has none.
    pub first_failure: Option<String>,
}

struct Sent {
    ticket: Ticket,
    /// When it was due, since the start.
    due: Duration,
    hash: u64,
}

impl Drive {
    fn is_counted(&self, due: Duration) -> bool {
        due >= self.warm_up
    }

    fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }

    /// Takes a result down.
    fn settle(
        &self,
        end: &mut SessionEnd,
        (due, hash): (Duration, u64),
        result: Result<Appended, nova_client::ClientError>,
    ) {
        let now = Instant::now();
        let late = now.saturating_duration_since(self.start + due);
        match result {
            Ok(appended) => {
                end.digest.add(appended.start.sequence.0, hash);
                if !self.is_counted(due) {
                    return;
                }
                let times = appended.times;
                let micros = |us: u32| Duration::from_micros(u64::from(us));
                self.recorder.with(|recorder| {
                    recorder.latency.record(late);
                    recorder.queued.record(micros(times.queued_us));
                    recorder.written.record(micros(times.written_us));
                    recorder.inside.record(micros(times.total_us));
                    recorder.last = Some(now);
                    recorder.acked += 1;
                    recorder.acked_bytes += hash & 0xffff_ffff;
                });
            }
            Err(error) => {
                end.failed += 1;
                end.first_failure.get_or_insert(error.to_string());
                if self.is_counted(due) {
                    self.recorder.with(|recorder| {
                        recorder.failed += 1;
                        recorder.latency.record(late);
                    });
                }
            }
        }
    }
}

/// Sends by the schedule, whatever the star does.
pub async fn open_loop(
    producer: &Producer,
    schedule: Schedule,
    drive: &Drive,
) -> Result<SessionEnd, BenchError> {
    let (sender, receiver) = mpsc::channel(TICKETS_MAX);
    let (sent, end) = tokio::join!(
        send(producer, schedule, drive, sender),
        collect(drive, receiver)
    );
    sent.map(|()| end)
}

async fn send(
    producer: &Producer,
    schedule: Schedule,
    drive: &Drive,
    sent: mpsc::Sender<Sent>,
) -> Result<(), BenchError> {
    let failed = BenchError::client("appending a record");
    let mut number = 0;
    loop {
        let due = schedule.due(number);
        if due >= drive.end || drive.is_over() {
            return Ok(());
        }
        drive.pacer.until(drive.start + due).await;
        let now = drive.start.elapsed();
        let behind = schedule.due_by(now.min(drive.end)).saturating_sub(number);
        let too_late = now
            .checked_sub(PATIENCE)
            .map_or(0, |limit| schedule.due_by(limit).saturating_sub(number));
        if drive.is_counted(due) && behind > 1 {
            drive
                .recorder
                .with(|recorder| recorder.behind_max = recorder.behind_max.max(behind));
        }
        if too_late > 0 {
            if drive.is_counted(due) {
                drive
                    .recorder
                    .with(|recorder| recorder.give_up(too_late, now - due));
            }
            number += too_late;
            continue;
        }
        let (body, hash) = drive.bodies.get(number);
        let ticket = producer.append_async(Record::new(body)).await;
        let ticket = ticket.map_err(&failed)?;
        if sent.send(Sent { ticket, due, hash }).await.is_err() {
            return Ok(());
        }
        number += 1;
    }
}

/// Results come in the order of the appends.
async fn collect(drive: &Drive, mut sent: mpsc::Receiver<Sent>) -> SessionEnd {
    let mut end = SessionEnd::default();
    while let Some(Sent { ticket, due, hash }) = sent.recv().await {
        let result = ticket.await;
        drive.settle(&mut end, (due, hash), result);
    }
    end
}

/// Keeps `in_flight` records unanswered.
pub async fn closed_loop(
    producer: &Producer,
    in_flight: usize,
    drive: &Drive,
) -> Result<SessionEnd, BenchError> {
    let failed = BenchError::client("appending a record");
    let mut end = SessionEnd::default();
    let mut sent: VecDeque<Sent> = VecDeque::with_capacity(in_flight);
    let (mut number, mut counted) = (0, 0);
    loop {
        let now = drive.start.elapsed();
        let goes_on = now < drive.end && counted < drive.records_max && !drive.is_over();
        if goes_on && sent.len() < in_flight {
            let (body, hash) = drive.bodies.get(number);
            let ticket = producer.append_async(Record::new(body)).await;
            sent.push_back(Sent {
                ticket: ticket.map_err(&failed)?,
                due: now,
                hash,
            });
            number += 1;
            counted += u64::from(drive.is_counted(now));
            continue;
        }
        match sent.pop_front() {
            Some(Sent { ticket, due, hash }) => {
                let result = ticket.await;
                drive.settle(&mut end, (due, hash), result);
            }
            None => return Ok(end),
        }
    }
}
