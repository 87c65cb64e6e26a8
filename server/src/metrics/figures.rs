//! The figures of one core: its thread notes them, the gateway reads them.
//!
//! # Invariants
//! - Noting never waits and allocates nothing.

use super::histogram::{Histogram, SIZE_BOUNDS_BYTES, TIME_BOUNDS_US};
use nova_core::disk::DiskOp;
use nova_core::{Event, Shard};
use nova_model::{Code, EncodedBatch, Refusal};
use std::sync::atomic::{AtomicU64, Ordering};

/// Histograms of times.
pub(crate) type Times = Histogram<{ TIME_BOUNDS_US.len() }>;
/// Histograms of sizes.
pub(crate) type Sizes = Histogram<{ SIZE_BOUNDS_BYTES.len() }>;

/// What only grows.
#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    pub(crate) fn add(&self, more: u64) {
        self.0.fetch_add(more, Ordering::Relaxed);
    }

    pub(crate) fn value(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// What is as it is at the moment.
#[derive(Debug, Default)]
pub(crate) struct Gauge(AtomicU64);

impl Gauge {
    pub(crate) fn set(&self, value: u64) {
        self.0.store(value, Ordering::Relaxed);
    }

    pub(crate) fn value(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// The figures of one core.
#[derive(Debug)]
pub(crate) struct CoreFigures {
    /// From the arrival of a batch until its group was sent to the disk.
    pub(crate) queued_us: Times,
    /// From then until it was durable.
    pub(crate) written_us: Times,
    /// From arrival to the ack.
    pub(crate) total_us: Times,
    /// Length of a turn.
    pub(crate) turn_us: Times,
    /// Bytes of a write of the log.
    pub(crate) group_bytes: Sizes,
    /// Batches that arrived, their records and bytes.
    pub(crate) batches_in: Counter,
    pub(crate) records_in: Counter,
    pub(crate) bytes_in: Counter,
    /// Batches that were acked.
    pub(crate) acks: Counter,
    /// Those of them that were repeats.
    pub(crate) repeats: Counter,
    /// Batches that were handed to readers, their records and bytes.
    pub(crate) batches_out: Counter,
    pub(crate) records_out: Counter,
    pub(crate) bytes_out: Counter,
    /// Reads from disk.
    pub(crate) disk_reads: Counter,
    pub(crate) disk_read_bytes: Counter,
    /// Segments made.
    pub(crate) segments_made: Counter,
    /// Segments in which nothing was needed any more.
    pub(crate) segments_recycled: Counter,
    /// Segments that were mostly dead and were rewritten, the bytes copied for that, and those that
    /// came free.
    pub(crate) segments_rewritten: Counter,
    pub(crate) rewritten_bytes: Counter,
    pub(crate) rewriting_freed_bytes: Counter,
    /// Refusals, by code.
    refusals: [Counter; Code::ALL.len()],
    /// Open append sessions.
    pub(crate) sessions: Gauge,
    /// Open readers.
    pub(crate) readers: Gauge,
    /// Streams in memory.
    pub(crate) streams_loaded: Gauge,
    /// Streams that the core leads.
    pub(crate) streams_led: Gauge,
    /// Bytes admitted and not yet durable.
    pub(crate) pending_bytes: Gauge,
    /// Bytes of the newest batches.
    pub(crate) recent_bytes: Gauge,
    /// The least that appends leave free.
    pub(crate) disk_floor_bytes: Gauge,
    /// 1 while appends are refused for want of space.
    pub(crate) is_disk_full: Gauge,
}

impl CoreFigures {
    pub(crate) fn new() -> CoreFigures {
        CoreFigures {
            queued_us: Histogram::new(&TIME_BOUNDS_US),
            written_us: Histogram::new(&TIME_BOUNDS_US),
            total_us: Histogram::new(&TIME_BOUNDS_US),
            turn_us: Histogram::new(&TIME_BOUNDS_US),
            group_bytes: Histogram::new(&SIZE_BOUNDS_BYTES),
            batches_in: Counter::default(),
            records_in: Counter::default(),
            bytes_in: Counter::default(),
            acks: Counter::default(),
            repeats: Counter::default(),
            batches_out: Counter::default(),
            records_out: Counter::default(),
            bytes_out: Counter::default(),
            disk_reads: Counter::default(),
            disk_read_bytes: Counter::default(),
            segments_made: Counter::default(),
            segments_recycled: Counter::default(),
            segments_rewritten: Counter::default(),
            rewritten_bytes: Counter::default(),
            rewriting_freed_bytes: Counter::default(),
            refusals: std::array::from_fn(|_| Counter::default()),
            sessions: Gauge::default(),
            readers: Gauge::default(),
            streams_loaded: Gauge::default(),
            streams_led: Gauge::default(),
            pending_bytes: Gauge::default(),
            recent_bytes: Gauge::default(),
            disk_floor_bytes: Gauge::default(),
            is_disk_full: Gauge::default(),
        }
    }

    /// A batch has arrived.
    pub(crate) fn note_batch(&self, batch: &EncodedBatch) {
        self.batches_in.add(1);
        self.records_in.add(u64::from(batch.records()));
        self.bytes_in.add(batch.bytes().len() as u64);
    }

    /// The disk is asked for something.
    pub(crate) fn note_op(&self, op: &DiskOp) {
        match op {
            DiskOp::Write { length, .. } => self.group_bytes.note(*length as u64),
            DiskOp::Read { length, .. } => {
                self.disk_reads.add(1);
                self.disk_read_bytes.add(*length as u64);
            }
            DiskOp::CreateSegment { .. } => self.segments_made.add(1),
            DiskOp::Recycle { .. } => self.segments_recycled.add(1),
            DiskOp::WriteDraft { length, .. } => self.rewritten_bytes.add(*length as u64),
            _ => {}
        }
    }

    /// The shard has said something.
    pub(crate) fn note_event(&self, event: &Event) {
        match event {
            Event::Acked(_, ack) | Event::AppendedOnce(_, Ok(ack)) => {
                self.acks.add(1);
                self.repeats.add(u64::from(ack.duplicate));
                self.queued_us.note(u64::from(ack.times.queued_us));
                self.written_us.note(u64::from(ack.times.written_us));
                self.total_us.note(u64::from(ack.times.total_us));
            }
            Event::Rewritten { before, after, .. } => {
                self.segments_rewritten.add(1);
                let freed = before.saturating_sub(*after);
                self.rewriting_freed_bytes.add(freed);
            }
            Event::ReaderBatch(_, batch) => {
                self.batches_out.add(1);
                self.records_out.add(u64::from(batch.batch.records()));
                self.bytes_out.add(batch.batch.bytes().len() as u64);
            }
            Event::SessionRefused(_, refusal)
            | Event::Rejected(_, refusal)
            | Event::SessionBroken(_, refusal)
            | Event::AppendedOnce(_, Err(refusal))
            | Event::Answered(_, Err(refusal))
            | Event::ReaderRefused(_, refusal)
            | Event::ReaderFailed(_, refusal) => self.note_refusal(refusal),
            _ => {}
        }
    }

    fn note_refusal(&self, refusal: &Refusal) {
        let at = Code::ALL.iter().position(|&code| code == refusal.code);
        self.refusals[at.expect("all codes are listed")].add(1);
    }

    /// Refusals of each code.
    pub(crate) fn refusals(&self) -> impl Iterator<Item = (Code, u64)> {
        let counts = self.refusals.iter().map(Counter::value);
        Code::ALL.into_iter().zip(counts)
    }

    /// What takes a look at every stream in memory; to be noted once in a while.
    pub(crate) fn note_streams(&self, shard: &Shard) {
        self.streams_led.set(shard.streams_led() as u64);
    }

    /// A turn is over.
    pub(crate) fn note_turn(&self, us: u64, shard: &Shard) {
        self.turn_us.note(us);
        self.sessions.set(shard.sessions_open() as u64);
        self.readers.set(shard.readers_open() as u64);
        self.streams_loaded.set(shard.streams_loaded() as u64);
        self.pending_bytes.set(shard.pending_bytes() as u64);
        self.recent_bytes.set(shard.recent_bytes() as u64);
        self.disk_floor_bytes.set(shard.disk_floor_bytes());
        self.is_disk_full.set(u64::from(shard.is_disk_full()));
    }
}
