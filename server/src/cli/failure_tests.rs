//! Tests of what failures say and which code they end with.

use super::*;
use nova_client::{
    Ambiguity, Code, Facts, HandshakeFailure, HandshakeProblem, Position, SequenceNumber, Timestamp,
};

fn stream() -> StreamName {
    StreamName::parse("logs/web").unwrap()
}

fn failed(error: &ClientError) -> Failure {
    Failure::client("it failed", error, Subject::Stream(&stream()))
}

fn ambiguity() -> Box<Ambiguity> {
    Box::new(Ambiguity {
        stream_id: None,
        since: SequenceNumber(17),
        refusal: None,
    })
}

#[test]
fn a_missing_bucket_is_told_in_three_parts_with_the_command_that_makes_it() {
    let refusal = Refusal::bucket_not_found(&stream().bucket);
    let failure = failed(&ClientError::Refused(refusal)).with_flags(" --data d");
    let text = failure.to_text();
    let expected = "nova: it failed\n  why:  BUCKET_NOT_FOUND: there is no bucket logs\n  \
                    next: make it: nova bucket create logs --data d\n";
    assert_eq!(text, expected);
}

#[test]
fn the_exit_code_tells_refused_unreachable_and_ambiguous_apart() {
    let refused = |code| ClientError::Refused(Refusal::new(code, "no"));
    let last = Some(Box::new(Refusal::new(Code::PolicyBusy, "busy")));
    let unavailable = |sent, last| ClientError::Unavailable { sent, last };
    let address = "star.example:1".to_owned();
    let cases = [
        (refused(Code::StreamNotFound), 3),
        (refused(Code::DiskFull), 3),
        (refused(Code::Internal), 5),
        (ClientError::Ambiguous(ambiguity()), 5),
        (unavailable(Some(ambiguity()), None), 5),
        (unavailable(None, last), 3),
        (unavailable(None, None), 4),
        (ClientError::HolderUnresolvable { address }, 4),
        (ClientError::Closed, 1),
    ];
    for (error, code) in cases {
        assert_eq!(failed(&error).code(), code, "{error:?}");
    }
}

#[test]
fn a_certificate_of_another_authority_is_told_with_the_file_to_copy() {
    let failure = |problem| {
        failed(&ClientError::Handshake(Box::new(HandshakeFailure {
            address: "star.example:7400".to_owned(),
            server_name: "star.example".to_owned(),
            authorities: Some("ca.pem".into()),
            problem,
        })))
    };
    let unknown = failure(HandshakeProblem::UnknownAuthority);
    let expected = "nova: it failed\n  why:  the certificate of the star at star.example:7400 is \
                    not signed by the authority in ca.pem\n  next: name with --ca a copy of \
                    tls/ca.pem in the data directory of that star\n";
    assert_eq!(unknown.to_text(), expected);
    assert_eq!(unknown.code(), 2);
    let name = failure(HandshakeProblem::WrongName);
    assert!(
        name.next.contains("--tls-names star.example"),
        "{}",
        name.next
    );
    for problem in [
        HandshakeProblem::Expired,
        HandshakeProblem::InvalidName,
        HandshakeProblem::Incompatible,
        HandshakeProblem::Alert(40),
    ] {
        let failure = failure(problem);
        assert_eq!(failure.code(), 2);
        assert!(!failure.why.is_empty() && !failure.next.is_empty());
    }
}

#[test]
fn every_code_has_advice_that_says_something() {
    for code in Code::ALL {
        let failure = failed(&ClientError::Refused(Refusal::new(code, "no")));
        assert!(failure.next_step().len() > 8, "{code}: {}", failure.next);
        assert!(!failure.next_step().contains('\n'));
    }
}

#[test]
fn advice_uses_the_facts() {
    let tail = Position {
        sequence: SequenceNumber(42),
        timestamp: Timestamp(1),
    };
    let range = Facts::Range {
        from: SequenceNumber(3),
        to: SequenceNumber(9),
    };
    let cases = [
        (Code::PastTail, Facts::Tail(tail), "start at 42 or before"),
        (Code::Trimmed, Facts::First(SequenceNumber(7)), "--from 7"),
        (
            Code::Fenced,
            Facts::Token("mine".to_owned()),
            "--fence 'mine'",
        ),
        (Code::Corrupt, range, "--from 9"),
    ];
    for (code, facts, part) in cases {
        let refusal = Refusal::new(code, "no").with(facts);
        let next = failed(&ClientError::Refused(refusal)).next_step();
        assert!(next.contains(part), "{code}: {next}");
    }
    let next = failed(&ClientError::Ambiguous(ambiguity())).next_step();
    assert_eq!(next, "see what is there: nova read logs/web --from 17");
}

/// A closed star names no address; a move on its way does.
#[test]
fn a_star_that_leads_nothing_is_told_with_the_command_that_opens_it() {
    let draining = |address: Option<&str>| {
        let facts = Facts::Holder {
            address: address.map(str::to_owned),
            epoch: nova_client::Epoch(3),
        };
        let last = Some(Box::new(Refusal::new(Code::Draining, "no").with(facts)));
        failed(&ClientError::Unavailable { sent: None, last })
    };
    let closed = draining(None);
    assert!(closed.next_step().ends_with("nova admin undrain --all"));
    assert_eq!(closed.code(), 3);
    let moving = draining(Some("star.example:7401"));
    assert_eq!(moving.next_step(), "run the command again");
}

/// A fence whose answer was lost, and another one's token where it should be.
#[test]
fn a_change_in_doubt_says_so_and_where_to_look() {
    let (name, mut lost) = (stream(), ambiguity());
    let facts = Facts::Token("other".to_owned());
    let there = Refusal::new(Code::Fenced, "'other' is installed").with(facts);
    lost.refusal = Some(there);
    let error = ClientError::Ambiguous(lost);
    let failure = Failure::change("the stream", "fenced", &error, Subject::State(&name));
    let expected = "nova: it is not known whether the stream was fenced\n  why:  its answer was \
                    lost; then: FENCED: 'other' is installed\n  next: see what is there: nova \
                    stream describe logs/web\n";
    assert_eq!(failure.to_text(), expected);
    assert_eq!(failure.code(), 5);
    assert_eq!(failure.to_json()["error"]["facts"]["fence"], "other");
    let refused = ClientError::Refused(Refusal::new(Code::Fenced, "no"));
    let failure = Failure::change("the stream", "fenced", &refused, Subject::State(&name));
    assert_eq!(failure.what, "the stream was not fenced");
}

#[test]
fn a_failure_for_scripts_carries_code_bits_and_facts() {
    let refusal = Refusal::too_large("record", 1_048_576, 2_000_000);
    let json = failed(&ClientError::Refused(refusal)).to_json();
    let error = &json["error"];
    assert_eq!(error["exit"], 3);
    assert_eq!(error["code"], "TOO_LARGE");
    assert_eq!(error["retry"], false);
    assert_eq!(error["clean"], true);
    assert_eq!(error["facts"]["field"], "record");
    assert_eq!(error["facts"]["limit"], 1_048_576);
    for part in ["what", "why", "next"] {
        assert!(error[part].is_string(), "{part}");
    }
}

#[test]
fn a_relayed_failure_keeps_its_words_and_its_code() {
    let failure = Failure::relayed(11, "nova: no\n".to_owned());
    assert_eq!(failure.to_text(), "nova: no\n");
    assert_eq!(failure.code(), 11);
    assert_eq!(failure.to_json()["error"]["exit"], 11);
}
