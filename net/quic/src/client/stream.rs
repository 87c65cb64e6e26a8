//! The two halves of a stream on a client.
//!
//! # Invariants
//! - Bytes are handed over, not copied: written chunks are kept until acknowledged, read chunks
//!   are slices of the received datagrams. A small slice kept for long keeps its whole batch of
//!   up to 64 KiB alive: copy what is to stay.
//! - Bytes are read in order.
//! - Dropped, a send half is finished and a receive half is stopped, with code 0.
//!
//! # Not here
//! - Frames: `net/proto`.
//! - Giving way to other tasks: a read or write that can go on at once does so without a pause.

use bytes::Bytes;
use quinn::VarInt;

use crate::error::{QuicError, ReadError, WriteError};

/// The half of a stream this end writes to.
#[derive(Debug)]
pub struct SendStream {
    stream: quinn::SendStream,
}

impl SendStream {
    pub(super) fn new(stream: quinn::SendStream) -> Self {
        Self { stream }
    }

    /// Writes all of `chunks`, which are empty afterwards, and waits while the windows are full.
    ///
    /// Dropped before its end, some of the bytes have been written: the chunks say which.
    pub async fn write_chunks(&mut self, chunks: &mut [Bytes]) -> Result<(), WriteError> {
        Ok(self.stream.write_all_chunks(chunks).await?)
    }

    /// Writes one chunk, otherwise as [`write_chunks`](Self::write_chunks).
    pub async fn write_chunk(&mut self, chunk: Bytes) -> Result<(), WriteError> {
        Ok(self.stream.write_chunk(chunk).await?)
    }

    /// Says that nothing more will come. What is written already is still delivered.
    pub fn finish(&mut self) -> Result<(), WriteError> {
        self.stream.finish().map_err(|_| WriteError::Finished)
    }

    /// Gives the stream up: bytes not yet delivered may be lost.
    pub fn reset(&mut self, code: u32) -> Result<(), WriteError> {
        self.stream
            .reset(VarInt::from_u32(code))
            .map_err(|_| WriteError::Finished)
    }

    /// Waits until the peer wants no more, and gives its code; or, after
    /// [`finish`](Self::finish), until the peer has all, and gives `None`.
    ///
    /// The future does not borrow the stream, so that writing goes on beside it.
    pub fn stopped(&self) -> impl Future<Output = Result<Option<u64>, QuicError>> + Send + use<> {
        let stopped = self.stream.stopped();
        async move { Ok(stopped.await?.map(VarInt::into_inner)) }
    }

    /// Number of the stream on its connection.
    pub fn id(&self) -> u64 {
        VarInt::from(self.stream.id()).into_inner()
    }
}

/// The half of a stream this end reads from.
#[derive(Debug)]
pub struct RecvStream {
    stream: quinn::RecvStream,
}

impl RecvStream {
    pub(super) fn new(stream: quinn::RecvStream) -> Self {
        Self { stream }
    }

    /// The next bytes, as many as came in one packet; `None` at the end of the stream.
    ///
    /// Dropped before its end, nothing has been read.
    pub async fn read_chunk(&mut self) -> Result<Option<Bytes>, ReadError> {
        Ok(self
            .stream
            .read_chunk(usize::MAX, true)
            .await?
            .map(|chunk| chunk.bytes))
    }

    /// As many next chunks as are there and `chunks` has room for, at least one: their number, or
    /// `None` at the end of the stream. One lock for many packets: the way to read much.
    ///
    /// Dropped before its end, nothing has been read.
    pub async fn read_chunks(&mut self, chunks: &mut [Bytes]) -> Result<Option<usize>, ReadError> {
        Ok(self.stream.read_chunks(chunks).await?)
    }

    /// Tells the peer that no more of this stream will be read.
    pub fn stop(&mut self, code: u32) -> Result<(), ReadError> {
        self.stream
            .stop(VarInt::from_u32(code))
            .map_err(|_| ReadError::Stopped)
    }

    /// Number of the stream on its connection.
    pub fn id(&self) -> u64 {
        VarInt::from(self.stream.id()).into_inner()
    }
}
