//! The entity writer against a star in memory: real QUIC, lost answers, two writers, fencing.

mod star;

use nova_client::*;
use star::TestStar;
use std::sync::Arc;
use std::time::Duration;

async fn with_entity(star: &TestStar, key: &str) -> (Client, StreamName) {
    let client = Client::connect(star.config()).expect("a client");
    let name = StreamName::parse(&format!("bucket/{key}")).expect("a legal name");
    let made = client
        .ensure_stream(name.clone(), StreamSettings::default())
        .await;
    made.expect("a stream");
    (client, name)
}

fn update(id: u32) -> Update {
    Update::new(format!("id-{id}"), Record::new(format!("body {id}"))).expect("a legal update")
}

fn writer(client: &Client, config: EntityWriterConfig) -> Arc<EntityWriter> {
    Arc::new(client.entity_writer(config).expect("a writer"))
}

/// The ids that are stored, in order.
async fn stored(client: &Client, name: &StreamName) -> Vec<String> {
    let mut reader = client
        .read(read_from(name.clone(), 0))
        .await
        .expect("a reader");
    let mut ids = Vec::new();
    while let Some(item) = reader.next_batch().await.expect("no error") {
        if let ReadItem::Batch(batch) = item {
            batch.for_each(|_, record| {
                let id = record
                    .headers()
                    .find(|(n, _)| *n == UPDATE_ID_HEADER.as_bytes());
                let id = id.expect("an id").1;
                ids.push(String::from_utf8_lossy(id).into_owned());
            });
        }
    }
    ids
}

fn in_order(count: u32) -> Vec<String> {
    (0..count).map(|id| format!("id-{id}")).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn updates_of_an_entity_ride_together_and_are_stored_in_order() {
    let star = TestStar::start();
    assert_eq!(star.address(0), star.config().star);
    let (client, name) = with_entity(&star, "together").await;
    let writer = writer(&client, EntityWriterConfig::default());
    let tickets: Vec<_> = (0..200)
        .map(|id| writer.write_async(name.clone(), update(id)))
        .collect();
    for (at, ticket) in (0..).zip(tickets) {
        let applied = ticket.expect("there is room").await.expect("stored");
        assert_eq!((applied.at, applied.duplicate), (SequenceNumber(at), false));
    }
    let again = writer
        .write(name.clone(), update(150))
        .await
        .expect("found");
    assert_eq!((again.at, again.duplicate), (SequenceNumber(150), true));
    let batches = star.knobs().batches;
    assert!(batches < 100, "{batches} batches for 200 updates");
    writer.close().await;
    assert_eq!(
        writer.write(name.clone(), update(200)).await,
        Err(UpdateError::Closed { is_clean: true })
    );
    assert_eq!(stored(&client, &name).await, in_order(200));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_writers_of_the_same_updates_store_each_once_while_connections_break() {
    let star = TestStar::start();
    let (client, name) = with_entity(&star, "twice").await;
    star.knobs().break_every = Some(5);
    star.knobs().break_reads_every = Some(20);
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..2 {
        let client = Client::connect(star.config()).expect("a client");
        let (writer, name) = (writer(&client, EntityWriterConfig::default()), name.clone());
        tasks.spawn(async move {
            for first in [0, 20, 40] {
                let tickets: Vec<_> = (first..first + 20)
                    .map(|id| writer.write_async(name.clone(), update(id)))
                    .collect();
                for (id, ticket) in (first..).zip(tickets) {
                    let applied = ticket.expect("there is room").await.expect("stored");
                    assert_eq!(applied.at, SequenceNumber(u64::from(id)));
                }
            }
        });
    }
    while let Some(done) = tasks.join_next().await {
        done.expect("no panic");
    }
    star.knobs().break_every = None;
    star.knobs().break_reads_every = None;
    assert_eq!(stored(&client, &name).await, in_order(60));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_that_never_comes_is_found_by_reading() {
    let star = TestStar::start();
    let (client, name) = with_entity(&star, "silent").await;
    let config = EntityWriterConfig {
        attempt: Duration::from_millis(200),
        ..EntityWriterConfig::default()
    };
    let writer = writer(&client, config);
    star.knobs().is_silent = true;
    let applied = writer.write(name.clone(), update(0)).await.expect("found");
    assert!(applied.duplicate);
    assert_eq!(stored(&client, &name).await, in_order(1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_the_star_refuses_is_told_or_tried_again_by_its_bits() {
    let star = TestStar::start();
    let (client, name) = with_entity(&star, "refused").await;
    let token = FencingToken::parse("mine").expect("a token");
    let fenced = writer(
        &client,
        EntityWriterConfig {
            fence: Some(token),
            ..EntityWriterConfig::default()
        },
    );
    let error = fenced
        .write(name.clone(), update(0))
        .await
        .expect_err("not installed");
    assert!(error.is_fenced() && error.is_clean() && !error.is_retryable());
    let plain = writer(&client, EntityWriterConfig::default());
    star.knobs().refuse = vec![
        Refusal::new(Code::Unavailable, "who knows"),
        Refusal::new(Code::DiskFull, "no space"),
    ];
    plain
        .write(name.clone(), update(0))
        .await
        .expect("after two more attempts");
    let other = Update::new("id-0", Record::new("another body")).expect("a legal update");
    let conflict = UpdateError::Conflict {
        at: SequenceNumber(0),
    };
    assert_eq!(plain.write(name.clone(), other).await, Err(conflict));
    let absent = StreamName::parse("bucket/absent").expect("a legal name");
    let error = plain.write(absent, update(0)).await.expect_err("no stream");
    assert!(
        matches!(error, UpdateError::Refused { refusal, is_clean: true }
        if refusal.code == Code::StreamNotFound)
    );
    assert_eq!(stored(&client, &name).await, in_order(1));
}
