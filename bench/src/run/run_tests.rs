//! What was read back is held to what was acked; space is looked for before it is filled.

use super::*;
use crate::run::bodies::hash;

fn ended(digests: &[(usize, &[u64])], failed: u64) -> Ended {
    let mut end = Ended {
        failed,
        ..Ended::default()
    };
    for (stream, sequences) in digests {
        let mut digest = Digest::default();
        sequences.iter().for_each(|&s| digest.add(s, hash(b"body")));
        end.digests.push((*stream, digest));
    }
    end
}

fn names() -> Vec<StreamName> {
    let name = |n| StreamName::parse(&format!("bench/{n}")).unwrap();
    vec![name(0), name(1)]
}

#[test]
fn parts_of_many_sessions_are_one_stream() {
    let acked = [ended(&[(0, &[0, 2]), (1, &[0])], 0), ended(&[(0, &[1])], 0)];
    let read = [ended(&[(0, &[0, 1, 2])], 0), ended(&[(1, &[0])], 0)];
    assert_eq!(
        compare(&acked, &read, &names()),
        Verified::Same { records: 4 }
    );
}

#[test]
fn a_lost_record_is_told_with_its_stream() {
    let acked = [ended(&[(0, &[0]), (1, &[0, 1])], 0)];
    let read = [ended(&[(0, &[0]), (1, &[0])], 0)];
    let streams = vec!["bench/1".to_owned()];
    assert_eq!(
        compare(&acked, &read, &names()),
        Verified::Different { streams }
    );
}

#[test]
fn records_without_a_result_may_be_there_or_not() {
    let acked = [ended(&[(0, &[0, 1])], 1)];
    let (acked_records, read_records) = (2, 3);
    let more = [ended(&[(0, &[0, 1, 2])], 0)];
    let unsure = Verified::Unsure {
        acked: acked_records,
        read: read_records,
    };
    assert_eq!(compare(&acked, &more, &names()), unsure);
    let lost = [ended(&[(0, &[0])], 0)];
    assert!(matches!(
        compare(&acked, &lost, &names()),
        Verified::Different { .. }
    ));
    let too_many = [ended(&[(0, &[0, 1, 2, 3])], 0)];
    assert!(matches!(
        compare(&acked, &too_many, &names()),
        Verified::Different { .. }
    ));
}
