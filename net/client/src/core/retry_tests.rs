//! Backoff stays inside its step, patience runs from the first trouble to the next progress.

use super::*;

#[test]
fn backoff_grows_and_stays_in_its_step() {
    for failures in 0..40 {
        let step = BACKOFF_US_MIN
            .saturating_mul(1 << failures.min(16))
            .min(BACKOFF_US_MAX);
        for random in [0, 1, 12_345, u64::MAX] {
            let wait = backoff_us(failures, random);
            assert!(
                wait >= step / 2 && wait <= step,
                "{failures} {random}: {wait}"
            );
        }
    }
}

#[test]
fn the_budget_runs_from_the_first_trouble() {
    let mut patience = Patience::new(1_000);
    assert!(!patience.is_spent(Instant(1 << 40)), "no trouble, no end");
    patience.begin(Instant(100));
    patience.begin(Instant(900));
    assert_eq!(patience.deadline(), Some(Instant(1_100)));
    assert!(!patience.is_spent(Instant(1_099)));
    assert!(patience.is_spent(Instant(1_100)));
    patience.reset();
    assert_eq!(patience.deadline(), None);
}

#[test]
fn the_star_may_ask_for_a_longer_wait() {
    let mut patience = Patience::new(1_000);
    let at = Moment {
        now: Instant(5),
        random: 0,
    };
    assert_eq!(
        patience.next_attempt(at, Some(9_000_000)),
        Instant(9_000_005)
    );
    assert!(patience.next_attempt(at, None) > Instant(5));
}

#[test]
fn a_few_redirects_are_followed_at_once() {
    let mut patience = Patience::new(1_000);
    let followed = (0..10).filter(|_| patience.redirect_at_once()).count();
    assert_eq!(followed, REDIRECTS_AT_ONCE_MAX as usize);
}
