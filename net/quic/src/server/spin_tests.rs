//! For how long a core spins, by looks at given times.

use super::{LOOK_GAP_MAX, Spin, VISIT_INTERVAL, WINDOWS_MAX, Wait};
use std::time::{Duration, Instant};

const fn us(us: u64) -> Duration {
    Duration::from_micros(us)
}

/// Looks every microsecond from `at` on until it is told to sleep: how long that took, and how
/// often the executor was to look at its rings.
fn spin(spin: &Spin, at: Instant) -> (Duration, u32) {
    let mut visits = 0;
    for n in 0..10_000 {
        match spin.wait(at + us(n)) {
            Wait::Spin => {}
            Wait::Visit => visits += 1,
            Wait::Sleep => return (us(n), visits),
        }
    }
    panic!("it spins for ever");
}

#[test]
fn a_core_spins_for_the_window_and_visits_its_rings_meanwhile() {
    let at = Instant::now();
    let core = Spin::new(us(120));
    assert_eq!(core.wait(at), Wait::Sleep, "nothing has come yet");
    core.renew();
    assert_eq!(spin(&core, at), (us(120), 2));
    assert_eq!(core.wait(at + us(500)), Wait::Sleep, "the window is over");
    core.renew();
    let (lasted, _) = spin(&core, at + us(1_000));
    assert_eq!(lasted, us(120));
    assert_eq!(core.spent(), us(240));
}

#[test]
fn without_a_window_it_sleeps() {
    let core = Spin::new(Duration::ZERO);
    core.renew();
    assert!(!core.is_on());
    assert_eq!(core.wait(Instant::now()), Wait::Sleep);
}

#[test]
fn what_comes_by_a_ring_is_not_spun_for() {
    let at = Instant::now();
    let core = Spin::new(us(50));
    core.renew();
    assert_eq!(core.wait(at), Wait::Spin);
    core.hold(true);
    assert_eq!(core.wait(at + us(1)), Wait::Sleep);
    core.hold(false);
    assert_eq!(spin(&core, at + us(2)).0, us(49), "the rest of the window");
}

#[test]
fn time_in_which_others_worked_is_neither_spent_nor_of_the_window() {
    let at = Instant::now();
    let core = Spin::new(us(50));
    core.renew();
    assert_eq!(core.wait(at), Wait::Spin);
    assert_eq!(core.wait(at + us(2)), Wait::Spin);
    // A write that blocked the core. The rings have waited as long.
    assert_eq!(core.wait(at + us(2) + VISIT_INTERVAL), Wait::Visit);
    assert_eq!(core.spent(), us(2));
    assert_eq!(spin(&core, at + us(3) + VISIT_INTERVAL).0, us(47));
}

/// Where the rings take longer than the interval, visits once followed each other without a look.
#[test]
fn a_slow_visit_is_not_followed_by_the_next_one() {
    let at = Instant::now();
    let core = Spin::new(us(50));
    core.renew();
    assert_eq!(core.wait(at), Wait::Spin);
    assert_eq!(core.wait(at + VISIT_INTERVAL), Wait::Visit);
    let back = at + VISIT_INTERVAL * 3;
    assert_eq!(core.wait(back), Wait::Spin);
    assert_eq!(core.wait(back + VISIT_INTERVAL - us(1)), Wait::Spin);
    assert_eq!(core.wait(back + VISIT_INTERVAL), Wait::Visit);
}

#[test]
fn a_core_whose_looks_are_late_sleeps_all_the_same() {
    let at = Instant::now();
    let core = Spin::new(us(50));
    core.renew();
    let late = LOOK_GAP_MAX + us(1);
    let looks = (0..10_000).find(|n| core.wait(at + late * *n) == Wait::Sleep);
    let lasted = late * looks.expect("it sleeps");
    assert!(lasted > WINDOWS_MAX * us(50) && lasted <= WINDOWS_MAX * us(50) + late);
    assert_eq!(core.spent(), Duration::ZERO);
}
