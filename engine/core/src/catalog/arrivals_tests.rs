//! Counts of arrivals.

use super::*;

fn bucket(name: &str) -> BucketName {
    BucketName::parse(name).expect("a legal name")
}

#[test]
fn each_arrival_changes_the_count_of_its_bucket_or_of_all() {
    let (a, b) = (bucket("a"), bucket("b"));
    let mut arrivals = Arrivals::default();
    let mut seen = vec![arrivals.of(&a)];
    arrivals.note(&a);
    seen.push(arrivals.of(&a));
    assert_eq!(arrivals.of(&b), seen[0], "b had none");
    arrivals.note(&a);
    seen.push(arrivals.of(&a));
    arrivals.note_any();
    seen.push(arrivals.of(&a));
    assert_eq!(arrivals.of(&b), seen[3], "it may have been of b");
    arrivals.note(&b);
    assert_eq!(arrivals.of(&a), seen[3]);
    arrivals.note(&a);
    seen.push(arrivals.of(&a));
    assert!(seen.is_sorted_by(|a, b| a < b), "{seen:?}");
    arrivals.forget(&a);
    assert_eq!(arrivals.of(&a), seen[3]);
}
