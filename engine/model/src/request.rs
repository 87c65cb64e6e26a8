//! What clients ask of a star and what it answers: the words that the session protocol carries and
//! the shard understands.
//!
//! Appends and reads have lanes of their own ([`AppendOpen`], [`ReadOpen`]); everything else is a
//! [`Request`] with one [`Answer`] or a [`crate::Refusal`].
//!
//! # Invariants
//! - A value that came in an archive from outside is not used before its `check` passed.

#![allow(
    missing_docs,
    reason = "rkyv derives resolvers without docs; all items here have one"
)]

use crate::condition::{Conditions, FencingToken, WriterStamp};
use crate::error::Refusal;
use crate::ids::{CoreId, Epoch, StreamId, WriterId};
pub use crate::list::{Arrivals, Page};
use crate::names::{BucketName, StreamName};
use crate::position::{Position, SequenceNumber};
use crate::settings::{BucketChange, BucketSettings, EffectiveSettings, StreamSettings};
pub use crate::star::{CoreInfo, CoreSet, CoreStatus, StarInfo, StarStatus, StreamMove};
use crate::time::Timestamp;
use rkyv::{Archive, Deserialize, Serialize};

/// Opens an append session (contract, section 2.4).
#[derive(Archive, Serialize, Deserialize, Debug, Clone, PartialEq, Eq)]
pub struct AppendOpen {
    /// The stream.
    pub stream: StreamName,
    /// The fencing token that all batches of the session present.
    pub fence: Option<FencingToken>,
    /// The writer that numbers the session's batches.
    pub writer: Option<WriterId>,
}

/// The star's answer to [`AppendOpen`].
#[derive(Archive, Serialize, Deserialize, Debug, Clone, Copy, PartialEq, Eq)]
pub struct AppendOpened {
    /// The incarnation of the stream that the session is bound to.
    pub stream_id: StreamId,
    /// Epoch of the leadership.
    pub epoch: Epoch,
    /// The committed tail.
    pub tail: Position,
    /// Batches that may be unanswered.
    pub window_batches: u32,
    /// How long leadership outlives its last handle, in microseconds.
    pub idle_timeout_us: u64,
}

/// What goes with a batch of a session; the batch itself follows as bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SessionAppend {
    /// The writer's number of this batch, if the session named a writer.
    pub writer_sequence: Option<u64>,
    /// The sequence number that the first record must get.
    pub match_sequence: Option<SequenceNumber>,
}

/// What goes with the batch of a one-shot append.
#[derive(Archive, Serialize, Deserialize, Debug, Clone, PartialEq, Eq)]
pub struct OneShotAppend {
    /// The stream.
    pub stream: StreamName,
    /// The incarnation it must be, if the sender knows it.
    pub stream_id: Option<StreamId>,
    /// What must hold.
    pub conditions: Conditions,
    /// The writer's own number.
    pub writer: Option<WriterStamp>,
}

/// The star's own times for an append, in microseconds.
#[derive(Archive, Serialize, Deserialize, Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ServerTimes {
    /// From arrival until its group was sent to the disk.
    pub queued_us: u32,
    /// From then until the group was durable.
    pub written_us: u32,
    /// From arrival until the answer.
    pub total_us: u32,
}

/// The durable result of an append (contract, section 2.2).
#[derive(Archive, Serialize, Deserialize, Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ack {
    /// The first record.
    pub start: Position,
    /// One past the last record, with the last record's timestamp.
    pub end: Position,
    /// The committed tail as of this ack.
    pub tail: Position,
    /// Whether the batch had been applied before; `start` and `end` are then the original ones.
    pub duplicate: bool,
    /// The star's own times.
    pub times: ServerTimes,
}

/// Where a read starts.
#[derive(Archive, Serialize, Deserialize, Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadStart {
    /// At this sequence number.
    Sequence(SequenceNumber),
    /// At the first record whose timestamp is this or later.
    Timestamp(Timestamp),
    /// This many records before the tail; 0 is the tail.
    TailOffset(u64),
}

/// Where a read ends at the latest; without any it ends at the tail, or never when it follows.
#[derive(Archive, Serialize, Deserialize, Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ReadLimits {
    /// After this many records.
    pub count: Option<u64>,
    /// Before the record that would exceed this many metered bytes, but after at least one.
    pub bytes: Option<u64>,
    /// Before this sequence number.
    pub until_sequence: Option<SequenceNumber>,
    /// Before the first record whose timestamp is this or later.
    pub until_timestamp: Option<Timestamp>,
}

/// Opens a reader (contract, section 6).
#[derive(Archive, Serialize, Deserialize, Debug, Clone, PartialEq, Eq)]
pub struct ReadOpen {
    /// The stream.
    pub stream: StreamName,
    /// The incarnation it must be: a resumed read is never continued in another one.
    pub stream_id: Option<StreamId>,
    /// Where to start.
    pub start: ReadStart,
    /// Where to end.
    pub limits: ReadLimits,
    /// Push new records as they become durable.
    pub follow: bool,
    /// Turn a start past the tail into the tail instead of `PAST_TAIL`.
    pub clamp: bool,
}

/// The star's answer to [`ReadOpen`].
#[derive(Archive, Serialize, Deserialize, Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadOpened {
    /// The incarnation that is read.
    pub stream_id: StreamId,
    /// The sequence number that the read starts at.
    pub start: SequenceNumber,
    /// The committed tail.
    pub tail: Position,
}

/// A request with one answer. Answers may come in another order than the requests.
#[derive(Archive, Serialize, Deserialize, Debug, Clone, PartialEq, Eq)]
pub enum Request {
    /// Makes a bucket, or finds it there unless `exclusive`.
    CreateBucket {
        /// Its name.
        name: BucketName,
        /// Its settings.
        settings: BucketSettings,
        /// Refuse with `ALREADY_EXISTS` if it is there.
        exclusive: bool,
    },
    /// Tells a bucket's settings.
    DescribeBucket {
        /// Its name.
        name: BucketName,
    },
    /// Changes the settings of a bucket that are said; the others stay.
    ReconfigureBucket {
        /// Its name.
        name: BucketName,
        /// The change.
        change: BucketChange,
    },
    /// Deletes a bucket that holds no stream.
    DeleteBucket {
        /// Its name.
        name: BucketName,
    },
    /// Lists buckets.
    ListBuckets {
        /// Which.
        page: Page,
    },
    /// Makes a stream, or finds it there unless `exclusive`.
    CreateStream {
        /// Its name.
        name: StreamName,
        /// What it says itself; the rest comes from its bucket.
        settings: StreamSettings,
        /// Refuse with `ALREADY_EXISTS` if it is there.
        exclusive: bool,
    },
    /// Tells a stream's settings and state.
    DescribeStream {
        /// Its name.
        name: StreamName,
    },
    /// Changes the settings that are said; the others stay.
    ReconfigureStream {
        /// Its name.
        name: StreamName,
        /// The incarnation it must be, if the sender knows it.
        stream_id: Option<StreamId>,
        /// The change.
        change: StreamSettings,
    },
    /// Deletes a stream with all its records.
    DeleteStream {
        /// Its name.
        name: StreamName,
        /// The incarnation it must be, if the sender knows it.
        stream_id: Option<StreamId>,
    },
    /// Lists the streams of a bucket that the core asked leads, or is the home of.
    ListStreams {
        /// The bucket.
        bucket: BucketName,
        /// Which.
        page: Page,
        /// The arrivals that came with this core's last answer to the same request: answered with
        /// [`Answer::StreamsAsBefore`] if there was none since.
        known: Option<Arrivals>,
    },
    /// Tells the committed tail (durable-linearizable).
    CheckTail {
        /// The stream.
        name: StreamName,
    },
    /// Installs a fencing token, durably and in order with appends.
    Fence {
        /// The stream.
        name: StreamName,
        /// The incarnation it must be, if the sender knows it.
        stream_id: Option<StreamId>,
        /// The new token; empty removes the one installed.
        token: FencingToken,
        /// The token and the tail that must be there now.
        conditions: Conditions,
    },
    /// Forgets the records before `first`, durably and in order with appends.
    Trim {
        /// The stream.
        name: StreamName,
        /// The incarnation it must be, if the sender knows it.
        stream_id: Option<StreamId>,
        /// First record that stays.
        first: SequenceNumber,
        /// The token and the tail that must be there now.
        conditions: Conditions,
    },
    /// Tells who the star is and where its cores are.
    DescribeStar,
    /// Hands the leadership of a stream to another core of the star.
    HandOff {
        /// The stream.
        name: StreamName,
        /// The core that leads from then on.
        to: CoreId,
    },
    /// Hands all that these cores lead to the others, and places no stream there from then on.
    /// With every core drained nothing is led. A start of the star forgets drains.
    Drain {
        /// Which.
        cores: CoreSet,
    },
    /// Places streams on these cores again.
    Undrain {
        /// Which.
        cores: CoreSet,
    },
    /// Spreads the streams that are led over the cores by measured load.
    Rebalance,
    /// Tells the load and the state of every core.
    Status,
}

impl Request {
    /// Checks names, tokens, settings and pages that came from outside.
    pub fn check(&self) -> Result<(), Refusal> {
        match self {
            Request::CreateBucket { name, settings, .. } => {
                name.check()?;
                settings.defaults.check()
            }
            Request::ReconfigureBucket { name, change } => {
                name.check()?;
                change.defaults.check()
            }
            Request::DescribeBucket { name } | Request::DeleteBucket { name } => name.check(),
            Request::ListBuckets { page } => page.check(),
            Request::CreateStream { name, settings, .. } => {
                name.check()?;
                settings.check()
            }
            Request::ReconfigureStream { name, change, .. } => {
                name.check()?;
                change.check()
            }
            Request::DescribeStream { name }
            | Request::DeleteStream { name, .. }
            | Request::CheckTail { name }
            | Request::HandOff { name, .. } => name.check(),
            Request::ListStreams { bucket, page, .. } => {
                bucket.check()?;
                page.check()
            }
            Request::Fence {
                name,
                token,
                conditions,
                ..
            } => {
                name.check()?;
                token.check()?;
                check_conditions(conditions)
            }
            Request::Trim {
                name, conditions, ..
            } => {
                name.check()?;
                check_conditions(conditions)
            }
            Request::DescribeStar
            | Request::Drain { .. }
            | Request::Undrain { .. }
            | Request::Rebalance
            | Request::Status => Ok(()),
        }
    }
}

impl AppendOpen {
    /// Checks the name and the token.
    pub fn check(&self) -> Result<(), Refusal> {
        self.stream.check()?;
        self.fence.as_ref().map_or(Ok(()), FencingToken::check)
    }
}

impl OneShotAppend {
    /// Checks the name and the token.
    pub fn check(&self) -> Result<(), Refusal> {
        self.stream.check()?;
        check_conditions(&self.conditions)
    }
}

impl ReadOpen {
    /// Checks the name and that the end is not before the start.
    pub fn check(&self) -> Result<(), Refusal> {
        self.stream.check()?;
        if let (ReadStart::Sequence(start), Some(until)) = (self.start, self.limits.until_sequence)
            && until < start
        {
            let message = format!("the read ends at {until}, before its start at {start}");
            return Err(Refusal::invalid("until_sequence", Some(start.0), message));
        }
        Ok(())
    }
}

fn check_conditions(conditions: &Conditions) -> Result<(), Refusal> {
    conditions
        .fence
        .as_ref()
        .map_or(Ok(()), FencingToken::check)
}

/// A bucket as it is.
#[derive(Archive, Serialize, Deserialize, Debug, Clone, PartialEq, Eq)]
pub struct BucketInfo {
    /// Its name.
    pub name: BucketName,
    /// Its settings.
    pub settings: BucketSettings,
    /// When it was made.
    pub created: Timestamp,
}

/// A stream as it is.
#[derive(Archive, Serialize, Deserialize, Debug, Clone, PartialEq, Eq)]
pub struct StreamInfo {
    /// Its name.
    pub name: StreamName,
    /// Its incarnation.
    pub id: StreamId,
    /// Its settings in force.
    pub settings: EffectiveSettings,
    /// The fencing token installed.
    pub fence: FencingToken,
    /// First record that is left.
    pub first: SequenceNumber,
    /// The committed tail.
    pub tail: Position,
    /// Epoch of its last leadership.
    pub epoch: Epoch,
    /// When it was made.
    pub created: Timestamp,
}

/// What a [`Request`] brought.
#[derive(Archive, Serialize, Deserialize, Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// A bucket, made, found or changed.
    Bucket {
        /// As it is now.
        info: BucketInfo,
        /// Whether this request made it.
        created: bool,
    },
    /// A page of buckets.
    Buckets {
        /// In byte order of their names.
        items: Vec<BucketInfo>,
        /// Whether there are more after the last.
        has_more: bool,
    },
    /// A stream, made, found or changed.
    Stream {
        /// As it is now.
        info: StreamInfo,
        /// Whether this request made it.
        created: bool,
    },
    /// A page of streams.
    Streams {
        /// In byte order of their keys.
        items: Vec<StreamInfo>,
        /// Whether there are more after the last.
        has_more: bool,
        /// As of this answer.
        arrivals: Arrivals,
    },
    /// It is gone.
    Deleted,
    /// The committed tail.
    Tail(Position),
    /// The token is installed; the tail it was installed at.
    Fenced {
        /// The tail then.
        tail: Position,
    },
    /// The trim is durable.
    Trimmed {
        /// First record that is left.
        first: SequenceNumber,
        /// The tail then.
        tail: Position,
    },
    /// The star.
    Star(StarInfo),
    /// The stream is led by this core now.
    Moved {
        /// The core.
        core: CoreId,
        /// Its advertised address.
        address: String,
        /// The epoch of its leadership.
        epoch: Epoch,
    },
    /// A drain or its end is done.
    Placement {
        /// The cores that are drained now, ascending.
        drained: Vec<CoreId>,
        /// Streams that were handed from one core to another for it.
        moved: u64,
    },
    /// Streams were moved to spread the load.
    Rebalanced {
        /// The moves that were done.
        moves: Vec<StreamMove>,
        /// Whether a further rebalance would find more to do.
        has_more: bool,
    },
    /// The star and its cores as they are.
    Status(StarStatus),
    /// No stream of the bucket has come to this core since the answer that the request names.
    StreamsAsBefore,
}
