//! Timestamps as people read them: `2026-11-29T15:44:26.123456Z`.

use nova_model::Timestamp;
use std::time::{SystemTime, UNIX_EPOCH};

const US_PER_SECOND: u64 = 1_000_000;
const SECONDS_PER_DAY: u64 = 86_400;

/// The time in UTC (RFC 3339).
pub(crate) fn show_time(time: Timestamp) -> String {
    let seconds = time.0 / US_PER_SECOND;
    let (year, month, day) = civil(seconds / SECONDS_PER_DAY);
    let (hour, minute, second) = (seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
    let us = time.0 % US_PER_SECOND;
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{us:06}Z")
}

/// The wall clock.
pub(crate) fn wall() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    Timestamp(since.map_or(0, |since| since.as_micros() as u64))
}

/// Year, month and day of a day since 1970 (Hinnant, "chrono-compatible low-level date
/// algorithms", civil_from_days; years are counted from March so that the leap day is the last).
fn civil(day: u64) -> (u64, u64, u64) {
    let shifted = day + 719_468;
    let era = shifted / 146_097;
    let of_era = shifted % 146_097;
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * march + 2) / 5 + 1;
    let month = if march < 10 { march + 3 } else { march - 9 };
    (year + era * 400 + u64::from(month <= 2), month, day)
}

#[cfg(test)]
#[path = "time_text_tests.rs"]
mod tests;
