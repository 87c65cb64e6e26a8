//! The heads of control frames: a request id, then an archive.
//!
//! # Not here
//! - Requests and answers themselves: `nova_model::request`.

use super::{Frame, Kind, RawBatch, RequestId, read_archive};
use crate::output::{Output, write_archive};
use bytes::Bytes;
use nova_model::request::OneShotAppend;
use nova_model::{Checksum, EncodedBatch};

/// Length of a request id.
pub(crate) const ID_BYTES: usize = 8;
/// Length of what stands before the archive of a one-shot append.
pub(crate) const APPEND_ONCE_FIXED_BYTES: usize = 16;

/// Queues a one-shot append.
pub(crate) fn encode_append_once(
    output: &mut Output,
    id: RequestId,
    append: &OneShotAppend,
    batch: &EncodedBatch,
) {
    output.batch_frame(Kind::AppendOnce, batch, |head| {
        head.extend_from_slice(&id.0.to_le_bytes());
        head.extend_from_slice(&batch.checksum().0.to_le_bytes());
        head.extend_from_slice(&[0; 4]);
        write_archive(head, append);
    });
}

/// Reads the head of a one-shot append.
pub(crate) fn decode_append_once(head: &[u8], batch: Bytes) -> Option<Frame> {
    let (id, rest) = head.split_first_chunk()?;
    let (checksum, rest) = rest.split_first_chunk()?;
    let (&[0, 0, 0, 0], archive) = rest.split_first_chunk::<4>()? else {
        return None;
    };
    let append = read_archive(archive)?;
    let batch = RawBatch {
        bytes: batch,
        checksum: Checksum(u32::from_le_bytes(*checksum)),
    };
    let id = RequestId(u64::from_le_bytes(*id));
    Some(Frame::AppendOnce(id, append, batch))
}
