//! NATS JetStream: one stream in files, `sync_interval: always`.
//!
//! With that setting JetStream syncs its file for each message before it answers.
//!
//! # Not here
//! - Batched publishes: they are a promise about a batch, not about a record.

use super::drive::{Appended, Job, RECORD_BYTES, System, Work, Writer, drive};
use super::server::Server;
use super::wire::Wire;
use crate::error::BenchError;
use std::cell::Cell;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

pub const NAME: &str = "NATS JetStream";
/// Where a client's answers go.
const INBOX: &str = "answers";
/// Messages that a reader asks for at a time; it asks again when half of them are there.
const PAGE: usize = 4096;

/// The command that starts it; its settings are written into the folder.
pub fn command(program: &Path, folder: &Path, port: u16) -> Result<Command, BenchError> {
    let settings = folder.join("nats.conf");
    let text = format!(
        "host: \"127.0.0.1\"\nport: {port}\njetstream {{\n  store_dir: \"{}\"\n  \
         sync_interval: always\n}}\n",
        folder.display()
    );
    fs::write(&settings, text).map_err(BenchError::io("writing the settings of NATS"))?;
    let mut command = Command::new(program);
    command.arg("-c").arg(settings);
    Ok(command)
}

/// A client of it.
#[derive(Debug)]
pub struct Nats<'s> {
    server: &'s Server,
    /// Consumers that were made. Each reader has one of its own: one that is there already goes on
    /// where it was.
    readers: Cell<usize>,
}

impl Nats<'_> {
    /// A client that has read nothing.
    pub fn new(server: &Server) -> Nats<'_> {
        let readers = Cell::new(0);
        Nats { server, readers }
    }
}

impl System for Nats<'_> {
    fn make<'a>(&'a self, stream: &'a str) -> Work<'a, ()> {
        Box::pin(async move {
            let settings = serde_json::json!({
                "name": stream, "subjects": [stream], "storage": "file", "num_replicas": 1,
            });
            let mut line = Line::open(self.server.port, stream).await?;
            let subject = format!("$JS.API.STREAM.CREATE.{stream}");
            line.ask(&subject, &settings.to_string()).await
        })
    }

    fn append<'a>(&'a self, stream: &'a str, job: Job) -> Work<'a, Appended> {
        Box::pin(async move {
            let mut writers = Vec::with_capacity(job.producers);
            for producer in 0..job.producers {
                let mut line =
                    Line::open(self.server.port, &format!("{stream}.{producer}")).await?;
                line.batch = line.publish(stream, &[b'x'; RECORD_BYTES]);
                line.batch = line.batch.repeat(job.batch);
                line.records = job.batch;
                writers.push(line);
            }
            drive(writers, job).await
        })
    }

    fn read<'a>(&'a self, stream: &'a str, records: usize) -> Work<'a, Duration> {
        Box::pin(async move {
            let reader = format!("reader{}", self.readers.get());
            self.readers.set(self.readers.get() + 1);
            let mut line = Line::open(self.server.port, &format!("{stream}.{reader}")).await?;
            let begun = Instant::now();
            let settings = serde_json::json!({
                "stream_name": stream,
                "config": {
                    "name": reader, "ack_policy": "none", "deliver_policy": "all",
                    "mem_storage": true, "inactive_threshold": 60_000_000_000_u64,
                },
            });
            let subject = format!("$JS.API.CONSUMER.CREATE.{stream}.{reader}");
            line.ask(&subject, &settings.to_string()).await?;
            let next = format!("$JS.API.CONSUMER.MSG.NEXT.{stream}.{reader}");
            let page = serde_json::json!({ "batch": PAGE }).to_string();
            let mut asked = 0;
            for read in 0..records {
                while asked < records && asked < read + PAGE + PAGE / 2 {
                    let ask = line.publish(&next, page.as_bytes());
                    line.wire.write(&ask).await?;
                    asked += PAGE;
                }
                let body = line.message().await?;
                if body.len() != RECORD_BYTES {
                    let text = String::from_utf8_lossy(&body).into_owned();
                    return Err(BenchError::system(NAME, text));
                }
            }
            Ok(begun.elapsed())
        })
    }
}

/// A connection that listens to its own inbox.
struct Line {
    wire: Wire,
    inbox: String,
    batch: Vec<u8>,
    records: usize,
}

impl Line {
    async fn open(port: u16, who: &str) -> Result<Line, BenchError> {
        let mut wire = Wire::connect(NAME, port).await?;
        let hello = wire.line().await?;
        if !hello.starts_with("INFO ") {
            return Err(BenchError::system(NAME, hello));
        }
        let inbox = format!("{INBOX}.{who}");
        let greeting = format!(
            "CONNECT {{\"verbose\":false,\"pedantic\":false,\"headers\":true}}\r\nSUB {inbox} 1\r\n"
        );
        wire.write(greeting.as_bytes()).await?;
        Ok(Line {
            wire,
            inbox,
            batch: Vec::new(),
            records: 0,
        })
    }

    /// A message whose answer comes to the inbox.
    fn publish(&self, subject: &str, body: &[u8]) -> Vec<u8> {
        let head = format!("PUB {subject} {} {}\r\n", self.inbox, body.len());
        [head.as_bytes(), body, b"\r\n"].concat()
    }

    /// A request that must be answered without an error.
    async fn ask(&mut self, subject: &str, body: &str) -> Result<(), BenchError> {
        let request = self.publish(subject, body.as_bytes());
        self.wire.write(&request).await?;
        self.answer().await
    }

    async fn answer(&mut self) -> Result<(), BenchError> {
        let answer = self.message().await?;
        let text = String::from_utf8_lossy(&answer);
        match text.contains("\"error\"") || !text.starts_with('{') {
            true => Err(BenchError::system(NAME, text.into_owned())),
            false => Ok(()),
        }
    }

    /// The body of the next message: `MSG subject sid [reply] bytes`, or `HMSG` with headers and
    /// one length more.
    async fn message(&mut self) -> Result<Vec<u8>, BenchError> {
        loop {
            let line = self.wire.line().await?;
            let words: Vec<&str> = line.split(' ').collect();
            let number = |word: Option<&&str>| word.and_then(|word| word.parse::<usize>().ok());
            match words[0] {
                "PING" => self.wire.write(b"PONG\r\n").await?,
                "PONG" | "INFO" | "+OK" => {}
                "MSG" | "HMSG" => {
                    let refused = || BenchError::system(NAME, line.clone());
                    let length = number(words.last()).ok_or_else(refused)?;
                    let mut body = self.wire.take(length + 2).await?;
                    body.truncate(length);
                    if words[0] == "HMSG" {
                        let head = number(words.iter().nth_back(1)).ok_or_else(refused)?;
                        body.drain(..head.min(length));
                    }
                    return Ok(body);
                }
                _ => return Err(BenchError::system(NAME, line)),
            }
        }
    }
}

impl Writer for Line {
    async fn send(&mut self, _records: usize) -> Result<(), BenchError> {
        self.wire.write(&self.batch).await
    }

    async fn acked(&mut self) -> Result<(), BenchError> {
        for _ in 0..self.records {
            self.answer().await?;
        }
        Ok(())
    }
}
