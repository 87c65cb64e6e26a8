//! Timestamps as people read and write them: `2026-11-29T15:44:26.123456Z`, `15m` ago.
//!
//! # Invariants
//! - What is shown can be given back, to the microsecond.

use crate::config::units::parse_duration;
use nova_model::Timestamp;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

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

/// A point in time as it was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum When {
    /// So long ago.
    Ago(Duration),
    /// Then.
    At(Timestamp),
}

impl When {
    /// Parses an age (`15m`, `2d`), a time (RFC 3339, in UTC if it names no zone; the time of day
    /// may be left out) or microseconds since 1970 (`@1796001866000000`).
    pub(crate) fn parse(text: &str) -> Result<When, String> {
        let wrong = || {
            format!(
                "'{text}' is neither an age such as 15m or 2d, nor a time such as \
                 2026-11-29T15:44:26Z or 2026-11-29, nor @MICROSECONDS since 1970"
            )
        };
        if let Some(us) = text.strip_prefix('@') {
            return us
                .parse()
                .map(|us| When::At(Timestamp(us)))
                .map_err(|_| wrong());
        }
        let is_time = text.get(4..5) == Some("-");
        match is_time {
            true => parse_time(text).map(When::At).ok_or_else(wrong),
            false => parse_duration(text, "s")
                .map(When::Ago)
                .map_err(|_| wrong()),
        }
    }

    /// The time that is meant.
    pub(crate) fn time(self, now: Timestamp) -> Timestamp {
        match self {
            When::At(time) => time,
            When::Ago(age) => {
                let age_us = u64::try_from(age.as_micros()).unwrap_or(u64::MAX);
                Timestamp(now.0.saturating_sub(age_us))
            }
        }
    }
}

/// `YYYY-MM-DD`, then perhaps `THH:MM`, `:SS`, `.FRACTION`, and `Z` or `+HH:MM`.
fn parse_time(text: &str) -> Option<Timestamp> {
    let (date, clock) = match text.split_once(['T', 't', ' ']) {
        Some((date, clock)) => (date, clock),
        None => (text, "00:00Z"),
    };
    let mut parts = date.splitn(3, '-');
    let year = number(parts.next()?, 4, 1970..=9999)?;
    let month = number(parts.next()?, 2, 1..=12)?;
    let day = number(parts.next()?, 2, 1..=31)?;
    let days = day_of(year, month, day)?;
    let zone_at = clock.find(['Z', 'z', '+', '-']).unwrap_or(clock.len());
    let (clock, zone) = clock.split_at(zone_at);
    let us = (days * SECONDS_PER_DAY) as i64 * US_PER_SECOND as i64 + clock_us(clock)?;
    u64::try_from(us - offset_us(zone)?).ok().map(Timestamp)
}

fn clock_us(text: &str) -> Option<i64> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let mut parts = whole.split(':');
    let hour = number(parts.next()?, 2, 0..=23)?;
    let minute = number(parts.next()?, 2, 0..=59)?;
    let second = match parts.next() {
        Some(second) => number(second, 2, 0..=59)?,
        None => 0,
    };
    let is_digits =
        (1..=6).contains(&fraction.len()) && fraction.bytes().all(|b| b.is_ascii_digit());
    if parts.next().is_some() || !is_digits {
        return None;
    }
    let us: u64 = format!("{fraction:0<6}").parse().ok()?;
    Some((((hour * 60 + minute) * 60 + second) * US_PER_SECOND + us) as i64)
}

fn offset_us(zone: &str) -> Option<i64> {
    let sign = match zone.get(..1) {
        None | Some("Z" | "z") if zone.len() <= 1 => return Some(0),
        Some("+") => 1,
        Some("-") => -1,
        _ => return None,
    };
    let (hour, minute) = zone[1..].split_once(':')?;
    let minutes = number(hour, 2, 0..=23)? * 60 + number(minute, 2, 0..=59)?;
    Some(sign * (minutes * 60 * US_PER_SECOND) as i64)
}

fn number(text: &str, digits: usize, range: std::ops::RangeInclusive<u64>) -> Option<u64> {
    let is_number = text.len() == digits && text.bytes().all(|byte| byte.is_ascii_digit());
    let value = text.parse().ok().filter(|value| range.contains(value))?;
    is_number.then_some(value)
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

/// Days since 1970 of a day from then on, if there is such a day (Hinnant, days_from_civil).
fn day_of(year: u64, month: u64, day: u64) -> Option<u64> {
    let of_year = (153 * (if month > 2 { month - 3 } else { month + 9 }) + 2) / 5 + day - 1;
    let year_from_march = year - u64::from(month <= 2);
    let (era, of_era) = (year_from_march / 400, year_from_march % 400);
    let of_era = of_era * 365 + of_era / 4 - of_era / 100 + of_year;
    let days = era * 146_097 + of_era - 719_468;
    (civil(days) == (year, month, day)).then_some(days)
}

#[cfg(test)]
#[path = "time_text_tests.rs"]
mod tests;
