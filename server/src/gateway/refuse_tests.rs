//! Tests of refusals as HTTP: the contract's table.

use super::*;
use nova_model::{Position, SequenceNumber, Timestamp};

#[test]
fn every_code_has_the_status_of_the_contract() {
    let expected = [
        (Code::Invalid, 422),
        (Code::Unauthenticated, 401),
        (Code::PermissionDenied, 403),
        (Code::BucketNotFound, 404),
        (Code::StreamNotFound, 404),
        (Code::AlreadyExists, 409),
        (Code::PolicyBusy, 409),
        (Code::DuplicateMismatch, 409),
        (Code::WriterGap, 409),
        (Code::Fenced, 412),
        (Code::SeqMismatch, 412),
        (Code::BehindRejected, 409),
        (Code::PastTail, 416),
        (Code::Trimmed, 416),
        (Code::TooLarge, 413),
        (Code::RateLimited, 429),
        (Code::NotOwner, 503),
        (Code::Draining, 503),
        (Code::Unavailable, 503),
        (Code::DiskFull, 507),
        (Code::Corrupt, 500),
        (Code::Internal, 500),
    ];
    assert_eq!(expected.map(|(code, _)| code), Code::ALL);
    for (code, status) in expected {
        assert_eq!(status_of(code).as_u16(), status, "{code}");
    }
}

#[test]
fn a_refusal_is_json_with_its_facts() {
    let tail = Position {
        sequence: SequenceNumber(7),
        timestamp: Timestamp(9),
    };
    let refusal = Refusal::new(Code::SeqMismatch, "no").with(Facts::Tail(tail));
    let expected = json!({
        "code": "SEQ_MISMATCH", "message": "no", "retry": false, "clean": true,
        "facts": { "tail": { "seq": 7, "timestamp": 9 } },
    });
    assert_eq!(as_json(&refusal), expected);
}

#[test]
fn a_mistake_of_form_is_400_and_names_its_field() {
    let response = Refused::form("count", "no").with_limit(9).into_response();
    assert_eq!(response.status(), 400);
    let refused = Refused::form("count", "no").with_limit(9);
    let expected = Facts::Field {
        field: "count".to_owned(),
        limit: Some(9),
    };
    assert_eq!(refused.refusal().facts, expected);
}

#[test]
fn what_is_worth_another_try_says_when() {
    let after = |refusal: Refusal| {
        let response = Refused::from(refusal).into_response();
        let value = response.headers().get(header::RETRY_AFTER)?;
        Some(value.to_str().unwrap().to_owned())
    };
    let limited = Refusal::new(Code::RateLimited, "").with(Facts::After(1_200_000));
    assert_eq!(after(limited), Some("2".to_owned()));
    assert_eq!(
        after(Refusal::new(Code::Draining, "")),
        Some("1".to_owned())
    );
    assert_eq!(after(Refusal::new(Code::Fenced, "")), None);
}
