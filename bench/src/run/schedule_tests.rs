//! Records are due at the rate that was asked for, over all sessions, however long the run.

use super::*;

const RATES: [u64; 5] = [1, 3, 1_000, 7_777, 2_000_000];

#[test]
fn the_sessions_together_send_every_record_at_its_time() {
    for per_second in RATES {
        for sessions in [1, 2, 7, 50] {
            let mut due: Vec<Duration> = (0..sessions)
                .map(|session| Schedule::new(per_second, sessions, session))
                .flat_map(|schedule| (0..20).map(move |number| schedule.due(number)))
                .collect();
            due.sort();
            for (number, due) in due.into_iter().enumerate() {
                assert_eq!(due, time_of(number as u64, per_second));
            }
        }
    }
}

#[test]
fn what_is_due_by_a_time_is_what_has_its_time_then() {
    for per_second in RATES {
        for (sessions, session) in [(1, 0), (3, 0), (3, 2)] {
            let schedule = Schedule::new(per_second, sessions, session);
            let tick = Duration::from_nanos(1);
            for number in [0, 1, 2, 1_000, 123_456_789] {
                let due = schedule.due(number);
                assert!(schedule.due_by(due) > number, "{schedule:?} {number}");
                if due >= tick {
                    assert_eq!(schedule.due_by(due - tick), number, "{schedule:?}");
                }
            }
        }
    }
}

#[test]
fn a_day_does_not_drift() {
    let day = Duration::from_secs(24 * 60 * 60);
    let schedule = Schedule::new(7_777, 3, 0);
    assert_eq!(schedule.due(7_777 * 24 * 60 * 60 / 3), day);
    assert_eq!(time_of(u64::MAX, 1), Duration::from_nanos(u64::MAX));
}
