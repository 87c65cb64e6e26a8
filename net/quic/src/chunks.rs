//! Taking what has come on a stream, on either end.
//!
//! # Not here
//! - Who waits for more: the streams of each end.

use bytes::Bytes;
use quinn_proto::{ReadError as NotRead, ReadableError};

use crate::error::ReadError;

/// How the reading of a stream has ended.
#[derive(Debug, Clone, Copy)]
pub(crate) enum End {
    /// All is read.
    Finished,
    /// The peer gave the stream up, with this code.
    Reset(u64),
}

/// What was there.
pub(crate) struct Taken {
    /// Chunks that were taken.
    pub(crate) count: usize,
    /// Whether the peer is to hear that it may send more.
    pub(crate) gives_room: bool,
}

/// Takes as many chunks as are there and `chunks` has room for, and notes the end.
pub(crate) fn take(
    stream: &mut quinn_proto::RecvStream<'_>,
    chunks: &mut [Bytes],
    end: &mut Option<End>,
) -> Result<Taken, ReadError> {
    let mut there = match stream.read(true) {
        Ok(there) => there,
        Err(ReadableError::ClosedStream) => return Err(ReadError::Stopped),
        Err(ReadableError::IllegalOrderedRead) => unreachable!("all reads are ordered"),
    };
    let mut count = 0;
    while count < chunks.len() {
        match there.next(usize::MAX) {
            Ok(Some(chunk)) => {
                chunks[count] = chunk.bytes;
                count += 1;
            }
            Ok(None) => {
                *end = Some(End::Finished);
                break;
            }
            Err(NotRead::Blocked) => break,
            Err(NotRead::Reset(code)) => {
                *end = Some(End::Reset(code.into_inner()));
                break;
            }
        }
    }
    Ok(Taken {
        count,
        gives_room: there.finalize().should_transmit(),
    })
}
