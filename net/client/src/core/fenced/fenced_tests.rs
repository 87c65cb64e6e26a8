//! One write, answer by answer: what each answer of the star makes it do.

use super::memory::Memory;
use super::model_tests::{ModelStar, entity};
use super::outcome::{Applied, UpdateError};
use super::update::Update;
use super::{Action, FencedWrite, WriteRules};
use crate::core::Moment;
use crate::core::outcome::{Ambiguity, AppendError};
use nova_model::{
    Code, Conditions, FencingToken, Instant, Record, Refusal, SequenceNumber, StreamId,
};

const NOW: Instant = Instant(1_000);

fn update(id: &str) -> Update {
    Update::new(id.to_owned(), Record::new(format!("body of {id}"))).expect("a legal update")
}

fn at(us: u64) -> Moment {
    let now = Instant(us);
    Moment { now, random: 0 }
}

fn token(text: &str) -> FencingToken {
    FencingToken::parse(text).expect("a short token")
}

fn refused(code: Code) -> AppendError {
    AppendError::Refused(Refusal::new(code, "because"))
}

fn lost() -> AppendError {
    AppendError::Ambiguous(Box::new(Ambiguity {
        stream_id: None,
        since: SequenceNumber(0),
        refusal: None,
    }))
}

/// A write and a star that answers when it is told to.
struct Rig {
    star: ModelStar,
    write: FencedWrite,
    now_us: u64,
    results: Vec<(usize, Result<Applied, UpdateError>)>,
}

impl Rig {
    fn new(ids: &[&str], memory: Memory) -> Rig {
        let mut star = ModelStar::default();
        star.create(&entity(0));
        star.stream(&entity(0)).fence = token("mine");
        let rules = WriteRules {
            fence: Some(token("mine")),
            known_records: 100,
            retry_budget_us: 10_000_000,
            attempt_us: 1_000_000,
        };
        let updates = ids.iter().map(|id| update(id)).collect();
        let mut write = FencedWrite::new(rules, updates, memory);
        write.start(NOW);
        Rig {
            star,
            write,
            now_us: NOW.0,
            results: Vec::new(),
        }
    }

    /// Somebody else's update.
    fn foreign(&mut self, id: &str) {
        let records = [update(id).record().clone()];
        let done = self
            .star
            .append(&entity(0), None, &Conditions::default(), &records);
        done.expect("without conditions");
    }

    fn next(&mut self) -> Option<Action> {
        loop {
            match self.write.poll_action() {
                Some(Action::Resolve { update, result }) => self.results.push((update, result)),
                other => return other,
            }
        }
    }

    /// A read is next: the star answers it.
    fn read(&mut self) {
        let Some(Action::Read { stream_id, start }) = self.next() else {
            panic!("no read: {:?}", self.write);
        };
        match self.star.read(&entity(0), stream_id, start) {
            Ok(answer) => {
                self.write.handle_read_begun(answer.id, answer.start);
                for batch in &answer.batches {
                    self.write.handle_stored(Instant(self.now_us), batch);
                }
                self.write.handle_read_all(Instant(self.now_us));
            }
            Err(refusal) => self.fail(AppendError::Refused(refusal)),
        }
    }

    /// A write is next, and is taken.
    fn take_write(&mut self) -> (Option<StreamId>, Conditions, Vec<Record>) {
        match self.next() {
            Some(Action::Write {
                stream_id,
                conditions,
                records,
            }) => (stream_id, conditions, records),
            other => panic!("no write: {other:?}, {:?}", self.write),
        }
    }

    fn apply(&mut self, (id, conditions, records): (Option<StreamId>, Conditions, Vec<Record>)) {
        match self.star.append(&entity(0), id, &conditions, &records) {
            Ok((start, end)) => self.write.handle_written(at(self.now_us), start, end),
            Err(refusal) => self.fail(AppendError::Refused(refusal)),
        }
    }

    fn fail(&mut self, error: AppendError) {
        self.write.handle_failed(at(self.now_us), error);
    }

    fn tick(&mut self) {
        let due = self.write.next_deadline().expect("something is due");
        self.now_us = due.0;
        self.write.handle_tick(at(due.0));
    }

    fn is_waiting(&mut self) -> bool {
        self.next().is_none() && !self.write.is_over()
    }

    fn error(&mut self) -> UpdateError {
        assert!(self.next().is_none());
        assert!(self.write.is_over());
        self.results[0].1.clone().expect_err("it failed")
    }
}

fn fresh() -> Memory {
    Memory::new(100)
}

#[test]
fn a_write_reads_leaves_out_what_is_stored_and_writes_the_rest() {
    let mut rig = Rig::new(&["a", "b", "c", "b"], fresh());
    rig.foreign("b");
    rig.foreign("x");
    rig.read();
    let write = rig.take_write();
    assert_eq!(write.1.match_sequence, Some(SequenceNumber(2)));
    assert_eq!(write.1.fence, Some(token("mine")));
    assert_eq!(
        write.2,
        [update("a").record().clone(), update("c").record().clone()]
    );
    let there = |update| {
        (
            update,
            Ok(Applied {
                at: SequenceNumber(0),
                duplicate: true,
            }),
        )
    };
    assert_eq!(
        rig.results,
        [there(1), there(3)],
        "answered before the rest is written"
    );
    rig.apply(write);
    assert!(rig.next().is_none());
    let new = |update, at| {
        (
            update,
            Ok(Applied {
                at: SequenceNumber(at),
                duplicate: false,
            }),
        )
    };
    assert_eq!(rig.results[2..], [new(0, 2), new(2, 3)]);
    assert!(rig.write.is_over());
}

#[test]
fn a_remembered_entity_is_written_without_a_read_and_read_if_that_fails() {
    let mut rig = Rig::new(&["a"], fresh());
    rig.read();
    let write = rig.take_write();
    rig.apply(write);
    let mut star = rig.star;
    let mut rig = Rig::new(&["b", "a"], rig.write.into_memory());
    std::mem::swap(&mut rig.star, &mut star);
    rig.foreign("x");
    let write = rig.take_write();
    assert_eq!(write.1.match_sequence, Some(SequenceNumber(1)));
    rig.apply(write);
    // At once, since a guess that fails is no trouble, and only from where it knew.
    rig.read();
    let write = rig.take_write();
    assert_eq!(write.1.match_sequence, Some(SequenceNumber(2)));
    rig.apply(write);
    assert!(rig.next().is_none() && rig.write.is_over());
}

#[test]
fn what_may_pass_is_tried_again_after_a_wait() {
    for (error, is_in_doubt) in [
        (refused(Code::RateLimited), false),
        (refused(Code::DiskFull), false),
        (refused(Code::PolicyBusy), false),
        (refused(Code::Draining), false),
        (refused(Code::SeqMismatch), false),
        (refused(Code::Unavailable), true),
        (refused(Code::Internal), true),
        (lost(), true),
    ] {
        let mut rig = Rig::new(&["a"], fresh());
        rig.read();
        rig.take_write();
        rig.fail(error.clone());
        assert!(rig.is_waiting(), "{error:?}");
        rig.tick();
        // The budget is spent while the reads fail too.
        loop {
            match rig.next() {
                Some(Action::Read { .. }) => rig.fail(refused(Code::Unavailable)),
                Some(other) => panic!("{other:?}"),
                None if rig.write.is_over() => break,
                None => rig.tick(),
            }
        }
        let told = rig.error();
        assert!(matches!(told, UpdateError::Unavailable { .. }), "{told:?}");
        assert!(told.is_retryable());
        assert_eq!(told.is_clean(), !is_in_doubt, "{error:?}");
    }
}

#[test]
fn what_no_retry_can_cure_is_told_at_once() {
    let cured_by_nothing = [
        Code::Fenced,
        Code::Invalid,
        Code::PermissionDenied,
        Code::StreamNotFound,
        Code::BucketNotFound,
        Code::TooLarge,
        Code::Corrupt,
    ];
    for code in cured_by_nothing {
        let mut rig = Rig::new(&["a", "b"], fresh());
        rig.read();
        rig.take_write();
        rig.fail(refused(code));
        let told = rig.error();
        assert!(told.is_clean() && !told.is_retryable(), "{told:?}");
        assert_eq!(rig.results.len(), 2, "all callers are told");
        assert_eq!(told.is_fenced(), code == Code::Fenced);
    }
    let mut rig = Rig::new(&["a"], fresh());
    rig.next();
    rig.fail(refused(Code::Corrupt));
    assert!(rig.error().is_clean());
}

#[test]
fn a_write_without_an_answer_is_given_up_and_looked_for() {
    let mut rig = Rig::new(&["a"], fresh());
    rig.read();
    let late = rig.take_write();
    rig.tick();
    assert!(matches!(rig.next(), Some(Action::Cancel)));
    let done = rig.star.append(&entity(0), late.0, &late.1, &late.2);
    done.expect("it lands while nobody waits for it");
    rig.tick();
    rig.read();
    assert!(rig.next().is_none() && rig.write.is_over());
    let applied = rig.results[0].1.clone().expect("found");
    assert!(applied.duplicate);
}

#[test]
fn a_fenced_write_in_doubt_is_looked_for_once_more() {
    for lands in [true, false] {
        let mut rig = Rig::new(&["a", "b"], fresh());
        rig.read();
        let late = rig.take_write();
        rig.fail(lost());
        assert!(rig.is_waiting());
        rig.tick();
        rig.read();
        let second = rig.take_write();
        if lands {
            let done = rig.star.append(&entity(0), late.0, &late.1, &late.2);
            done.expect("the first write lands late");
        }
        rig.star.stream(&entity(0)).fence = token("theirs");
        rig.apply(second);
        rig.read();
        assert!(rig.next().is_none() && rig.write.is_over());
        assert_eq!(rig.results.len(), 2);
        for (_, result) in &rig.results {
            match result {
                Ok(applied) => assert!(lands && applied.duplicate),
                // Its token is gone, so the late write can't land any more either.
                Err(error) => assert!(!lands && error.is_fenced() && error.is_clean()),
            }
        }
    }
}

#[test]
fn a_fenced_write_that_cannot_be_looked_for_is_told_as_fenced_and_uncertain() {
    let mut rig = Rig::new(&["a"], fresh());
    rig.read();
    rig.take_write();
    rig.fail(lost());
    rig.tick();
    rig.read();
    rig.take_write();
    rig.fail(refused(Code::Fenced));
    while !rig.write.is_over() {
        match rig.next() {
            Some(_) => rig.fail(refused(Code::Unavailable)),
            None => rig.tick(),
        }
    }
    let told = rig.error();
    assert!(told.is_fenced() && !told.is_clean());
}

#[test]
fn a_doubt_ends_when_the_stream_has_gone_past_it() {
    let mut rig = Rig::new(&["a"], fresh());
    rig.read();
    rig.take_write();
    rig.fail(lost());
    rig.tick();
    rig.foreign("x");
    rig.read();
    rig.take_write();
    rig.fail(refused(Code::PermissionDenied));
    assert!(
        rig.error().is_clean(),
        "the lost write needed a tail that is no more"
    );
}

#[test]
fn trimmed_records_are_passed_over() {
    let mut rig = Rig::new(&["a"], fresh());
    rig.foreign("x");
    rig.read();
    rig.take_write();
    rig.foreign("y");
    rig.star.stream(&entity(0)).first = SequenceNumber(2);
    rig.fail(refused(Code::RateLimited));
    rig.tick();
    rig.read();
    assert!(rig.is_waiting(), "what it wanted to read is trimmed");
    rig.tick();
    rig.read();
    let write = rig.take_write();
    assert_eq!(write.1.match_sequence, Some(SequenceNumber(2)));
    rig.apply(write);
    assert!(rig.next().is_none() && rig.write.is_over());
}

#[test]
fn a_doubt_about_trimmed_records_is_told() {
    let mut rig = Rig::new(&["a"], fresh());
    rig.read();
    let late = rig.take_write();
    rig.fail(lost());
    let done = rig.star.append(&entity(0), late.0, &late.1, &late.2);
    done.expect("it lands");
    rig.foreign("x");
    rig.star.stream(&entity(0)).first = SequenceNumber(1);
    rig.tick();
    rig.read();
    assert!(!rig.error().is_clean(), "it was stored, and is trimmed");
}

#[test]
fn an_absent_stream_is_empty_where_the_append_makes_it() {
    let mut rig = Rig::new(&["a"], fresh());
    rig.star.streams.clear();
    rig.star.creates = true;
    rig.write.rules.fence = None;
    rig.read();
    let write = rig.take_write();
    assert_eq!(write.1.match_sequence, Some(SequenceNumber(0)));
    rig.apply(write);
    assert!(rig.next().is_none() && rig.write.is_over());
    assert!(rig.results[0].1.is_ok());
    // Where it does not, the callers hear that there is no stream.
    let mut rig = Rig::new(&["a"], fresh());
    rig.star.streams.clear();
    rig.read();
    let write = rig.take_write();
    rig.apply(write);
    assert!(rig.error().is_clean());
}

#[test]
fn another_incarnation_in_the_middle_of_a_write_is_no_place_for_it() {
    let mut rig = Rig::new(&["a"], fresh());
    rig.read();
    let write = rig.take_write();
    rig.star.create(&entity(0));
    rig.apply(write);
    let told = rig.error();
    assert!(matches!(&told, UpdateError::Refused { refusal, .. }
        if refusal.code == Code::StreamNotFound));
    assert!(rig.star.records(&entity(0)).is_empty());
}

#[test]
fn an_acknowledgement_that_does_not_fit_is_not_believed() {
    let mut rig = Rig::new(&["a"], fresh());
    rig.read();
    rig.take_write();
    rig.write
        .handle_written(at(NOW.0), SequenceNumber(5), SequenceNumber(6));
    assert!(rig.is_waiting() && rig.results.is_empty());
}

#[test]
fn rules_outside_their_limits_are_refused() {
    WriteRules::default().check().expect("the defaults fit");
    for known_records in [0, nova_model::limits::ENTITY_KNOWN_RECORDS_MAX + 1] {
        let rules = WriteRules {
            known_records,
            ..WriteRules::default()
        };
        rules.check().expect_err("a number outside its limits");
    }
}
