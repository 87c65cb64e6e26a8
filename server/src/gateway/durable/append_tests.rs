//! Tests of what becomes of an append.

use super::*;

fn terms(producer: Option<(&str, u64, u64)>) -> Terms {
    Terms {
        kind: Some("Text/Plain".to_owned()),
        is_closed: false,
        seq: None,
        producer: producer.map(|(id, epoch, seq)| Producer {
            id: id.to_owned(),
            epoch,
            seq,
        }),
    }
}

fn face() -> Face {
    let mut face = Face::new("text/plain; charset=utf-8".to_owned(), 0);
    face.end = 1;
    face.note(Producer {
        id: "me".to_owned(),
        epoch: 5,
        seq: 7,
    });
    face
}

/// The status of an answer, 0 for an append.
fn status(face: &Face, terms: &Terms, body: &'static str) -> u16 {
    match decide(face, terms, &Bytes::from_static(body.as_bytes())) {
        Ok(Decided::Append(..)) => 0,
        Ok(Decided::Answer(response)) => response.status().as_u16(),
        Err(refused) => refused.into_response().status().as_u16(),
    }
}

#[test]
fn a_producer_goes_on_repeats_leaves_a_gap_or_is_out_of_date() {
    let cases = [
        (("me", 5, 8), 0),
        (("me", 5, 7), 204),
        (("me", 5, 0), 204),
        (("me", 5, 9), 409),
        (("me", 4, 8), 403),
        (("me", 6, 0), 0),
        (("me", 6, 1), 400),
        (("new", 3, 0), 0),
        (("new", 0, 1), 409),
    ];
    for (producer, expected) in cases {
        let got = status(&face(), &terms(Some(producer)), "hi");
        assert_eq!(got, expected, "{producer:?}");
    }
}

#[test]
fn a_closed_stream_knows_its_producers_still() {
    let mut face = face();
    face.is_closed = true;
    assert_eq!(status(&face, &terms(None), "hi"), 409);
    assert_eq!(status(&face, &terms(Some(("me", 5, 7))), "hi"), 204);
    assert_eq!(status(&face, &terms(Some(("me", 5, 8))), "hi"), 409);
    assert_eq!(status(&face, &terms(Some(("me", 4, 8))), "hi"), 403);
    let mut close = terms(None);
    close.is_closed = true;
    assert_eq!(status(&face, &close, ""), 204);
    assert_eq!(status(&face, &close, "hi"), 409);
}

#[test]
fn what_is_no_append_is_refused() {
    assert_eq!(status(&face(), &terms(None), ""), 400);
    let mut other = terms(None);
    other.kind = Some("application/json".to_owned());
    assert_eq!(status(&face(), &other, "hi"), 409);
    other.kind = None;
    assert_eq!(status(&face(), &other, "hi"), 400);
    let mut json = face();
    json.kind = "application/json".to_owned();
    other.kind = Some("application/json".to_owned());
    assert_eq!(status(&json, &other, "[]"), 400);
    assert_eq!(status(&json, &other, "[1"), 400);
    assert_eq!(status(&json, &other, "[1]"), 0);
}

#[test]
fn a_sequence_goes_up_as_text() {
    let mut face = face();
    face.seq = Some("2".to_owned());
    for (seq, expected) in [("10", 409), ("2", 409), ("20", 0), ("3", 0), ("A", 0)] {
        let mut terms = terms(None);
        terms.seq = Some(seq.to_owned());
        assert_eq!(status(&face, &terms, "hi"), expected, "{seq}");
    }
}
