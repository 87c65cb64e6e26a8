//! PostgreSQL: a table for each stream, a row for each record, a commit for each batch.
//!
//! All of its settings are those that it comes with (`fsync`, `synchronous_commit` and
//! `full_page_writes` are on), but for a larger `shared_buffers` and `max_wal_size`, without which
//! checkpoints would be in the way.
//!
//! # Invariants
//! - It refuses to run as root: then it runs as the user `postgres`, who owns its folder.

use super::drive::{Appended, Job, RECORD_BYTES, System, Work, Writer, drive};
use super::server::Server;
use super::wire::Wire;
use crate::error::BenchError;
use std::fs;
use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

pub const NAME: &str = "PostgreSQL";
const USER: &str = "postgres";
/// Version 3.0 of its protocol.
const PROTOCOL: u32 = 3 << 16;
/// The type `bytea`.
const BYTEA: u32 = 17;

/// Makes an empty cluster and gives the command that starts it.
pub fn command(program: &Path, folder: &Path, port: u16) -> Result<Command, BenchError> {
    let owner = owner()?;
    if let Some((uid, gid)) = owner {
        let owned = chown(folder, Some(uid), Some(gid));
        owned.map_err(BenchError::io("giving a folder to the user postgres"))?;
    }
    let as_owner = |program: &Path| {
        let mut command = Command::new(program);
        if let Some((uid, gid)) = owner {
            command.uid(uid).gid(gid);
        }
        command.current_dir(folder);
        command
    };
    let data = folder.join("data");
    let made = as_owner(&program.with_file_name("initdb"))
        .args([
            "--auth",
            "trust",
            "--username",
            USER,
            "--no-instructions",
            "-D",
        ])
        .arg(&data)
        .stdout(Stdio::null())
        .output()
        .map_err(BenchError::io("running initdb"))?;
    if !made.status.success() {
        let why = String::from_utf8_lossy(&made.stderr).into_owned();
        return Err(BenchError::system(NAME, why));
    }
    let mut command = as_owner(program);
    command.arg("-D").arg(&data).args(["-p", &port.to_string()]);
    for setting in [
        "listen_addresses=127.0.0.1",
        "unix_socket_directories=",
        "shared_buffers=512MB",
        "max_wal_size=8GB",
    ] {
        command.args(["-c", setting]);
    }
    Ok(command)
}

/// Who it must run as, if this process is root.
fn owner() -> Result<Option<(u32, u32)>, BenchError> {
    if !rustix::process::geteuid().is_root() {
        return Ok(None);
    }
    let users = fs::read_to_string("/etc/passwd").map_err(BenchError::io("/etc/passwd"))?;
    let found = users.lines().find_map(|line| {
        let mut fields = line.split(':');
        let is_meant = fields.next() == Some(USER);
        let ids = (fields.nth(1)?.parse().ok()?, fields.next()?.parse().ok()?);
        is_meant.then_some(ids)
    });
    let missing = "it does not run as root, and there is no user postgres";
    let found = found.ok_or_else(|| BenchError::system(NAME, missing))?;
    Ok(Some(found))
}

/// A client of it.
#[derive(Debug)]
pub struct Postgres<'s>(pub &'s Server);

impl System for Postgres<'_> {
    fn make<'a>(&'a self, stream: &'a str) -> Work<'a, ()> {
        Box::pin(async move {
            let mut session = Session::open(self.0.port).await?;
            let text = format!("CREATE TABLE {stream} (at bigserial PRIMARY KEY, body bytea)");
            session.query(&text).await.map(drop)
        })
    }

    fn append<'a>(&'a self, stream: &'a str, job: Job) -> Work<'a, Appended> {
        Box::pin(async move {
            let mut writers = Vec::with_capacity(job.producers);
            for _ in 0..job.producers {
                let mut session = Session::open(self.0.port).await?;
                session.prepare(stream, job.batch).await?;
                writers.push(session);
            }
            drive(writers, job).await
        })
    }

    fn read<'a>(&'a self, stream: &'a str, records: usize) -> Work<'a, Duration> {
        Box::pin(async move {
            let mut session = Session::open(self.0.port).await?;
            let begun = Instant::now();
            let rows = format!("SELECT at, body FROM {stream} ORDER BY at");
            let text = format!("COPY ({rows}) TO STDOUT (FORMAT binary)");
            let done = session.query(&text).await?;
            match done.strip_prefix("COPY ").map(str::parse::<usize>) {
                Some(Ok(count)) if count == records => Ok(begun.elapsed()),
                _ => Err(BenchError::system(NAME, format!("it read {done}"))),
            }
        })
    }
}

/// A session; its prepared statement inserts a batch.
struct Session {
    wire: Wire,
    batch: Vec<u8>,
}

impl Session {
    async fn open(port: u16) -> Result<Session, BenchError> {
        let mut wire = Wire::connect(NAME, port).await?;
        let mut body = PROTOCOL.to_be_bytes().to_vec();
        for text in ["user", USER, "database", USER, ""] {
            body.extend(text.as_bytes());
            body.push(0);
        }
        let length = (body.len() + 4) as u32;
        wire.write(&[&length.to_be_bytes()[..], &body].concat())
            .await?;
        let batch = Vec::new();
        let mut session = Session { wire, batch };
        session.ready().await?;
        Ok(session)
    }

    /// A statement without parameters; gives what was done.
    async fn query(&mut self, text: &str) -> Result<String, BenchError> {
        let body = [text.as_bytes(), b"\0"].concat();
        self.wire.write(&message(b'Q', &body)).await?;
        self.ready().await
    }

    /// Prepares the insert of a batch, and its message.
    async fn prepare(&mut self, stream: &str, records: usize) -> Result<(), BenchError> {
        let rows = match records {
            1 => "VALUES ($1::bytea)",
            _ => "SELECT unnest($1::bytea[])",
        };
        let text = format!("INSERT INTO {stream} (body) {rows}");
        // Name, text, and no types: the statement says them.
        let parse = [b"insert\0", text.as_bytes(), b"\0\0\0"].concat();
        let prepared = [message(b'P', &parse), message(b'S', b"")].concat();
        self.wire.write(&prepared).await?;
        self.ready().await?;
        let value = match records {
            1 => vec![b'x'; RECORD_BYTES],
            _ => array(records),
        };
        // No portal's name, the statement's; one parameter, binary; no results.
        let mut bind = b"\0insert\0\0\x01\0\x01\0\x01".to_vec();
        bind.extend((value.len() as u32).to_be_bytes());
        bind.extend(value);
        bind.extend(b"\0\0");
        self.batch = [
            message(b'B', &bind),
            message(b'E', b"\0\0\0\0\0"),
            message(b'S', b""),
        ]
        .concat();
        Ok(())
    }

    /// Takes messages until the session is ready; gives what was done last.
    async fn ready(&mut self) -> Result<String, BenchError> {
        let (mut done, mut failure) = (String::new(), None);
        loop {
            let head = self.wire.take(5).await?;
            let length = u32::from_be_bytes([head[1], head[2], head[3], head[4]]) as usize;
            let body = self.wire.take(length.saturating_sub(4)).await?;
            let text = || String::from_utf8_lossy(&body).replace('\0', " ");
            match head[0] {
                b'C' => done = text().trim().to_owned(),
                b'E' => failure = Some(text()),
                b'Z' => {
                    return match failure {
                        Some(why) => Err(BenchError::system(NAME, why)),
                        None => Ok(done),
                    };
                }
                _ => {}
            }
        }
    }
}

impl Writer for Session {
    async fn send(&mut self, _records: usize) -> Result<(), BenchError> {
        self.wire.write(&self.batch).await
    }

    async fn acked(&mut self) -> Result<(), BenchError> {
        self.ready().await.map(drop)
    }
}

fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    let length = (body.len() + 4) as u32;
    [&[kind][..], &length.to_be_bytes(), body].concat()
}

/// An array of one dimension without nulls: dimensions, nulls, type, length, first index, values.
fn array(records: usize) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(20 + records * (4 + RECORD_BYTES));
    for number in [1, 0, BYTEA, records as u32, 1] {
        bytes.extend(number.to_be_bytes());
    }
    for _ in 0..records {
        bytes.extend((RECORD_BYTES as u32).to_be_bytes());
        bytes.extend([b'x'; RECORD_BYTES]);
    }
    bytes
}

#[cfg(test)]
#[path = "postgres_tests.rs"]
mod tests;
