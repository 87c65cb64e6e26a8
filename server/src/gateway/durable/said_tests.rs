//! Tests of what requests say.

use super::*;

fn headers(said: &[(&'static str, &str)]) -> HeaderMap {
    let mut map = HeaderMap::new();
    for (name, value) in said {
        map.append(*name, value.parse().unwrap());
    }
    map
}

fn wanted(said: &[(&'static str, &str)]) -> Result<Wanted, Refused> {
    Wanted::of(&headers(said), &BucketName::parse("b").unwrap())
}

fn bodies(is_json: bool, body: &'static str) -> Option<Vec<String>> {
    let records = messages(is_json, &Bytes::from_static(body.as_bytes())).ok()?;
    let text = |record: &Record| String::from_utf8(record.body.to_vec()).unwrap();
    Some(records.iter().map(text).collect())
}

#[test]
fn an_array_of_json_is_as_many_messages_as_it_has_elements() {
    let cases: [(&str, Option<&[&str]>); 9] = [
        ("", Some(&[])),
        ("[]", Some(&[])),
        ("{\"a\": 1}", Some(&["{\"a\": 1}"])),
        (" [1, [2,3] ,\"x\"] ", Some(&["1", "[2,3]", "\"x\""])),
        ("[[[1]]]", Some(&["[[1]]"])),
        (
            "10000000000000000000000001",
            Some(&["10000000000000000000000001"]),
        ),
        ("[1", None),
        ("1 2", None),
        ("nul", None),
    ];
    for (body, expected) in cases {
        let expected = expected.map(|all| all.iter().map(|one| (*one).to_owned()).collect());
        assert_eq!(bodies(true, body), expected, "{body}");
    }
    assert_eq!(bodies(false, "[1,2]"), Some(vec!["[1,2]".to_owned()]));
    assert_eq!(bodies(false, ""), Some(Vec::new()));
}

#[test]
fn a_body_leaves_room_for_a_face() {
    assert!(messages(false, &vec![0; BODY_BYTES_MAX].into()).is_ok());
    assert!(messages(false, &vec![0; BODY_BYTES_MAX + 1].into()).is_err());
}

#[test]
fn numbers_are_plain() {
    for wrong in ["", "-1", "+1", "01", "1.0", "1e3", "9007199254740992", " 1"] {
        assert!(number("x", wrong).is_err(), "{wrong}");
    }
    for (text, expected) in [("0", 0), ("3600", 3_600), ("9007199254740991", EXACT_MAX)] {
        assert_eq!(number("x", text).unwrap(), expected);
    }
}

#[test]
fn an_expiry_is_said_once_and_well() {
    assert_eq!(wanted(&[(TTL, "7")]).unwrap().ttl_s, Some(7));
    let at = wanted(&[(EXPIRES_AT, "1970-01-01T00:00:09Z")]).unwrap();
    assert_eq!(at.expires_us, Some(9_000_000));
    for time in ["tomorrow", "15m", "2026-11-29", "@7"] {
        assert!(wanted(&[(EXPIRES_AT, time)]).is_err(), "{time}");
    }
    assert!(wanted(&[(TTL, "7"), (EXPIRES_AT, "1970-01-01T00:00:09Z")]).is_err());
}

#[test]
fn a_fork_names_its_origin_by_path_or_by_key() {
    for path in ["/v1/durable/b/a/c", "/a/c", "a%2Fc"] {
        let fork = wanted(&[(FORKED_FROM, path)]).unwrap().fork.unwrap();
        assert_eq!(fork.from.to_string(), "b/a/c", "{path}");
        assert_eq!((fork.at, fork.part), (None, 0));
    }
    let at = offset::text(7);
    let whole = [(FORKED_FROM, "a"), (FORK_OFFSET, &at), (FORK_PART, "3")];
    let fork = wanted(&whole).unwrap().fork.unwrap();
    assert_eq!((fork.at, fork.part), (Some(7), 3));
    assert!(wanted(&whole[1..]).is_err());
    assert!(wanted(&[whole[0], whole[2]]).is_err());
    assert!(wanted(&[whole[0], (FORK_OFFSET, "7")]).is_err());
}

#[test]
fn a_producer_says_all_three_or_none() {
    let all = [
        (PRODUCER_ID, "me"),
        (PRODUCER_EPOCH, "1"),
        (PRODUCER_SEQ, "2"),
    ];
    for chosen in 0..8_usize {
        let said: Vec<_> = (0..3)
            .filter(|at| chosen >> at & 1 == 1)
            .map(|at| all[at])
            .collect();
        let read = Terms::of(&headers(&said)).map(|terms| terms.producer.is_some());
        assert_eq!(
            read.ok(),
            [Some(false), None, Some(true)]
                [said.len().div_ceil(2).min(1) + usize::from(said.len() == 3)]
        );
    }
    assert!(Terms::of(&headers(&[(PRODUCER_ID, ""), all[1], all[2]])).is_err());
    assert!(Terms::of(&headers(&[(SEQ, &"x".repeat(TEXT_BYTES_MAX + 1))])).is_err());
}
