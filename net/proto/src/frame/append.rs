//! The head of an append frame: 24 plain bytes, because it goes with every batch of a session.
//!
//! # Invariants
//! - One value has one encoding: what is absent is zero, reserved bytes are zero.

use super::{Frame, Kind, RawBatch};
use crate::output::Output;
use bytes::Bytes;
use nova_model::request::SessionAppend;
use nova_model::{Checksum, EncodedBatch, SequenceNumber};

/// Length of the head.
pub(crate) const APPEND_HEAD_BYTES: usize = 24;
const HAS_WRITER_SEQUENCE: u8 = 1;
const HAS_MATCH_SEQUENCE: u8 = 2;

/// Queues an append frame.
pub(crate) fn encode_append(output: &mut Output, append: &SessionAppend, batch: &EncodedBatch) {
    let mut present = 0;
    if append.writer_sequence.is_some() {
        present |= HAS_WRITER_SEQUENCE;
    }
    if append.match_sequence.is_some() {
        present |= HAS_MATCH_SEQUENCE;
    }
    let writer = append.writer_sequence.unwrap_or(0);
    let matching = append.match_sequence.unwrap_or_default().0;
    output.batch_frame(Kind::Append, batch, |head| {
        head.extend_from_slice(&batch.checksum().0.to_le_bytes());
        head.extend_from_slice(&[present, 0, 0, 0]);
        head.extend_from_slice(&writer.to_le_bytes());
        head.extend_from_slice(&matching.to_le_bytes());
    });
}

/// Reads the head of an append frame.
pub(crate) fn decode_append(head: &[u8], batch: Bytes) -> Option<Frame> {
    let (checksum, rest) = head.split_first_chunk()?;
    let ([present, reserved @ ..], rest) = rest.split_first_chunk::<4>()?;
    let (writer, rest) = rest.split_first_chunk()?;
    let (matching, rest) = rest.split_first_chunk()?;
    if *reserved != [0; 3] || present & !(HAS_WRITER_SEQUENCE | HAS_MATCH_SEQUENCE) != 0 {
        return None;
    }
    let writer = optional(
        present & HAS_WRITER_SEQUENCE != 0,
        u64::from_le_bytes(*writer),
    )?;
    let matching = optional(
        present & HAS_MATCH_SEQUENCE != 0,
        u64::from_le_bytes(*matching),
    )?;
    let append = SessionAppend {
        writer_sequence: writer,
        match_sequence: matching.map(SequenceNumber),
    };
    let batch = RawBatch {
        bytes: batch,
        checksum: Checksum(u32::from_le_bytes(*checksum)),
    };
    rest.is_empty().then_some(Frame::Append(append, batch))
}

/// A field that is zero where it is absent.
fn optional(present: bool, value: u64) -> Option<Option<u64>> {
    match (present, value) {
        (true, value) => Some(Some(value)),
        (false, 0) => Some(None),
        (false, _) => None,
    }
}
