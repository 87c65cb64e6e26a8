//! Readers of a load: they follow a stream while it grows, or go from its start to its tail.

use crate::error::BenchError;
use crate::run::bodies::{Digest, hash};
use crate::run::recorder::Shared;
use nova_client::{Client, ReadBatch, ReadItem, ReadStart, Reader, StreamName, read_from};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Opens a reader at the tail that follows.
pub async fn follower(client: &Client, stream: StreamName) -> Result<Reader, BenchError> {
    let mut open = read_from(stream, 0);
    open.start = ReadStart::TailOffset(0);
    open.follow = true;
    let reader = client.read(open).await;
    reader.map_err(BenchError::client("opening a reader"))
}

/// Follows without an end.
pub async fn follow(mut reader: Reader, recorder: &Shared) -> Result<(), BenchError> {
    let failed = BenchError::client("following a stream");
    while let Some(item) = reader.next_batch().await.map_err(&failed)? {
        if let ReadItem::Batch(batch) = item {
            note(&batch, recorder);
        }
    }
    Ok(())
}

/// A reader is told a batch at a time; the times are those of its last record.
fn note(batch: &ReadBatch, recorder: &Shared) {
    let (mut bytes, mut last) = (0, 0);
    batch.for_each(|position, record| {
        bytes += record.body().len() as u64;
        last = position.timestamp.0;
    });
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let now = now.unwrap_or_default();
    let arrived = Duration::from_micros(last);
    recorder.with(|recorder| {
        recorder.read += u64::from(batch.records());
        recorder.read_bytes += bytes;
        recorder.last = Some(Instant::now());
        let delivered = now.saturating_sub(arrived);
        recorder
            .delivered
            .record_many(delivered, u64::from(batch.records()));
    });
}

/// Reads a stream from its start to its tail, and gives what it holds.
pub async fn read_all(
    client: &Client,
    stream: StreamName,
    recorder: &Shared,
) -> Result<Digest, BenchError> {
    let failed = BenchError::client("reading a stream");
    let reader = client.read(read_from(stream, 0)).await;
    let mut reader = reader.map_err(BenchError::client("opening a reader"))?;
    let mut digest = Digest::default();
    while let Some(item) = reader.next_batch().await.map_err(&failed)? {
        let ReadItem::Batch(batch) = item else {
            continue;
        };
        let mut bytes = 0;
        batch.for_each(|position, record| {
            bytes += record.body().len() as u64;
            digest.add(position.sequence.0, hash(record.body()));
        });
        recorder.with(|recorder| {
            recorder.read += u64::from(batch.records());
            recorder.read_bytes += bytes;
            recorder.last = Some(Instant::now());
        });
    }
    Ok(digest)
}
