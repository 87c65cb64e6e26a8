//! Tests of where a read starts and ends.

use super::*;
use clap::{Args, FromArgMatches};

const NOW: Timestamp = Timestamp(100_000_000);

fn start(words: &[&str]) -> Result<ReadStart, clap::Error> {
    let command = StartArgs::augment_args(clap::Command::new("read"));
    let matches = command.try_get_matches_from([&["read"], words].concat())?;
    Ok(StartArgs::from_arg_matches(&matches)?.start(NOW))
}

fn limits(words: &[&str]) -> Result<ReadLimits, clap::Error> {
    let command = EndArgs::augment_args(clap::Command::new("read"));
    let matches = command.try_get_matches_from([&["read"], words].concat())?;
    Ok(EndArgs::from_arg_matches(&matches)?.limits(NOW))
}

#[test]
fn a_read_starts_where_it_is_told_to() {
    let time = |us| ReadStart::Timestamp(Timestamp(us));
    let cases: [(&[&str], ReadStart); 9] = [
        (&[], ReadStart::TailOffset(u64::MAX)),
        (&["--clamp"], ReadStart::TailOffset(u64::MAX)),
        (&["--from", "7"], ReadStart::Sequence(SequenceNumber(7))),
        (&["--tail", "0"], ReadStart::TailOffset(0)),
        (&["--tail", "10"], ReadStart::TailOffset(10)),
        (&["--since", "30s"], time(70_000_000)),
        (&["--since", "1w"], time(0)),
        (&["--since", "1970-01-02"], time(86_400_000_000)),
        (&["--since", "@12"], time(12)),
    ];
    for (words, expected) in cases {
        assert_eq!(start(words).unwrap(), expected, "{words:?}");
    }
}

#[test]
fn only_one_start_can_be_said() {
    assert!(start(&["--from", "7", "--tail", "1"]).is_err());
    assert!(start(&["--since", "7s", "--tail", "1"]).is_err());
    assert!(start(&["--since", "7s", "--clamp"]).is_ok());
}

#[test]
fn ends_can_be_said_together() {
    assert_eq!(limits(&[]).unwrap(), ReadLimits::default());
    let words = "--count 3 --bytes 2KiB --until 9 --until-time 1m";
    let words: Vec<&str> = words.split(' ').collect();
    let expected = ReadLimits {
        count: Some(3),
        bytes: Some(2048),
        until_sequence: Some(SequenceNumber(9)),
        until_timestamp: Some(Timestamp(40_000_000)),
    };
    assert_eq!(limits(&words).unwrap(), expected);
}

#[test]
fn what_is_not_understood_is_told_with_what_is() {
    let cases = [
        (
            start(&["--since", "soon"]).map(drop),
            "2026-11-29T15:44:26Z",
        ),
        (start(&["--from", "-1"]).map(drop), "-1"),
        (limits(&["--bytes", "many"]).map(drop), "KiB"),
        (
            limits(&["--until-time", "2026-11-31"]).map(drop),
            "@MICROSECONDS",
        ),
    ];
    for (result, hint) in cases {
        let told = result.expect_err(hint).to_string();
        assert!(told.contains(hint), "{told}");
    }
}
