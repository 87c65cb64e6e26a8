//! The two halves of a stream on a server's core.
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
//! - Giving way to other tasks. A read or write that can go on at once does so without a pause;
//!   the windows bound what is there, and a task of a core that loops over many yields itself.

use std::{
    future::poll_fn,
    rc::Rc,
    task::{Context, Poll},
};

use bytes::Bytes;
use quinn_proto::{FinishError, StreamId, VarInt};

use super::connection::Live;
use crate::{
    chunks::{self, End},
    error::{QuicError, ReadError, WriteError},
};

/// The half of a stream this end writes to.
#[derive(Debug)]
pub struct SendStream {
    live: Rc<Live>,
    id: StreamId,
}

impl SendStream {
    pub(super) fn new(live: Rc<Live>, id: StreamId) -> Self {
        Self { live, id }
    }

    /// Writes all of `chunks`, which are empty afterwards, and waits while the windows are full.
    ///
    /// Dropped before its end, some of the bytes have been written: the chunks say which.
    pub async fn write_chunks(&mut self, chunks: &mut [Bytes]) -> Result<(), WriteError> {
        poll_fn(|context| self.poll_write(context, chunks)).await
    }

    /// Writes one chunk, otherwise as [`write_chunks`](Self::write_chunks).
    pub async fn write_chunk(&mut self, chunk: Bytes) -> Result<(), WriteError> {
        self.write_chunks(&mut [chunk]).await
    }

    fn poll_write(
        &self,
        context: &mut Context<'_>,
        chunks: &mut [Bytes],
    ) -> Poll<Result<(), WriteError>> {
        let mut has_written = false;
        let mut state = self.live.link.state.borrow_mut();
        let outcome = loop {
            let Some(next) = chunks.iter().position(|chunk| !chunk.is_empty()) else {
                break Poll::Ready(Ok(()));
            };
            if let Some(error) = &state.error {
                break Poll::Ready(Err(WriteError::Lost(error.clone().into())));
            }
            let mut stream = state.quic.send_stream(self.id);
            match stream.write_chunks(&mut chunks[next..]) {
                Ok(_) => has_written = true,
                Err(quinn_proto::WriteError::Blocked) => {
                    state.writers.insert(self.id, context.waker().clone());
                    break Poll::Pending;
                }
                Err(quinn_proto::WriteError::Stopped(code)) => {
                    let code = code.into_inner();
                    break Poll::Ready(Err(WriteError::Stopped { code }));
                }
                Err(quinn_proto::WriteError::ClosedStream) => {
                    break Poll::Ready(Err(WriteError::Finished));
                }
            }
        };
        drop(state);
        if has_written {
            self.live.is_due();
        }
        outcome
    }

    /// Says that nothing more will come. What is written already is still delivered.
    pub fn finish(&mut self) -> Result<(), WriteError> {
        let mut state = self.live.link.state.borrow_mut();
        let finished = state.quic.send_stream(self.id).finish();
        drop(state);
        match finished {
            Ok(()) => self.live.is_due(),
            // Harmless: whoever wants to know asks with `stopped`.
            Err(FinishError::Stopped(_)) => {}
            Err(FinishError::ClosedStream) => return Err(WriteError::Finished),
        }
        Ok(())
    }

    /// Gives the stream up: bytes not yet delivered may be lost.
    pub fn reset(&mut self, code: u32) -> Result<(), WriteError> {
        let mut state = self.live.link.state.borrow_mut();
        let reset = state
            .quic
            .send_stream(self.id)
            .reset(VarInt::from_u32(code));
        drop(state);
        reset.map_err(|_| WriteError::Finished)?;
        self.live.is_due();
        Ok(())
    }

    /// Waits until the peer wants no more, and gives its code; or, after
    /// [`finish`](Self::finish), until the peer has all, and gives `None`.
    ///
    /// The future does not borrow the stream, so that writing goes on beside it.
    pub fn stopped(&self) -> impl Future<Output = Result<Option<u64>, QuicError>> + use<> {
        let (live, id) = (Rc::clone(&self.live), self.id);
        poll_fn(move |context| {
            let mut state = live.link.state.borrow_mut();
            match state.quic.send_stream(id).stopped() {
                Ok(Some(code)) => return Poll::Ready(Ok(Some(code.into_inner()))),
                Ok(None) => {}
                Err(_all_is_delivered) => return Poll::Ready(Ok(None)),
            }
            if let Some(error) = &state.error {
                return Poll::Ready(Err(error.clone().into()));
            }
            state.wait_for_end(id, context)
        })
    }

    /// Number of the stream on its connection.
    pub fn id(&self) -> u64 {
        VarInt::from(self.id).into_inner()
    }
}

impl Drop for SendStream {
    fn drop(&mut self) {
        let mut state = self.live.link.state.borrow_mut();
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
        drop(state);
        if has_changed {
            self.live.is_due();
        }
    }
}

/// The half of a stream this end reads from.
#[derive(Debug)]
pub struct RecvStream {
    live: Rc<Live>,
    id: StreamId,
    end: Option<End>,
}

impl RecvStream {
    pub(super) fn new(live: Rc<Live>, id: StreamId) -> Self {
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
    /// `None` at the end of the stream.
    ///
    /// Dropped before its end, nothing has been read.
    pub async fn read_chunks(&mut self, chunks: &mut [Bytes]) -> Result<Option<usize>, ReadError> {
        poll_fn(|context| self.poll_read(context, chunks)).await
    }

    fn poll_read(
        &mut self,
        context: &mut Context<'_>,
        chunks: &mut [Bytes],
    ) -> Poll<Result<Option<usize>, ReadError>> {
        if self.waits(context) {
            return Poll::Pending;
        }
        let count = match self.end {
            Some(_) => 0,
            None => self.take(chunks)?,
        };
        if count > 0 {
            return Poll::Ready(Ok(Some(count)));
        }
        match self.end {
            Some(End::Finished) => return Poll::Ready(Ok(None)),
            Some(End::Reset(code)) => return Poll::Ready(Err(ReadError::Reset { code })),
            None => {}
        }
        let mut state = self.live.link.state.borrow_mut();
        if let Some(error) = &state.error {
            return Poll::Ready(Err(ReadError::Lost(error.clone().into())));
        }
        state.readers.insert(self.id, context.waker().clone());
        Poll::Pending
    }

    /// Whether the reader waits already and nothing has come since: its task has another reason.
    fn waits(&self, context: &Context<'_>) -> bool {
        let state = self.live.link.state.borrow();
        let waker = state.readers.get(&self.id);
        waker.is_some_and(|waker| waker.will_wake(context.waker()))
    }

    fn take(&mut self, chunks: &mut [Bytes]) -> Result<usize, ReadError> {
        let mut state = self.live.link.state.borrow_mut();
        let mut stream = state.quic.recv_stream(self.id);
        let taken = chunks::take(&mut stream, chunks, &mut self.end)?;
        drop(state);
        if taken.gives_room {
            self.live.is_due();
        }
        Ok(taken.count)
    }

    /// Tells the peer that no more of this stream will be read.
    pub fn stop(&mut self, code: u32) -> Result<(), ReadError> {
        let mut state = self.live.link.state.borrow_mut();
        // A read that was given up may have left it.
        state.readers.remove(&self.id);
        let stopped = state.quic.recv_stream(self.id).stop(VarInt::from_u32(code));
        drop(state);
        stopped.map_err(|_| ReadError::Stopped)?;
        self.live.is_due();
        Ok(())
    }

    /// Number of the stream on its connection.
    pub fn id(&self) -> u64 {
        VarInt::from(self.id).into_inner()
    }
}

impl Drop for RecvStream {
    fn drop(&mut self) {
        let mut state = self.live.link.state.borrow_mut();
        state.readers.remove(&self.id);
        if state.error.is_some() || self.end.is_some() {
            return;
        }
        let stopped = state.quic.recv_stream(self.id).stop(VarInt::from_u32(0));
        drop(state);
        if stopped.is_ok() {
            self.live.is_due();
        }
    }
}
