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

use nova_client::{
    AppendOnce, Appended, Client, ClientError, Code, Conditions, Producer, ProducerConfig, Record,
    Refusal, StreamName,
};
use nova_e2e::calls::{
    all_bodies, batches, bodies_of, in_time, make_stream, make_with_policy, stream, token,
    with_fence,
};
use nova_e2e::home::{Home, Site};
use nova_e2e::load;
use nova_model::request::AppendOpen;
use std::path::PathBuf;

/// Where the binary is and where data directories lie: beside the build, on its file system.
const SITE: Site = Site {
    binary: env!("CARGO_BIN_EXE_nova-under-test"),
    scratch: env!("CARGO_TARGET_TMPDIR"),
};

/// The folder of a home's log.
fn log_folder(home: &Home, core: usize) -> PathBuf {
    home.data().join(format!("core-{core:03}"))
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
