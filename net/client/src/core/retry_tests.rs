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

/// Attempts of one client until `until`, each when `next` says.
fn times(until: Instant, seed: u64, mut next: impl FnMut(Moment) -> Instant) -> Vec<Instant> {
    let mut now = Instant(0);
    let mut random = seed;
    let mut times = vec![now];
    while now < until {
        random = random.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
        let at = Moment {
            now,
            random: random >> 20,
        };
        now = next(at);
        times.push(now);
    }
    times
}

#[test]
fn the_first_attempt_after_a_restart_comes_within_100_ms() {
    for seed in 0..200 {
        let until = Instant(30_000_000);
        let mut patience = Patience::new(u64::MAX);
        let dials = times(until, seed, |at| patience.next_dial(at));
        let mut probes = Probes::default();
        let probed = times(until, seed, |at| at.now.plus_us(probes.next_us(at.random)));
        for attempts in [dials, probed] {
            for pair in attempts.windows(2) {
                let gap = pair[1].since_us(pair[0]);
                let allowed = if pair[0].0 < 1_500_000 {
                    DIAL_US_QUICK
                } else {
                    BACKOFF_US_MAX
                };
                assert!((10_000..=allowed).contains(&gap), "{seed}: {pair:?}");
            }
            assert!(attempts.len() < 80, "{} in 30 s", attempts.len());
        }
    }
}

#[test]
fn the_clients_of_a_star_do_not_come_all_at_once() {
    const CLIENTS: usize = 1_000;
    let ready = Instant(1_000_000);
    let mut arrivals = [0; 10];
    for seed in 0..CLIENTS as u64 {
        let mut probes = Probes::default();
        let seed = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let probed = times(Instant(2_000_000), seed, |at| {
            at.now.plus_us(probes.next_us(at.random))
        });
        let first = probed.iter().find(|at| **at >= ready).expect("it goes on");
        arrivals[(first.since_us(ready) / 10_001) as usize] += 1;
    }
    let most = arrivals.iter().max().expect("ten");
    assert!(*most < CLIENTS / 4, "in 10 ms each: {arrivals:?}");
}
