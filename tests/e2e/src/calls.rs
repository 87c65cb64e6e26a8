//! Calls of the SDK as tests make them: in time, and with a name that says what failed.
//!
//! # Invariants
//! - No call waits longer than [`PATIENCE`].

use crate::process::PATIENCE;
use bytes::Bytes;
use nova_client::{
    BucketName, BucketSettings, Client, ClientError, FencingToken, ProducerConfig, ProducerPolicy,
    ReadBatch, ReadItem, ReadOpen, StreamName, StreamSettings, read_from,
};

/// A stream of the tests' bucket.
pub fn stream(key: &str) -> StreamName {
    StreamName::parse(&format!("tests/{key}")).expect("a legal name")
}

/// Waits for a future, and not for ever.
pub async fn in_time<T>(what: &str, future: impl Future<Output = T>) -> T {
    let waited = tokio::time::timeout(PATIENCE, future).await;
    waited.unwrap_or_else(|_| panic!("not within {PATIENCE:?}: {what}"))
}

/// Makes the tests' bucket and a stream in it.
pub async fn make_stream(client: &Client, key: &str) -> StreamName {
    let bucket = BucketName::parse("tests").expect("a legal name");
    let made = client.ensure_bucket(bucket, BucketSettings::default());
    in_time("a bucket", made).await.expect("a bucket");
    let made = client.create_stream(stream(key), StreamSettings::default());
    in_time("a stream", made).await.expect("a stream");
    stream(key)
}

/// Makes a stream with this policy in the tests' bucket, which must be there.
pub async fn make_with_policy(client: &Client, key: &str, policy: ProducerPolicy) -> StreamName {
    let settings = StreamSettings {
        policy: Some(policy),
        ..StreamSettings::default()
    };
    let made = client.create_stream(stream(key), settings);
    in_time("a stream", made).await.expect("a stream");
    stream(key)
}

/// A fencing token.
pub fn token(text: &str) -> FencingToken {
    FencingToken::parse(text).expect("a legal token")
}

/// Producer settings with a fencing token.
pub fn with_fence(text: &str) -> ProducerConfig {
    ProducerConfig {
        fence: Some(token(text)),
        ..ProducerConfig::default()
    }
}

/// All batches of a read that ends.
pub async fn batches(client: &Client, open: ReadOpen) -> Result<Vec<ReadBatch>, ClientError> {
    let mut reader = in_time("a reader", client.read(open)).await?;
    let mut batches = Vec::new();
    while let Some(item) = in_time("a batch", reader.next_batch()).await? {
        if let ReadItem::Batch(batch) = item {
            batches.push(batch);
        }
    }
    Ok(batches)
}

/// All bodies of a read that ends, with their sequence numbers.
pub async fn bodies_of(client: &Client, open: ReadOpen) -> Result<Vec<(u64, Bytes)>, ClientError> {
    let batches = batches(client, open).await?;
    let records = batches.iter().flat_map(ReadBatch::to_records);
    Ok(records
        .map(|(position, record)| (position.sequence.0, record.body))
        .collect())
}

/// All bodies of a stream, which must be numbered from 0 without gaps.
pub async fn all_bodies(client: &Client, name: &StreamName) -> Vec<Bytes> {
    let read = bodies_of(client, read_from(name.clone(), 0))
        .await
        .expect("a read");
    let numbers = read.iter().map(|(sequence, _)| *sequence);
    assert!(numbers.eq(0..read.len() as u64), "a gap in {name}");
    read.into_iter().map(|(_, body)| body).collect()
}
