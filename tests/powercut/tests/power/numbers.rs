//! A stream of records whose bodies are their numbers.

use bytes::Bytes;
use nova_client::{Client, ProducerConfig, Record, StreamName};
use nova_e2e::calls::{in_time, make_stream};

/// How many there are.
pub const RECORDS: u64 = 100;

/// Makes the stream; all of it is acked.
pub async fn write(client: &Client, key: &str) -> StreamName {
    let stream = make_stream(client, key).await;
    let producer = client.producer(stream.clone(), ProducerConfig::default());
    let producer = producer.expect("legal settings");
    for n in 0..RECORDS {
        let ticket = producer.append_async(Record::new(n.to_string())).await;
        ticket.expect("room").await.expect("an append");
    }
    in_time("the end", producer.close())
        .await
        .expect("all is acked");
    stream
}

/// What was read is all of it.
#[track_caller]
pub fn assert_all(read: Vec<(u64, Bytes)>) {
    let expected = (0..RECORDS).map(|n| (n, Bytes::from(n.to_string())));
    assert!(expected.eq(read));
}
