//! A stream that is trimmed behind its tail, so that segments are recycled and rewritten while the
//! power goes (contract 7; docs/DURABILITY.md, "A segment is given up", "A segment is rewritten").
//!
//! One producer numbers its records and has no other beside it: record `n` is at place `n`, and so
//! what must be there follows from two numbers, of what was acked and of what was trimmed.
//!
//! # Invariants
//! - `trimmed` <= `asked` <= `acked`.

use nova_client::*;
use nova_e2e::calls::{bodies_of, in_time, make_stream};
use nova_model::SequenceNumber;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use tokio::task::JoinHandle;

/// Bytes of a record.
const RECORD_BYTES: usize = 256 << 10;
/// Records on their way.
const IN_FLIGHT: usize = 8;
/// Records that stay behind a trim.
const KEPT: u64 = 32;
/// Records between two trims.
const BETWEEN: u64 = 16;

/// The stream and who writes it.
pub struct Passing {
    stream: StreamName,
    client: Client,
    told: Arc<Told>,
    writer: JoinHandle<()>,
}

/// What the writer asked and was told.
#[derive(Default)]
struct Told {
    is_over: AtomicBool,
    /// One past the last record that was acked.
    acked: AtomicU64,
    /// The first record that was to stay in the last trim asked for.
    asked: AtomicU64,
    /// The same in the last trim that was answered.
    trimmed: AtomicU64,
}

impl Passing {
    /// Makes the stream and begins to write.
    pub async fn begin(client: Client) -> Passing {
        let stream = make_stream(&client, "passing").await;
        let told = Arc::new(Told::default());
        let writing = write(client.clone(), stream.clone(), Arc::clone(&told));
        Passing {
            stream,
            client,
            told,
            writer: tokio::spawn(writing),
        }
    }

    /// All that is on its way is answered, and nothing more is written.
    pub async fn finish(&mut self) {
        self.told.is_over.store(true, Ordering::Relaxed);
        let ended = in_time("the end of a writer", &mut self.writer).await;
        ended.expect("no panic");
    }

    /// Reads all that is left. Nothing is on its way.
    pub async fn check(&self) {
        let load = |number: &AtomicU64| number.load(Ordering::Relaxed);
        let Told {
            acked,
            asked,
            trimmed,
            ..
        } = &*self.told;
        let (acked, asked, trimmed) = (load(acked), load(asked), load(trimmed));
        let read = read_from(self.stream.clone(), 0);
        let first = match bodies_of(&self.client, read).await {
            Ok(_) => 0,
            Err(ClientError::Refused(refusal)) => match refusal.facts {
                Facts::First(first) => first.0,
                _ => panic!("not trimmed: {refusal:?}"),
            },
            Err(error) => panic!("{error:?}"),
        };
        assert!(
            (trimmed..=asked).contains(&first),
            "{trimmed} {first} {asked}"
        );
        let there = bodies_of(&self.client, read_from(self.stream.clone(), first)).await;
        let there = there.expect("it begins there");
        for (n, (sequence, found)) in (first..).zip(&there) {
            assert_eq!(*sequence, n);
            assert!(found == &body(n), "another record at {n}");
        }
        assert_eq!(first + there.len() as u64, acked, "each record once");
        println!("passing: {acked} acked, {first} trimmed");
    }
}

fn body(n: u64) -> Vec<u8> {
    let word = n.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes();
    word.repeat(RECORD_BYTES / 8)
}

async fn write(client: Client, stream: StreamName, told: Arc<Told>) {
    let producer = client.producer(stream.clone(), ProducerConfig::default());
    let producer = producer.expect("legal settings");
    let mut waiting: VecDeque<(u64, Ticket)> = VecDeque::new();
    for n in 0.. {
        let is_over = told.is_over.load(Ordering::Relaxed);
        if !is_over {
            let ticket = producer.append_async(Record::new(body(n))).await;
            waiting.push_back((n, ticket.expect("a producer that goes on")));
        }
        while waiting.len() >= IN_FLIGHT || is_over {
            let Some((n, ticket)) = waiting.pop_front() else {
                break;
            };
            let appended = ticket.await.expect("an append");
            assert_eq!(appended.start.sequence.0, n, "the only producer");
            told.acked.store(n + 1, Ordering::Relaxed);
        }
        if is_over {
            break;
        }
        let acked = told.acked.load(Ordering::Relaxed);
        if n.is_multiple_of(BETWEEN) && acked > KEPT {
            trim(&client, &stream, &told, acked - KEPT).await;
        }
    }
    producer.close().await.expect("all was appended");
}

async fn trim(client: &Client, stream: &StreamName, told: &Told, first: u64) {
    told.asked.store(first, Ordering::Relaxed);
    let trim = client.trim(stream.clone(), SequenceNumber(first), Conditions::default());
    trim.await.expect("a trim without conditions");
    told.trimmed.store(first, Ordering::Relaxed);
}
