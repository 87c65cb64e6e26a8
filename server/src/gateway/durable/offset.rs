//! Offsets and cursors as the protocol writes them.
//!
//! ```text
//!   0000000000000007_0000000000000000     the sequence number that comes next
//! ```
//! Of one width, so that their order as text is their order.

use std::time::{SystemTime, UNIX_EPOCH};

const DIGITS: usize = 16;
/// A cursor counts intervals of this many seconds since 2024-10-09.
const INTERVAL_S: u64 = 20;
const CURSOR_EPOCH_S: u64 = 1_728_432_000;
/// A cursor that a reader knows already is passed by up to an hour.
const AHEAD_MAX: u64 = 3_600 / INTERVAL_S;

/// Where a read starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Offset {
    /// `-1`: at the first record that is left.
    Beginning,
    /// `now`: at the tail.
    Now,
    /// At a sequence number.
    At(u64),
}

/// Reads an offset.
pub(super) fn parse(text: &str) -> Option<Offset> {
    match text {
        "-1" => Some(Offset::Beginning),
        "now" => Some(Offset::Now),
        _ => {
            let (at, rest) = text.split_once('_')?;
            let is_number =
                |part: &str| part.len() == DIGITS && part.bytes().all(|b| b.is_ascii_digit());
            if !is_number(at) || !is_number(rest) {
                return None;
            }
            // A record is never parted, so nothing that was given has a second number.
            let at: u64 = at.parse().ok()?;
            let past: u64 = rest.parse().ok()?;
            Some(Offset::At(at.saturating_add(past)))
        }
    }
}

/// Writes one.
pub(super) fn text(at: u64) -> String {
    format!("{at:016}_{:016}", 0)
}

/// Microseconds since 1970.
pub(super) fn now_us() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| {
        u64::try_from(since.as_micros()).unwrap_or(u64::MAX)
    })
}

/// The cursor of an answer to a reader that has this one.
pub(super) fn cursor(had: Option<&str>, now_us: u64) -> u64 {
    let current = (now_us / 1_000_000).saturating_sub(CURSOR_EPOCH_S) / INTERVAL_S;
    match had.and_then(|had| had.parse::<u64>().ok()) {
        Some(had) if had >= current => had.saturating_add(1 + now_us % AHEAD_MAX),
        _ => current,
    }
}

#[cfg(test)]
#[path = "offset_tests.rs"]
mod tests;
