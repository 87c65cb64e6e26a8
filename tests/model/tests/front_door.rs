//! Every append that can be told apart by policy, tokens, expected tail and writer's number, asked
//! of the real shard at its front door: what is answered, and what is in the stream afterwards.
//!
//! The star's side of the model FencedWriter as a table, without Java: `expected` below is the
//! model's `Verdict`, with the refusals that its well-behaved writers never meet.

mod shard;

use nova_model::condition::{Conditions, FencingToken, WriterStamp};
use nova_model::ids::WriterId;
use nova_model::position::SequenceNumber;
use nova_model::request::{Ack, OneShotAppend};
use nova_model::settings::ProducerPolicy;
use nova_model::{Code, Refusal};
use shard::{Star, batch, stream_name};

/// The stream's records before the append of the case.
const TAIL: u64 = 2;
/// The writer that appended both, under its numbers 0 and 1.
const KNOWN: WriterId = WriterId(7);

const POLICIES: [ProducerPolicy; 2] = [ProducerPolicy::Any, ProducerPolicy::Fenced];
const INSTALLED: [&str; 2] = ["", "a"];
const PRESENTED: [Option<&str>; 4] = [None, Some(""), Some("a"), Some("b")];
const MATCHES: [Option<u64>; 4] = [None, Some(TAIL), Some(TAIL - 1), Some(TAIL + 1)];
const WRITERS: [Number; 7] = [
    Number::None,
    Number::NewWriter,
    Number::NewWriterLate,
    Number::Next,
    Number::Repeat,
    Number::OtherContent,
    Number::Gap,
];

/// How the append is numbered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Number {
    None,
    /// The first batch of a writer that the stream does not know.
    NewWriter,
    /// A later batch of one: what came before is not remembered.
    NewWriterLate,
    Next,
    /// The known writer's number 0 with the same records.
    Repeat,
    /// The known writer's number 0 with others.
    OtherContent,
    Gap,
}

#[derive(Debug, Clone, Copy)]
struct Case {
    policy: ProducerPolicy,
    installed: &'static str,
    presented: Option<&'static str>,
    matches: Option<u64>,
    number: Number,
}

#[derive(Debug, PartialEq, Eq)]
enum Verdict {
    Admit,
    Repeat,
    Refuse(Code),
}

#[test]
fn every_append_gets_the_answer_of_the_contract() {
    let cases = cases();
    assert_eq!(cases.len(), 2 * 2 * 4 * 4 * 7);
    let mut seen = [0_usize; 3];
    for case in cases {
        let mut star = star_of(&case);
        let answer = ask(&mut star, &case);
        let verdict = expected(&case);
        assert_eq!(verdict_of(&answer), verdict, "{case:?}: {answer:?}");
        let (tail, kind) = match (verdict, answer) {
            (Verdict::Admit, Ok(ack)) => {
                assert_eq!((ack.start.sequence.0, ack.end.sequence.0), (TAIL, TAIL + 1));
                (TAIL + 1, 0)
            }
            (Verdict::Repeat, Ok(ack)) => {
                assert_eq!((ack.start.sequence.0, ack.end.sequence.0), (0, 1));
                assert_eq!(ack.tail.sequence.0, TAIL, "the tail is that of now");
                (TAIL, 1)
            }
            (_, Err(refusal)) => {
                assert!(refusal.clean, "nothing was applied: {case:?}");
                (TAIL, 2)
            }
            (verdict, answer) => panic!("{case:?}: {verdict:?}, {answer:?}"),
        };
        assert_eq!(star.tail().sequence.0, tail, "{case:?}");
        seen[kind] += 1;
    }
    assert!(seen.iter().all(|&count| count > 0), "a verdict never came");
}

#[test]
fn what_was_admitted_is_a_repeat_from_then_on() {
    let admitted = |case: &Case| expected(case) == Verdict::Admit && case.number != Number::None;
    for case in cases().into_iter().filter(admitted) {
        let mut star = star_of(&case);
        let first = ask(&mut star, &case).expect("admitted");
        // The fence moves on and the tail has moved: neither hides what was applied.
        star.fence("c");
        let again = ask(&mut star, &case).expect("a repeat");
        assert!(again.duplicate && !first.duplicate, "{case:?}");
        assert_eq!((again.start, again.end), (first.start, first.end));
        assert_eq!(star.tail(), first.end, "{case:?}");
    }
}

/// The model's verdict, written down apart from the code.
fn expected(case: &Case) -> Verdict {
    match case.number {
        Number::Repeat => return Verdict::Repeat,
        Number::OtherContent => return Verdict::Refuse(Code::DuplicateMismatch),
        Number::Gap | Number::NewWriterLate => return Verdict::Refuse(Code::WriterGap),
        Number::None | Number::NewWriter | Number::Next => {}
    }
    let is_open = case.policy == ProducerPolicy::Any || case.installed.is_empty();
    let passes = case
        .presented
        .map_or(is_open, |token| token == case.installed);
    if !passes {
        return Verdict::Refuse(Code::Fenced);
    }
    match case.matches {
        Some(sequence) if sequence != TAIL => Verdict::Refuse(Code::SeqMismatch),
        Some(_) | None => Verdict::Admit,
    }
}

fn verdict_of(answer: &Result<Ack, Refusal>) -> Verdict {
    match answer {
        Ok(ack) if ack.duplicate => Verdict::Repeat,
        Ok(_) => Verdict::Admit,
        Err(refusal) => Verdict::Refuse(refusal.code),
    }
}

fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for policy in POLICIES {
        for installed in INSTALLED {
            for presented in PRESENTED {
                for matches in MATCHES {
                    cases.extend(WRITERS.map(|number| Case {
                        policy,
                        installed,
                        presented,
                        matches,
                        number,
                    }));
                }
            }
        }
    }
    cases
}

/// A star with the stream of the case: two records of the known writer, then the token.
fn star_of(case: &Case) -> Star {
    let mut star = Star::new(case.policy);
    for sequence in 0..TAIL {
        let stamp = WriterStamp {
            writer: KNOWN,
            sequence,
        };
        let append = append(None, None, Some(stamp));
        let body = format!("record {sequence}");
        star.append(append, batch(&body))
            .expect("a fresh stream takes it");
    }
    star.fence(case.installed);
    star
}

fn ask(star: &mut Star, case: &Case) -> Result<Ack, Refusal> {
    let stamp = |writer, sequence| Some(WriterStamp { writer, sequence });
    let (writer, body) = match case.number {
        Number::None => (None, "new"),
        Number::NewWriter => (stamp(WriterId(8), 0), "new"),
        Number::NewWriterLate => (stamp(WriterId(8), 3), "new"),
        Number::Next => (stamp(KNOWN, 2), "new"),
        Number::Repeat => (stamp(KNOWN, 0), "record 0"),
        Number::OtherContent => (stamp(KNOWN, 0), "new"),
        Number::Gap => (stamp(KNOWN, 3), "new"),
    };
    let matches = case.matches.map(SequenceNumber);
    star.append(append(case.presented, matches, writer), batch(body))
}

fn append(
    fence: Option<&str>,
    match_sequence: Option<SequenceNumber>,
    writer: Option<WriterStamp>,
) -> OneShotAppend {
    OneShotAppend {
        stream: stream_name(),
        stream_id: None,
        conditions: Conditions {
            fence: fence.map(|text| FencingToken::parse(text).expect("legal")),
            match_sequence,
        },
        writer,
    }
}
