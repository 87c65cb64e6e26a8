//! Canaries: a checker that accepts one of these histories has gone blind.

use super::*;
use crate::history::{read, write};

const STREAM: &str = "b/s";

fn producer(name: &str, promise: Promise) -> Event {
    Event::Producer {
        stream: STREAM.into(),
        producer: name.into(),
        promise,
    }
}

fn sent(producer: &str, id: u64) -> Event {
    Event::Sent {
        stream: STREAM.into(),
        producer: producer.into(),
        id,
    }
}

fn acked(producer: &str, id: u64, sequence: u64) -> Event {
    Event::Acked {
        stream: STREAM.into(),
        producer: producer.into(),
        id,
        sequence,
    }
}

fn failed(producer: &str, id: u64, clean: bool) -> Event {
    Event::Failed {
        stream: STREAM.into(),
        producer: producer.into(),
        id,
        clean,
    }
}

fn given(reader: &str, sequence: u64, producer: &str, id: u64) -> Event {
    let (stream, reader, producer) = (STREAM.into(), reader.into(), producer.into());
    Event::Read {
        stream,
        reader,
        sequence,
        producer,
        id,
    }
}

/// What is there at the end, in order.
fn at_last(records: &[(&str, u64)]) -> Vec<Event> {
    (0..)
        .zip(records)
        .map(|(n, (producer, id))| given(LAST_READER, n, producer, *id))
        .collect()
}

fn two_sent(promise: Promise) -> Vec<Event> {
    vec![producer("p", promise), sent("p", 0), sent("p", 1)]
}

fn judged(begin: Vec<Event>, end: Vec<Event>) -> Result<Counts, Vec<String>> {
    check(&[begin, end].concat())
}

#[test]
fn what_keeps_the_contract_is_accepted_and_counted() {
    let mut begin = two_sent(Promise::Once);
    begin.extend([
        acked("p", 0, 0),
        Event::Killed,
        given("r", 0, "p", 0),
        failed("p", 1, false),
    ]);
    let counts = judged(begin, at_last(&[("p", 0), ("p", 1)])).expect("nothing is wrong");
    let wanted = Counts {
        kills: 1,
        stops: 0,
        moves: 0,
        fences: 0,
        sent: 2,
        acked: 1,
        ambiguous: 1,
        refused: 0,
        read: 3,
        there: 2,
        copies: 0,
    };
    assert_eq!(counts, wanted);
}

#[test]
fn copies_are_counted_where_they_may_be_and_found_where_not() {
    let there = [("p", 0), ("p", 1), ("p", 0), ("p", 1)];
    let counts = judged(two_sent(Promise::AtLeastOnce), at_last(&there)).expect("allowed");
    assert_eq!(counts.copies, 2);
    assert!(judged(two_sent(Promise::Once), at_last(&there)).is_err());
}

#[test]
fn every_broken_promise_is_found() {
    let with = |event: Event| [two_sent(Promise::Once), vec![event]].concat();
    let both = || at_last(&[("p", 0), ("p", 1)]);
    let wrong: Vec<(&str, Vec<Event>, Vec<Event>)> = vec![
        (
            "acked and lost",
            with(acked("p", 1, 1)),
            at_last(&[("p", 0)]),
        ),
        ("acked elsewhere", with(acked("p", 1, 0)), both()),
        (
            "out of order",
            two_sent(Promise::Once),
            at_last(&[("p", 1), ("p", 0)]),
        ),
        (
            "never sent",
            two_sent(Promise::Once),
            at_last(&[("p", 0), ("q", 0)]),
        ),
        ("refused and there", with(failed("p", 1, true)), both()),
        ("read and vanished", with(given("r", 0, "p", 1)), both()),
        (
            "told a tail and lost",
            with(Event::Tail {
                stream: STREAM.into(),
                sequence: 3,
            }),
            both(),
        ),
        (
            "a gap",
            two_sent(Promise::Once),
            vec![given(LAST_READER, 1, "p", 0)],
        ),
        (
            "bytes of nobody",
            with(Event::Unknown {
                stream: STREAM.into(),
                reader: "r".into(),
                sequence: 0,
            }),
            both(),
        ),
        (
            "before what was told",
            vec![
                producer("p", Promise::Once),
                Event::Tail {
                    stream: STREAM.into(),
                    sequence: 2,
                },
                sent("p", 0),
                sent("p", 1),
            ],
            both(),
        ),
    ];
    for (what, begin, end) in wrong {
        assert!(judged(begin, end).is_err(), "not found: {what}");
    }
}

fn fenced(producer: &str, sequence: u64) -> Event {
    Event::Fenced {
        stream: STREAM.into(),
        producer: producer.into(),
        sequence,
    }
}

/// Whoever installed the last token is alone behind it; who presents none may be anywhere.
#[test]
fn a_record_behind_the_token_of_another_one_is_found() {
    let begin = |fences: [Event; 2]| {
        let mut events = vec![fences[0].clone(), sent("p", 0), sent("plain", 0)];
        events.extend([fences[1].clone(), sent("q", 0), sent("p", 1)]);
        events
    };
    let taken = || begin([fenced("p", 0), fenced("q", 2)]);
    let whole = [("p", 0), ("plain", 0), ("q", 0)];
    let counts = judged(taken(), at_last(&whole)).expect("each under its own token");
    assert_eq!((counts.fences, counts.there), (2, 3));
    let late = [("p", 0), ("plain", 0), ("q", 0), ("p", 1)];
    assert!(judged(taken(), at_last(&late)).is_err(), "a late one");
    // Both tokens at one place: either may have been the last.
    let tie = || begin([fenced("p", 0), fenced("q", 0)]);
    for there in [[("q", 0), ("plain", 0)], [("p", 0), ("plain", 0)]] {
        judged(tie(), at_last(&there)).expect("either");
    }
    let early = begin([fenced("p", 1), fenced("q", 2)]);
    assert!(
        judged(early, at_last(&[("p", 0)])).is_err(),
        "before its token"
    );
}

#[test]
fn lines_are_read_back_as_they_were_written() {
    let events = [
        two_sent(Promise::Once),
        vec![Event::Killed, failed("p", 1, true)],
    ]
    .concat();
    let mut lines = Vec::new();
    write(&events, &mut lines).expect("memory takes it");
    assert_eq!(
        lines.iter().filter(|&&byte| byte == b'\n').count(),
        events.len()
    );
    assert_eq!(read(&lines[..]).expect("they are whole"), events);
}

#[test]
fn bodies_tell_whose_they_are() {
    use crate::history::{body, whose};
    for id in [0, 1, 999] {
        assert_eq!(whose(&body("p-7", id)), Some(("p-7".to_owned(), id)));
    }
    let mut damaged = body("p", 3);
    *damaged.last_mut().expect("a body") ^= 1;
    assert_eq!(whose(&damaged), None);
    assert_eq!(whose(b"something else"), None);
}
