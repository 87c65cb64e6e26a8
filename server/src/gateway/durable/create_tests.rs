//! Tests of when a stream is as it was asked for.

use super::super::face::Origin;
use super::super::said::Fork;
use super::*;

fn wanted() -> Wanted {
    Wanted {
        kind: Some("TEXT/plain".to_owned()),
        ttl_s: None,
        expires_us: None,
        is_closed: false,
        fork: None,
    }
}

fn there() -> Face {
    Face::new("text/plain".to_owned(), 0)
}

fn fork(at: Option<u64>, part: u64) -> Wanted {
    let from = StreamName::parse("b/a").unwrap();
    let fork = Some(Fork { from, at, part });
    Wanted { fork, ..wanted() }
}

#[test]
fn a_stream_is_as_asked_for_in_kind_expiry_and_closure() {
    assert!(is_as(&there(), &wanted()));
    let others = [
        Wanted {
            kind: None,
            ..wanted()
        },
        Wanted {
            ttl_s: Some(9),
            ..wanted()
        },
        Wanted {
            expires_us: Some(9),
            ..wanted()
        },
        Wanted {
            is_closed: true,
            ..wanted()
        },
        fork(None, 0),
    ];
    for other in others {
        assert!(!is_as(&there(), &other));
    }
    let octets = Face::new(KIND.to_owned(), 0);
    assert!(is_as(
        &octets,
        &Wanted {
            kind: None,
            ..wanted()
        }
    ));
}

#[test]
fn a_fork_is_as_asked_for_where_and_of_what() {
    let mut face = there();
    face.ttl_s = Some(9);
    face.origin = Some(Origin {
        stream: "b/a".to_owned(),
        at: 7,
        part: 2,
    });
    assert!(is_as(&face, &fork(Some(7), 2)));
    assert!(is_as(&face, &fork(None, 2)));
    assert!(!is_as(&face, &fork(Some(8), 2)));
    assert!(!is_as(&face, &fork(Some(7), 0)));
    assert!(is_as(
        &face,
        &Wanted {
            kind: None,
            ..fork(None, 2)
        }
    ));
    assert!(!is_as(
        &face,
        &Wanted {
            ttl_s: Some(8),
            ..fork(None, 2)
        }
    ));
}

#[test]
fn a_stream_is_where_the_client_asked() {
    let mut headers = HeaderMap::new();
    assert_eq!(location(&headers, "/p"), "/p");
    headers.insert("host", "star:1".parse().unwrap());
    assert_eq!(location(&headers, "/p"), "http://star:1/p");
    headers.insert("x-forwarded-proto", "https".parse().unwrap());
    assert_eq!(location(&headers, "/p"), "https://star:1/p");
}
