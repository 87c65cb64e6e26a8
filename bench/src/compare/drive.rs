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
use tokio::task::LocalSet;

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
    /// Batches of a producer.
    pub batches: usize,
}

impl Job {
    /// Records of all producers.
    pub fn records(&self) -> usize {
        self.producers * self.batch * self.batches
    }
}

/// What came of it.
#[derive(Debug, Default)]
pub struct Appended {
    /// From the first batch to the last answer.
    pub time: Duration,
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

/// Does a job with producers that are connected already.
pub async fn drive<W: Writer>(writers: Vec<W>, job: Job) -> Result<Appended, BenchError> {
    let local = LocalSet::new();
    let begun = Instant::now();
    let running: Vec<_> = writers
        .into_iter()
        .map(|writer| local.spawn_local(produce(writer, job)))
        .collect();
    let gathered = local.run_until(async {
        let mut acks = Times::default();
        for producer in running {
            let times = producer.await.map_err(std::io::Error::other);
            acks.merge(&times.map_err(BenchError::io("a producer"))??);
        }
        Ok::<Times, BenchError>(acks)
    });
    let acks = gathered.await?;
    let time = begun.elapsed();
    Ok(Appended { time, acks })
}

async fn produce(mut writer: impl Writer, job: Job) -> Result<Times, BenchError> {
    let mut times = Times::default();
    let mut unanswered = VecDeque::with_capacity(job.window);
    for _ in 0..job.batches {
        if unanswered.len() == job.window {
            answered(&mut writer, &mut unanswered, &mut times).await?;
        }
        unanswered.push_back(Instant::now());
        writer.send(job.batch).await?;
    }
    while !unanswered.is_empty() {
        answered(&mut writer, &mut unanswered, &mut times).await?;
    }
    Ok(times)
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
