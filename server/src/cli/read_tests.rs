//! Tests of where a read starts.

use super::*;
use clap::{Args, FromArgMatches};

fn start(words: &[&str]) -> Result<ReadStart, clap::Error> {
    let command = StartArgs::augment_args(clap::Command::new("read"));
    let matches = command.try_get_matches_from([&["read"], words].concat())?;
    Ok(StartArgs::from_arg_matches(&matches)?.start(Timestamp(100_000_000)))
}

#[test]
fn a_read_starts_where_it_is_told_to() {
    let cases: [(&[&str], ReadStart); 6] = [
        (&[], ReadStart::TailOffset(u64::MAX)),
        (&["--from", "7"], ReadStart::Sequence(SequenceNumber(7))),
        (&["--tail", "0"], ReadStart::TailOffset(0)),
        (&["--tail", "10"], ReadStart::TailOffset(10)),
        (
            &["--since", "30s"],
            ReadStart::Timestamp(Timestamp(70_000_000)),
        ),
        (&["--since", "1w"], ReadStart::Timestamp(Timestamp(0))),
    ];
    for (words, expected) in cases {
        assert_eq!(start(words).unwrap(), expected, "{words:?}");
    }
}

#[test]
fn only_one_start_can_be_said() {
    assert!(start(&["--from", "7", "--tail", "1"]).is_err());
    assert!(start(&["--since", "7s", "--tail", "1"]).is_err());
}
