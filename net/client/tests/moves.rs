//! Streams that move while they are written, at a star that says so in order.

mod star;

use nova_client::*;
use star::TestStar;

fn numbered(n: u64) -> Record {
    Record::new(n.to_string())
}

async fn bodies(client: &Client, name: &StreamName) -> Vec<String> {
    let mut reader = client
        .read(read_from(name.clone(), 0))
        .await
        .expect("a reader");
    let mut all = Vec::new();
    while let Some(item) = reader.next_batch().await.expect("no error") {
        if let ReadItem::Batch(batch) = item {
            let text = |(_, record): &(Position, Record)| {
                String::from_utf8(record.body.to_vec()).expect("a number")
            };
            all.extend(batch.to_records().iter().map(text));
        }
    }
    all
}

async fn with_unnumbered_producer(client: &Client, key: &str) -> (StreamName, Producer) {
    let name = StreamName::parse(&format!("bucket/{key}")).expect("a legal name");
    let made = client.ensure_stream(name.clone(), StreamSettings::default());
    made.await.expect("a stream");
    let config = ProducerConfig {
        batch_size: 64,
        recognise_repeats: false,
        ..ProducerConfig::default()
    };
    let producer = client.producer(name.clone(), config).expect("a producer");
    (name, producer)
}

/// No numbers of a writer help here: only that a clean notice leaves no doubt.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn conditional_batches_in_flight_are_judged_again_by_the_next_leader() {
    let star = TestStar::start();
    let client = Client::connect(star.config()).expect("a client");
    star.knobs().move_every = Some(7);
    let (name, producer) = with_unnumbered_producer(&client, "conditional").await;
    let mut tickets = Vec::new();
    for n in 0..400 {
        let ticket = producer.append_if_async(SequenceNumber(n), vec![numbered(n)]);
        tickets.push(ticket.await.expect("staged"));
    }
    for (n, ticket) in tickets.into_iter().enumerate() {
        let placed = ticket.await.expect("appended, whoever leads");
        assert_eq!(placed.start.sequence.0, n as u64);
    }
    producer.close().await.expect("closed");
    let expected: Vec<String> = (0..400).map(|n| n.to_string()).collect();
    assert_eq!(bodies(&client, &name).await, expected);
    client.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_move_leaves_unanswered_is_not_in_doubt() {
    let star = TestStar::start();
    let client = Client::connect(star.config()).expect("a client");
    star.knobs().move_every = Some(7);
    let (name, producer) = with_unnumbered_producer(&client, "plain").await;
    let (mut plain, mut wrong) = (Vec::new(), Vec::new());
    for n in 0..400 {
        if n % 5 == 4 {
            let ticket = producer.append_if_async(SequenceNumber(1_000_000), vec![numbered(n)]);
            wrong.push(ticket.await.expect("staged"));
        } else {
            plain.push((n, producer.append_async(numbered(n)).await.expect("staged")));
        }
    }
    for ticket in wrong {
        let error = ticket.await.expect_err("the condition does not hold");
        assert!(error.is_clean(), "{error:?}");
    }
    let mut expected = Vec::new();
    for (n, ticket) in plain {
        let placed = ticket.await.expect("appended, whoever leads");
        assert_eq!(
            placed.start.sequence.0,
            expected.len() as u64,
            "batch of {n}"
        );
        expected.push(n.to_string());
    }
    assert_eq!(
        bodies(&client, &name).await,
        expected,
        "each once, in order"
    );
    client.close().await;
}
