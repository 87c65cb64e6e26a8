//! s2-lite: append sessions over HTTP/1.1, on a directory of this machine.
//!
//! A session is one request that never ends and one answer that does not either, both in chunks.
//! What goes through them are frames around protobuf messages:
//!
//! ```text
//!   length (3, big-endian) | flags (1) | message      length counts the flags and the message
//!   flag 0x80: the last frame of a session that failed, a status (2, big-endian) and a text
//! ```
//! With `--local-root` the server syncs each object that it writes before it answers; objects are
//! written every 5 ms, which is its own setting for a directory.
//!
//! # Not here
//! - Compression and encryption of records: both are off unless a client asks for them.

use super::drive::{Appended, Job, RECORD_BYTES, System, Work, Writer, drive};
use super::server::Server;
use super::wire::Wire;
use crate::error::BenchError;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

pub const NAME: &str = "s2-lite";
/// Where all streams are.
const BASIN: &str = "nova-bench";
/// What a session's messages are.
const SESSION: &str = "s2s/proto";
const FLAG_FAILED: u8 = 0x80;
/// Flags that may stand in a frame with a message: that another server should be tried soon.
const FLAG_RECONNECT: u8 = 0x10;
/// The server's bound for a frame.
const FRAME_BYTES_MAX: usize = 2 * 1024 * 1024;
/// Longest text of an answer that is no session.
const TEXT_BYTES_MAX: usize = 64 * 1024;

/// Field of `AppendInput` and of `ReadBatch`: a record.
const RECORDS: u64 = 1;
/// Field of `AppendRecord`.
const APPENDED_BODY: u64 = 3;
/// Field of `SequencedRecord`.
const READ_BODY: u64 = 4;

/// The command that starts it.
pub fn command(program: &Path, folder: &Path, port: u16) -> Command {
    let mut command = Command::new(program);
    command.arg("lite").arg("--local-root").arg(folder).args([
        "--port",
        &port.to_string(),
        "--no-dashboard",
    ]);
    command
}

/// A client of it.
#[derive(Debug)]
pub struct Lite<'s>(pub &'s Server);

impl System for Lite<'_> {
    fn make<'a>(&'a self, stream: &'a str) -> Work<'a, ()> {
        Box::pin(async move {
            ask(self.0.port, &format!("/v1/basins/{BASIN}")).await?;
            ask(self.0.port, &format!("/v1/streams/{stream}")).await
        })
    }

    fn append<'a>(&'a self, stream: &'a str, job: Job) -> Work<'a, Appended> {
        Box::pin(async move {
            let batch = chunk(&frame(&append_input(job.batch)));
            let path = format!("/v1/streams/{stream}/records");
            let more = format!("content-type: {SESSION}\r\ntransfer-encoding: chunked\r\n");
            let mut writers = Vec::with_capacity(job.producers);
            for _ in 0..job.producers {
                let wire = Wire::connect(NAME, self.0.port).await?;
                let mut session = Session::new(wire);
                session.request("POST", &path, &more).await?;
                let batch = batch.clone();
                writers.push(Appender { session, batch });
            }
            drive(writers, job).await
        })
    }

    fn read<'a>(&'a self, stream: &'a str, records: usize) -> Work<'a, Duration> {
        Box::pin(async move {
            let wire = Wire::connect(NAME, self.0.port).await?;
            let begun = Instant::now();
            let mut session = Session::new(wire);
            let path = format!("/v1/streams/{stream}/records?seq_num=0&count={records}");
            let more = format!("content-type: {SESSION}\r\n");
            session.request("GET", &path, &more).await?;
            let mut read = 0;
            while read < records {
                read += records_in(&session.frame().await?)?;
            }
            match read == records {
                true => Ok(begun.elapsed()),
                false => Err(BenchError::system(NAME, format!("{read} records read"))),
            }
        })
    }
}

struct Appender {
    session: Session,
    batch: Vec<u8>,
}

impl Writer for Appender {
    async fn send(&mut self, _records: usize) -> Result<(), BenchError> {
        self.session.wire.write(&self.batch).await
    }

    /// Each message of a session is answered by one.
    async fn acked(&mut self) -> Result<(), BenchError> {
        self.session.frame().await.map(drop)
    }
}

/// Makes what the path names, if it is not there.
async fn ask(port: u16, path: &str) -> Result<(), BenchError> {
    let wire = Wire::connect(NAME, port).await?;
    let mut session = Session::new(wire);
    session.request("PUT", path, "content-length: 0\r\n").await
}

/// A connection with a request, and its answer in chunks.
struct Session {
    wire: Wire,
    /// What has arrived of the body and is not taken yet.
    chunk: Vec<u8>,
    taken: usize,
}

impl Session {
    fn new(wire: Wire) -> Session {
        Session {
            wire,
            chunk: Vec::new(),
            taken: 0,
        }
    }

    /// Sends a request's head and takes the head of its answer, which must say that it is done.
    async fn request(&mut self, method: &str, path: &str, more: &str) -> Result<(), BenchError> {
        let head = format!(
            "{method} {path} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer ignored\r\n\
             s2-basin: {BASIN}\r\n{more}\r\n"
        );
        self.wire.write(head.as_bytes()).await?;
        let status = self.wire.line().await?;
        let mut length = 0;
        loop {
            let line = self.wire.line().await?;
            if line.is_empty() {
                break;
            }
            let (name, value) = line.split_once(':').unwrap_or((&line, ""));
            if name.eq_ignore_ascii_case("content-length") {
                length = value.trim().parse().unwrap_or(0);
            }
        }
        let code = status.split(' ').nth(1).unwrap_or_default();
        if matches!(code, "200" | "201") {
            return Ok(());
        }
        let text = self.wire.take(length.min(TEXT_BYTES_MAX)).await?;
        let text = String::from_utf8_lossy(&text);
        Err(BenchError::system(NAME, format!("{status}: {text}")))
    }

    /// The message of the next frame.
    async fn frame(&mut self) -> Result<Vec<u8>, BenchError> {
        let head = self.take(3).await?;
        let length = frame_length([head[0], head[1], head[2]])?;
        let mut frame = self.take(length).await?;
        let flags = frame.remove(0);
        match flags & !FLAG_RECONNECT {
            0 => Ok(frame),
            FLAG_FAILED => {
                let text = frame.get(2..).unwrap_or_default();
                let text = String::from_utf8_lossy(text).into_owned();
                Err(BenchError::system(NAME, text))
            }
            other => Err(BenchError::system(NAME, format!("a frame with {other:#x}"))),
        }
    }

    /// So many bytes of the body, from one or several chunks.
    async fn take(&mut self, length: usize) -> Result<Vec<u8>, BenchError> {
        let mut bytes = Vec::with_capacity(length);
        while bytes.len() < length {
            if self.taken == self.chunk.len() {
                self.next_chunk().await?;
            }
            let rest = &self.chunk[self.taken..];
            let part = rest.len().min(length - bytes.len());
            bytes.extend_from_slice(&rest[..part]);
            self.taken += part;
        }
        Ok(bytes)
    }

    async fn next_chunk(&mut self) -> Result<(), BenchError> {
        let line = self.wire.line().await?;
        let refused = || BenchError::system(NAME, format!("a chunk that begins with {line}"));
        let length = usize::from_str_radix(&line, 16).map_err(|_| refused())?;
        if length == 0 {
            return Err(BenchError::system(NAME, "it ended a session"));
        }
        self.chunk = self.wire.take(length).await?;
        self.taken = 0;
        match self.wire.take(2).await?.as_slice() {
            b"\r\n" => Ok(()),
            _ => Err(refused()),
        }
    }
}

/// The length that a frame begins with, if it may have it.
fn frame_length(head: [u8; 3]) -> Result<usize, BenchError> {
    let length = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
    match length {
        1..=FRAME_BYTES_MAX => Ok(length),
        _ => {
            let why = format!("a frame of {length} bytes");
            Err(BenchError::system(NAME, why))
        }
    }
}

fn chunk(bytes: &[u8]) -> Vec<u8> {
    [format!("{:x}\r\n", bytes.len()).as_bytes(), bytes, b"\r\n"].concat()
}

fn frame(message: &[u8]) -> Vec<u8> {
    let length = (message.len() + 1) as u32;
    let flags = 0;
    [&length.to_be_bytes()[1..], &[flags], message].concat()
}

/// The message `AppendInput` with a batch, nothing else set.
fn append_input(records: usize) -> Vec<u8> {
    let record = field(APPENDED_BODY, &[b'x'; RECORD_BYTES]);
    field(RECORDS, &record).repeat(records)
}

/// Records of the message `ReadBatch`, whose bodies must be complete.
fn records_in(batch: &[u8]) -> Result<usize, BenchError> {
    let mut count = 0;
    for (number, record) in fields(batch)? {
        if number != RECORDS {
            continue;
        }
        let parts = fields(record)?;
        let body = parts.iter().find(|(number, _)| *number == READ_BODY);
        match body.map(|(_, body)| body.len()) {
            Some(RECORD_BYTES) => count += 1,
            other => {
                let bytes = other.unwrap_or(0);
                return Err(BenchError::system(
                    NAME,
                    format!("a record of {bytes} bytes"),
                ));
            }
        }
    }
    Ok(count)
}

/// A protobuf field of bytes.
fn field(number: u64, bytes: &[u8]) -> Vec<u8> {
    let mut field = Vec::with_capacity(bytes.len() + 8);
    put_varint(&mut field, number << 3 | 2);
    put_varint(&mut field, bytes.len() as u64);
    field.extend_from_slice(bytes);
    field
}

fn put_varint(bytes: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}

/// The fields of bytes in a protobuf message; those of numbers are passed over.
fn fields(mut message: &[u8]) -> Result<Vec<(u64, &[u8])>, BenchError> {
    let mut fields = Vec::new();
    while !message.is_empty() {
        let key = varint(&mut message)?;
        let length = match key & 7 {
            0 => {
                varint(&mut message)?;
                continue;
            }
            1 => 8,
            2 => varint(&mut message)? as usize,
            5 => 4,
            _ => return Err(malformed()),
        };
        let (bytes, rest) = message.split_at_checked(length).ok_or_else(malformed)?;
        message = rest;
        if key & 7 == 2 {
            fields.push((key >> 3, bytes));
        }
    }
    Ok(fields)
}

fn varint(bytes: &mut &[u8]) -> Result<u64, BenchError> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = bytes.split_first().ok_or_else(malformed)?;
        *bytes = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Ok(value);
        }
    }
    Err(malformed())
}

fn malformed() -> BenchError {
    BenchError::system(NAME, "a message that is no protobuf")
}

#[cfg(test)]
#[path = "lite_tests.rs"]
mod tests;
