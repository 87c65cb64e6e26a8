//! Each condition alone keeps a write from being done in place.

use super::*;

const SMALL: usize = 4096;
const FAST: Duration = Duration::from_micros(50);

/// A core that was idle for a while on a device that is fast, and the time then.
fn idle_and_fast() -> (InPlace, Instant) {
    let in_place = InPlace::new();
    let start = in_place.looked.get().0;
    for _ in 0..32 {
        in_place.note(SMALL, FAST, false, start);
    }
    // No real thread can use half of an hour that has not passed.
    (in_place, start + Duration::from_secs(3600))
}

#[test]
fn a_small_write_of_an_idle_core_on_a_fast_device_is_done_in_place() {
    let (in_place, now) = idle_and_fast();
    assert!(in_place.permits(SMALL, now));
    assert!(in_place.permits(BYTES_MAX, now));
    assert!(!in_place.permits(BYTES_MAX + 4096, now));
}

#[test]
fn nothing_is_done_in_place_before_anything_is_known() {
    let in_place = InPlace::new();
    let start = in_place.looked.get().0;
    assert!(!in_place.permits(SMALL, start));
    assert!(!in_place.permits(SMALL, start + Duration::from_secs(3600)));
}

#[test]
fn a_busy_core_uses_the_ring() {
    let (in_place, _) = idle_and_fast();
    let (start, used) = in_place.looked.get();
    let begun = Instant::now();
    while thread_time() - used < Duration::from_millis(3) {
        std::hint::spin_loop();
    }
    let busy = start + (thread_time() - used) + Duration::from_millis(1);
    assert!(!in_place.permits(SMALL, busy), "{:?}", begun.elapsed());
}

#[test]
fn one_slow_write_bars_the_next_ones_for_a_second() {
    let (in_place, now) = idle_and_fast();
    in_place.note(SMALL, Duration::from_micros(1100), true, now);
    assert!(!in_place.permits(SMALL, now));
    for _ in 0..32 {
        in_place.note(SMALL, FAST, false, now);
    }
    assert!(!in_place.permits(SMALL, now + PENALTY / 2));
    assert!(in_place.permits(SMALL, now + PENALTY));
}

#[test]
fn a_slow_device_uses_the_ring() {
    let (in_place, now) = idle_and_fast();
    for _ in 0..32 {
        in_place.note(SMALL, Duration::from_micros(400), false, now);
    }
    assert!(!in_place.permits(SMALL, now));
}
