//! Redis Streams: `XADD` and `XRANGE`, with `appendfsync always`.
//!
//! With that setting Redis writes and syncs its log once for all commands that came in one turn of
//! its loop, before it answers any of them: one sync for a whole pipeline.
//!
//! # Not here
//! - A snapshot, a rewrite of the log: both are off, they would only slow it down.

use super::drive::{Appended, Job, RECORD_BYTES, System, Work, Writer, drive};
use super::server::Server;
use super::wire::Wire;
use crate::error::BenchError;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

pub const NAME: &str = "Redis Streams";
/// Records that one `XRANGE` asks for.
const PAGE: usize = 1000;

/// The command that starts it.
pub fn command(program: &Path, folder: &Path, port: u16) -> Command {
    let mut command = Command::new(program);
    command
        .args(["--port", &port.to_string(), "--bind", "127.0.0.1"])
        .arg("--dir")
        .arg(folder)
        .args(["--appendonly", "yes", "--appendfsync", "always"])
        .args(["--save", "", "--auto-aof-rewrite-percentage", "0"]);
    command
}

/// A client of it.
#[derive(Debug)]
pub struct Redis<'s>(pub &'s Server);

impl System for Redis<'_> {
    fn make<'a>(&'a self, _stream: &'a str) -> Work<'a, ()> {
        Box::pin(async { Ok(()) })
    }

    fn append<'a>(&'a self, stream: &'a str, job: Job) -> Work<'a, Appended> {
        Box::pin(async move {
            let mut writers = Vec::with_capacity(job.producers);
            for _ in 0..job.producers {
                let wire = Wire::connect(NAME, self.0.port).await?;
                let entry = command_bytes(&[
                    b"XADD",
                    stream.as_bytes(),
                    b"*",
                    b"b",
                    &[b'x'; RECORD_BYTES],
                ]);
                let batch = entry.repeat(job.batch);
                writers.push(Appender {
                    wire,
                    batch,
                    records: job.batch,
                });
            }
            drive(writers, job).await
        })
    }

    fn read<'a>(&'a self, stream: &'a str, records: usize) -> Work<'a, Duration> {
        Box::pin(async move {
            let mut wire = Wire::connect(NAME, self.0.port).await?;
            let begun = Instant::now();
            let (mut read, mut from) = (0, b"-".to_vec());
            let page = PAGE.to_string();
            while read < records {
                let ask: [&[u8]; 6] = [
                    b"XRANGE",
                    stream.as_bytes(),
                    &from,
                    b"+",
                    b"COUNT",
                    page.as_bytes(),
                ];
                wire.write(&command_bytes(&ask)).await?;
                let count = length(&mut wire, b'*').await?;
                if count == 0 {
                    return Err(BenchError::system(NAME, format!("{read} records read")));
                }
                for _ in 0..count {
                    from = entry(&mut wire).await?;
                }
                from.insert(0, b'(');
                read += count;
            }
            Ok(begun.elapsed())
        })
    }
}

struct Appender {
    wire: Wire,
    batch: Vec<u8>,
    records: usize,
}

impl Writer for Appender {
    async fn send(&mut self, _records: usize) -> Result<(), BenchError> {
        self.wire.write(&self.batch).await
    }

    async fn acked(&mut self) -> Result<(), BenchError> {
        for _ in 0..self.records {
            bulk(&mut self.wire).await?;
        }
        Ok(())
    }
}

/// A command as an array of strings.
fn command_bytes(parts: &[&[u8]]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", parts.len()).into_bytes();
    for part in parts {
        bytes.extend(format!("${}\r\n", part.len()).into_bytes());
        bytes.extend_from_slice(part);
        bytes.extend(b"\r\n");
    }
    bytes
}

/// The id of an entry; its one field is read and checked for its length.
async fn entry(wire: &mut Wire) -> Result<Vec<u8>, BenchError> {
    length(wire, b'*').await?;
    let id = bulk(wire).await?;
    length(wire, b'*').await?;
    bulk(wire).await?;
    let body = bulk(wire).await?;
    match body.len() {
        RECORD_BYTES => Ok(id),
        other => Err(BenchError::system(
            NAME,
            format!("a record of {other} bytes"),
        )),
    }
}

async fn bulk(wire: &mut Wire) -> Result<Vec<u8>, BenchError> {
    let length = length(wire, b'$').await?;
    let mut bytes = wire.take(length + 2).await?;
    bytes.truncate(length);
    Ok(bytes)
}

async fn length(wire: &mut Wire, kind: u8) -> Result<usize, BenchError> {
    let line = wire.line().await?;
    let number = line.strip_prefix(char::from(kind));
    let number = number.and_then(|number| number.parse().ok());
    number.ok_or_else(|| BenchError::system(NAME, line))
}

#[cfg(test)]
#[path = "redis_tests.rs"]
mod tests;
