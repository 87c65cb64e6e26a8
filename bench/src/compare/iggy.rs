//! Apache Iggy: a topic of one partition, `durability` persisted, over TCP.
//!
//! A topic's default is to answer before anything is on the disk; persisted is its setting for
//! answers that come after.
//!
//! # Not here
//! - The bytes: [`super::iggy_frames`].
//! - Sending again what the server did not accept, which general clients do: the run ends.

use super::drive::{Appended, Job, System, Work, Writer, drive};
use super::iggy_frames::{
    self as frames, Caller, HEADER_BYTES, NAME, Operation, create_inner, create_stream, poll,
    polled, register, renumber, send_messages,
};
use super::server::Server;
use super::wire::Wire;
use crate::error::BenchError;
use std::hash::{BuildHasher, RandomState};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

const USER: &str = "iggy";
const PASSWORD: &str = "nova-bench";
/// Messages of one poll.
const PAGE: u32 = 1000;
/// How long a new topic may take until it can be polled.
const PATIENCE: Duration = Duration::from_secs(10);
/// How often that is tried.
const PACE: Duration = Duration::from_millis(20);

/// The command that starts it: TCP only, one shard.
pub fn command(program: &Path, folder: &Path, port: u16) -> Command {
    let mut command = Command::new(program);
    command
        .current_dir(folder)
        .env("IGGY_PATH", folder)
        .env("IGGY_ROOT_USERNAME", USER)
        .env("IGGY_ROOT_PASSWORD", PASSWORD)
        .env("IGGY_TCP_ADDRESS", format!("127.0.0.1:{port}"))
        .env("IGGY_SHARDING_CPU_ALLOCATION", "1");
    for other in ["HTTP", "QUIC", "WEBSOCKET"] {
        command.env(format!("IGGY_{other}_ENABLED"), "false");
    }
    command
}

/// A client of it.
#[derive(Debug)]
pub struct Iggy<'s>(pub &'s Server);

impl System for Iggy<'_> {
    fn make<'a>(&'a self, stream: &'a str) -> Work<'a, ()> {
        Box::pin(async move {
            let mut session = Session::open(self.0.port).await?;
            let body = create_stream(stream);
            session.ask(Operation::CreateStream, &body).await?;
            let body = create_inner(stream);
            session.ask(Operation::CreateInner, &body).await?;
            // Its partition is made a little later.
            let begun = Instant::now();
            let first = poll(stream, 0, 1);
            loop {
                match session.ask(Operation::Poll, &first).await {
                    Ok(_) => return Ok(()),
                    Err(error) if begun.elapsed() > PATIENCE => return Err(error),
                    Err(_) => tokio::time::sleep(PACE).await,
                }
            }
        })
    }

    fn append<'a>(&'a self, stream: &'a str, job: Job) -> Work<'a, Appended> {
        Box::pin(async move {
            let mut writers = Vec::with_capacity(job.producers);
            for _ in 0..job.producers {
                let mut session = Session::open(self.0.port).await?;
                let messages = send_messages(stream, job.batch, session.caller.client);
                session.batch = frames::request(session.caller, Operation::SendMessages, &messages);
                writers.push(session);
            }
            drive(writers, job).await
        })
    }

    fn read<'a>(&'a self, stream: &'a str, records: usize) -> Work<'a, Duration> {
        Box::pin(async move {
            let mut session = Session::open(self.0.port).await?;
            let begun = Instant::now();
            let mut read = 0;
            while read < records {
                let page = poll(stream, read as u64, PAGE);
                let reply = session.ask(Operation::Poll, &page).await?;
                match polled(&reply)? {
                    0 => return Err(BenchError::system(NAME, format!("{read} records read"))),
                    count => read += count,
                }
            }
            Ok(begun.elapsed())
        })
    }
}

/// A connection with a session, and the batch that it sends.
struct Session {
    wire: Wire,
    caller: Caller,
    batch: Vec<u8>,
}

impl Session {
    async fn open(port: u16) -> Result<Session, BenchError> {
        let wire = Wire::connect(NAME, port).await?;
        let caller = Caller {
            client: client(),
            session: 0,
            request: 0,
        };
        let batch = Vec::new();
        let mut session = Session {
            wire,
            caller,
            batch,
        };
        let body = register(USER, PASSWORD);
        let reply = session.ask(Operation::Register, &body).await?;
        session.caller.session = frames::session(&reply)?;
        session.caller.request = 1;
        Ok(session)
    }

    /// A request and its answer.
    async fn ask(&mut self, operation: Operation, body: &[u8]) -> Result<Vec<u8>, BenchError> {
        let request = frames::request(self.caller, operation, body);
        self.wire.write(&request).await?;
        if !matches!(operation, Operation::Register | Operation::Poll) {
            self.caller.request += 1;
        }
        self.answer().await
    }

    async fn answer(&mut self) -> Result<Vec<u8>, BenchError> {
        let head = self.wire.take(HEADER_BYTES).await?;
        let body = self.wire.take(frames::body_length(&head)?).await?;
        frames::payload(&head, body)
    }
}

/// A number that no other client has; never zero.
fn client() -> u128 {
    let random = || u128::from(RandomState::new().hash_one(0));
    random() << 64 | random() | 1
}

impl Writer for Session {
    async fn send(&mut self, _records: usize) -> Result<(), BenchError> {
        renumber(&mut self.batch, self.caller.request);
        self.caller.request += 1;
        self.wire.write(&self.batch).await
    }

    async fn acked(&mut self) -> Result<(), BenchError> {
        self.answer().await.map(drop)
    }
}
