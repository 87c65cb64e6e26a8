//! Windows and queues: what goes beyond is the peer's error, what is legal always fits.

use crate::frame::{Frame, Kind};
use crate::places_tests::server_lanes;
use crate::samples_tests::{ack, encode, frames, refusal, stored};
use crate::server::{Input, Lane};
use crate::{ProtocolError, RequestId};
use bytes::Bytes;
use nova_model::limits::{
    ADDRESS_BYTES_MAX, CONTROL_FRAME_BYTES_MAX, CONTROL_WINDOW_REQUESTS, LANE_OUTPUT_BYTES_MAX,
    LIST_LIMIT_MAX, MESSAGE_BYTES_MAX, REBALANCE_MOVES_MAX, REQUEST_FRAME_BYTES_MAX,
    SESSION_WINDOW_BATCHES, STAR_CORES_MAX,
};
use nova_model::position::Position;
use nova_model::request::{
    Answer, Arrivals, CoreInfo, CoreStatus, Page, Request, StarInfo, StarStatus, StreamInfo,
    StreamMove,
};
use nova_model::settings::{EffectiveSettings, Retention, StreamSettings};
use nova_model::{
    BucketName, Code, CoreId, Epoch, Facts, FencingToken, Incarnation, Refusal, SequenceNumber,
    StarId, StreamId, StreamKey, StreamName, Timestamp,
};

fn longest_name() -> StreamName {
    StreamName {
        bucket: BucketName::parse(&"b".repeat(64)).expect("legal"),
        key: StreamKey::parse(&"k".repeat(512)).expect("legal"),
    }
}

fn stream_info(name: StreamName) -> StreamInfo {
    let settings = StreamSettings {
        retention: Some(Retention {
            age_s: Some(1),
            bytes: Some(1),
        }),
        ..StreamSettings::default()
    };
    StreamInfo {
        name,
        id: StreamId(1),
        settings: EffectiveSettings::resolve(&settings, &settings),
        fence: FencingToken::parse(&"f".repeat(36)).expect("legal"),
        first: SequenceNumber(0),
        tail: Position::default(),
        epoch: Epoch(1),
        created: Timestamp(1),
    }
}

pub(crate) fn stream_answer(name: StreamName) -> Answer {
    Answer::Stream {
        info: stream_info(name),
        created: true,
    }
}

fn core_status(address: String) -> CoreStatus {
    CoreStatus {
        core: CoreId(1),
        address,
        is_drained: true,
        is_disk_full: false,
        streams_led: 1,
        streams_loaded: 2,
        streams_moving: 3,
        sessions: 4,
        readers: 5,
        appended_bytes_per_s: 6,
        appended_records_per_s: 7,
        read_bytes_per_s: 8,
        segments: 9,
        log_bytes: 10,
        pending_bytes: 11,
        recent_bytes: 12,
    }
}

const ARRIVALS: Arrivals = Arrivals {
    incarnation: Incarnation(1),
    count: 2,
};

#[test]
fn the_largest_answers_fit_into_a_frame() {
    let streams = Answer::Streams {
        items: vec![stream_info(longest_name()); LIST_LIMIT_MAX],
        has_more: true,
        arrivals: ARRIVALS,
    };
    let core = CoreInfo {
        core: CoreId(1),
        address: "a".repeat(ADDRESS_BYTES_MAX),
    };
    let star = Answer::Star(StarInfo {
        star: StarId(1),
        incarnation: Incarnation(1),
        core: CoreId(0),
        cores: vec![core; STAR_CORES_MAX],
    });
    let moved = StreamMove {
        name: longest_name(),
        from: CoreId(0),
        to: CoreId(1),
    };
    let rebalanced = Answer::Rebalanced {
        moves: vec![moved; REBALANCE_MOVES_MAX],
        has_more: true,
    };
    let placement = Answer::Placement {
        drained: (0..STAR_CORES_MAX as u16).map(CoreId).collect(),
        moved: 1,
    };
    let status = Answer::Status(StarStatus {
        star: StarId(1),
        incarnation: Incarnation(1),
        cores: vec![core_status("a".repeat(ADDRESS_BYTES_MAX)); STAR_CORES_MAX],
    });
    for answer in [streams, star, rebalanced, placement, status] {
        let bytes = encode(&Frame::Answered(RequestId(1), answer));
        assert!(bytes.len() <= CONTROL_FRAME_BYTES_MAX, "{}", bytes.len());
    }
}

#[test]
fn the_largest_requests_and_refusals_are_small() {
    let page = Page {
        prefix: "p".repeat(512),
        start_after: "s".repeat(512),
        limit: 1_000,
    };
    let bucket = longest_name().bucket;
    let known = Some(ARRIVALS);
    let list = Request::ListStreams {
        bucket,
        page,
        known,
    };
    let facts = Facts::Field {
        field: "f".repeat(ADDRESS_BYTES_MAX),
        limit: Some(1),
    };
    let refusal = Refusal::new(Code::Invalid, "m".repeat(MESSAGE_BYTES_MAX)).with(facts);
    let mut open = crate::samples_tests::append_open();
    open.stream = longest_name();
    for frame in [
        Frame::Request(RequestId(1), list),
        Frame::RequestRefused(RequestId(1), refusal),
        Frame::OpenAppend(open),
    ] {
        let length = encode(&frame).len();
        assert!(length < REQUEST_FRAME_BYTES_MAX / 4, "{length}");
    }
}

#[test]
fn one_batch_beyond_the_window_closes_the_session_alone() {
    let append = encode(&frames()[1]);
    let mut other = server_lanes::appending();
    let mut lane = server_lanes::appending();
    let error = lane
        .handle_bytes(Bytes::from(append.repeat(SESSION_WINDOW_BATCHES + 1)))
        .expect_err("one too many");
    let window = SESSION_WINDOW_BATCHES as u32;
    let kind = Kind::Append;
    assert_eq!(error, ProtocolError::Window { kind, window });
    assert_eq!(error.closes(), crate::Closes::Lane);
    other
        .handle_bytes(Bytes::from(append))
        .expect("another lane");

    // The header is enough: nothing of the batch is kept.
    let append = encode(&frames()[1]);
    let mut lane = server_lanes::appending();
    let window = Bytes::from(append.repeat(SESSION_WINDOW_BATCHES));
    lane.handle_bytes(window).expect("the window");
    lane.handle_bytes(Bytes::copy_from_slice(&append[..16]))
        .expect_err("one too many");
    assert_eq!(lane.input_bytes(), 0);
}

#[test]
fn an_answer_opens_the_window_by_one() {
    let append = encode(&frames()[1]);
    let mut lane = server_lanes::appending();
    for _ in 0..SESSION_WINDOW_BATCHES {
        lane.handle_bytes(Bytes::from(append.clone()))
            .expect("in the window");
    }
    for _ in 0..100 {
        lane.acked(&ack(1));
        lane.handle_bytes(Bytes::from(append.clone()))
            .expect("in the window");
    }
    lane.handle_bytes(Bytes::from(append))
        .expect_err("beyond it");
}

#[test]
fn resumes_are_no_more_than_rejections() {
    let append = encode(&frames()[1]);
    let resume = encode(&Frame::Resume);
    let mut lane = server_lanes::appending();
    for _ in 0..100 {
        lane.handle_bytes(Bytes::from(append.clone()))
            .expect("legal");
        lane.rejected(&refusal());
    }
    let resumes = resume.repeat(SESSION_WINDOW_BATCHES);
    lane.handle_bytes(Bytes::from(resumes))
        .expect("a window of them");
    let error = lane.handle_bytes(Bytes::from(resume)).expect_err("no more");
    assert!(matches!(error, ProtocolError::OutOfPlace { .. }));
}

#[test]
fn a_control_lane_takes_no_input_while_its_window_is_full() {
    let mut lane = Lane::new();
    let request = |id| encode(&Frame::Request(RequestId(id), Request::DescribeStar));
    for id in 0..CONTROL_WINDOW_REQUESTS as u64 {
        assert!(lane.wants_input());
        lane.handle_bytes(Bytes::from(request(id)))
            .expect("in the window");
    }
    assert!(!lane.wants_input());
    lane.answered(RequestId(9), &Err(refusal()));
    assert!(lane.wants_input());
    lane.handle_bytes(Bytes::from(request(9)))
        .expect("the id is free again");
    let error = lane
        .handle_bytes(Bytes::from(request(99)))
        .expect_err("full");
    assert!(matches!(error, ProtocolError::Window { window: 64, .. }));
}

#[test]
fn a_session_whose_answers_are_not_taken_is_not_read() {
    let append = encode(&frames()[1]);
    let mut lane = server_lanes::appending();
    let mut answers = 0;
    while lane.wants_input() {
        lane.handle_bytes(Bytes::from(append.clone()))
            .expect("legal");
        assert!(matches!(lane.poll_input(), Some(Input::Append(..))));
        lane.acked(&ack(1));
        answers += 1;
        assert!(answers < 100_000, "output has no bound");
    }
    assert!(lane.output_bytes() < LANE_OUTPUT_BYTES_MAX + 1024);
    assert_eq!(lane.output_room(), 0);
    while lane.poll_output().is_some() {}
    assert!(lane.wants_input());
    assert_eq!(lane.output_room(), LANE_OUTPUT_BYTES_MAX);
}

#[test]
#[should_panic(expected = "a reader is sent too much")]
fn a_reader_that_is_sent_without_end_is_our_own_mistake() {
    let mut lane = server_lanes::reading();
    let mut stored = stored(1);
    stored.batch = crate::samples_tests::batch_of(1_000_000);
    for _ in 0..20 {
        lane.batch(&stored);
    }
}

/// A thousand acks leave in a few chunks; a payload is the batch's own bytes.
#[test]
fn heads_gather_and_payloads_are_shared() {
    let mut lane = server_lanes::appending();
    lane.poll_output();
    let append = encode(&frames()[1]);
    for _ in 0..SESSION_WINDOW_BATCHES {
        lane.handle_bytes(Bytes::from(append.clone()))
            .expect("legal");
    }
    for _ in 0..SESSION_WINDOW_BATCHES {
        lane.acked(&ack(1));
    }
    assert!(lane.poll_output().is_some() && lane.poll_output().is_none());
    let mut reader = server_lanes::reading();
    reader.batch(&stored(40));
    let chunks: Vec<Bytes> = std::iter::from_fn(|| reader.poll_output()).collect();
    assert_eq!(chunks.len(), 2);
    let sent = stored(40);
    assert_eq!(&chunks[1], sent.batch.bytes());
    let mut reader = server_lanes::reading();
    reader.batch(&sent);
    reader.poll_output();
    let payload = reader.poll_output().expect("the payload");
    assert_eq!(payload.as_ptr(), sent.batch.bytes().as_ptr());
}
