//! nova itself: a star of one core, driven with the SDK over QUIC with encryption.

use super::drive::{Appended, Job, RECORD_BYTES, System, Work, Writer, drive};
use crate::error::BenchError;
use crate::goals::load::{body, ensure_bucket};
use bytes::Bytes;
use nova_client::{
    Client, Producer, ProducerConfig, ReadItem, Record, StreamName, StreamSettings, Ticket,
    read_from,
};
use std::collections::VecDeque;
use std::time::{Duration, Instant};

pub const NAME: &str = "nova";

/// A client of a star.
#[derive(Debug)]
pub struct Nova {
    client: Client,
}

impl Nova {
    /// Makes the bucket.
    pub async fn open(client: Client) -> Result<Nova, BenchError> {
        ensure_bucket(&client).await?;
        Ok(Nova { client })
    }
}

fn name(stream: &str) -> StreamName {
    StreamName::parse(&format!("bench/{stream}")).expect("letters and digits are legal")
}

impl System for Nova {
    fn make<'a>(&'a self, stream: &'a str) -> Work<'a, ()> {
        Box::pin(async move {
            let settings = StreamSettings::default();
            let made = self.client.ensure_stream(name(stream), settings).await;
            made.map(drop)
                .map_err(BenchError::client("making a stream"))
        })
    }

    fn append<'a>(&'a self, stream: &'a str, job: Job) -> Work<'a, Appended> {
        Box::pin(async move {
            let mut writers = Vec::with_capacity(job.producers);
            for _ in 0..job.producers {
                let config = ProducerConfig::default();
                let producer = self.client.producer(name(stream), config);
                writers.push(Appender {
                    producer: producer.map_err(BenchError::client("opening a producer"))?,
                    body: body(RECORD_BYTES),
                    tickets: VecDeque::with_capacity(job.window),
                });
            }
            drive(writers, job).await
        })
    }

    fn read<'a>(&'a self, stream: &'a str, records: usize) -> Work<'a, Duration> {
        Box::pin(async move {
            let failed = BenchError::client("reading a stream");
            let begun = Instant::now();
            let reader = self.client.read(read_from(name(stream), 0)).await;
            let mut reader = reader.map_err(&failed)?;
            let mut read = 0;
            while let Some(item) = reader.next_batch().await.map_err(&failed)? {
                if let ReadItem::Batch(batch) = item {
                    batch.for_each(|_, record| {
                        read += usize::from(record.body().len() == RECORD_BYTES);
                    });
                }
            }
            match read == records {
                true => Ok(begun.elapsed()),
                false => Err(BenchError::system(NAME, format!("{read} records read"))),
            }
        })
    }
}

struct Appender {
    producer: Producer,
    body: Bytes,
    tickets: VecDeque<Ticket>,
}

impl Writer for Appender {
    async fn send(&mut self, records: usize) -> Result<(), BenchError> {
        let records = vec![Record::new(self.body.clone()); records];
        let ticket = self.producer.append_batch_async(records).await;
        let ticket = ticket.map_err(BenchError::client("appending records"))?;
        self.tickets.push_back(ticket);
        Ok(())
    }

    async fn acked(&mut self) -> Result<(), BenchError> {
        let ticket = self.tickets.pop_front();
        let ticket = ticket.ok_or_else(|| BenchError::system(NAME, "nothing is unanswered"))?;
        let appended = ticket.await;
        appended
            .map(drop)
            .map_err(BenchError::client("appending records"))
    }
}
