//! Every bound of the system, in one place, with compile-time proofs of how they relate.
//!
//! Sizes are bytes unless the name says otherwise; durations are microseconds (`_us`).
//! Where a bound follows from the contract the text says so; the others say what they guard.

const KIB: usize = 1024;
const MIB: usize = 1024 * KIB;

// Names (contract, section 1).

/// Longest bucket name.
pub const BUCKET_NAME_BYTES_MAX: usize = 64;
/// Longest stream key.
pub const STREAM_KEY_BYTES_MAX: usize = 512;
/// Longest fencing token.
pub const FENCING_TOKEN_BYTES_MAX: usize = 36;

// Records and batches (contract, section 1).

/// What every record costs before its headers and body are counted.
pub const RECORD_METERED_BYTES_MIN: usize = 8;
/// What every header costs before its name and value are counted.
pub const HEADER_METERED_BYTES_MIN: usize = 2;
/// Largest record, metered.
pub const RECORD_METERED_BYTES_MAX: usize = MIB;
/// Largest batch, metered. There is no other cap on its record count.
pub const BATCH_METERED_BYTES_MAX: usize = MIB;
/// Encoded size of a record without headers and body.
pub const RECORD_ENCODED_BYTES_MIN: usize = 24;
/// Encoded size of a header without name and value.
pub const HEADER_ENCODED_BYTES_MIN: usize = 16;
/// Encoded size of an empty batch.
pub const BATCH_ENCODED_BYTES_MIN: usize = 8;
/// The most that encoding can inflate metered bytes: a batch of empty headers.
pub const ENCODED_PER_METERED_MAX: usize = HEADER_ENCODED_BYTES_MIN / HEADER_METERED_BYTES_MIN;
/// Largest encoded batch that a legal batch can need.
pub const BATCH_ENCODED_BYTES_MAX: usize =
    ENCODED_PER_METERED_MAX * BATCH_METERED_BYTES_MAX + BATCH_ENCODED_BYTES_MIN;

// Writers (contract, section 2.7).

/// Batches remembered for each writer of a stream.
pub const WRITER_BATCHES_MAX: usize = 2 * SESSION_WINDOW_BATCHES;
/// Writers remembered for each stream.
pub const STREAM_WRITERS_MAX: usize = 1024;

// Sessions (contract, section 2.4).

/// Batches of one session that may be unanswered.
pub const SESSION_WINDOW_BATCHES: usize = 16;
/// Bidirectional QUIC streams that one connection may have open.
pub const CONNECTION_LANES_MAX: usize = 1024;
/// Requests of one control lane that may be unanswered.
pub const CONTROL_WINDOW_REQUESTS: usize = 64;
/// Bytes that a lane keeps for sending before it takes no more input.
pub const LANE_OUTPUT_BYTES_MAX: usize = 4 * MIB;
/// Largest control frame body (requests, answers, refusals).
pub const CONTROL_FRAME_BYTES_MAX: usize = MIB;
/// Largest head of an open frame, a request or a refusal. A legal one has less than 4 KiB; the rest
/// is room to refuse a name that is too long by its name.
pub const REQUEST_FRAME_BYTES_MAX: usize = 16 * KIB;
/// Longest message text in a refusal.
pub const MESSAGE_BYTES_MAX: usize = 1024;
/// Longest address text in a refusal or in the star's description.
pub const ADDRESS_BYTES_MAX: usize = 320;
/// Buckets of one star.
pub const BUCKETS_MAX: usize = 4096;
/// Cores of one star.
pub const STAR_CORES_MAX: usize = 256;
/// Moves of one rebalance.
pub const REBALANCE_MOVES_MAX: usize = 256;
/// Streams that one core names, with the most load first, when a rebalance is planned.
pub const REBALANCE_STREAMS_MAX: usize = 1000;
/// Streams that one core hands over at once while cores are drained.
pub const MOVES_IN_HAND_MAX: usize = 64;
/// Time without progress of any core after which a drain is given up.
pub const DRAIN_PATIENCE_US: u64 = 10_000_000;
/// Requests for the star's status that may wait for the cores.
pub const STATUS_REQUESTS_MAX: usize = 64;
/// Items in one page of a list answer (contract, section 7).
pub const LIST_LIMIT_MAX: usize = 1000;
/// How often all cores are asked for a page of streams, while streams come to one of them.
pub const LIST_ROUNDS_MAX: usize = 16;

// The log.

/// Unit of alignment of everything in a segment: no write touches a block with acked data.
pub const BLOCK_BYTES: usize = 4 * KIB;
/// A group takes no more entries once it holds this many bytes; its last one may exceed them. Two
/// batches of the largest size share a group: one alone would leave the device waiting for half of
/// the time, while the core builds the next.
pub const GROUP_TARGET_BYTES: usize = 2 * MIB;
/// Largest group: an encoded batch of the largest size behind a nearly full target.
pub const GROUP_BYTES_MAX: usize = 12 * MIB;
/// Entries in one group.
pub const GROUP_ENTRIES_MAX: usize = 65_536;
/// Groups of one log that may be in flight to the disk.
pub const GROUPS_IN_FLIGHT_MAX: usize = 1;
/// Default size of a segment file.
pub const SEGMENT_BYTES_DEFAULT: u64 = 256 * MIB as u64;
/// Smallest segment size that may be configured.
pub const SEGMENT_BYTES_MIN: u64 = 16 * MIB as u64;
/// Largest segment size: offsets in the sealed index are 32 bits of blocks' worth of bytes.
pub const SEGMENT_BYTES_MAX: u64 = 2048 * MIB as u64;
/// Bytes of zeros written by one background operation.
pub const ZERO_CHUNK_BYTES: usize = MIB;
/// How far zeros run ahead of the append position. Appends at the speed of the disk overtake them,
/// and what is missing then is written when they end, beside a reader who comes right behind.
pub const ZERO_AHEAD_BYTES: u64 = 4 * MIB as u64;
/// Bytes of one stream between two places that the index remembers.
pub const INDEX_RUN_BYTES: u64 = 64 * KIB as u64;
/// A log distance without the stream that ends a run of the index.
pub const INDEX_GAP_BYTES: u64 = 64 * KIB as u64;
/// Streams at rest that the index of the segment being written may name, beside twice those in
/// memory: it is in memory itself, with some 600 bytes for each.
pub const INDEX_STREAMS_MAX: usize = 16_384;
/// Bytes of the filter of the names of one sealed index: 12 bits for each of 21,845 names.
pub const NAME_FILTER_BYTES_MAX: usize = 32 * KIB;
/// Spare segment files kept for each log.
pub const SPARE_SEGMENTS_MAX: usize = 4;

// Forgetting: in the background, so that no commit waits long behind it.

/// Time between two looks at the streams in memory for records that have had their time.
pub const FORGET_US: u64 = 1_000_000;
/// Looks into indexes in one turn; one takes about a microsecond.
pub const FORGET_STEPS_MAX: usize = 64;
/// Between two such turns while there is more to look at: at most some 2 % of a core.
pub const FORGET_PAUSE_US: u64 = 5_000;
/// The same while the log waits for a file for its next segment: one that is given back is at hand
/// sooner than a new one.
pub const FORGET_PAUSE_SHORT_US: u64 = 250;
/// Statements of streams that are written anew in one turn, so that an old segment can go.
pub const RESTATED_MAX: usize = 32;
/// Bytes of such statements in one turn, though one may exceed it.
pub const RESTATED_BYTES_MAX: usize = 256 * KIB;
/// Ranges of numbers of released segments that a log states.
pub const RELEASED_RANGES_MAX: usize = 4096;
/// Looks at the streams in memory for one round over those at rest.
pub const FORGET_ROUND_LOOKS: u64 = 30;

// Rewriting of segments that are mostly dead, in the background.

/// A segment is rewritten when less than one part in so many of it is alive.
pub const REWRITE_LIVE_PART: u64 = 3;
/// And when it becomes smaller by so much at least.
pub const REWRITE_SAVED_BYTES_MIN: u64 = 64 * KIB as u64;
/// Bytes of one read, though a group may exceed it.
pub const REWRITE_PIECE_BYTES: usize = 256 * KIB;
/// A group of a rewritten segment is sealed when it has this many bytes, though one entry may
/// exceed it: who reads one stream reads whole groups.
pub const REWRITE_GROUP_BYTES: usize = 128 * KIB;
/// States that are looked at in one turn.
pub const REWRITE_STATES_MAX: usize = 256;
/// Between two operations of a rewriting: some 6 MB are read and written in a second.
pub const REWRITE_PAUSE_US: u64 = 20_000;
/// The same while there is much to be rewritten, or little space.
pub const REWRITE_PAUSE_SHORT_US: u64 = 1_000;
/// Segments rewritten in one round behind which there counts as being much.
pub const REWRITE_FEW: u32 = 2;
/// Looks at the streams in memory for one round over the segments.
pub const REWRITE_ROUND_LOOKS: u64 = 30;

// Memory of one core.

/// Newest groups kept in memory for followers.
pub const RECENT_BYTES_DEFAULT: usize = 64 * MIB;
/// Bytes admitted and not yet durable, after which a core stops reading appends.
pub const INGRESS_BYTES_DEFAULT: usize = 64 * MIB;
/// Largest piece of one read from disk beyond a single group.
pub const READ_CHUNK_BYTES: usize = MIB;
/// Bytes of one core that are read for readers who have others at hand still. It holds a few of the
/// largest groups.
pub const READ_AHEAD_BYTES_MAX: usize = 16 * MIB;
/// The same for one reader, what is being handed out included: with one of the usual large groups
/// in that state, the disk has the next read at hand when it is done with another, however late the
/// core looks.
pub const READER_AHEAD_BYTES_MAX: usize = 8 * MIB;
/// Payload bytes handed to a reader for one credit, though one batch may exceed it.
pub const READER_CREDIT_BYTES: usize = 256 * KIB;
/// Open readers of one core.
pub const READERS_MAX: usize = 16_384;
/// Requests of one core that wait for durability.
pub const PENDING_ANSWERS_MAX: usize = 262_144;

// HTTP.

/// Connections of one star to its HTTP port; a further one ends the one that is idle longest.
pub const HTTP_CONNECTIONS_MAX: usize = 1024;
/// Body of one HTTP request, before and after its content encoding is undone: a full batch whose
/// every byte is escaped in JSON needs some 6 MiB.
pub const HTTP_BODY_BYTES_MAX: usize = 8 * MIB;
/// Bodies of requests and pages of answers of all HTTP requests together.
pub const HTTP_MEMORY_BYTES: usize = 64 * MIB;
/// All headers of one HTTP request.
pub const HTTP_HEADER_BYTES_MAX: usize = 16 * KIB;
/// Headers of one HTTP request.
pub const HTTP_HEADERS_MAX: usize = 64;
/// Path and query of one HTTP request: a key of the longest kind, every byte percent-encoded, fits.
pub const HTTP_TARGET_BYTES_MAX: usize = 8 * KIB;
/// Records in one page of a read by HTTP.
pub const HTTP_PAGE_RECORDS_MAX: u64 = 10_000;
/// Metered bytes in one page of a read by HTTP.
pub const HTTP_PAGE_BYTES_MAX: u64 = 4 * MIB as u64;
/// Requests of the gateway that wait for one core to take them.
pub const GATEWAY_ASKS_MAX: usize = 1024;
/// Longest wait for new records of a read by HTTP.
pub const HTTP_WAIT_US_MAX: u64 = 60_000_000;
/// Time in which an HTTP request is answered, its waiting for records apart.
pub const HTTP_PATIENCE_US: u64 = 30_000_000;
/// Time in which the head of an HTTP request arrives, idle time before it counted.
pub const HTTP_HEAD_US: u64 = 30_000_000;
/// Time in which the body of an HTTP request arrives.
pub const HTTP_BODY_US: u64 = 30_000_000;
/// Time after which a connection that takes no bytes of an answer is closed.
pub const HTTP_STALL_US: u64 = 30_000_000;

// The client (contract, section 5).

/// Bytes staged behind a full window before the caller waits.
pub const CLIENT_STAGED_BYTES_MAX: usize = MIB;
/// Longest linger of a batch.
pub const CLIENT_LINGER_US_MAX: u64 = 1_000_000;
/// How long a producer tries to reconnect.
pub const CLIENT_RETRY_BUDGET_US: u64 = 30_000_000;
/// How long a star may be silent by default before its sessions are broken from this side.
pub const CLIENT_SILENCE_US: u64 = 10_000_000;
/// Inputs that wait in a keyed batcher by default; one more is rejected.
pub const CLIENT_QUEUEING_INPUTS_DEFAULT: usize = 16_384;
/// Bytes of inputs that wait in a keyed batcher.
pub const CLIENT_QUEUEING_BYTES_MAX: usize = 64 * MIB;
/// Batches of different keys that a keyed batcher has in flight by default: half of what one
/// control lane carries, so that other requests find room.
pub const CLIENT_KEYS_IN_FLIGHT_DEFAULT: usize = CONTROL_WINDOW_REQUESTS / 2;
/// Longest update id.
pub const UPDATE_ID_BYTES_MAX: usize = 64;
/// Newest records of an entity whose update ids are known, by default.
pub const ENTITY_KNOWN_RECORDS_DEFAULT: u64 = 16_384;
/// Most records of an entity whose update ids may be known.
pub const ENTITY_KNOWN_RECORDS_MAX: u64 = 1024 * 1024;
/// Entities that an entity writer remembers between two batches.
pub const ENTITIES_REMEMBERED_MAX: usize = 65_536;
/// Update ids of all remembered entities together, each of at most some 200 bytes.
pub const ENTITY_IDS_REMEMBERED_MAX: usize = 1024 * 1024;
/// How long an attempt of an entity writer may stay without an answer.
pub const ENTITY_ATTEMPT_US: u64 = 5_000_000;
/// Idle time after which an `any` stream without handles gives its leadership up.
pub const LEADERSHIP_IDLE_US: u64 = 30_000_000;
/// Shortest such time that may be configured.
pub const LEADERSHIP_IDLE_US_MIN: u64 = 1_000_000;
/// Longest such time that may be configured.
pub const LEADERSHIP_IDLE_US_MAX: u64 = 86_400_000_000;
/// Time between two heartbeats of a following reader.
pub const READER_HEARTBEAT_US: u64 = 5_000_000;

const _: () = {
    assert!(RECORD_METERED_BYTES_MAX <= BATCH_METERED_BYTES_MAX);
    assert!(RECORD_ENCODED_BYTES_MIN <= ENCODED_PER_METERED_MAX * RECORD_METERED_BYTES_MIN);
    assert!(WRITER_BATCHES_MAX >= SESSION_WINDOW_BATCHES);
    assert!(BATCH_ENCODED_BYTES_MAX + GROUP_TARGET_BYTES + BLOCK_BYTES <= GROUP_BYTES_MAX);
    assert!(GROUP_BYTES_MAX.is_multiple_of(BLOCK_BYTES));
    assert!((GROUP_BYTES_MAX + BLOCK_BYTES) as u64 <= SEGMENT_BYTES_MIN);
    assert!(SEGMENT_BYTES_MIN <= SEGMENT_BYTES_DEFAULT);
    assert!(SEGMENT_BYTES_DEFAULT <= SEGMENT_BYTES_MAX);
    assert!(SEGMENT_BYTES_MAX <= u32::MAX as u64);
    assert!(ZERO_CHUNK_BYTES.is_multiple_of(BLOCK_BYTES));
    assert!(REWRITE_PIECE_BYTES.is_multiple_of(BLOCK_BYTES));
    assert!(REWRITE_GROUP_BYTES <= GROUP_TARGET_BYTES);
    assert!(CLIENT_STAGED_BYTES_MAX >= RECORD_METERED_BYTES_MAX);
    assert!(CLIENT_SILENCE_US >= 2 * READER_HEARTBEAT_US);
    assert!(CLIENT_SILENCE_US < CLIENT_RETRY_BUDGET_US);
    assert!(INGRESS_BYTES_DEFAULT >= SESSION_WINDOW_BATCHES * BATCH_METERED_BYTES_MAX);
    assert!(LANE_OUTPUT_BYTES_MAX >= READER_CREDIT_BYTES);
    assert!(READ_AHEAD_BYTES_MAX >= GROUP_BYTES_MAX + READ_CHUNK_BYTES);
    assert!(READER_AHEAD_BYTES_MAX <= READ_AHEAD_BYTES_MAX);
    assert!(CLIENT_QUEUEING_BYTES_MAX >= BATCH_METERED_BYTES_MAX);
    assert!(ENTITY_KNOWN_RECORDS_DEFAULT <= ENTITY_KNOWN_RECORDS_MAX);
    assert!(ENTITY_KNOWN_RECORDS_MAX as usize <= ENTITY_IDS_REMEMBERED_MAX);
    assert!(STAR_CORES_MAX <= u8::MAX as usize + 1);
    assert!(HTTP_BODY_BYTES_MAX >= 6 * BATCH_METERED_BYTES_MAX);
    assert!(HTTP_MEMORY_BYTES >= 4 * HTTP_BODY_BYTES_MAX);
    assert!(HTTP_MEMORY_BYTES as u64 >= 4 * HTTP_PAGE_BYTES_MAX);
    assert!(HTTP_TARGET_BYTES_MAX >= 3 * (STREAM_KEY_BYTES_MAX + BUCKET_NAME_BYTES_MAX));
    assert!(HTTP_WAIT_US_MAX > READER_HEARTBEAT_US && HTTP_STALL_US > READER_HEARTBEAT_US);
};
