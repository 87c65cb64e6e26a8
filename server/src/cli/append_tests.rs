//! Tests of what an append says at its end.

use super::*;
use crate::cli::flow::FailedLine;
use crate::cli::latency::Latencies;
use clap::{Args, FromArgMatches};
use nova_client::{Refusal, SequenceNumber};

fn args(words: &[&str]) -> AppendArgs {
    let command = AppendArgs::augment_args(clap::Command::new("append"));
    let words = [&["append", "logs/web", "--quiet"], words].concat();
    AppendArgs::from_arg_matches(&command.get_matches_from(words)).unwrap()
}

fn tally(records: u64) -> Tally {
    Tally {
        records,
        bytes: 10 * records,
        first: (records > 0).then_some(SequenceNumber(5)),
        end: (records > 0).then_some(SequenceNumber(5 + records)),
        latencies: Latencies::new(),
        durable_up_to: records,
        failed: None,
    }
}

fn summed_up(end: End, tally: &Tally) -> Result<Exit, Failure> {
    sum_up(&args(&[]), end, tally, Duration::from_secs(1))
}

#[test]
fn what_is_durable_is_told_in_numbers() {
    assert_eq!(durable_text(&tally(0)), "0 records are durable");
    assert_eq!(durable_text(&tally(1)), "1 record is durable (10 B, 5..5)");
    assert_eq!(
        durable_text(&tally(2_000)),
        "2,000 records are durable (19.5 KiB, 5..2004)"
    );
}

#[test]
fn each_end_has_its_exit_code() {
    assert_eq!(summed_up(End::Input, &tally(3)), Ok(Exit::Done));
    assert_eq!(
        summed_up(End::Interrupted, &tally(3)),
        Ok(Exit::Interrupted)
    );
    let bad = bad_input(&io::Error::other("torn cable"));
    let failure = summed_up(bad, &tally(3)).unwrap_err();
    assert_eq!(failure.code(), 1);
    assert_eq!(
        failure.why,
        "torn cable\n3 records are durable (30 B, 5..7)"
    );
}

#[test]
fn a_refused_line_is_named_with_its_limit_and_what_is_durable() {
    let mut tally = tally(16);
    tally.failed = Some(FailedLine {
        number: 17,
        error: ClientError::Refused(Refusal::too_large("record", 9, 10)),
    });
    let failure = summed_up(End::Failed, &tally).unwrap_err();
    assert_eq!(failure.code(), 3);
    assert_eq!(failure.what, "line 17 was not appended");
    assert!(
        failure
            .why
            .starts_with("TOO_LARGE: a record has at most 9 bytes")
    );
    assert!(
        failure
            .why
            .ends_with("16 records are durable (160 B, 5..20), with every line up to 16")
    );
}

#[test]
fn a_line_whose_outcome_is_not_known_says_so() {
    let mut tally = tally(0);
    let sent = nova_client::Ambiguity {
        stream_id: None,
        since: SequenceNumber(5),
        refusal: None,
    };
    tally.failed = Some(FailedLine {
        number: 1,
        error: ClientError::Unavailable {
            sent: Some(Box::new(sent)),
            last: None,
        },
    });
    let failure = summed_up(End::Failed, &tally).unwrap_err();
    assert_eq!(failure.code(), 5);
    assert_eq!(failure.what, "it is not known whether line 1 was appended");
}

#[test]
fn results_for_scripts_are_numbers() {
    let json = to_json(&args(&[]), &tally(2), Duration::from_millis(500));
    assert_eq!(json["records"], 2);
    assert_eq!(
        (json["first"].as_u64(), json["last"].as_u64()),
        (Some(5), Some(6))
    );
    assert_eq!(json["seconds"], 0.5);
    let json = to_json(&args(&[]), &tally(0), Duration::ZERO);
    assert!(json["first"].is_null() && json["last"].is_null());
}

#[test]
fn flags_have_their_defaults() {
    let said = args(&[]);
    assert_eq!(said.linger, Duration::from_millis(5));
    assert_eq!(said.batch_size, BATCH_METERED_BYTES_MAX);
    let said = args(&[
        "--linger",
        "0",
        "--batch-size",
        "64KiB",
        "--header",
        "a=b=c",
    ]);
    assert_eq!((said.linger, said.batch_size), (Duration::ZERO, 65_536));
    assert_eq!(&said.header[0].value[..], b"b=c");
}
