//! Refusals that the lane gives itself, among the answers of the shard; and what a client believes.

use crate::client::{AppendEvent, AppendLane, ControlEvent, ControlLane, ReadEvent, ReadLane};
use crate::frame::read::Placed;
use crate::frame::{Frame, Kind, RawBatch};
use crate::places_tests::{client_lanes, server_lanes};
use crate::samples_tests::{
    ack, append_frame, append_open, append_opened, assemble, batch, batch_of, drain, encode,
    frames, parts, raw, raw_batch, read_open, read_opened, refusal, session_append, stored,
    too_large, with_text,
};
use crate::server::{Input, Lane};
use crate::{ProtocolError, RequestId};
use bytes::Bytes;
use nova_model::batch::BatchError;
use nova_model::request::{Page, ReadStart, Request, SessionAppend};
use nova_model::{Code, Facts, Record, Refusal, SequenceNumber, WriterStamp};
use proptest::prelude::*;

fn fed(lane: &mut Lane, bytes: Vec<u8>) {
    lane.handle_bytes(Bytes::from(bytes))
        .expect("no peer's error");
}

fn append_events(lane: &mut Lane, client: &mut AppendLane) -> Vec<AppendEvent> {
    let bytes = drain(|| lane.poll_output());
    client.handle_bytes(Bytes::from(bytes)).expect("honest");
    std::iter::from_fn(|| client.poll_event()).collect()
}

fn code(event: &AppendEvent) -> Code {
    match event {
        AppendEvent::Rejected(refusal) | AppendEvent::OpenRefused(refusal) => refusal.code,
        other => panic!("{other:?}"),
    }
}

/// An open client lane with this many batches sent, whose bytes went nowhere.
fn client_with(sent: usize) -> AppendLane {
    let mut client = AppendLane::new(append_open());
    let opened = encode(&Frame::AppendOpened(append_opened()));
    client.handle_bytes(Bytes::from(opened)).expect("legal");
    for _ in 0..sent {
        client.send(SessionAppend::default(), &batch());
    }
    client.poll_event();
    while client.poll_output().is_some() {}
    client
}

#[test]
fn a_bad_name_in_an_open_is_refused_by_the_lane() {
    let open = encode(&frames()[0]);
    let mut lane = Lane::new();
    fed(&mut lane, with_text(&open, "telemetry", "TELEMETRY"));
    assert_eq!(lane.poll_input(), None, "the shard does not see it");
    let mut client = AppendLane::new(append_open());
    let events = append_events(&mut lane, &mut client);
    assert_eq!(code(&events[0]), Code::Invalid);
    assert!(lane.is_finished());

    let mut lane = Lane::new();
    let read = encode(&frames()[3]);
    fed(&mut lane, with_text(&read, "telemetry", "-elemetry"));
    assert_eq!(lane.poll_input(), None);
    let mut client = ReadLane::new(read_open());
    let bytes = drain(|| lane.poll_output());
    client.handle_bytes(Bytes::from(bytes)).expect("honest");
    let event = client.poll_event();
    assert!(matches!(event, Some(ReadEvent::Refused(r)) if r.code == Code::Invalid));
}

#[test]
fn bad_requests_are_refused_by_the_lane_and_the_others_go_on() {
    let mut client = ControlLane::new();
    let good = client.request(&Request::DescribeStar);
    let mut lane = Lane::new();
    fed(&mut lane, drain(|| client.poll_output()));
    for _ in 0..3 {
        client.request(&Request::DescribeStar);
    }
    client.append_once(&crate::samples_tests::one_shot(), &batch());
    client.poll_output();
    let frames = frames();
    let bad_name = with_text(&encode(&frames[4]), "telemetry", "Telemetry");
    let large = {
        let (kind, mut head, _) = parts(&encode(&frames[5]));
        let large = too_large();
        head[0] = 4;
        head[8..12].copy_from_slice(&large.checksum.0.to_le_bytes());
        assemble(kind, &head, &large.bytes)
    };
    fed(&mut lane, [bad_name, large].concat());
    let inputs: Vec<Input> = std::iter::from_fn(|| lane.poll_input()).collect();
    assert_eq!(inputs, [Input::Request(good, Request::DescribeStar)]);
    lane.answered(good, &Err(refusal()));
    let bytes = drain(|| lane.poll_output());
    client.handle_bytes(Bytes::from(bytes)).expect("honest");
    let seen: Vec<(RequestId, Code)> = std::iter::from_fn(|| client.poll_event())
        .map(|event| match event {
            ControlEvent::Answered(id, Err(refusal))
            | ControlEvent::AppendedOnce(id, Err(refusal)) => (id, refusal.code),
            other => panic!("{other:?}"),
        })
        .collect();
    let expected = [
        (RequestId(3), Code::Invalid),
        (RequestId(4), Code::TooLarge),
        (RequestId(0), Code::SeqMismatch),
    ];
    assert_eq!(seen, expected);
}

#[test]
fn a_client_refuses_at_home_what_the_star_would_refuse() {
    let mut control = ControlLane::new();
    let page = Page {
        limit: 0,
        ..Page::default()
    };
    let id = control.request(&Request::ListBuckets { page });
    assert_eq!((control.output_bytes(), control.window_free()), (0, 63));
    let event = control.poll_event();
    assert!(matches!(event, Some(ControlEvent::Answered(found, Err(_))) if found == id));
    let mut open = read_open();
    open.start = ReadStart::Sequence(SequenceNumber(9));
    open.limits.until_sequence = Some(SequenceNumber(8));
    let mut read = ReadLane::new(open);
    assert!(matches!(read.poll_event(), Some(ReadEvent::Refused(_))));
    assert!(read.wants_finish());
}

#[test]
fn a_batch_too_large_is_rejected_in_its_turn_with_what_is_behind_it() {
    let mut lane = server_lanes::appending();
    let good = append_frame(&session_append(), &raw(&batch()));
    let large = append_frame(&session_append(), &too_large());
    fed(&mut lane, [&good[..], &large, &good].concat());
    assert!(matches!(lane.poll_input(), Some(Input::Append(..))));
    assert_eq!(lane.poll_input(), None);
    let mut client = client_with(4);
    let opened = drain(|| lane.poll_output());
    assert_eq!(
        opened,
        encode(&Frame::AppendOpened(append_opened())),
        "nothing yet"
    );
    lane.acked(&ack(5));
    let events = append_events(&mut lane, &mut client);
    assert_eq!(events[0], AppendEvent::Acked(ack(5)));
    assert_eq!(code(&events[1]), Code::TooLarge);
    assert_eq!(code(&events[2]), Code::BehindRejected);
    fed(&mut lane, encode(&Frame::Resume));
    fed(&mut lane, good);
    assert_eq!(lane.poll_input(), Some(Input::Resume));
    assert!(matches!(lane.poll_input(), Some(Input::Append(..))));
}

#[test]
fn an_empty_batch_and_a_number_without_a_writer_are_refused() {
    let mut lane = server_lanes::appending();
    let mut client = client_with(1);
    lane.poll_output();
    let empty = append_frame(&session_append(), &raw_batch(&[]));
    fed(&mut lane, empty);
    let events = append_events(&mut lane, &mut client);
    assert_eq!(code(&events[0]), Code::Invalid);

    let mut open = append_open();
    open.writer = None;
    let mut lane = server_lanes::fed(&[Frame::OpenAppend(open)]);
    lane.opened(append_opened());
    lane.poll_output();
    fed(&mut lane, append_frame(&session_append(), &raw(&batch())));
    assert_eq!(lane.poll_input(), None);
    let events = append_events(&mut lane, &mut client_with(1));
    assert_eq!(code(&events[0]), Code::Invalid);
}

#[test]
fn bytes_that_are_no_batch_are_the_peers_error() {
    let archive = {
        let bytes = Bytes::from_static(&[0xff; 40]);
        let checksum = nova_model::Checksum::of(&bytes);
        RawBatch { bytes, checksum }
    };
    let ballast = {
        let good = raw_batch(&[Record::new("")]);
        let bytes = Bytes::from([&[0; 500], &good.bytes[..]].concat());
        let checksum = nova_model::Checksum::of(&bytes);
        RawBatch { bytes, checksum }
    };
    for (bad, expected) in [
        (archive, BatchError::Archive),
        (ballast, BatchError::Ballast),
    ] {
        let mut lane = server_lanes::appending();
        let bytes = Bytes::from(append_frame(&session_append(), &bad));
        let error = lane.handle_bytes(bytes).expect_err("no batch");
        let kind = Kind::Append;
        let error_expected = ProtocolError::Batch {
            kind,
            error: expected,
        };
        assert_eq!(error, error_expected);
    }
}

#[test]
fn a_request_id_that_is_taken_is_the_peers_error() {
    let mut lane = Lane::new();
    let request = encode(&frames()[4]);
    fed(&mut lane, request.clone());
    let error = lane.handle_bytes(Bytes::from(request)).expect_err("twice");
    let (kind, id) = (Kind::Request, RequestId(3));
    assert_eq!(error, ProtocolError::RequestId { kind, id });
}

#[test]
fn a_client_does_not_believe_everything() {
    let unbounded = Refusal {
        message: "x".repeat(2_000),
        ..refusal()
    };
    let mut backwards = ack(5);
    backwards.end.sequence = SequenceNumber(5);
    let mut window = append_opened();
    window.window_batches = 17;
    for (state, frame) in [
        (0, Frame::OpenRefused(unbounded.clone())),
        (0, Frame::AppendOpened(window)),
        (2, Frame::Rejected(unbounded.clone())),
        (2, Frame::Broken(unbounded)),
        (2, Frame::Acked(backwards)),
    ] {
        let (_, mut lane) = client_lanes::append().swap_remove(state);
        let result = lane.handle_bytes(Bytes::from(encode(&frame)));
        let is_content = matches!(result, Err(ProtocolError::Content { .. }));
        assert!(is_content, "{frame:?}: {result:?}");
        assert_eq!((lane.poll_event(), lane.output_bytes()), (None, 0));
    }
    let name = with_text(&encode_stream_answer(), "telemetry", "Telemetry");
    let (_, mut lane) = client_lanes::control().swap_remove(1);
    let result = lane.handle_bytes(Bytes::from(name));
    assert!(matches!(result, Err(ProtocolError::Content { .. })));
}

fn encode_stream_answer() -> Vec<u8> {
    let answer = crate::limits_tests::stream_answer(crate::samples_tests::name());
    encode(&Frame::Answered(RequestId(3), answer))
}

#[test]
fn a_reader_sees_gaps_repeats_and_impossible_numbers() {
    let frame = |first: u64| {
        let stored = stored(first);
        let placed = Placed {
            first: stored.first,
            epoch: stored.epoch,
            stamping: stored.stamping,
            writer: stored.writer,
        };
        Bytes::from(encode(&Frame::Batch(placed, raw(&stored.batch))))
    };
    let open = || {
        let mut lane = ReadLane::new(read_open());
        let opened = encode(&Frame::ReadOpened(read_opened()));
        lane.handle_bytes(Bytes::from(opened)).expect("legal");
        lane
    };
    // The read starts at 40, each batch has two records.
    for first in [39, 40] {
        open().handle_bytes(frame(first)).expect("holds record 40");
    }
    for first in [38, 41, u64::MAX - 1, u64::MAX] {
        open()
            .handle_bytes(frame(first))
            .expect_err("does not follow");
    }
    let mut lane = open();
    lane.handle_bytes(frame(40)).expect("follows");
    lane.handle_bytes(frame(42)).expect("follows");
    lane.handle_bytes(frame(42)).expect_err("a repeat");
    assert_eq!(lane.poll_event(), None, "dead lanes say nothing");
}

/// What a batch of the random session is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Good,
    TooLarge,
    ShardAcks,
    ShardRejects,
    Resume,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    use Step::{Good, Resume, ShardAcks, ShardRejects, TooLarge};
    let one = proptest::sample::select(vec![
        Good,
        Good,
        Good,
        TooLarge,
        ShardAcks,
        ShardAcks,
        ShardRejects,
        Resume,
    ]);
    proptest::collection::vec(one, 1..60)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whoever answers, the answers have the order of the batches. The model: a queue of what was
    /// sent, each with the only answer it can get.
    #[test]
    fn answers_keep_the_order_of_the_batches(steps in steps()) {
        let large = raw_batch(&vec![Record::new(""); 140_000]);
        let mut lane = server_lanes::appending();
        lane.poll_output();
        let mut client = client_with(0);
        // What the client waits for: `Some(code)` of the lane's own refusal, `None` of the shard.
        let mut waiting = std::collections::VecDeque::new();
        let mut at_shard = 0_u64;
        let mut stopped = false;
        for step in steps {
            match step {
                Step::Good | Step::TooLarge if client.window_free() == 0 => continue,
                Step::Good | Step::TooLarge => {
                    client.send(session_append(), &batch());
                    while client.poll_output().is_some() {}
                    let own = match (stopped, step) {
                        (true, _) => Some(Code::BehindRejected),
                        (false, Step::TooLarge) => Some(Code::TooLarge),
                        _ => None,
                    };
                    stopped |= own.is_some();
                    waiting.push_back(own);
                    let batch = if step == Step::TooLarge { large.clone() } else { raw(&batch()) };
                    fed(&mut lane, append_frame(&session_append(), &batch));
                    at_shard += u64::from(lane.poll_input().is_some());
                }
                Step::ShardAcks if at_shard > 0 => {
                    at_shard -= 1;
                    lane.acked(&ack(7));
                }
                Step::ShardRejects if at_shard > 0 => {
                    at_shard -= 1;
                    lane.rejected(&refusal());
                }
                Step::ShardAcks | Step::ShardRejects => continue,
                Step::Resume => {
                    client.resume();
                    let bytes = drain(|| client.poll_output());
                    stopped &= bytes.is_empty();
                    fed(&mut lane, bytes);
                    while lane.poll_input().is_some() {}
                }
            }
            for event in append_events(&mut lane, &mut client) {
                let own = waiting.pop_front().expect("an answer for a batch");
                match event {
                    AppendEvent::Acked(_) => prop_assert_eq!(own, None),
                    AppendEvent::Rejected(refusal) => {
                        prop_assert_eq!(refusal.code, own.unwrap_or(Code::SeqMismatch));
                    }
                    other => panic!("{other:?}"),
                }
            }
            prop_assert_eq!(waiting.len(), client.unanswered());
            prop_assert!(!matches!(waiting.front(), Some(Some(_))), "own answers do not wait");
        }
    }

    #[test]
    fn plain_heads_hold_every_value(
        writer in any::<Option<u64>>(),
        matching in any::<Option<u64>>(),
        stamp in any::<Option<(u128, u64)>>(),
        numbers in any::<[u64; 4]>(),
        uncapped in any::<bool>(),
        body_bytes in 0_usize..300,
    ) {
        let append = SessionAppend {
            writer_sequence: writer,
            match_sequence: matching.map(SequenceNumber),
        };
        let batch = batch_of(body_bytes);
        let frame = Frame::Append(append, raw(&batch));
        let decoded = crate::samples_tests::decode([Bytes::from(encode(&frame))]);
        prop_assert_eq!(decoded, Ok(Some(frame)));
        let mut stored = stored(numbers[0]);
        stored.stamping.uncapped = uncapped;
        stored.stamping.arrival.0 = numbers[1];
        stored.stamping.floor.0 = numbers[2];
        stored.epoch.0 = numbers[3];
        stored.writer = stamp.map(|(writer, sequence)| WriterStamp {
            writer: nova_model::WriterId(writer),
            sequence,
        });
        let placed = Placed {
            first: stored.first,
            epoch: stored.epoch,
            stamping: stored.stamping,
            writer: stored.writer,
        };
        let frame = Frame::Batch(placed, raw(&batch));
        let decoded = crate::samples_tests::decode([Bytes::from(encode(&frame))]);
        prop_assert_eq!(decoded, Ok(Some(frame)));
    }

    #[test]
    fn refusals_hold_every_text(message in ".{0,200}", field in ".{0,40}") {
        let facts = Facts::Field { field, limit: Some(3) };
        let refusal = Refusal::new(Code::Invalid, message).with(facts);
        let frame = Frame::Rejected(refusal);
        let decoded = crate::samples_tests::decode([Bytes::from(encode(&frame))]);
        prop_assert_eq!(decoded, Ok(Some(frame)));
    }
}
