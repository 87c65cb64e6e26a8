//! Each condition alone keeps a write from being done in place.

use super::*;

const SMALL: usize = 4096;
const FAST: Duration = Duration::from_micros(50);
const HOUR: Duration = Duration::from_secs(3600);

/// A core on a device that is fast, and the time.
fn fast() -> (InPlace, Instant) {
    let start = Instant::now();
    let in_place = InPlace::new(start, Duration::ZERO);
    for _ in 0..32 {
        in_place.note(SMALL, FAST, false, start);
    }
    (in_place, start)
}

#[test]
fn a_small_write_of_an_idle_core_on_a_fast_device_is_done_in_place() {
    let (in_place, start) = fast();
    let now = start + HOUR;
    assert!(in_place.permits(SMALL, now, || HOUR / 2));
    assert!(in_place.permits(BYTES_MAX, now, || unreachable!("it was looked just now")));
    assert!(!in_place.permits(BYTES_MAX + 4096, now, || HOUR));
}

#[test]
fn nothing_is_done_in_place_before_anything_is_known() {
    let start = Instant::now();
    let in_place = InPlace::new(start, Duration::ZERO);
    assert!(!in_place.permits(SMALL, start, || Duration::ZERO));
    assert!(!in_place.permits(SMALL, start + HOUR, || Duration::ZERO));
}

#[test]
fn a_busy_core_uses_the_ring() {
    let (in_place, start) = fast();
    assert!(!in_place.permits(SMALL, start + HOUR, || HOUR / 8 * 7));
    assert!(in_place.permits(SMALL, start + 2 * HOUR, || HOUR));
}

#[test]
fn one_slow_write_bars_the_next_ones_for_a_second() {
    let (in_place, start) = fast();
    let now = start + HOUR;
    in_place.note(SMALL, Duration::from_micros(5100), true, now);
    for _ in 0..32 {
        in_place.note(SMALL, FAST, false, now);
    }
    assert!(!in_place.permits(SMALL, now + PENALTY / 2, || Duration::ZERO));
    assert!(in_place.permits(SMALL, now + PENALTY, || Duration::ZERO));
}

#[test]
fn a_slow_device_uses_the_ring() {
    let (in_place, start) = fast();
    for _ in 0..32 {
        in_place.note(SMALL, Duration::from_micros(400), false, start);
    }
    assert!(!in_place.permits(SMALL, start + HOUR, || Duration::ZERO));
}

#[test]
fn a_hiccup_does_not_decide() {
    let (in_place, start) = fast();
    in_place.note(SMALL, Duration::from_millis(4), true, start);
    assert!(in_place.permits(SMALL, start + HOUR, || Duration::ZERO));
}
