//! Whether what the star says, though well-formed, can be true.
//!
//! # Not here
//! - Whether it is true.

use crate::error::ProtocolError;
use crate::frame::Kind;
use nova_model::limits::{
    ADDRESS_BYTES_MAX, LIST_LIMIT_MAX, REBALANCE_MOVES_MAX, SESSION_WINDOW_BATCHES, STAR_CORES_MAX,
};
use nova_model::request::{Ack, Answer, AppendOpened, BucketInfo, StreamInfo};
use nova_model::{Refusal, SequenceNumber};

/// The window is one that this end can keep.
pub(super) fn append_opened(opened: &AppendOpened) -> Result<(), ProtocolError> {
    let windows = 1..=SESSION_WINDOW_BATCHES as u32;
    let is_possible = windows.contains(&opened.window_batches);
    require(Kind::AppendOpened, is_possible, "its window is impossible")
}

/// The texts are within their limits.
pub(super) fn refusal(kind: Kind, refusal: &Refusal) -> Result<(), ProtocolError> {
    require(kind, refusal.is_bounded(), "its texts are too long")
}

/// Start, end and tail are in their order.
pub(super) fn ack(kind: Kind, ack: &Ack) -> Result<(), ProtocolError> {
    let is_ordered = ack.start.sequence < ack.end.sequence
        && ack.start.timestamp <= ack.end.timestamp
        && ack.end.sequence <= ack.tail.sequence;
    require(kind, is_ordered, "its positions are out of order")
}

/// One past the last record of a batch, which has to be a number.
pub(super) fn batch_end(
    first: SequenceNumber,
    records: u32,
) -> Result<SequenceNumber, ProtocolError> {
    let end = first.0.checked_add(u64::from(records));
    end.map(SequenceNumber).ok_or(ProtocolError::Content {
        kind: Kind::Batch,
        what: "its sequence numbers have no end",
    })
}

/// Names, tokens, addresses and lists are within their rules.
pub(super) fn answer(answer: &Answer) -> Result<(), ProtocolError> {
    let kind = Kind::Answered;
    match answer {
        Answer::Bucket { info, .. } => bucket(info),
        Answer::Buckets { items, .. } => {
            require(kind, items.len() <= LIST_LIMIT_MAX, "its list is too long")?;
            items.iter().try_for_each(bucket)
        }
        Answer::Stream { info, .. } => stream(info),
        Answer::Streams { items, .. } => {
            require(kind, items.len() <= LIST_LIMIT_MAX, "its list is too long")?;
            items.iter().try_for_each(stream)
        }
        Answer::Star(star) => {
            let are_few = star.cores.len() <= STAR_CORES_MAX;
            require(kind, are_few, "its list is too long")?;
            let mut cores = star.cores.iter();
            let are_short = cores.all(|core| core.address.len() <= ADDRESS_BYTES_MAX);
            require(kind, are_short, "an address is too long")
        }
        Answer::Moved { address, .. } => {
            let is_short = address.len() <= ADDRESS_BYTES_MAX;
            require(kind, is_short, "an address is too long")
        }
        Answer::Placement { drained, .. } => {
            let are_few = drained.len() <= STAR_CORES_MAX;
            require(kind, are_few, "its list is too long")
        }
        Answer::Rebalanced { moves, .. } => {
            let are_few = moves.len() <= REBALANCE_MOVES_MAX;
            require(kind, are_few, "its list is too long")?;
            let are_named = moves.iter().all(|moved| moved.name.check().is_ok());
            require(kind, are_named, "a stream's name is none")
        }
        Answer::Status(status) => {
            let are_few = status.cores.len() <= STAR_CORES_MAX;
            require(kind, are_few, "its list is too long")?;
            let mut cores = status.cores.iter();
            let are_short = cores.all(|core| core.address.len() <= ADDRESS_BYTES_MAX);
            require(kind, are_short, "an address is too long")
        }
        Answer::Deleted
        | Answer::Tail(_)
        | Answer::Fenced { .. }
        | Answer::Trimmed { .. }
        | Answer::StreamsAsBefore => Ok(()),
    }
}

fn bucket(info: &BucketInfo) -> Result<(), ProtocolError> {
    let is_named = info.name.check().is_ok();
    require(Kind::Answered, is_named, "a bucket's name is none")
}

fn stream(info: &StreamInfo) -> Result<(), ProtocolError> {
    let is_named = info.name.check().is_ok();
    require(Kind::Answered, is_named, "a stream's name is none")?;
    let is_token = info.fence.check().is_ok();
    require(Kind::Answered, is_token, "a fencing token is too long")
}

fn require(kind: Kind, holds: bool, what: &'static str) -> Result<(), ProtocolError> {
    if holds {
        return Ok(());
    }
    Err(ProtocolError::Content { kind, what })
}
