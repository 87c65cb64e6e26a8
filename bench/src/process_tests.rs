//! The kernel's texts are read right, and this process can read its own.

use super::*;

#[test]
fn memory_is_read_from_its_lines() {
    let text = "Name:\tnova\nVmPeak:\t  900 kB\nVmHWM:\t    300 kB\nVmRSS:\t    200 kB\n";
    let memory = Memory {
        resident: 200 * KIB,
        peak: 300 * KIB,
    };
    assert_eq!(parse_memory(text), Some(memory));
    for damaged in ["", "VmHWM: 3 kB\n", "VmHWM: 3 MB\nVmRSS: 1 kB\n"] {
        assert_eq!(parse_memory(damaged), None, "{damaged}");
    }
}

#[test]
fn run_time_is_the_first_number() {
    let expected = Some(Duration::from_nanos(150_903));
    assert_eq!(parse_run_time("150903 2505251 2\n"), expected);
    assert_eq!(parse_run_time("\n"), None);
}

#[test]
fn this_process_has_memory_and_time() {
    let own = std::process::id();
    let found = memory(own).unwrap();
    assert!(found.resident > 0 && found.peak > 0);
    assert!(cpu_time(own).unwrap() > Duration::ZERO);
}

#[test]
fn a_share_of_time_is_in_hundredths() {
    let (used, within) = (Duration::from_millis(25), Duration::from_secs(10));
    assert_eq!(cpu_percent(used, within), 0.25);
}

#[test]
fn ticks_stand_behind_a_name_that_may_hold_anything() {
    let text = "42 (a ) (b) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16";
    assert_eq!(parse_ticks(text), Some([11, 12, 13, 14]));
    assert_eq!(parse_ticks("42 (a) S 1 2"), None);
    assert!(cpu_time_of_all(std::process::id()).is_ok());
}

#[test]
fn a_process_is_watched() {
    let mut watched = Watched::begin(Some(std::process::id())).unwrap();
    let usage = watched.since_last().unwrap();
    assert!(usage.star_mib.unwrap() > 0.0);
    assert!(watched.whole().unwrap().star_mib_peak.unwrap() >= usage.star_mib.unwrap());
}
