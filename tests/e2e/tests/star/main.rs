//! The promises of nova, kept by the real server, client and command line on real files.
//!
//! One program, so that it is linked once; `cargo test -p nova-e2e WORD` runs the tests with a word
//! in their path. `NOVA_E2E_KILLS` sets how often the kill test kills.

mod append_read;
mod bad_input;
mod bench;
mod cli;
mod conditions;
mod damage;
mod descriptors;
mod errors;
mod examples;
mod fencing;
mod forget;
mod full_disk;
mod full_stop;
mod http;
mod http_bad_input;
mod http_durable;
mod http_follow;
mod http_life;
mod idle;
mod kill;
mod leadership;
mod load;
mod many_streams;
mod moves;
mod network;
mod operate;
mod pipelines;
mod policy;
mod raw;
mod recovery;
mod repeats;
mod restart;
mod rewrite;
mod shutdown;
mod stalled;
mod start_failures;
mod streams;
mod upheaval;

use bytes::Bytes;
use nova_client::{
    AppendOnce, Appended, BucketName, BucketSettings, Client, ClientError, Code, Conditions,
    FencingToken, Producer, ProducerConfig, ProducerPolicy, ReadBatch, ReadItem, ReadOpen, Record,
    Refusal, StreamName, StreamSettings, read_from,
};
use nova_e2e::home::{Home, Site};
use nova_e2e::process::PATIENCE;
use nova_model::request::AppendOpen;
use std::path::PathBuf;

/// Where the binary is and where data directories lie: beside the build, on its file system.
const SITE: Site = Site {
    binary: env!("CARGO_BIN_EXE_nova-under-test"),
    scratch: env!("CARGO_TARGET_TMPDIR"),
};

/// A stream of the tests' bucket.
fn stream(key: &str) -> StreamName {
    StreamName::parse(&format!("tests/{key}")).expect("a legal name")
}

/// The folder of a home's log.
fn log_folder(home: &Home, core: usize) -> PathBuf {
    home.data().join(format!("core-{core:03}"))
}

/// Waits for a future, and not for ever.
async fn in_time<T>(what: &str, future: impl Future<Output = T>) -> T {
    let waited = tokio::time::timeout(PATIENCE, future).await;
    waited.unwrap_or_else(|_| panic!("not within {PATIENCE:?}: {what}"))
}

/// Makes the tests' bucket and a stream in it.
async fn make_stream(client: &Client, key: &str) -> StreamName {
    let bucket = BucketName::parse("tests").expect("a legal name");
    let made = client.ensure_bucket(bucket, BucketSettings::default());
    in_time("a bucket", made).await.expect("a bucket");
    let made = client.create_stream(stream(key), StreamSettings::default());
    in_time("a stream", made).await.expect("a stream");
    stream(key)
}

/// Makes a stream with this policy in the tests' bucket, which must be there.
async fn make_with_policy(client: &Client, key: &str, policy: ProducerPolicy) -> StreamName {
    let settings = StreamSettings {
        policy: Some(policy),
        ..StreamSettings::default()
    };
    let made = client.create_stream(stream(key), settings);
    in_time("a stream", made).await.expect("a stream");
    stream(key)
}

/// A fencing token.
fn token(text: &str) -> FencingToken {
    FencingToken::parse(text).expect("a legal token")
}

/// Producer settings with a fencing token.
fn with_fence(text: &str) -> ProducerConfig {
    ProducerConfig {
        fence: Some(token(text)),
        ..ProducerConfig::default()
    }
}

/// Installs a token whatever is there; the tail it was installed at.
async fn fence(client: &Client, name: &StreamName, text: &str) -> u64 {
    let fence = client.fence(name.clone(), token(text), Conditions::default());
    let tail = in_time("a fence", fence).await.expect("a fence");
    tail.sequence.0
}

/// The open frame of an append session without a writer.
fn append_open(name: &StreamName, fence: Option<&str>) -> AppendOpen {
    AppendOpen {
        stream: name.clone(),
        fence: fence.map(token),
        writer: None,
    }
}

/// A producer with the default settings.
fn producer(client: &Client, name: &StreamName) -> Producer {
    client
        .producer(name.clone(), ProducerConfig::default())
        .expect("legal settings")
}

/// Appends records one after the other, each in a group of its own.
async fn append_each(client: &Client, name: &StreamName, bodies: impl Iterator<Item = Vec<u8>>) {
    let producer = producer(client, name);
    for body in bodies {
        let appended = in_time("an append", producer.append(Record::new(body))).await;
        appended.expect("an append");
    }
    in_time("a close", producer.close())
        .await
        .expect("all was appended");
}

/// Appends one record without a session.
async fn append_once(
    client: &Client,
    name: &StreamName,
    record: Record,
) -> Result<Appended, ClientError> {
    let records = [record];
    let once = client.append_once(name.clone(), &records, AppendOnce::default());
    in_time("a one-shot append", once).await
}

/// All batches of a read that ends.
async fn batches(client: &Client, open: ReadOpen) -> Result<Vec<ReadBatch>, ClientError> {
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
async fn bodies_of(client: &Client, open: ReadOpen) -> Result<Vec<(u64, Bytes)>, ClientError> {
    let batches = batches(client, open).await?;
    let records = batches.iter().flat_map(ReadBatch::to_records);
    Ok(records
        .map(|(position, record)| (position.sequence.0, record.body))
        .collect())
}

/// All bodies of a stream, which must be numbered from 0 without gaps.
async fn all_bodies(client: &Client, name: &StreamName) -> Vec<Bytes> {
    let read = bodies_of(client, read_from(name.clone(), 0))
        .await
        .expect("a read");
    let numbers = read.iter().map(|(sequence, _)| *sequence);
    assert!(numbers.eq(0..read.len() as u64), "a gap in {name}");
    read.into_iter().map(|(_, body)| body).collect()
}

/// The refusal that a call must have come to.
#[track_caller]
fn refusal<T: std::fmt::Debug>(result: Result<T, ClientError>, code: Code) -> Refusal {
    match result {
        Err(ClientError::Refused(refusal)) if refusal.code == code => refusal,
        other => panic!("not refused as {code}: {other:?}"),
    }
}

/// A body that tells its number.
fn numbered(n: u64) -> Vec<u8> {
    format!("record {n}").into_bytes()
}
