//! The order of turns, and what becomes of a system that fails, with systems that only remember.

use super::*;
use crate::compare::drive::{Appended, Work};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::rc::Rc;

/// Remembers who did what; fails in the appends of one round, or when a stream is read.
struct Fake {
    name: &'static str,
    done: Rc<RefCell<Vec<String>>>,
    streams: RefCell<BTreeMap<String, usize>>,
    fails_in: Option<usize>,
    loses: Option<&'static str>,
}

impl System for Fake {
    fn make<'a>(&'a self, stream: &'a str) -> Work<'a, ()> {
        Box::pin(async move {
            let known = self.streams.borrow_mut().insert(stream.to_owned(), 0);
            assert_eq!(known, None, "{stream} is new");
            Ok(())
        })
    }

    fn append<'a>(&'a self, stream: &'a str, job: Job) -> Work<'a, Appended> {
        Box::pin(async move {
            let fails = self.fails_in.map(|round| format!("s{round}c"));
            if fails.is_some_and(|fails| stream.starts_with(&fails)) {
                return Err(BenchError::system(self.name, "no more"));
            }
            self.done
                .borrow_mut()
                .push(format!("{} {stream}", self.name));
            let mut streams = self.streams.borrow_mut();
            let records = match job.until {
                Until::Elapsed(_) => 1_000 + streams.len(),
                Until::Batches(batches) => job.producers * job.batch * batches,
            };
            *streams.get_mut(stream).expect("it was made") += records;
            let mut appended = Appended {
                time: Duration::from_secs(1),
                records,
                ..Appended::default()
            };
            appended.acks.record(Duration::from_micros(50));
            Ok(appended)
        })
    }

    fn read<'a>(&'a self, stream: &'a str, records: usize) -> Work<'a, Duration> {
        Box::pin(async move {
            self.done
                .borrow_mut()
                .push(format!("{} reads {stream}", self.name));
            let is_there = self.streams.borrow().get(stream) == Some(&records);
            match is_there && self.loses != Some(stream) {
                true => Ok(Duration::from_secs(1)),
                false => Err(BenchError::system(self.name, "records are missing")),
            }
        })
    }
}

type Taken = Result<(Vec<Row>, Vec<Skipped>), BenchError>;

/// Two rounds of three systems, changed by `change`; what came of it, and what was done.
fn three(change: impl Fn(&mut Fake)) -> (Taken, Vec<String>) {
    let done = Rc::default();
    let seats = ["nova", "b", "c"].map(|name| {
        let mut fake = Fake {
            name,
            done: Rc::clone(&done),
            streams: RefCell::default(),
            fails_in: None,
            loses: None,
        };
        change(&mut fake);
        Seat {
            system: Box::new(fake),
            row: Row::new(name, "1".to_owned(), "nothing"),
            install: "install it",
        }
    });
    let options = CompareOptions {
        recent_bytes: None,
        others: Vec::new(),
        json: false,
        data: PathBuf::new(),
        quick: true,
        rounds: Some(2),
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let taken = runtime
        .unwrap()
        .block_on(take_turns(&options, seats.into()));
    let done = done.take();
    (taken, done)
}

#[test]
fn who_goes_first_changes_and_all_that_was_acked_is_read() {
    let (taken, done) = three(|_| {});
    let (rows, failed) = taken.unwrap();
    assert_eq!(failed, []);
    for row in &rows {
        assert!(row.columns.iter().all(|series| series.rounds.len() == 2));
    }
    let turns = [0, 1, 2].map(|round| {
        let ends = format!(" s{round}c0");
        let first = done.iter().filter_map(|line| line.strip_suffix(&ends));
        first
            .filter(|who| !who.contains("reads"))
            .collect::<Vec<_>>()
    });
    let expected = [["nova", "b", "c"], ["b", "c", "nova"], ["c", "nova", "b"]];
    assert_eq!(turns, expected.map(Vec::from));
    for name in ["nova", "b", "c"] {
        for stream in ["s2c0", "s2c1", "s2c2", "s2c3", "s2c4"] {
            let line = format!("{name} reads {stream}");
            assert!(done.contains(&line), "{line}");
        }
        assert!(done.contains(&format!("{name} reads s1c4")), "a column");
        assert!(!done.contains(&format!("{name} reads s1c0")));
    }
}

#[test]
fn a_system_that_fails_takes_no_further_part() {
    let (taken, done) = three(|fake| fake.fails_in = (fake.name == "b").then_some(1));
    let (rows, failed) = taken.unwrap();
    let names: Vec<&str> = rows.iter().map(|row| row.system).collect();
    assert_eq!(names, ["nova", "c"]);
    assert_eq!(failed.len(), 1);
    assert_eq!((failed[0].system, failed[0].install), ("b", "install it"));
    assert!(failed[0].why.contains("round 1"), "{}", failed[0].why);
    assert!(!done.iter().any(|line| line.starts_with("b s2")));
    assert!(done.contains(&"c s2c0".to_owned()));
}

#[test]
fn records_that_were_acked_and_are_missing_are_a_failure() {
    let loses = Some("s2c3");
    let (taken, _) = three(|fake| fake.loses = loses.filter(|_| fake.name == "c"));
    let (rows, failed) = taken.unwrap();
    assert_eq!(rows.len(), 2);
    assert!(
        failed[0].why.contains("records are missing"),
        "{}",
        failed[0].why
    );
    let (taken, _) = three(|fake| fake.loses = loses.filter(|_| fake.name == "nova"));
    assert!(taken.is_err(), "without nova there is nothing to compare");
}
