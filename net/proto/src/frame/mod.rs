//! All frames: their kinds, their limits, and what they mean once decoded.
//!
//! Each frame is a header, a head and, for three kinds, a batch. Heads are archives of the
//! model's types, or a few plain fields where a frame is sent for every batch. One file for each
//! family writes and reads them: [`append`], [`read`], [`control`].
//!
//! # Invariants
//! - A [`Frame`] holds valid archives. Names, tokens and sizes in it are not checked yet: what is
//!   wrong with those is a refusal and is the lane's to give.

pub(crate) mod append;
pub(crate) mod control;
pub(crate) mod decode;
pub(crate) mod header;
pub(crate) mod read;

use crate::error::ProtocolError;
use bytes::Bytes;
use decode::RawFrame;
use nova_model::batch::BatchError;
use nova_model::limits::{
    BATCH_ENCODED_BYTES_MAX, BATCH_ENCODED_BYTES_MIN, CONTROL_FRAME_BYTES_MAX,
    REQUEST_FRAME_BYTES_MAX,
};
use nova_model::position::Position;
use nova_model::request::{
    Ack, Answer, AppendOpen, AppendOpened, OneShotAppend, ReadOpen, ReadOpened, Request,
    SessionAppend,
};
use nova_model::{Checksum, EncodedBatch, Refusal};
use rkyv::api::high::{HighDeserializer, HighValidator};
use rkyv::bytecheck::CheckBytes;
use rkyv::rancor::Failure;
use rkyv::{Archive, Archived, Deserialize};
use std::fmt;
use std::ops::RangeInclusive;

/// Number of a request on its control lane, chosen by the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId(pub u64);

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// What a frame is. Below 0x80 the client sends it, above the star.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// The lane is an append session.
    OpenAppend = 0x01,
    /// A batch of the session.
    Append = 0x02,
    /// Batches after this frame are not behind a rejected one any more.
    Resume = 0x03,
    /// The lane is a reader.
    OpenRead = 0x04,
    /// A request; the lane is a control lane.
    Request = 0x05,
    /// A one-shot append; the lane is a control lane.
    AppendOnce = 0x06,
    /// The session is open.
    AppendOpened = 0x81,
    /// Session or reader are refused.
    OpenRefused = 0x82,
    /// The oldest unanswered batch is durable.
    Acked = 0x83,
    /// The oldest unanswered batch is refused.
    Rejected = 0x84,
    /// The session is over.
    Broken = 0x85,
    /// The reader is open.
    ReadOpened = 0x86,
    /// A batch for the reader.
    Batch = 0x87,
    /// The reader has all that is durable.
    CaughtUp = 0x88,
    /// The tail, told from time to time.
    Heartbeat = 0x89,
    /// The read is complete.
    ReadEnded = 0x8a,
    /// The read cannot go on.
    ReadFailed = 0x8b,
    /// The answer to a request.
    Answered = 0x8c,
    /// The ack of a one-shot append.
    AppendedOnce = 0x8d,
    /// A request or a one-shot append is refused.
    RequestRefused = 0x8e,
}

impl Kind {
    /// All kinds, in the order of their numbers.
    pub const ALL: [Kind; 20] = [
        Kind::OpenAppend,
        Kind::Append,
        Kind::Resume,
        Kind::OpenRead,
        Kind::Request,
        Kind::AppendOnce,
        Kind::AppendOpened,
        Kind::OpenRefused,
        Kind::Acked,
        Kind::Rejected,
        Kind::Broken,
        Kind::ReadOpened,
        Kind::Batch,
        Kind::CaughtUp,
        Kind::Heartbeat,
        Kind::ReadEnded,
        Kind::ReadFailed,
        Kind::Answered,
        Kind::AppendedOnce,
        Kind::RequestRefused,
    ];

    /// The kind with this number.
    pub fn from_byte(byte: u8) -> Option<Kind> {
        Kind::ALL.into_iter().find(|&kind| kind as u8 == byte)
    }

    /// The possible lengths of the head.
    pub fn head_bytes(self) -> RangeInclusive<usize> {
        const ID: usize = control::ID_BYTES;
        match self {
            Kind::OpenAppend => from::<AppendOpen>(0, REQUEST_FRAME_BYTES_MAX),
            Kind::OpenRead => from::<ReadOpen>(0, REQUEST_FRAME_BYTES_MAX),
            Kind::Request => from::<Request>(ID, REQUEST_FRAME_BYTES_MAX),
            Kind::AppendOnce => {
                from::<OneShotAppend>(control::APPEND_ONCE_FIXED_BYTES, REQUEST_FRAME_BYTES_MAX)
            }
            Kind::OpenRefused | Kind::Rejected | Kind::Broken | Kind::ReadFailed => {
                from::<Refusal>(0, REQUEST_FRAME_BYTES_MAX)
            }
            Kind::RequestRefused => from::<Refusal>(ID, REQUEST_FRAME_BYTES_MAX),
            Kind::Answered => from::<Answer>(ID, CONTROL_FRAME_BYTES_MAX),
            Kind::Append => exactly(append::APPEND_HEAD_BYTES),
            Kind::Resume => exactly(0),
            Kind::AppendOpened => exactly(size_of::<Archived<AppendOpened>>()),
            Kind::Acked => exactly(size_of::<Archived<Ack>>()),
            Kind::AppendedOnce => exactly(ID + size_of::<Archived<Ack>>()),
            Kind::ReadOpened => exactly(size_of::<Archived<ReadOpened>>()),
            Kind::Batch => exactly(read::BATCH_HEAD_BYTES),
            Kind::CaughtUp | Kind::Heartbeat => exactly(size_of::<Archived<Position>>()),
            Kind::ReadEnded => exactly(size_of::<Archived<read::ReadEnd>>()),
        }
    }

    /// The possible lengths of the batch.
    pub fn batch_bytes(self) -> RangeInclusive<usize> {
        match self {
            Kind::Append | Kind::AppendOnce | Kind::Batch => {
                BATCH_ENCODED_BYTES_MIN..=BATCH_ENCODED_BYTES_MAX
            }
            Kind::OpenAppend
            | Kind::Resume
            | Kind::OpenRead
            | Kind::Request
            | Kind::AppendOpened
            | Kind::OpenRefused
            | Kind::Acked
            | Kind::Rejected
            | Kind::Broken
            | Kind::ReadOpened
            | Kind::CaughtUp
            | Kind::Heartbeat
            | Kind::ReadEnded
            | Kind::ReadFailed
            | Kind::Answered
            | Kind::AppendedOnce
            | Kind::RequestRefused => exactly(0),
        }
    }
}

fn exactly(bytes: usize) -> RangeInclusive<usize> {
    bytes..=bytes
}

fn from<T: Archive>(fixed: usize, max: usize) -> RangeInclusive<usize> {
    fixed + size_of::<Archived<T>>()..=max
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

/// Bytes that should be a batch, and the checksum that their sender gave them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RawBatch {
    /// The bytes.
    pub(crate) bytes: Bytes,
    /// What the sender says.
    pub(crate) checksum: Checksum,
}

impl RawBatch {
    /// Checks them. Damage, or what is no batch, is the peer's error; a batch that is one but
    /// breaks the rules of size is refused.
    pub(crate) fn check_for(
        self,
        kind: Kind,
    ) -> Result<Result<EncodedBatch, Refusal>, ProtocolError> {
        match EncodedBatch::check(self.bytes, self.checksum) {
            Ok(batch) => Ok(Ok(batch)),
            Err(
                error @ (BatchError::Empty
                | BatchError::RecordTooLarge { .. }
                | BatchError::TooLarge(_)),
            ) => Ok(Err(error.into())),
            Err(
                error @ (BatchError::Length(_)
                | BatchError::Checksum { .. }
                | BatchError::Archive
                | BatchError::Ballast),
            ) => Err(ProtocolError::Batch { kind, error }),
        }
    }

    /// Checks them where a refusal is no answer: at the client.
    pub(crate) fn check_strictly(self, kind: Kind) -> Result<EncodedBatch, ProtocolError> {
        EncodedBatch::check(self.bytes, self.checksum)
            .map_err(|error| ProtocolError::Batch { kind, error })
    }
}

/// A decoded frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Frame {
    OpenAppend(AppendOpen),
    Append(SessionAppend, RawBatch),
    Resume,
    OpenRead(ReadOpen),
    Request(RequestId, Request),
    AppendOnce(RequestId, OneShotAppend, RawBatch),
    AppendOpened(AppendOpened),
    OpenRefused(Refusal),
    Acked(Ack),
    Rejected(Refusal),
    Broken(Refusal),
    ReadOpened(ReadOpened),
    Batch(read::Placed, RawBatch),
    CaughtUp(Position),
    Heartbeat(Position),
    ReadEnded(read::ReadEnd),
    ReadFailed(Refusal),
    Answered(RequestId, Answer),
    AppendedOnce(RequestId, Ack),
    RequestRefused(RequestId, Refusal),
}

impl Frame {
    /// Reads the head. The batch, if there is one, is left to [`RawBatch`].
    pub(crate) fn decode(raw: RawFrame) -> Result<Frame, ProtocolError> {
        let RawFrame { kind, head, batch } = raw;
        let frame = match kind {
            Kind::OpenAppend => read_archive(&head).map(Frame::OpenAppend),
            Kind::Append => append::decode_append(&head, batch),
            Kind::Resume => Some(Frame::Resume),
            Kind::OpenRead => read_archive(&head).map(Frame::OpenRead),
            Kind::Request => with_id(&head, Frame::Request),
            Kind::AppendOnce => control::decode_append_once(&head, batch),
            Kind::AppendOpened => read_archive(&head).map(Frame::AppendOpened),
            Kind::OpenRefused => read_archive(&head).map(Frame::OpenRefused),
            Kind::Acked => read_archive(&head).map(Frame::Acked),
            Kind::Rejected => read_archive(&head).map(Frame::Rejected),
            Kind::Broken => read_archive(&head).map(Frame::Broken),
            Kind::ReadOpened => read_archive(&head).map(Frame::ReadOpened),
            Kind::Batch => read::decode_batch(&head, batch),
            Kind::CaughtUp => read_archive(&head).map(Frame::CaughtUp),
            Kind::Heartbeat => read_archive(&head).map(Frame::Heartbeat),
            Kind::ReadEnded => read_archive(&head).map(Frame::ReadEnded),
            Kind::ReadFailed => read_archive(&head).map(Frame::ReadFailed),
            Kind::Answered => with_id(&head, Frame::Answered),
            Kind::AppendedOnce => with_id(&head, Frame::AppendedOnce),
            Kind::RequestRefused => with_id(&head, Frame::RequestRefused),
        };
        frame.ok_or(ProtocolError::Head(kind))
    }
}

fn with_id<T>(head: &[u8], make: impl FnOnce(RequestId, T) -> Frame) -> Option<Frame>
where
    T: Archive,
    T::Archived:
        for<'a> CheckBytes<HighValidator<'a, Failure>> + Deserialize<T, HighDeserializer<Failure>>,
{
    let (id, archive) = head.split_first_chunk()?;
    let value = read_archive(archive)?;
    Some(make(RequestId(u64::from_le_bytes(*id)), value))
}

/// Validates an archive and makes the value it holds.
pub(crate) fn read_archive<T>(archive: &[u8]) -> Option<T>
where
    T: Archive,
    T::Archived:
        for<'a> CheckBytes<HighValidator<'a, Failure>> + Deserialize<T, HighDeserializer<Failure>>,
{
    rkyv::from_bytes::<T, Failure>(archive).ok()
}
