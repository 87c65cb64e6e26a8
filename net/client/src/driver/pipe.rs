//! A lane on a QUIC stream: bytes in, bytes out.
//!
//! # Invariants
//! - [`Pipe::turn`] may be dropped at any time: nothing read is lost, nothing is written twice.
//! - A direction that the star does not read any more is no error: its last word may still come.
//! - After a protocol error both directions are reset with its code.

use bytes::Bytes;
use nova_model::limits::LANE_OUTPUT_BYTES_MAX;
use nova_model::request::{AppendOpen, ReadOpen};
use nova_proto::client::{AppendLane, ControlLane, ReadLane};
use nova_proto::{Closes, ProtocolError};
use nova_quic::client::{Connection, RecvStream, SendStream};
use nova_quic::error::ReadError;

/// Chunks read at once.
const CHUNKS_MAX: usize = 32;

/// The lane is gone; what had no answer gets none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Lost;

/// What the three lanes have in common.
pub(crate) trait Lane {
    fn handle_bytes(&mut self, bytes: Bytes) -> Result<(), ProtocolError>;
    fn handle_end(&mut self) -> Result<(), ProtocolError>;
    fn poll_output(&mut self) -> Option<Bytes>;
    fn wants_finish(&self) -> bool;
}

macro_rules! lane {
    ($name:ty) => {
        impl Lane for $name {
            fn handle_bytes(&mut self, bytes: Bytes) -> Result<(), ProtocolError> {
                self.handle_bytes(bytes)
            }
            fn handle_end(&mut self) -> Result<(), ProtocolError> {
                self.handle_end()
            }
            fn poll_output(&mut self) -> Option<Bytes> {
                self.poll_output()
            }
            fn wants_finish(&self) -> bool {
                self.wants_finish()
            }
        }
    };
}

lane!(AppendLane);
lane!(ReadLane);
lane!(ControlLane);

/// A lane and its stream.
#[derive(Debug)]
pub(crate) struct Pipe<L> {
    pub(crate) lane: L,
    connection: Connection,
    send: SendStream,
    recv: RecvStream,
    outgoing: Vec<Bytes>,
    incoming: [Bytes; CHUNKS_MAX],
    is_deaf: bool,
    is_finished: bool,
    is_ended: bool,
}

impl Pipe<AppendLane> {
    pub(crate) async fn append(connection: Connection, open: AppendOpen) -> Result<Self, Lost> {
        Pipe::open(connection, AppendLane::new(open)).await
    }
}

impl Pipe<ReadLane> {
    pub(crate) async fn read(connection: Connection, open: ReadOpen) -> Result<Self, Lost> {
        Pipe::open(connection, ReadLane::new(open)).await
    }
}

impl<L: Lane> Pipe<L> {
    pub(crate) async fn open(connection: Connection, lane: L) -> Result<Pipe<L>, Lost> {
        let (send, recv) = connection.open_stream().await.map_err(|error| {
            tracing::debug!(%error, "no stream could be opened");
            Lost
        })?;
        Ok(Pipe {
            lane,
            connection,
            send,
            recv,
            outgoing: Vec::new(),
            incoming: [const { Bytes::new() }; CHUNKS_MAX],
            is_deaf: false,
            is_finished: false,
            is_ended: false,
        })
    }

    /// Writes what can be written and reads once; waits until there is something to read. Returns
    /// without having read when the lane had no room for output and has some again.
    ///
    /// What can be written at once, as it mostly can, costs no turn of its own: so the caller is
    /// asked once for an append what to do next, and not again when it has left.
    pub(crate) async fn turn(&mut self) -> Result<(), Lost> {
        loop {
            let taken = self.take_output();
            let writes = !self.outgoing.is_empty() && !self.is_deaf;
            if !writes && self.lane.wants_finish() && !self.is_finished {
                self.is_finished = true;
                self.is_deaf |= self.send.finish().is_err();
            }
            let read = tokio::select! {
                // Reading is not starved: nothing is left to write until the caller is asked.
                biased;
                written = self.send.write_chunks(&mut self.outgoing), if writes => {
                    if let Err(error) = written {
                        tracing::debug!(%error, "the star reads no more of a lane");
                        self.is_deaf = true;
                    }
                    if taken >= LANE_OUTPUT_BYTES_MAX {
                        return Ok(());
                    }
                    continue;
                }
                read = self.recv.read_chunks(&mut self.incoming), if !self.is_ended => read,
                else => return Err(Lost),
            };
            return self.take(read);
        }
    }

    /// Moves what the lane has for the star to what is written next; gives its bytes.
    fn take_output(&mut self) -> usize {
        self.outgoing.retain(|chunk| !chunk.is_empty());
        let mut taken = 0;
        while let Some(chunk) = self.lane.poll_output() {
            taken += chunk.len();
            self.outgoing.push(chunk);
        }
        taken
    }

    /// Hands what was read to the lane.
    fn take(&mut self, read: Result<Option<usize>, ReadError>) -> Result<(), Lost> {
        match read {
            Ok(Some(chunks)) => {
                for chunk in &mut self.incoming[..chunks] {
                    let taken = self.lane.handle_bytes(std::mem::take(chunk));
                    if let Err(error) = taken {
                        return Err(self.fail(&error));
                    }
                }
                Ok(())
            }
            Ok(None) => {
                self.is_ended = true;
                self.lane.handle_end().map_err(|error| self.fail(&error))
            }
            Err(error) => {
                tracing::debug!(%error, "a lane is lost");
                Err(Lost)
            }
        }
    }

    fn fail(&mut self, error: &ProtocolError) -> Lost {
        let code = error.close_code();
        tracing::warn!(%error, code, "the star broke the protocol");
        match error.closes() {
            Closes::Connection => self.connection.close(code, "protocol error"),
            Closes::Lane => {
                // Either may have ended by itself already.
                let _ = self.send.reset(code);
                let _ = self.recv.stop(code);
            }
        }
        Lost
    }
}
