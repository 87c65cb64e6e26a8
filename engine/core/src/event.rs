//! What leaves the shard: answers, and messages to the other cores of the star.
//!
//! # Invariants
//! - An [`Event`] that names a state of a stream (an ack, a refusal, a tail) is only made once that
//!   state is durable; see [`crate::commit::gate`].
//! - The answers of one session come in the order of its batches.

use crate::disk::{DiskError, SegmentFile};
use crate::handover::{Handover, SharedIndex};
use nova_model::ids::{Epoch, StreamId};
use nova_model::names::{BucketName, StreamName};
use nova_model::position::SequenceNumber;
use nova_model::request::{Ack, Answer, AppendOpened, BucketInfo, CoreStatus, ReadOpened};
use nova_model::{CoreId, Generation, Position, Refusal, StoredBatch};

/// An append session, named by the driver.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SessionKey(pub u64);

/// A reader, named by the driver.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ReaderKey(pub u64);

/// Whoever waits for the one answer of a request, named by the driver.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Caller(pub u64);

/// One thing that the driver is to pass on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// The segment of this start is durable and the one before it sealed: answers may leave.
    Ready,
    /// The session is open.
    SessionOpened(SessionKey, AppendOpened),
    /// The session was not opened.
    SessionRefused(SessionKey, Refusal),
    /// The session's next batch is durable.
    Acked(SessionKey, Ack),
    /// The session's next batch was refused.
    Rejected(SessionKey, Refusal),
    /// The session is closed by the star.
    SessionBroken(SessionKey, Refusal),
    /// The result of a one-shot append.
    AppendedOnce(Caller, Result<Ack, Refusal>),
    /// The answer to a request.
    Answered(Caller, Result<Answer, Refusal>),
    /// The reader is open.
    ReaderOpened(ReaderKey, ReadOpened),
    /// The reader was not opened.
    ReaderRefused(ReaderKey, Refusal),
    /// The reader's next batch.
    ReaderBatch(ReaderKey, StoredBatch),
    /// The batches for the reader's last credit are out: it may give the next.
    ReaderCredited(ReaderKey),
    /// The reader has all that is durable.
    ReaderCaughtUp(ReaderKey, Position),
    /// Nothing new for a while; the tail is still this.
    ReaderHeartbeat(ReaderKey, Position),
    /// The read is at its end.
    ReaderEnded {
        /// The reader.
        reader: ReaderKey,
        /// The sequence number that would come next.
        next: SequenceNumber,
        /// The committed tail.
        tail: Position,
    },
    /// The read cannot go on.
    ReaderFailed(ReaderKey, Refusal),
    /// For another core of the star.
    Peer(CoreId, PeerMessage),
    /// The disk can't be trusted any more: the star must stop.
    Fatal(DiskError),
    /// An index could not be stored; the segment stays readable, and recovery rebuilds the index
    /// unless another try does.
    IndexNotStored(SegmentFile, DiskError),
    /// A segment that nobody needs could not be recycled; another try or the next start does it.
    NotRecycled(SegmentFile, DiskError),
    /// A segment that was mostly dead is rewritten; the space of the generation before is given
    /// back as soon as no core uses it.
    Rewritten {
        /// Its file.
        file: SegmentFile,
        /// Bytes that it had.
        before: u64,
        /// Bytes that it has.
        after: u64,
    },
    /// A segment that is mostly dead could not be rewritten, and why; it stays as it is.
    NotRewritten(SegmentFile, String),
}

/// What the cores of a star tell each other.
///
/// Of buckets: their home decides and stores; the others keep a copy, and the home answers its
/// client once all have it. Of streams: who leads them when they move, where they are placed, how
/// busy they are, and where the records of sealed segments lie.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PeerMessage {
    /// The bucket is this now.
    BucketPut {
        /// Names the change at the home.
        change: u64,
        /// The bucket.
        info: BucketInfo,
    },
    /// The bucket is gone.
    BucketGone {
        /// Names the change at the home.
        change: u64,
        /// The bucket.
        name: BucketName,
    },
    /// Create no more streams in the bucket and tell whether there are any.
    BucketClose {
        /// Names the change at the home.
        change: u64,
        /// The bucket.
        name: BucketName,
    },
    /// The bucket stays after all.
    BucketReopen {
        /// The bucket.
        name: BucketName,
    },
    /// Lead this stream from now on.
    Take(Box<Handover>),
    /// The sender leads the stream that was handed to it.
    Taken {
        /// The stream.
        id: StreamId,
        /// The epoch of its leadership.
        epoch: Epoch,
    },
    /// A stream whose home the receiver is has this leader.
    LedAt {
        /// The stream.
        name: StreamName,
        /// Its leader.
        core: CoreId,
        /// The epoch of its leadership.
        epoch: Epoch,
    },
    /// A segment is released: use it no more, and close what is open of it.
    Released {
        /// Its file.
        file: SegmentFile,
        /// Its generation.
        generation: Generation,
    },
    /// The sender uses a segment's generation no more, which was released or replaced.
    LetGo {
        /// Its file.
        file: SegmentFile,
        /// The generation.
        generation: Generation,
    },
    /// A segment is rewritten: use the generation of this index, and close what is open of the one
    /// before.
    Rewritten {
        /// The index.
        index: SharedIndex,
        /// The generation before.
        replaced: Generation,
    },
    /// A stream at rest whose home the receiver is, as it was when this was sent, is stated last in
    /// a segment of the sender that could go but for that: state it anew.
    Restate {
        /// The stream's name.
        name: StreamName,
        /// The stream.
        id: StreamId,
    },
    /// Answers any of the changes of buckets above.
    BucketNoted {
        /// The change.
        change: u64,
        /// Whether the sender holds a stream of the bucket.
        has_streams: bool,
    },
    /// A segment of the sender's log is sealed: its index.
    Sealed(SharedIndex),
    /// A step of a change of placement, which core 0 leads and numbers.
    Change(u64, ChangeStep),
    /// A step of a question about load that core 0 asks and numbers.
    Load(u64, LoadStep),
}

/// The steps of a change of which cores are drained.
///
/// ```text
///   core 0   Prepare ----> all: hand over what must move, seal, Flush <-> Flushed with each other
///            <----------- Settled, round by round (Again) until none has sent a stream since
///            Commit ----> all                     or Abort, when a core is stuck
///            <----------- Ended
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChangeStep {
    /// Get ready for a placement in which these cores are drained.
    Prepare {
        /// The cores.
        drained: Vec<CoreId>,
    },
    /// Report once more.
    Again {
        /// The number of the report.
        round: u32,
    },
    /// All that has to move has moved, and all that was sent here before the round has come.
    Settled {
        /// The round.
        round: u32,
        /// Whether no stream was sent, and no leader told, since the last report.
        is_quiet: bool,
    },
    /// It goes on.
    Progress,
    /// It cannot go on.
    Stuck(Refusal),
    /// Say `Flushed` behind all that was sent before.
    Flush,
    /// All that was sent before this has come.
    Flushed,
    /// The placement is this now.
    Commit,
    /// The placement stays; what has moved is away from home.
    Abort,
    /// The sender has noted the end; streams that it handed over for it.
    Ended {
        /// How many.
        moved: u64,
    },
}

/// The steps of a question about load, and of moves that follow from it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LoadStep {
    /// Tell it.
    Ask {
        /// Whether the busiest streams are to be named.
        with_streams: bool,
    },
    /// It is this.
    Told(Box<LoadTold>),
    /// Hand this stream to that core.
    Order {
        /// The stream.
        stream: StreamId,
        /// The core.
        to: CoreId,
    },
    /// That core leads the stream now, or it cannot be handed over.
    Done {
        /// The stream.
        stream: StreamId,
        /// Its name, if it was handed over.
        name: Option<StreamName>,
    },
}

/// What a core tells of its load.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoadTold {
    /// The core.
    pub status: CoreStatus,
    /// The load of all its streams in one number.
    pub weight: u64,
    /// Its busiest streams that could move, with theirs; at most 1,000.
    pub streams: Vec<(StreamId, u64)>,
}
