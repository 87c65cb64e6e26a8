//! The command line means what its help says.

use super::*;
use clap::{CommandFactory, Parser};

#[derive(Debug, Parser)]
struct Line {
    #[command(flatten)]
    options: Options,
}

fn parsed(words: &[&str]) -> Option<Options> {
    let program = ["nova-bench"];
    Line::try_parse_from(program.iter().chain(words))
        .ok()
        .map(|line| line.options)
}

#[test]
fn the_command_line_is_consistent() {
    Line::command().debug_assert();
}

#[test]
fn what_is_not_said_has_its_default() {
    let full = parsed(&[]).unwrap();
    assert!(full.has(Choice::Latency) && full.has(Choice::Start));
    assert_eq!((full.rounds(), full.sealed_gib()), (7, 10));
    let quick = parsed(&["start", "--quick"]).unwrap();
    assert!(quick.has(Choice::Start) && !quick.has(Choice::Latency));
    assert_eq!((quick.rounds(), quick.sealed_gib()), (3, 1));
    let said = parsed(&["start", "--quick", "--rounds", "5", "--gib", "2"]).unwrap();
    assert_eq!((said.rounds(), said.sealed_gib()), (5, 2));
}

#[test]
fn numbers_out_of_bounds_are_refused() {
    for words in [["--rounds", "0"], ["--gib", "0"], ["--gib", "2000"]] {
        assert_eq!(parsed(&words), None, "{words:?}");
    }
    assert_eq!(parsed(&["everything"]), None);
}
