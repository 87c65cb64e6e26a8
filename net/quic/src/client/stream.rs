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

use std::{
    future::poll_fn,
    sync::Arc,
    task::{Context, Poll},
};

use bytes::Bytes;
use quinn_proto::{FinishError, StreamId, VarInt};

use super::{connection::Live, link::State};
use crate::{
    chunks::{self, End},
    error::{QuicError, ReadError, WriteError},
};

/// The half of a stream this end writes to.
pub struct SendStream {
    live: Arc<Live>,
    id: StreamId,
}

impl SendStream {
    pub(super) fn new(live: Arc<Live>, id: StreamId) -> Self {
        Self { live, id }
    }

    /// Writes all of `chunks`, which are empty afterwards, and waits while the windows are full.
    ///
    /// Dropped before its end, some of the bytes have been written: the chunks say which.
    pub async fn write_chunks(&mut self, chunks: &mut [Bytes]) -> Result<(), WriteError> {
        poll_fn(|context| {
            let write = |state: &mut State| write(state, self.id, context, chunks);
            self.live.link.with(write)
        })
        .await
    }

    /// Writes one chunk, otherwise as [`write_chunks`](Self::write_chunks).
    pub async fn write_chunk(&mut self, chunk: Bytes) -> Result<(), WriteError> {
        self.write_chunks(&mut [chunk]).await
    }

    /// Says that nothing more will come. What is written already is still delivered.
    pub fn finish(&mut self) -> Result<(), WriteError> {
        self.live.link.with(|state| {
            match state.quic.send_stream(self.id).finish() {
                Ok(()) => state.due(),
                // Harmless: whoever wants to know asks with `stopped`.
                Err(FinishError::Stopped(_)) => {}
                Err(FinishError::ClosedStream) => return Err(WriteError::Finished),
            }
            Ok(())
        })
    }

    /// Gives the stream up: bytes not yet delivered may be lost.
    pub fn reset(&mut self, code: u32) -> Result<(), WriteError> {
        self.live.link.with(|state| {
            let mut stream = state.quic.send_stream(self.id);
            let reset = stream.reset(VarInt::from_u32(code));
            reset.map_err(|_| WriteError::Finished)?;
            state.due();
            Ok(())
        })
    }

    /// Waits until the peer wants no more, and gives its code; or, after
    /// [`finish`](Self::finish), until the peer has all, and gives `None`.
    ///
    /// The future does not borrow the stream, so that writing goes on beside it.
    pub fn stopped(&self) -> impl Future<Output = Result<Option<u64>, QuicError>> + Send + use<> {
        let (live, id) = (Arc::clone(&self.live), self.id);
        async move {
            loop {
                // Under one lock, so that an end in between is not missed.
                let end = live.link.with(|state| match stopped(state, id) {
                    Some(stopped) => Err(stopped),
                    None => Ok(state.end_of(id)),
                });
                match end {
                    Ok(end) => end.await,
                    Err(stopped) => return stopped,
                }
            }
        }
    }

    /// Number of the stream on its connection.
    pub fn id(&self) -> u64 {
        VarInt::from(self.id).into_inner()
    }
}

fn write(
    state: &mut State,
    id: StreamId,
    context: &Context<'_>,
    chunks: &mut [Bytes],
) -> Poll<Result<(), WriteError>> {
    while let Some(next) = chunks.iter().position(|chunk| !chunk.is_empty()) {
        if let Some(error) = &state.error {
            return Poll::Ready(Err(WriteError::Lost(error.clone().into())));
        }
        let mut stream = state.quic.send_stream(id);
        match stream.write_chunks(&mut chunks[next..]) {
            Ok(_) => state.due(),
            Err(quinn_proto::WriteError::Blocked) => {
                state.writers.insert(id, context.waker().clone());
                return Poll::Pending;
            }
            Err(quinn_proto::WriteError::Stopped(code)) => {
                let code = code.into_inner();
                return Poll::Ready(Err(WriteError::Stopped { code }));
            }
            Err(quinn_proto::WriteError::ClosedStream) => {
                return Poll::Ready(Err(WriteError::Finished));
            }
        }
    }
    Poll::Ready(Ok(()))
}

/// How a sending half has ended, if it has.
fn stopped(state: &mut State, id: StreamId) -> Option<Result<Option<u64>, QuicError>> {
    match state.quic.send_stream(id).stopped() {
        Ok(Some(code)) => Some(Ok(Some(code.into_inner()))),
        Ok(None) => state.error.clone().map(|error| Err(error.into())),
        Err(_all_is_delivered) => Some(Ok(None)),
    }
}

impl std::fmt::Debug for SendStream {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_tuple("SendStream").field(&self.id).finish()
    }
}

impl Drop for SendStream {
    fn drop(&mut self) {
        self.live.link.with(|state| {
            state.writers.remove(&self.id);
            if state.error.is_some() {
                return;
            }
            let mut stream = state.quic.send_stream(self.id);
            let has_changed = match stream.finish() {
                Ok(()) => true,
                Err(FinishError::Stopped(code)) => stream.reset(code).is_ok(),
                // Finished or reset before.
                Err(FinishError::ClosedStream) => false,
            };
            if has_changed {
                state.due();
            }
        });
    }
}

/// The half of a stream this end reads from.
pub struct RecvStream {
    live: Arc<Live>,
    id: StreamId,
    end: Option<End>,
}

impl RecvStream {
    pub(super) fn new(live: Arc<Live>, id: StreamId) -> Self {
        Self {
            live,
            id,
            end: None,
        }
    }

    /// The next bytes, as many as came in one packet; `None` at the end of the stream.
    ///
    /// Dropped before its end, nothing has been read.
    pub async fn read_chunk(&mut self) -> Result<Option<Bytes>, ReadError> {
        let mut chunk = [Bytes::new()];
        let count = self.read_chunks(&mut chunk).await?;
        let [chunk] = chunk;
        Ok(count.map(|_| chunk))
    }

    /// As many next chunks as are there and `chunks` has room for, at least one: their number, or
    /// `None` at the end of the stream. One lock for many packets: the way to read much.
    ///
    /// Dropped before its end, nothing has been read.
    pub async fn read_chunks(&mut self, chunks: &mut [Bytes]) -> Result<Option<usize>, ReadError> {
        poll_fn(|context| {
            let (id, end) = (self.id, &mut self.end);
            let read = |state: &mut State| read(state, id, end, context, chunks);
            self.live.link.with(read)
        })
        .await
    }

    /// Tells the peer that no more of this stream will be read.
    pub fn stop(&mut self, code: u32) -> Result<(), ReadError> {
        self.live.link.with(|state| {
            // A read that was given up may have left it.
            state.readers.remove(&self.id);
            let mut stream = state.quic.recv_stream(self.id);
            let stopped = stream.stop(VarInt::from_u32(code));
            stopped.map_err(|_| ReadError::Stopped)?;
            state.due();
            Ok(())
        })
    }

    /// Number of the stream on its connection.
    pub fn id(&self) -> u64 {
        VarInt::from(self.id).into_inner()
    }
}

fn read(
    state: &mut State,
    id: StreamId,
    end: &mut Option<End>,
    context: &Context<'_>,
    chunks: &mut [Bytes],
) -> Poll<Result<Option<usize>, ReadError>> {
    // The reader waits already and nothing has come since: its task has another reason.
    let waker = state.readers.get(&id);
    if waker.is_some_and(|waker| waker.will_wake(context.waker())) {
        return Poll::Pending;
    }
    if end.is_none() {
        let taken = chunks::take(&mut state.quic.recv_stream(id), chunks, end)?;
        if taken.gives_room {
            state.due();
        }
        if taken.count > 0 || chunks.is_empty() {
            return Poll::Ready(Ok(Some(taken.count)));
        }
    }
    match (&*end, &state.error) {
        (Some(End::Finished), _) => return Poll::Ready(Ok(None)),
        (&Some(End::Reset(code)), _) => return Poll::Ready(Err(ReadError::Reset { code })),
        (None, Some(error)) => return Poll::Ready(Err(ReadError::Lost(error.clone().into()))),
        (None, None) => {}
    }
    state.readers.insert(id, context.waker().clone());
    Poll::Pending
}

impl std::fmt::Debug for RecvStream {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_tuple("RecvStream").field(&self.id).finish()
    }
}

impl Drop for RecvStream {
    fn drop(&mut self) {
        self.live.link.with(|state| {
            state.readers.remove(&self.id);
            if state.error.is_some() || self.end.is_some() {
                return;
            }
            let mut stream = state.quic.recv_stream(self.id);
            if stream.stop(VarInt::from_u32(0)).is_ok() {
                state.due();
            }
        });
    }
}
