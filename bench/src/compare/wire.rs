//! A TCP connection to a system that is spoken with in its own protocol.
//!
//! The protocols here are small, and a client written for one purpose costs less CPU than a general
//! one: what is compared are the servers.

use crate::error::BenchError;
use std::io;
use std::net::Ipv4Addr;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};

/// Longest line that a server may send; NATS tells all of its settings in one.
const LINE_BYTES_MAX: u64 = 64 * 1024;
/// Longest piece.
const PIECE_BYTES_MAX: usize = 64 * 1024 * 1024;
const READ_BYTES: usize = 256 * 1024;

/// Both directions of a connection.
#[derive(Debug)]
pub struct Wire {
    system: &'static str,
    from: BufReader<OwnedReadHalf>,
    to: OwnedWriteHalf,
}

impl Wire {
    /// Connects to a port of this machine.
    pub async fn connect(system: &'static str, port: u16) -> Result<Wire, BenchError> {
        let connected = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await;
        let stream = connected.map_err(failed(system))?;
        stream.set_nodelay(true).map_err(failed(system))?;
        let (from, to) = stream.into_split();
        let from = BufReader::with_capacity(READ_BYTES, from);
        Ok(Wire { system, from, to })
    }

    /// Writes all of it.
    pub async fn write(&mut self, bytes: &[u8]) -> Result<(), BenchError> {
        let written = self.to.write_all(bytes).await;
        written.map_err(failed(self.system))
    }

    /// A line without its end.
    pub async fn line(&mut self) -> Result<String, BenchError> {
        let mut line = String::new();
        let mut bounded = (&mut self.from).take(LINE_BYTES_MAX);
        let read = bounded.read_line(&mut line).await;
        read.map_err(failed(self.system))?;
        if line.is_empty() {
            return Err(BenchError::system(self.system, "it ended a connection"));
        }
        if !line.ends_with('\n') {
            return Err(BenchError::system(self.system, "a line without an end"));
        }
        line.truncate(line.trim_end().len());
        Ok(line)
    }

    /// So many bytes.
    pub async fn take(&mut self, length: usize) -> Result<Vec<u8>, BenchError> {
        if length > PIECE_BYTES_MAX {
            let why = format!("it announces {length} bytes");
            return Err(BenchError::system(self.system, why));
        }
        let mut bytes = vec![0; length];
        let read = self.from.read_exact(&mut bytes).await;
        read.map_err(failed(self.system))?;
        Ok(bytes)
    }
}

fn failed(system: &'static str) -> impl FnOnce(io::Error) -> BenchError {
    move |error| BenchError::system(system, error.to_string())
}
