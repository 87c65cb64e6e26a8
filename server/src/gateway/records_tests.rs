//! Tests of what a read asks for.

use super::*;
use nova_model::Facts;

fn field(refused: &Refused) -> String {
    match &refused.refusal().facts {
        Facts::Field { field, .. } => field.clone(),
        other => panic!("no field is named: {other:?}"),
    }
}

fn opened(text: &str) -> Result<ReadOpen, String> {
    let read = || {
        let query: ReadQuery = form::query(Some(text))?;
        query.open(StreamName::parse("b/k").map_err(Refused::from)?)
    };
    read().map_err(|refused: Refused| field(&refused))
}

#[test]
fn a_start_is_what_it_says() {
    let cases = [
        ("", ReadStart::TailOffset(u64::MAX)),
        ("seq=7", ReadStart::Sequence(SequenceNumber(7))),
        ("timestamp=7", ReadStart::Timestamp(Timestamp(7))),
        ("tail_offset=0", ReadStart::TailOffset(0)),
    ];
    for (text, start) in cases {
        assert_eq!(opened(text).unwrap().start, start, "{text}");
    }
    let open = opened("count=1&bytes=2&until_seq=3&until_timestamp=4&clamp=true").unwrap();
    let expected = ReadLimits {
        count: Some(1),
        bytes: Some(2),
        until_sequence: Some(SequenceNumber(3)),
        until_timestamp: Some(Timestamp(4)),
    };
    assert_eq!((open.limits, open.clamp), (expected, true));
}

#[test]
fn what_contradicts_itself_is_refused_by_its_field() {
    let cases = [
        ("seq=1&timestamp=2", "timestamp"),
        ("seq=1&tail_offset=2", "tail_offset"),
        ("tail_offset=1&timestamp=2", "tail_offset"),
        ("seq=7&until_seq=6", "until_seq"),
        ("timestamp=7&until_timestamp=6", "until_timestamp"),
        ("wait_ms=60001", "wait_ms"),
        ("stream_id=7", "stream_id"),
        ("seq=-1", "seq"),
        ("from=1", "from"),
    ];
    for (text, named) in cases {
        assert_eq!(opened(text).unwrap_err(), named, "{text}");
    }
    assert!(opened("seq=7&until_seq=7").is_ok());
}

#[test]
fn what_is_accepted_first_is_sent() {
    let kind = |accepts: &[&str]| {
        let mut headers = HeaderMap::new();
        for accept in accepts {
            headers.append(header::ACCEPT, accept.parse().unwrap());
        }
        Kind::of(&headers).ok()
    };
    assert_eq!(kind(&[]), Some(Kind::Page));
    assert_eq!(kind(&["*/*"]), Some(Kind::Page));
    assert_eq!(
        kind(&["text/html, application/x-ndjson"]),
        Some(Kind::Lines)
    );
    assert_eq!(kind(&["Text/Event-Stream; q=1"]), Some(Kind::Events));
    assert_eq!(kind(&["text/html", "image/png"]), None);
}
