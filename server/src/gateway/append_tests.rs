//! Tests of what an append says.

use super::*;
use nova_model::Facts;

fn headers(said: &[(&'static str, &str)]) -> HeaderMap {
    let pairs = said.iter();
    pairs
        .map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap()))
        .collect::<Vec<(axum::http::HeaderName, axum::http::HeaderValue)>>()
        .into_iter()
        .fold(HeaderMap::new(), |mut map, (name, value)| {
            map.append(name, value);
            map
        })
}

fn judged(kind: Kind, said: &[(&'static str, &str)], body: &str) -> Result<OneShotAppend, String> {
    let read = || {
        let terms = Terms::of_headers(&headers(said))?;
        let body = Received::new(body.to_owned().into());
        let name = StreamName::parse("b/k").map_err(Refused::from)?;
        Ok(understand(name, kind, terms, &body)?.0)
    };
    read().map_err(|refused: Refused| match &refused.refusal().facts {
        Facts::Field { field, .. } => field.clone(),
        other => panic!("no field is named: {other:?}"),
    })
}

#[test]
fn terms_are_said_in_the_body_or_in_headers() {
    let id = "0123456789abcdef0123456789abcdef";
    let body = format!(
        r#"{{"records":[{{"body":"a"}}],"match_seq":7,"fence":"me","writer_id":"{id}",
            "writer_seq":3,"stream_id":"{id}"}}"#
    );
    let said = [
        (MATCH_SEQ, "7"),
        (FENCE, "me"),
        (WRITER_ID, id),
        (WRITER_SEQ, "3"),
        (STREAM_ID, id),
    ];
    let by_body = judged(Kind::Json, &[], &body).unwrap();
    assert_eq!(judged(Kind::Octets, &said, "a").unwrap(), by_body);
    assert_eq!(
        judged(Kind::Lines, &said, "{\"body\":\"a\"}\n").unwrap(),
        by_body
    );
    assert_eq!(by_body.conditions.match_sequence, Some(SequenceNumber(7)));
    assert_eq!(by_body.stream_id.unwrap().to_string(), id);
    assert_eq!(by_body.writer.unwrap().sequence, 3);
}

/// A kind of body, headers, a body, and the field that is wrong.
type Case<'a> = (Kind, &'a [(&'static str, &'a str)], &'a str, &'a str);

#[test]
fn what_is_said_wrongly_is_refused_by_its_field() {
    let plain = r#"{"records":[{"body":"a"}]}"#;
    let matched = r#"{"records":[{"body":"a"}],"match_seq":1}"#;
    let long = format!(
        r#"{{"records":[{{"body":"a"}}],"fence":"{}"}}"#,
        "f".repeat(37)
    );
    let id = "0123456789ABCDEF0123456789ABCDEF";
    let cases: [Case<'_>; 12] = [
        (Kind::Json, &[(MATCH_SEQ, "1")], matched, "match_seq"),
        (Kind::Json, &[(MATCH_SEQ, "x")], plain, MATCH_SEQ),
        (Kind::Json, &[(MATCH_SEQ, "")], plain, MATCH_SEQ),
        (
            Kind::Json,
            &[(MATCH_SEQ, "1"), (MATCH_SEQ, "1")],
            plain,
            MATCH_SEQ,
        ),
        (
            Kind::Json,
            &[(WRITER_SEQ, "9223372036854775808")],
            plain,
            WRITER_SEQ,
        ),
        (Kind::Json, &[(WRITER_SEQ, "1")], plain, "writer_id"),
        (Kind::Json, &[(WRITER_ID, id)], plain, "writer_seq"),
        (Kind::Json, &[(STREAM_ID, id)], plain, "stream_id"),
        (Kind::Json, &[(TIMESTAMP, "1")], plain, TIMESTAMP),
        (Kind::Json, &[], &long, "fence"),
        (Kind::Json, &[], r#"{"records":[]}"#, "records"),
        (Kind::Lines, &[], "\n\n", "records"),
    ];
    for (kind, said, body, field) in cases {
        assert_eq!(
            judged(kind, said, body),
            Err(field.to_owned()),
            "{said:?} {body}"
        );
    }
}

#[test]
fn a_batch_over_the_limit_is_too_large() {
    let body = Received::new(vec![b'x'; 1024 * 1024].into());
    let name = StreamName::parse("b/k").unwrap();
    let refused = understand(name, Kind::Octets, Terms::default(), &body).unwrap_err();
    assert_eq!(refused.refusal().code, nova_model::Code::TooLarge);
}
