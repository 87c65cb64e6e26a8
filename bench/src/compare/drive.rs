//! The same work for every system: who appends how much, and how it is timed.
//!
//! ```text
//!   send send send acked send acked ...     window 3: at most 3 batches unanswered
//! ```
//!
//! # Invariants
//! - A batch counts from before it is sent until the system has said that it is durable.
//! - All producers run on one thread, for every system.

use crate::error::BenchError;
use crate::series::Times;
use std::collections::VecDeque;
use std::pin::Pin;
use std::time::{Duration, Instant};

/// Bytes of a record's body.
pub const RECORD_BYTES: usize = 1024;

/// What a system does on behalf of the comparison.
pub type Work<'a, T> = Pin<Box<dyn Future<Output = Result<T, BenchError>> + 'a>>;

/// One system, running.
pub trait System {
    /// Makes an empty stream.
    fn make<'a>(&'a self, stream: &'a str) -> Work<'a, ()>;

    /// Appends to it.
    fn append<'a>(&'a self, stream: &'a str, job: Job) -> Work<'a, Appended>;

    /// Reads a stream of so many records from its start to its end.
    fn read<'a>(&'a self, stream: &'a str, records: usize) -> Work<'a, Duration>;
}

/// Appends of all producers together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Job {
    /// Each with a connection or session of its own, all to one stream.
    pub producers: usize,
    /// Records that are sent together and answered together.
    pub batch: usize,
    /// Batches of a producer that are unanswered at a time.
    pub window: usize,
    /// When a producer sends no more.
    pub until: Until,
}

/// How long a producer goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Until {
    /// So long: a system's rate is not that of its first moments, however fast it is.
    Elapsed(Duration),
    /// So many batches.
    Batches(usize),
}

/// What came of it.
#[derive(Debug, Default)]
pub struct Appended {
    /// From the first batch to the last answer.
    pub time: Duration,
    /// Records of all producers.
    pub records: usize,
    /// Of each batch.
    pub acks: Times,
}

/// One producer of a system.
pub trait Writer: 'static {
    /// Sends a batch.
    async fn send(&mut self, records: usize) -> Result<(), BenchError>;

    /// Waits until the oldest batch that is unanswered is durable.
    async fn acked(&mut self) -> Result<(), BenchError>;
}

/// Does a job with producers that are connected already, each a local task of the runtime.
pub async fn drive<W: Writer>(writers: Vec<W>, job: Job) -> Result<Appended, BenchError> {
    let begun = Instant::now();
    let running: Vec<_> = writers
        .into_iter()
        .map(|writer| tokio::task::spawn_local(produce(writer, job)))
        .collect();
    let mut all = Appended::default();
    for producer in running {
        let done = producer.await.map_err(std::io::Error::other);
        let done = done.map_err(BenchError::io("a producer"))??;
        all.acks.merge(&done.acks);
        all.records += done.records;
    }
    let time = begun.elapsed();
    Ok(Appended { time, ..all })
}

async fn produce(mut writer: impl Writer, job: Job) -> Result<Appended, BenchError> {
    let mut done = Appended::default();
    let mut unanswered = VecDeque::with_capacity(job.window);
    let begun = Instant::now();
    loop {
        if unanswered.len() == job.window {
            answered(&mut writer, &mut unanswered, &mut done.acks).await?;
        }
        let now = Instant::now();
        let goes_on = match job.until {
            Until::Elapsed(time) => now.duration_since(begun) < time,
            Until::Batches(batches) => done.records < batches * job.batch,
        };
        if !goes_on {
            break;
        }
        unanswered.push_back(now);
        writer.send(job.batch).await?;
        done.records += job.batch;
    }
    while !unanswered.is_empty() {
        answered(&mut writer, &mut unanswered, &mut done.acks).await?;
    }
    Ok(done)
}

async fn answered(
    writer: &mut impl Writer,
    unanswered: &mut VecDeque<Instant>,
    times: &mut Times,
) -> Result<(), BenchError> {
    writer.acked().await?;
    if let Some(sent) = unanswered.pop_front() {
        times.record(sent.elapsed());
    }
    Ok(())
}

#[cfg(test)]
#[path = "drive_tests.rs"]
mod tests;
