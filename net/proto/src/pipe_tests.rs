//! Both ends, connected by a pipe that cuts the bytes anywhere: whole lives of each kind of lane.

use crate::client::{AppendEvent, AppendLane, ControlEvent, ControlLane, ReadEvent, ReadLane};
use crate::samples_tests::{
    ack, append_open, append_opened, batch, batch_of, drain, name, one_shot, position, read_open,
    read_opened, refusal, session_append, stored,
};
use crate::server::{Input, Lane};
use bytes::Bytes;
use nova_model::request::{Answer, Request, SessionAppend};
use nova_model::{Refusal, SequenceNumber, StoredBatch};
use proptest::prelude::*;

/// Cuts bytes into chunks of the given lengths, again and again.
struct Pipe {
    lengths: Vec<usize>,
    at: usize,
}

impl Pipe {
    fn new(lengths: &[usize]) -> Pipe {
        let lengths = lengths.to_vec();
        Pipe { lengths, at: 0 }
    }

    fn carry(&mut self, bytes: Vec<u8>, mut to: impl FnMut(Bytes)) {
        let mut rest = Bytes::from(bytes);
        while !rest.is_empty() {
            let length = self.lengths[self.at % self.lengths.len()].clamp(1, rest.len());
            self.at += 1;
            to(rest.split_to(length));
        }
    }
}

fn all<T>(mut poll: impl FnMut() -> Option<T>) -> Vec<T> {
    std::iter::from_fn(&mut poll).collect()
}

/// Moves what `$from` has to `$to`.
macro_rules! move_bytes {
    ($pipe:expr, $from:expr => $to:expr) => {
        $pipe.carry(drain(|| $from.poll_output()), |chunk| {
            $to.handle_bytes(chunk).expect("both ends are honest");
        })
    };
}

fn append_life(pipe: &mut Pipe) {
    let mut client = AppendLane::new(append_open());
    let mut star = Lane::new();
    assert_eq!((client.window_free(), star.wants_input()), (0, true));
    move_bytes!(pipe, client => star);
    let inputs = all(|| star.poll_input());
    assert_eq!(inputs, [Input::OpenAppend(append_open())]);
    star.opened(append_opened());
    move_bytes!(pipe, star => client);
    let events = all(|| client.poll_event());
    assert_eq!(events, [AppendEvent::Opened(append_opened())]);
    assert_eq!(client.window_free(), 16);

    let large = batch_of(50_000);
    client.send(session_append(), &batch());
    client.send(SessionAppend::default(), &large);
    client.send(session_append(), &batch());
    assert_eq!((client.window_free(), client.unanswered()), (13, 3));
    move_bytes!(pipe, client => star);
    let sent = [
        Input::Append(session_append(), batch()),
        Input::Append(SessionAppend::default(), large),
        Input::Append(session_append(), batch()),
    ];
    assert_eq!(all(|| star.poll_input()), sent);
    star.acked(&ack(42));
    star.rejected(&refusal());
    move_bytes!(pipe, star => client);
    let events = all(|| client.poll_event());
    let expected = [
        AppendEvent::Acked(ack(42)),
        AppendEvent::Rejected(refusal()),
    ];
    assert_eq!(events, expected);

    client.resume();
    client.resume();
    client.finish();
    assert!(!client.wants_finish() && client.window_free() == 0);
    move_bytes!(pipe, client => star);
    assert!(client.wants_finish());
    star.handle_end().expect("between frames");
    assert_eq!(all(|| star.poll_input()), [Input::Resume, Input::EndAppend]);
    assert!(!star.is_finished(), "one batch is unanswered");
    star.acked(&ack(50));
    assert!(!star.is_finished(), "the ack is not polled");
    move_bytes!(pipe, star => client);
    assert!(star.is_finished());
    client.handle_end().expect("between frames");
    let events = all(|| client.poll_event());
    assert_eq!(events, [AppendEvent::Acked(ack(50)), AppendEvent::Ended]);
    assert_eq!(client.unanswered(), 0);
}

fn broken_life(pipe: &mut Pipe) {
    let mut client = AppendLane::new(append_open());
    let mut star = Lane::new();
    move_bytes!(pipe, client => star);
    star.opened(append_opened());
    move_bytes!(pipe, star => client);
    client.send(session_append(), &batch());
    move_bytes!(pipe, client => star);
    star.broken(&refusal());
    // What is on its way already is dropped at the star.
    client.send(session_append(), &batch());
    move_bytes!(pipe, client => star);
    move_bytes!(pipe, star => client);
    assert!(star.is_finished() && star.poll_input().is_none());
    let events = all(|| client.poll_event());
    assert_eq!(events[1..], [AppendEvent::Broken(refusal())]);
    assert_eq!((client.unanswered(), client.window_free()), (2, 0));
    assert!(client.wants_finish());
    client.handle_end().expect("after the last word");
    assert_eq!(client.poll_event(), None);
}

fn read_life(pipe: &mut Pipe) {
    let mut client = ReadLane::new(read_open());
    let mut star = Lane::new();
    move_bytes!(pipe, client => star);
    assert_eq!(all(|| star.poll_input()), [Input::OpenRead(read_open())]);
    let large = StoredBatch {
        batch: batch_of(300_000),
        ..stored(42)
    };
    let plain = StoredBatch {
        writer: None,
        ..stored(43)
    };
    let tail = position(45, 2_000);
    star.read_opened(read_opened());
    star.batch(&stored(40));
    star.batch(&large);
    star.batch(&plain);
    star.caught_up(tail);
    star.heartbeat(tail);
    assert!(star.output_bytes() > 300_000 && star.wants_input());
    move_bytes!(pipe, star => client);
    assert!(!client.wants_input(), "events with more than a credit wait");
    let expected = [
        ReadEvent::Opened(read_opened()),
        ReadEvent::Batch(stored(40)),
        ReadEvent::Batch(large),
        ReadEvent::Batch(plain),
        ReadEvent::CaughtUp(tail),
        ReadEvent::Heartbeat(tail),
    ];
    assert_eq!(all(|| client.poll_event()), expected);
    assert!(client.wants_input() && !client.wants_finish());
    let next = SequenceNumber(45);
    star.read_ended(next, tail);
    move_bytes!(pipe, star => client);
    assert!(star.is_finished() && client.wants_finish());
    assert_eq!(
        all(|| client.poll_event()),
        [ReadEvent::Ended { next, tail }]
    );
    client.handle_end().expect("after the last word");
}

fn refused_lives(pipe: &mut Pipe) {
    let mut client = ReadLane::new(read_open());
    let mut star = Lane::new();
    move_bytes!(pipe, client => star);
    star.open_refused(&refusal());
    assert_eq!(star.poll_input(), None, "nothing is left to do");
    move_bytes!(pipe, star => client);
    assert_eq!(all(|| client.poll_event()), [ReadEvent::Refused(refusal())]);

    let mut client = ReadLane::new(read_open());
    let mut star = Lane::new();
    move_bytes!(pipe, client => star);
    star.read_opened(read_opened());
    star.read_failed(&refusal());
    move_bytes!(pipe, star => client);
    let events = all(|| client.poll_event());
    assert_eq!(events[1..], [ReadEvent::Failed(refusal())]);

    let mut client = AppendLane::new(append_open());
    let mut star = Lane::new();
    move_bytes!(pipe, client => star);
    star.open_refused(&refusal());
    move_bytes!(pipe, star => client);
    let events = all(|| client.poll_event());
    assert_eq!(events, [AppendEvent::OpenRefused(refusal())]);
}

fn abandoned_read(pipe: &mut Pipe) {
    let mut client = ReadLane::new(read_open());
    let mut star = Lane::new();
    move_bytes!(pipe, client => star);
    star.read_opened(read_opened());
    star.poll_input();
    client.finish();
    assert!(client.wants_finish());
    star.handle_end().expect("between frames");
    assert_eq!(star.poll_input(), Some(Input::EndRead));
    star.batch(&stored(40));
    star.read_failed(&refusal());
    move_bytes!(pipe, star => client);
    assert!(star.is_finished());
    client.handle_end().expect("no last word is owed");
    let events = all(|| client.poll_event());
    assert_eq!(events, [ReadEvent::Opened(read_opened())]);
}

fn control_life(pipe: &mut Pipe) {
    let mut client = ControlLane::new();
    let mut star = Lane::new();
    let check = Request::CheckTail { name: name() };
    let first = client.request(&check);
    let second = client.append_once(&one_shot(), &batch());
    let third = client.request(&Request::DescribeStar);
    let fourth = client.append_once(&one_shot(), &batch_of(9_000));
    move_bytes!(pipe, client => star);
    let inputs = [
        Input::Request(first, check),
        Input::AppendOnce(second, one_shot(), batch()),
        Input::Request(third, Request::DescribeStar),
        Input::AppendOnce(fourth, one_shot(), batch_of(9_000)),
    ];
    assert_eq!(all(|| star.poll_input()), inputs);
    client.finish();
    star.handle_end().expect("between frames");
    let answer = Answer::Tail(position(42, 1_001));
    star.appended_once(fourth, &Err(refusal()));
    star.answered(third, &Err(refusal()));
    star.appended_once(second, &Ok(ack(42)));
    assert!(!star.is_finished());
    star.answered(first, &Ok(answer.clone()));
    move_bytes!(pipe, star => client);
    assert!(star.is_finished());
    let refused: Refusal = refusal();
    let events = [
        ControlEvent::AppendedOnce(fourth, Err(refused.clone())),
        ControlEvent::Answered(third, Err(refused)),
        ControlEvent::AppendedOnce(second, Ok(ack(42))),
        ControlEvent::Answered(first, Ok(answer)),
    ];
    assert_eq!(all(|| client.poll_event()), events);
    client.handle_end().expect("all is answered");
}

fn all_lives(pipe: &mut Pipe) {
    append_life(pipe);
    broken_life(pipe);
    read_life(pipe);
    refused_lives(pipe);
    abandoned_read(pipe);
    control_life(pipe);
}

#[test]
fn lanes_live_their_lives_whatever_the_chunks() {
    all_lives(&mut Pipe::new(&[usize::MAX]));
    for length in 1..=70 {
        all_lives(&mut Pipe::new(&[length]));
    }
    all_lives(&mut Pipe::new(&[1_400, 1_400, 60]));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn lanes_live_their_lives_under_random_chunks(
        lengths in proptest::collection::vec(1_usize..5_000, 1..20),
    ) {
        all_lives(&mut Pipe::new(&lengths));
    }
}
