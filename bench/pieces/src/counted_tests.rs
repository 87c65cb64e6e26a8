//! The gate lets through what is as dear as before, and nothing that is dearer; pieces run.

use super::*;
use crate::pieces::make;

fn all(count: u64) -> Counts {
    NAMES
        .iter()
        .map(|name| ((*name).to_owned(), count))
        .collect()
}

#[test]
fn what_is_dearer_or_unknown_is_told() {
    assert_eq!(judge(&all(1_000), &all(1_000)), [""; 0]);
    assert_eq!(judge(&all(1_150), &all(1_000)), [""; 0]);
    assert_eq!(judge(&all(500), &all(1_000)), [""; 0]);
    let wrong = judge(&all(1_151), &all(1_000));
    assert_eq!(wrong.len(), NAMES.len());
    assert!(wrong[0].contains("15 % more than 1000"), "{}", wrong[0]);
    let (mut found, mut written) = (all(1), all(1));
    found.remove(NAMES[0]);
    written.remove(NAMES[1]);
    written.insert("gone/piece".to_owned(), 1);
    let wrong = judge(&found, &written).join("\n");
    for part in ["not counted", "no written number", "without a piece"] {
        assert!(wrong.contains(part), "{part} in {wrong}");
    }
}

#[test]
fn callgrinds_count_is_found() {
    let said = "==7== Callgrind\n==7== Events    : Ir\n==7== Collected : 123456\n==7==\n";
    assert_eq!(parse_callgrind(said), Some(123_456));
    assert_eq!(parse_callgrind("valgrind: not here"), None);
}

#[test]
fn what_is_written_down_is_read_back() {
    let text = write_down(&all(77), "any compiler");
    assert_eq!(parse_written(&text), Some(all(77)));
    assert_eq!(parse_written("# only a comment\nno number"), None);
    let there = parse_written(include_str!("../instructions.txt")).unwrap();
    assert!(there.keys().map(String::as_str).eq(all(1).keys()));
}

#[test]
fn every_piece_runs_again_and_again() {
    for name in NAMES {
        let mut piece = make(name).unwrap();
        (0..3).for_each(|_| (piece.run)());
    }
    assert!(make("any/other").is_none());
}
