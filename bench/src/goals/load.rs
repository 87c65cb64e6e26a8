//! What clients do to a star: closed loops, pipelines, producers that never stop.
//!
//! # Invariants
//! - Everything counts from the call of the SDK to the durable ack that it returns.
//! - Bodies are shared, not made anew: the client's own work is that of the SDK.

use crate::error::BenchError;
use crate::series::Times;
use bytes::Bytes;
use nova_client::{
    BucketName, BucketSettings, Client, Producer, ProducerConfig, Record, StreamName,
    StreamSettings,
};
use std::cell::Cell;
use std::time::{Duration, Instant};

/// The bucket of all streams.
const BUCKET: &str = "bench";

/// Times of a closed loop of appends.
#[derive(Debug, Clone, Default)]
pub struct AckTimes {
    /// From the call to its durable result.
    pub whole: Times,
    /// The star's part: from arrival until the group was sent to the disk.
    pub queued: Times,
    /// The star's part: from then until it was durable.
    pub written: Times,
    /// The star's part: from arrival until the answer.
    pub inside: Times,
}

/// The stream of a number.
pub fn stream_name(number: usize) -> StreamName {
    let name = format!("{BUCKET}/stream-{number}");
    StreamName::parse(&name).expect("letters, digits and dashes are legal")
}

/// Makes the bucket, unless it is there.
pub async fn ensure_bucket(client: &Client) -> Result<(), BenchError> {
    let name = BucketName::parse(BUCKET).expect("letters are legal");
    let made = client.ensure_bucket(name, BucketSettings::default()).await;
    made.map(drop)
        .map_err(BenchError::client("making the bucket"))
}

/// Makes a stream, unless it is there.
pub async fn ensure_stream(client: &Client, name: StreamName) -> Result<(), BenchError> {
    let made = client.ensure_stream(name, StreamSettings::default()).await;
    made.map(drop)
        .map_err(BenchError::client("making a stream"))
}

/// Makes a stream, unless it is there, and a producer for it.
pub async fn producer(client: &Client, number: usize) -> Result<Producer, BenchError> {
    let name = stream_name(number);
    ensure_stream(client, name.clone()).await?;
    client
        .producer(name, ProducerConfig::default())
        .map_err(BenchError::client("opening a producer"))
}

/// A body of a length.
pub fn body(bytes: usize) -> Bytes {
    Bytes::from(vec![b'x'; bytes])
}

/// Appends `count` records, each after the durable ack of the one before.
pub async fn closed_loop(
    producer: &Producer,
    body: &Bytes,
    count: usize,
) -> Result<AckTimes, BenchError> {
    let failed = BenchError::client("appending a record");
    let mut times = AckTimes::default();
    for _ in 0..count {
        let record = Record::new(body.clone());
        let begun = Instant::now();
        let appended = producer.append(record).await.map_err(&failed)?;
        times.whole.record(begun.elapsed());
        let inside = appended.times;
        let micros = |us: u32| Duration::from_micros(u64::from(us));
        times.queued.record(micros(inside.queued_us));
        times.written.record(micros(inside.written_us));
        times.inside.record(micros(inside.total_us));
    }
    Ok(times)
}

/// Appends `count` records one behind the other, batched by the SDK, and gives the time until all
/// of them were durable.
pub async fn pipeline(
    producer: &Producer,
    body: &Bytes,
    count: usize,
) -> Result<Duration, BenchError> {
    let failed = BenchError::client("appending a record");
    let begun = Instant::now();
    for _ in 0..count {
        let record = Record::new(body.clone());
        // The flush tells of every failure; dropping a ticket does not take the append back.
        drop(producer.append_async(record).await.map_err(&failed)?);
    }
    let flushed = producer.flush().await;
    flushed.map_err(BenchError::client("flushing"))?;
    Ok(begun.elapsed())
}

/// How long producers that never stop may go on.
#[derive(Debug)]
pub struct Leash {
    until: Instant,
    bytes_left: Cell<u64>,
}

impl Leash {
    /// Ends after a time, or before when so many bytes were appended: disks end too.
    pub fn new(time: Duration, bytes: u64) -> Leash {
        Leash {
            until: Instant::now() + time,
            bytes_left: Cell::new(bytes),
        }
    }

    /// Whether a record of `bytes` may still be appended; it counts then.
    fn take(&self, bytes: usize) -> bool {
        let may = !self.is_over(bytes);
        if may {
            self.bytes_left.set(self.bytes_left.get() - bytes as u64);
        }
        may
    }

    /// Whether it has ended, for records of `bytes`.
    pub fn is_over(&self, bytes: usize) -> bool {
        Instant::now() >= self.until || self.bytes_left.get() < bytes as u64
    }
}

/// Appends as fast as it goes until the leash ends; waits for all acks and gives the bytes.
pub async fn append_until(
    producer: Producer,
    body: &Bytes,
    leash: &Leash,
) -> Result<u64, BenchError> {
    let failed = BenchError::client("appending a record");
    let mut bytes = 0;
    while leash.take(body.len()) {
        let record = Record::new(body.clone());
        drop(producer.append_async(record).await.map_err(&failed)?);
        bytes += body.len() as u64;
    }
    let closed = producer.close().await;
    closed.map_err(BenchError::client("closing a producer"))?;
    Ok(bytes)
}
