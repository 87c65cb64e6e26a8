//! Each condition alone keeps a call from being done in place.

use super::*;
use std::rc::Rc;

const SMALL: usize = 4096;
const FAST: Duration = Duration::from_micros(50);
const HOUR: Duration = Duration::from_secs(3600);

/// A core that has worked as long as the cell says.
fn core(start: Instant) -> (InPlace, Rc<Cell<Duration>>) {
    let worked = Rc::new(Cell::new(Duration::ZERO));
    let told = Rc::clone(&worked);
    (InPlace::new(start, move || told.get()), worked)
}

/// An idle core on a device that is fast, and the time.
fn fast() -> (InPlace, Instant) {
    let (in_place, start, _) = fast_and_worked();
    (in_place, start)
}

fn fast_and_worked() -> (InPlace, Instant, Rc<Cell<Duration>>) {
    let start = Instant::now();
    let (in_place, worked) = core(start);
    for _ in 0..32 {
        in_place.note_write(start, FAST);
        in_place.note_flush(start, FAST);
    }
    (in_place, start, worked)
}

#[test]
fn a_small_write_of_an_idle_core_on_a_fast_device_is_done_in_place() {
    let (in_place, start, worked) = fast_and_worked();
    let now = start + HOUR;
    worked.set(HOUR / 2);
    assert!(in_place.permits_write(SMALL, now));
    worked.set(HOUR);
    assert!(
        in_place.permits_write(BYTES_MAX, now),
        "it was looked just now"
    );
    assert!(!in_place.permits_write(BYTES_MAX + 4096, now));
}

#[test]
fn no_write_is_done_in_place_before_it_is_known_that_the_core_is_idle() {
    let start = Instant::now();
    let (in_place, _) = core(start);
    assert!(!in_place.permits_write(SMALL, start));
    assert!(in_place.permits_write(SMALL, start + HOUR));
}

#[test]
fn a_busy_core_writes_through_the_ring_and_flushes_in_place() {
    let (in_place, start, worked) = fast_and_worked();
    worked.set(HOUR / 8 * 7);
    assert!(!in_place.permits_write(SMALL, start + HOUR));
    assert!(in_place.permits_flush(start + HOUR));
    worked.set(HOUR);
    assert!(in_place.permits_write(SMALL, start + 2 * HOUR));
}

#[test]
fn one_slow_call_bars_the_next_ones_of_its_kind_for_a_while() {
    let (in_place, start) = fast();
    let now = start + HOUR;
    in_place.note_write(now, Duration::from_micros(5100));
    assert!(!in_place.permits_write(SMALL, now + PENALTY_SLOW / 2));
    assert!(in_place.permits_flush(now + PENALTY_SLOW / 2));
    assert!(in_place.permits_write(SMALL, now + 2 * PENALTY_SLOW));
    in_place.note_flush(now, Duration::from_micros(5100));
    assert!(!in_place.permits_flush(now + PENALTY_SLOW / 2));
}

#[test]
fn a_slow_device_is_tried_less_and_less_often() {
    let (in_place, mut now) = fast();
    let mut waits = Vec::new();
    let slow = Duration::from_millis(10);
    for _ in 0..12 {
        in_place.note_write(now, slow);
        now += slow;
        let begun = now;
        while !in_place.writes.permits(now) {
            now += slow;
        }
        waits.push((now - begun).as_millis());
    }
    let doubled = (0..10).map(|times| 100 << times);
    let expected: Vec<u128> = doubled.chain([64_000, 64_000]).collect();
    assert_eq!(waits, expected);
}

#[test]
fn a_device_that_is_slow_on_average_uses_the_ring_until_it_is_tried_again() {
    let (in_place, start) = fast();
    let mut calls = 0;
    while in_place.writes.permits(start) {
        in_place.note_write(start, Duration::from_micros(900));
        calls += 1;
    }
    assert!(calls > 1, "one call decided");
    let now = start + PENALTY_MIN / 2;
    assert!(!in_place.writes.permits(now));
    let later = start + 2 * PENALTY_MIN;
    assert!(in_place.writes.permits(later));
    in_place.note_write(later, FAST);
    assert!(in_place.writes.permits(later), "it is fast again");
}

/// A flush also holds a core that others wait for, a write one that has time to spare.
#[test]
fn a_device_may_be_too_slow_to_flush_and_fast_enough_to_write() {
    let (in_place, start) = fast();
    let taken = Duration::from_micros(300);
    for _ in 0..32 {
        in_place.note_write(start, taken);
        in_place.note_flush(start, taken);
    }
    assert!(in_place.writes.permits(start));
    assert!(!in_place.permits_flush(start));
}

/// A core under load once took what the ring needed on a busy machine (12 ms a write) for the
/// device's pace, and stayed with the ring for good, where every write needed that long.
#[test]
fn a_hiccup_does_not_decide() {
    let (in_place, start) = fast();
    in_place.note_write(start, Duration::from_millis(4));
    assert!(in_place.permits_write(SMALL, start + HOUR));
}

/// An answer that a blocked core kept back would reach its producer a whole write late.
#[test]
fn answers_are_let_out_for_a_moment_and_not_for_longer() {
    let (in_place, start) = fast();
    assert!(!in_place.has_answers(start), "none was given yet");
    in_place.note_answers(start);
    assert!(in_place.has_answers(start));
    assert!(in_place.has_answers(start + ANSWERS_LEAVE - Duration::from_nanos(1)));
    assert!(!in_place.has_answers(start + ANSWERS_LEAVE));
    in_place.note_answers(start + ANSWERS_LEAVE);
    assert!(in_place.has_answers(start + ANSWERS_LEAVE));
}
