//! Sizes and durations as people write them: `256MiB`, `64MB`, `5ms`, `7d`.
//!
//! # Invariants
//! - Nothing is rounded: a value that does not fit its unit is refused.

use std::time::Duration;

const BYTE_UNITS: [(&str, u64); 9] = [
    ("", 1),
    ("B", 1),
    ("KB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("TiB", 1 << 40),
];

const TIME_UNITS: [(&str, u64); 7] = [
    ("us", 1),
    ("ms", 1_000),
    ("s", 1_000_000),
    ("m", 60_000_000),
    ("h", 3_600_000_000),
    ("d", 86_400_000_000),
    ("w", 604_800_000_000),
];

/// Parses a size in bytes: a whole number, with a unit or without.
pub fn parse_bytes(text: &str) -> Result<u64, String> {
    let wrong = || {
        format!("'{text}' is no size; write a whole number of bytes, or one with KiB, MiB or GiB")
    };
    let (number, unit) = split(text).ok_or_else(wrong)?;
    let found = BYTE_UNITS
        .iter()
        .find(|(name, _)| name.eq_ignore_ascii_case(unit));
    let (_, factor) = found.ok_or_else(wrong)?;
    number
        .checked_mul(*factor)
        .ok_or_else(|| format!("'{text}' is more bytes than there are"))
}

/// Parses a duration: a whole number with a unit from `us` to `w`; without one it is `unit`'s.
pub fn parse_duration(text: &str, unit: &str) -> Result<Duration, String> {
    let wrong =
        || format!("'{text}' is no duration; write a whole number with us, ms, s, m, h, d or w");
    let (number, said) = split(text).ok_or_else(wrong)?;
    let said = if said.is_empty() { unit } else { said };
    let found = TIME_UNITS.iter().find(|(name, _)| *name == said);
    let (_, factor) = found.ok_or_else(wrong)?;
    number
        .checked_mul(*factor)
        .map(Duration::from_micros)
        .ok_or_else(|| format!("'{text}' is longer than half a million years"))
}

/// A size with the unit that keeps it short: `1.5 GiB`.
pub fn show_bytes(bytes: u64) -> String {
    let steps = [(1_u64 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    match steps.into_iter().find(|(step, _)| bytes >= *step) {
        None => format!("{bytes} B"),
        Some((step, unit)) if bytes.is_multiple_of(step) => format!("{} {unit}", bytes / step),
        Some((step, unit)) => format!("{:.1} {unit}", bytes as f64 / step as f64),
    }
}

/// A whole number with commas: `1,048,576`.
pub fn show_count(count: u64) -> String {
    let digits = count.to_string();
    let mut shown = String::with_capacity(digits.len() * 4 / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            shown.push(',');
        }
        shown.push(digit);
    }
    shown
}

/// Microseconds with the unit that keeps them short: `310 us`, `1.42 ms`, `2.1 s`.
pub fn show_us(us: u64) -> String {
    match us {
        0..1_000 => format!("{us} us"),
        1_000..10_000 => format!("{:.2} ms", us as f64 / 1e3),
        10_000..1_000_000 => format!("{:.1} ms", us as f64 / 1e3),
        _ => format!("{:.1} s", us as f64 / 1e6),
    }
}

/// A whole number and what stands behind it.
fn split(text: &str) -> Option<(u64, &str)> {
    let text = text.trim();
    let digits = text
        .find(|c: char| !c.is_ascii_digit() && c != '_')
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let number = number.replace('_', "").parse().ok()?;
    Some((number, unit.trim_start()))
}

#[cfg(test)]
#[path = "units_tests.rs"]
mod tests;
