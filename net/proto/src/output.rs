//! The bytes that a lane has for its peer: frames in order, payloads shared.
//!
//! ```text
//!   queue: [heads][payload][heads][payload]   open: heads of the frames that came last
//! ```
//! Heads of consecutive frames gather in one buffer, so that sixteen acks leave as one chunk. A
//! payload is queued as the shared bytes that it is.
//!
//! # Not here
//! - The bound: a lane takes no input while more than `LANE_OUTPUT_BYTES_MAX` waits here.

use crate::frame::header::{HEADER_BYTES, Header};
use crate::frame::{Kind, RequestId};
use bytes::Bytes;
use nova_model::EncodedBatch;
use rkyv::api::high::HighSerializer;
use rkyv::rancor;
use rkyv::ser::allocator::ArenaHandle;
use std::collections::VecDeque;

/// A buffer of heads is queued when it is this large, so that none grows without end.
const OPEN_BYTES_TARGET: usize = 16 * 1024;

/// A queue of frames.
#[derive(Debug, Default)]
pub(crate) struct Output {
    queue: VecDeque<Bytes>,
    open: Vec<u8>,
    bytes: usize,
}

impl Output {
    /// Queues a frame without a batch; `write` appends the head.
    pub(crate) fn frame(&mut self, kind: Kind, write: impl FnOnce(&mut Vec<u8>)) {
        self.head(kind, 0, write);
    }

    /// Queues a frame whose head is an archive.
    pub(crate) fn archive<T>(&mut self, kind: Kind, value: &T)
    where
        T: for<'a> rkyv::Serialize<HighSerializer<Vec<u8>, ArenaHandle<'a>, rancor::Error>>,
    {
        self.frame(kind, |head| write_archive(head, value));
    }

    /// Queues a frame whose head is a request id and an archive.
    pub(crate) fn archive_for<T>(&mut self, kind: Kind, id: RequestId, value: &T)
    where
        T: for<'a> rkyv::Serialize<HighSerializer<Vec<u8>, ArenaHandle<'a>, rancor::Error>>,
    {
        self.frame(kind, |head| {
            head.extend_from_slice(&id.0.to_le_bytes());
            write_archive(head, value);
        });
    }

    /// Queues a frame with a batch; `write` appends the head.
    pub(crate) fn batch_frame(
        &mut self,
        kind: Kind,
        batch: &EncodedBatch,
        write: impl FnOnce(&mut Vec<u8>),
    ) {
        self.head(kind, batch.bytes().len(), write);
        self.seal();
        self.bytes += batch.bytes().len();
        self.queue.push_back(batch.bytes().clone());
    }

    /// The next chunk to write.
    pub(crate) fn poll(&mut self) -> Option<Bytes> {
        if self.queue.is_empty() {
            self.seal();
        }
        let chunk = self.queue.pop_front()?;
        self.bytes -= chunk.len();
        Some(chunk)
    }

    /// Bytes not polled yet.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Forgets everything.
    pub(crate) fn clear(&mut self) {
        *self = Output::default();
    }

    fn head(&mut self, kind: Kind, batch_bytes: usize, write: impl FnOnce(&mut Vec<u8>)) {
        let start = self.open.len();
        self.open.extend_from_slice(&[0; HEADER_BYTES]);
        write(&mut self.open);
        let (header, head) = self.open[start..].split_at_mut(HEADER_BYTES);
        header.copy_from_slice(&Header::encode(kind, head, batch_bytes));
        self.bytes += self.open.len() - start;
        if self.open.len() >= OPEN_BYTES_TARGET {
            self.seal();
        }
    }

    fn seal(&mut self) {
        if !self.open.is_empty() {
            self.queue
                .push_back(Bytes::from(std::mem::take(&mut self.open)));
        }
    }
}

/// Appends `value` as an archive. Archives hold offsets only, and no alignment is needed, so one
/// can stand behind anything.
pub(crate) fn write_archive<T>(head: &mut Vec<u8>, value: &T)
where
    T: for<'a> rkyv::Serialize<HighSerializer<Vec<u8>, ArenaHandle<'a>, rancor::Error>>,
{
    *head = rkyv::api::high::to_bytes_in(value, std::mem::take(head))
        .expect("writing plain values into memory cannot fail");
}
