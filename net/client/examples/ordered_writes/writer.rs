//! A writer process: reads `STREAM ENTITY NUMBER` lines, answers `ENTITY NUMBER AT` once durable.
//!
//! # Invariants
//! - Updates are handed to the entity writer in the order of the lines.
//! - What is stored follows from the line alone: a second process writes the same bytes.

use crate::Failure;
use nova_client::{
    Client, ClientConfig, EntityWriterConfig, Producer, ProducerConfig, Record, StreamName, Update,
};
use std::collections::BTreeMap;
use std::io::BufRead;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

/// Lines that are read ahead.
const LINES_MAX: usize = 256;

#[tokio::main(flavor = "current_thread")]
pub async fn run(star: &str, ca: &str) -> Result<(), Failure> {
    let client = Client::connect(ClientConfig::new(star, ca))?;
    let writer = client.entity_writer(EntityWriterConfig::default())?;
    let mut lines = lines();
    let mut waiting = JoinSet::new();
    loop {
        tokio::select! {
            line = lines.recv() => {
                let Some(line) = line else { break };
                let (name, entity, number) = parse(&line)?;
                let record = Record::new(body(entity, number));
                let update = Update::new(number.to_string(), record)?;
                let ticket = writer.write_async(name, update)?;
                waiting.spawn(async move { ticket.await.map(|done| (entity, number, done)) });
            }
            Some(done) = waiting.join_next() => {
                let (entity, number, applied) = done??;
                println!("{entity} {number} {} {}", applied.at, applied.duplicate);
            }
        }
    }
    writer.close().await;
    client.close().await;
    Ok(())
}

/// As [`run`], with a producer for each entity: nothing is left out, nothing is conditional.
#[tokio::main(flavor = "current_thread")]
pub async fn run_careless(star: &str, ca: &str) -> Result<(), Failure> {
    let client = Client::connect(ClientConfig::new(star, ca))?;
    let mut producers: BTreeMap<usize, Producer> = BTreeMap::new();
    let mut lines = lines();
    let mut waiting = JoinSet::new();
    loop {
        tokio::select! {
            line = lines.recv() => {
                let Some(line) = line else { break };
                let (name, entity, number) = parse(&line)?;
                let record = Record::new(body(entity, number));
                if let std::collections::btree_map::Entry::Vacant(place) = producers.entry(entity) {
                    place.insert(client.producer(name, ProducerConfig::default())?);
                }
                let ticket = producers[&entity].append_async(record).await?;
                waiting.spawn(async move { ticket.await.map(|done| (entity, number, done)) });
            }
            Some(done) = waiting.join_next() => {
                let (entity, number, appended) = done??;
                println!("{entity} {number} {} false", appended.start.sequence);
            }
        }
    }
    Ok(())
}

/// The lines of standard input.
fn lines() -> mpsc::Receiver<String> {
    let (sender, lines) = mpsc::channel(LINES_MAX);
    std::thread::spawn(move || {
        for line in std::io::stdin().lock().lines().map_while(Result::ok) {
            if sender.blocking_send(line).is_err() {
                return;
            }
        }
    });
    lines
}

/// What an update holds.
pub fn body(entity: usize, number: u32) -> String {
    format!("update {number} of entity {entity}")
}

fn parse(line: &str) -> Result<(StreamName, usize, u32), Failure> {
    let words: Vec<&str> = line.split(' ').collect();
    let [name, entity, number] = words[..] else {
        return Err(format!("'{line}' is not STREAM ENTITY NUMBER").into());
    };
    Ok((StreamName::parse(name)?, entity.parse()?, number.parse()?))
}
