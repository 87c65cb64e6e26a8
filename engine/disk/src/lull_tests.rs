//! When a lull begins behind writes of one pace and another.

use super::{LULL_MAX, LULL_MIN, Lull};
use std::time::{Duration, Instant};

/// After `count` writes, one each `every`: the last of them, and what is known.
fn writes(count: u32, every: Duration) -> (Instant, Lull) {
    let (begin, lull) = (Instant::now(), Lull::new());
    for number in 0..count {
        lull.note_write(begin + number * every);
    }
    (begin + (count - 1) * every, lull)
}

fn ms(count: u64) -> Duration {
    Duration::from_millis(count)
}

#[test]
fn a_core_that_has_not_written_is_in_a_lull() {
    assert!(Lull::new().is_now(Instant::now()));
}

#[test]
fn a_lull_is_four_usual_intervals() {
    let (last, lull) = writes(200, ms(4));
    assert!(!lull.is_now(last + ms(15)));
    assert!(lull.is_now(last + ms(17)));
}

#[test]
fn however_fast_writes_come_the_least_time_passes() {
    let (last, lull) = writes(1_000, Duration::from_micros(100));
    assert!(!lull.is_now(last + LULL_MIN - Duration::from_micros(1)));
    assert!(lull.is_now(last + LULL_MIN));
}

#[test]
fn seldom_writes_put_a_lull_off_for_a_tenth_of_a_second_at_most() {
    for (count, every) in [(1, ms(1)), (2, ms(1)), (50, ms(60_000))] {
        let (last, lull) = writes(count, every);
        assert!(!lull.is_now(last + LULL_MAX - ms(1)));
        assert!(lull.is_now(last + LULL_MAX));
    }
}

#[test]
fn a_pause_between_bursts_is_soon_forgotten() {
    let (last, lull) = writes(200, ms(1));
    let begin = last + ms(3_600_000);
    lull.note_write(begin);
    // The pause counts for 100 ms, an eighth of the average: 13.4 ms, four times.
    assert!(!lull.is_now(begin + ms(53)));
    assert!(lull.is_now(begin + ms(54)));
    (1..=40).for_each(|number| lull.note_write(begin + ms(number)));
    assert!(lull.is_now(begin + ms(40 + 6)), "forty writes later");
}
