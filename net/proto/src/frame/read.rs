//! What a reader is sent: the head of a batch frame (64 plain bytes) and the end of a read.
//!
//! # Invariants
//! - One value has one encoding: what is absent is zero, reserved bytes are zero.

use super::{Frame, Kind, RawBatch};
use crate::output::Output;
use bytes::Bytes;
use nova_model::position::Position;
use nova_model::settings::TimestampMode;
use nova_model::stored::Stamping;
use nova_model::{Checksum, Epoch, SequenceNumber, StoredBatch, Timestamp, WriterId, WriterStamp};
use rkyv::{Archive, Deserialize, Serialize};

/// Length of the head of a batch frame.
pub(crate) const BATCH_HEAD_BYTES: usize = 64;
const IS_UNCAPPED: u8 = 1;
const HAS_WRITER: u8 = 2;

/// What stands next to a batch: a [`StoredBatch`] without its bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Placed {
    pub(crate) first: SequenceNumber,
    pub(crate) epoch: Epoch,
    pub(crate) stamping: Stamping,
    pub(crate) writer: Option<WriterStamp>,
}

/// Where a complete read stopped.
#[derive(Archive, Serialize, Deserialize, Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ReadEnd {
    /// The first record that was not part of it.
    pub(crate) next: SequenceNumber,
    /// The committed tail.
    pub(crate) tail: Position,
}

/// Queues a batch frame.
pub(crate) fn encode_batch(output: &mut Output, stored: &StoredBatch) {
    let Stamping {
        mode,
        uncapped,
        arrival,
        floor,
    } = stored.stamping;
    let mut bits = if uncapped { IS_UNCAPPED } else { 0 };
    if stored.writer.is_some() {
        bits |= HAS_WRITER;
    }
    let (writer, sequence) = stored
        .writer
        .map_or((0, 0), |stamp| (stamp.writer.0, stamp.sequence));
    output.batch_frame(Kind::Batch, &stored.batch, |head| {
        head.extend_from_slice(&stored.batch.checksum().0.to_le_bytes());
        head.extend_from_slice(&[mode_byte(mode), bits, 0, 0]);
        head.extend_from_slice(&stored.first.0.to_le_bytes());
        head.extend_from_slice(&stored.epoch.0.to_le_bytes());
        head.extend_from_slice(&arrival.0.to_le_bytes());
        head.extend_from_slice(&floor.0.to_le_bytes());
        head.extend_from_slice(&writer.to_le_bytes());
        head.extend_from_slice(&sequence.to_le_bytes());
    });
}

/// Reads the head of a batch frame.
pub(crate) fn decode_batch(head: &[u8], batch: Bytes) -> Option<Frame> {
    let (checksum, rest) = head.split_first_chunk()?;
    let (&[mode, bits, 0, 0], rest) = rest.split_first_chunk::<4>()? else {
        return None;
    };
    let (first, rest) = rest.split_first_chunk()?;
    let (epoch, rest) = rest.split_first_chunk()?;
    let (arrival, rest) = rest.split_first_chunk()?;
    let (floor, rest) = rest.split_first_chunk()?;
    let (writer, rest) = rest.split_first_chunk()?;
    let (sequence, rest) = rest.split_first_chunk()?;
    if bits & !(IS_UNCAPPED | HAS_WRITER) != 0 || !rest.is_empty() {
        return None;
    }
    let stamp = WriterStamp {
        writer: WriterId(u128::from_le_bytes(*writer)),
        sequence: u64::from_le_bytes(*sequence),
    };
    let writer = (bits & HAS_WRITER != 0).then_some(stamp);
    if writer.is_none() && (stamp.writer.0, stamp.sequence) != (0, 0) {
        return None;
    }
    let placed = Placed {
        first: SequenceNumber(u64::from_le_bytes(*first)),
        epoch: Epoch(u64::from_le_bytes(*epoch)),
        stamping: Stamping {
            mode: byte_mode(mode)?,
            uncapped: bits & IS_UNCAPPED != 0,
            arrival: Timestamp(u64::from_le_bytes(*arrival)),
            floor: Timestamp(u64::from_le_bytes(*floor)),
        },
        writer,
    };
    let batch = RawBatch {
        bytes: batch,
        checksum: Checksum(u32::from_le_bytes(*checksum)),
    };
    Some(Frame::Batch(placed, batch))
}

fn mode_byte(mode: TimestampMode) -> u8 {
    match mode {
        TimestampMode::ClientPrefer => 0,
        TimestampMode::ClientRequire => 1,
        TimestampMode::Arrival => 2,
    }
}

fn byte_mode(byte: u8) -> Option<TimestampMode> {
    match byte {
        0 => Some(TimestampMode::ClientPrefer),
        1 => Some(TimestampMode::ClientRequire),
        2 => Some(TimestampMode::Arrival),
        _ => None,
    }
}
