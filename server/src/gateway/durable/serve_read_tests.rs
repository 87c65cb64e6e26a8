//! Tests of what readers ask for and get.

use super::*;

#[test]
fn a_query_is_read_and_what_is_strange_in_it_ignored() {
    let asked = Asked::of(Some("offset=-1&live=sse&cursor=7&x=y&flag")).unwrap();
    assert_eq!(asked.offset, Some(Offset::Beginning));
    assert_eq!(asked.live, Some(Live::Events));
    assert_eq!(asked.cursor.as_deref(), Some("7"));
    assert!(Asked::of(None).unwrap().offset.is_none());
    let wrong = [
        "offset=",
        "offset=-1&offset=-1",
        "live=sse",
        "offset=-1&live=x",
        "offset=a,b",
    ];
    for query in wrong {
        assert!(Asked::of(Some(query)).is_err(), "{query}");
    }
}

#[test]
fn messages_are_bytes_behind_one_another_or_an_array() {
    let messages = [b"1".to_vec(), b"{}".to_vec()];
    assert_eq!(joined(false, &messages), b"1{}");
    assert_eq!(joined(true, &messages), b"[1,{}]");
    assert_eq!(joined(true, &[]), b"[]");
    assert_eq!(joined(false, &[]), b"");
}
