//! Tests of comparing what was sent with what came back.

use super::*;

fn digest(bodies: impl IntoIterator<Item = String>) -> Digest {
    let mut digest = Digest::default();
    for body in bodies {
        digest.note(body.as_bytes());
    }
    digest
}

fn numbers(count: u64) -> impl Iterator<Item = String> {
    (0..count).map(|n| n.to_string())
}

#[test]
fn the_same_bodies_are_the_same() {
    assert!(digest(numbers(5_000)).is_same(&digest(numbers(5_000))));
    assert!(digest([]).is_same(&Digest::default()));
}

#[test]
fn a_lost_doubled_changed_swapped_or_cut_body_is_seen() {
    let sent = digest(numbers(5_000));
    let others = [
        digest(numbers(4_999)),
        digest(numbers(5_001)),
        digest(numbers(5_000).skip(1).chain(["0".to_owned()])),
        digest(numbers(5_000).map(|n| if n == "4321" { "4322".to_owned() } else { n })),
    ];
    for other in &others {
        assert!(!sent.is_same(other));
    }
    assert_eq!(sent.first_difference(&others[3]), 4_096);
    assert_eq!(sent.first_difference(&others[2]), 0);
    let joined = digest(["ab".to_owned(), "c".to_owned()]);
    assert!(!joined.is_same(&digest(["a".to_owned(), "bc".to_owned()])));
}
