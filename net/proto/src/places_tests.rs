//! Every state of every lane against every kind of frame, exhaustively.

use crate::client::{AppendEvent, AppendLane, ControlLane, ReadLane};
use crate::frame::{Frame, Kind};
use crate::samples_tests::{
    ack, append_open, append_opened, batch, encode, frames, name, one_shot, read_open, read_opened,
    refusal,
};
use crate::{ProtocolError, RequestId};
use bytes::Bytes;
use nova_model::limits::CONTROL_WINDOW_REQUESTS;
use nova_model::request::{Request, SessionAppend};

/// Server lanes in every state.
pub(crate) mod server_lanes {
    use super::*;
    use crate::server::Lane;

    pub(crate) fn fed(frames: &[Frame]) -> Lane {
        let mut lane = Lane::new();
        for frame in frames {
            lane.handle_bytes(Bytes::from(encode(frame)))
                .expect("legal");
        }
        while lane.poll_input().is_some() {}
        lane
    }

    pub(crate) fn appending() -> Lane {
        let mut lane = fed(&frames()[..1]);
        lane.opened(append_opened());
        lane
    }

    fn appending_full() -> Lane {
        let mut lane = appending();
        for _ in 0..16 {
            let bytes = Bytes::from(encode(&frames()[1]));
            lane.handle_bytes(bytes).expect("within the window");
        }
        lane
    }

    fn rejected() -> Lane {
        let mut lane = appending();
        let bytes = Bytes::from(encode(&frames()[1]));
        lane.handle_bytes(bytes).expect("legal");
        lane.rejected(&refusal());
        lane
    }

    pub(crate) fn reading() -> Lane {
        let mut lane = fed(&frames()[3..4]);
        lane.read_opened(read_opened());
        lane
    }

    fn control(requests: usize) -> Lane {
        let request = |id| Frame::Request(RequestId(id), Request::DescribeStar);
        let first = 100;
        let frames: Vec<Frame> = (first..first + requests as u64).map(request).collect();
        fed(&frames)
    }

    fn closed() -> Lane {
        let mut lane = appending();
        lane.broken(&refusal());
        lane
    }

    fn failed() -> Lane {
        let mut lane = Lane::new();
        lane.handle_bytes(Bytes::from_static(&[0; 16]))
            .expect_err("version 0");
        lane
    }

    pub(crate) fn all() -> Vec<(&'static str, Lane)> {
        vec![
            ("new", Lane::new()),
            ("append opening", fed(&frames()[..1])),
            ("appending", appending()),
            ("appending, window full", appending_full()),
            ("appending, rejected", rejected()),
            ("read opening", fed(&frames()[3..4])),
            ("reading", reading()),
            ("control", control(1)),
            ("control, window full", control(CONTROL_WINDOW_REQUESTS)),
            ("closed", closed()),
            ("failed", failed()),
        ]
    }
}

/// Client lanes in every state.
pub(crate) mod client_lanes {
    use super::*;

    fn open_append(sent: usize) -> AppendLane {
        let mut lane = AppendLane::new(append_open());
        let opened = encode(&Frame::AppendOpened(append_opened()));
        lane.handle_bytes(Bytes::from(opened)).expect("legal");
        for _ in 0..sent {
            lane.send(SessionAppend::default(), &batch());
        }
        lane
    }

    pub(crate) fn append() -> Vec<(&'static str, AppendLane)> {
        let mut closed = open_append(1);
        let broken = encode(&Frame::Broken(refusal()));
        closed.handle_bytes(Bytes::from(broken)).expect("legal");
        vec![
            ("opening", AppendLane::new(append_open())),
            ("open", open_append(0)),
            ("open, one sent", open_append(1)),
            ("closed", closed),
        ]
    }

    pub(crate) fn read() -> Vec<(&'static str, ReadLane)> {
        let open = || {
            let mut lane = ReadLane::new(read_open());
            let opened = encode(&Frame::ReadOpened(read_opened()));
            lane.handle_bytes(Bytes::from(opened)).expect("legal");
            lane
        };
        let mut closed = open();
        let failed = encode(&Frame::ReadFailed(refusal()));
        closed.handle_bytes(Bytes::from(failed)).expect("legal");
        vec![
            ("opening", ReadLane::new(read_open())),
            ("open", open()),
            ("closed", closed),
        ]
    }

    /// The samples answer request 3.
    pub(crate) fn control() -> Vec<(&'static str, ControlLane)> {
        let with = |last: fn(&mut ControlLane) -> RequestId| {
            let mut lane = ControlLane::new();
            for _ in 0..3 {
                lane.request(&Request::DescribeStar);
            }
            assert_eq!(last(&mut lane), RequestId(3));
            lane
        };
        let once = with(|lane| lane.append_once(&one_shot(), &batch()));
        let request = with(|lane| lane.request(&Request::CheckTail { name: name() }));
        vec![
            ("idle", ControlLane::new()),
            ("request", request),
            ("append once", once),
        ]
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Outcome {
    /// It is taken.
    Taken,
    /// It is read over: nobody cares any more.
    Dropped,
    /// One more than the window.
    Window,
    /// Not here, not now.
    OutOfPlace,
    /// No such request is unanswered.
    RequestId,
}

fn outcome(result: Result<(), ProtocolError>, is_over: bool) -> Outcome {
    match result {
        Ok(()) if is_over => Outcome::Dropped,
        Ok(()) => Outcome::Taken,
        Err(ProtocolError::Window { .. }) => Outcome::Window,
        Err(ProtocolError::OutOfPlace { .. }) => Outcome::OutOfPlace,
        Err(ProtocolError::RequestId { .. }) => Outcome::RequestId,
        Err(error) => panic!("{error}"),
    }
}

/// The table of the star's end.
fn expected_of_server(state: &str, kind: Kind) -> Outcome {
    use Kind::{Append, AppendOnce, OpenAppend, OpenRead, Request, Resume};
    match (state, kind) {
        ("closed" | "failed", _) => Outcome::Dropped,
        ("new", OpenAppend | OpenRead | Request | AppendOnce) => Outcome::Taken,
        ("appending" | "appending, rejected", Append) => Outcome::Taken,
        ("appending, window full", Append) => Outcome::Window,
        ("appending, rejected", Resume) => Outcome::Taken,
        ("control", Request | AppendOnce) => Outcome::Taken,
        ("control, window full", Request | AppendOnce) => Outcome::Window,
        _ => Outcome::OutOfPlace,
    }
}

#[test]
fn each_state_of_the_server_lane_takes_just_its_frames() {
    for (frame, kind) in frames().iter().zip(Kind::ALL) {
        for (state, mut lane) in server_lanes::all() {
            let is_over = matches!(state, "closed" | "failed");
            let result = lane.handle_bytes(Bytes::from(encode(frame)));
            let is_dead = result.is_err();
            let found = outcome(result, is_over);
            assert_eq!(found, expected_of_server(state, kind), "{kind} on {state}");
            if is_dead {
                assert!(lane.is_finished() && !lane.wants_input());
                assert_eq!((lane.poll_input(), lane.poll_output()), (None, None));
            }
        }
    }
}

#[test]
fn each_state_of_the_append_lane_takes_just_its_frames() {
    for (frame, kind) in frames().iter().zip(Kind::ALL) {
        for (state, mut lane) in client_lanes::append() {
            let expected = match (state, kind) {
                ("closed", _) => Outcome::Dropped,
                ("opening", Kind::AppendOpened | Kind::OpenRefused) => Outcome::Taken,
                ("open" | "open, one sent", Kind::Broken) => Outcome::Taken,
                ("open, one sent", Kind::Acked | Kind::Rejected) => Outcome::Taken,
                _ => Outcome::OutOfPlace,
            };
            let result = lane.handle_bytes(Bytes::from(encode(frame)));
            assert_eq!(
                outcome(result, state == "closed"),
                expected,
                "{kind} on {state}"
            );
        }
    }
}

#[test]
fn each_state_of_the_read_lane_takes_just_its_frames() {
    use Kind::{Batch, CaughtUp, Heartbeat, OpenRefused, ReadEnded, ReadFailed, ReadOpened};
    for (frame, kind) in frames().iter().zip(Kind::ALL) {
        for (state, mut lane) in client_lanes::read() {
            let expected = match (state, kind) {
                ("closed", _) => Outcome::Dropped,
                ("opening", ReadOpened | OpenRefused) => Outcome::Taken,
                ("open", Batch | CaughtUp | Heartbeat | ReadEnded | ReadFailed) => Outcome::Taken,
                _ => Outcome::OutOfPlace,
            };
            let result = lane.handle_bytes(Bytes::from(encode(frame)));
            assert_eq!(
                outcome(result, state == "closed"),
                expected,
                "{kind} on {state}"
            );
        }
    }
}

#[test]
fn each_state_of_the_control_lane_takes_just_its_frames() {
    use Kind::{Answered, AppendedOnce, RequestRefused};
    for (frame, kind) in frames().iter().zip(Kind::ALL) {
        for (state, mut lane) in client_lanes::control() {
            let expected = match (state, kind) {
                ("request", Answered | RequestRefused) => Outcome::Taken,
                ("append once", AppendedOnce | RequestRefused) => Outcome::Taken,
                (_, Answered | AppendedOnce | RequestRefused) => Outcome::RequestId,
                _ => Outcome::OutOfPlace,
            };
            let result = lane.handle_bytes(Bytes::from(encode(frame)));
            assert_eq!(outcome(result, false), expected, "{kind} on {state}");
        }
    }
}

#[test]
fn answers_for_a_lane_that_is_over_are_ignored() {
    for (state, mut lane) in server_lanes::all() {
        if !matches!(state, "closed" | "failed") {
            continue;
        }
        while lane.poll_output().is_some() {}
        lane.opened(append_opened());
        lane.open_refused(&refusal());
        lane.acked(&ack(1));
        lane.rejected(&refusal());
        lane.broken(&refusal());
        lane.answered(RequestId(1), &Err(refusal()));
        lane.appended_once(RequestId(1), &Ok(ack(1)));
        lane.read_opened(read_opened());
        lane.batch(&crate::samples_tests::stored(1));
        lane.caught_up(ack(1).tail);
        lane.heartbeat(ack(1).tail);
        lane.read_ended(ack(1).tail.sequence, ack(1).tail);
        lane.read_failed(&refusal());
        assert_eq!(lane.output_bytes(), 0, "{state}");
        assert!(lane.is_finished());
    }
}

#[test]
#[should_panic(expected = "acked on a lane that is a reader")]
fn an_answer_of_the_wrong_family_is_our_own_mistake() {
    server_lanes::reading().acked(&ack(1));
}

#[test]
#[should_panic(expected = "an answer for no batch of the shard")]
fn an_ack_without_a_batch_is_our_own_mistake() {
    server_lanes::appending().acked(&ack(1));
}

#[test]
#[should_panic(expected = "no room in the window")]
fn sending_beyond_the_window_is_our_own_mistake() {
    let (_, mut lane) = client_lanes::append().swap_remove(1);
    let Some(AppendEvent::Opened(opened)) = lane.poll_event() else {
        panic!("it is open");
    };
    for _ in 0..=opened.window_batches {
        lane.send(SessionAppend::default(), &batch());
    }
}
