//! A meter settles at the rate, forgets, and never overflows.

use super::*;

#[test]
fn a_steady_rate_is_met_and_forgotten() {
    let mut load = Load::default();
    for ms in 0..60_000 {
        load.note_append(Instant(ms * 1_000), 100, 1);
    }
    let at = |seconds: u64| Instant(60_000_000 + seconds * 1_000_000);
    let rates = load.rates(at(0));
    assert!(
        (92_000..=104_000).contains(&rates.appended_bytes),
        "{rates:?}"
    );
    assert!((920..=1_040).contains(&rates.appended_records), "{rates:?}");
    let third = load.rates(at(10)).appended_bytes;
    assert!((30_000..=42_000).contains(&third), "{third}");
    assert_eq!(load.rates(at(400)), Rates::default());
}

#[test]
fn a_jump_of_the_clock_and_huge_sums_are_borne() {
    let mut load = Load::default();
    load.note_read(Instant(0), u64::MAX);
    load.note_read(Instant(1), u64::MAX);
    assert_eq!(load.rates(Instant(1)).read_bytes, u64::MAX / 2_560);
    assert_eq!(load.rates(Instant(u64::MAX)), Rates::default());
    assert!(load.rates(Instant(1)).weight() > 0);
}

#[test]
fn few_records_are_not_rounded_away() {
    let mut load = Load::default();
    for second in 0..120 {
        load.note_append(Instant(second * 1_000_000), 1, 2);
    }
    let rates = load.rates(Instant(119_000_000));
    assert!((1..=2).contains(&rates.appended_records), "{rates:?}");
}

#[test]
fn loads_add_up() {
    let (mut one, mut two) = (Load::default(), Load::default());
    one.note_append(Instant(0), 1_000, 10);
    two.note_append(Instant(5_000_000), 1_000, 10);
    two.add(Instant(5_000_000), one);
    let rates = two.rates(Instant(5_000_000));
    assert!((150..=170).contains(&rates.appended_bytes), "{rates:?}");
}
