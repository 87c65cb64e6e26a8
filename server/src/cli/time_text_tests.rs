//! Tests of written times.

use super::*;

#[test]
fn known_days_are_written_right() {
    let cases = [
        (0, "1970-01-01T00:00:00.000000Z"),
        (951_782_400, "2000-02-29T00:00:00.000000Z"),
        (951_868_800, "2000-03-01T00:00:00.000000Z"),
        (1_709_164_799, "2024-02-28T23:59:59.000000Z"),
        (1_796_001_866, "2026-11-30T01:24:26.000000Z"),
        (4_107_542_400, "2100-03-01T00:00:00.000000Z"),
    ];
    for (seconds, expected) in cases {
        assert_eq!(show_time(Timestamp(seconds * US_PER_SECOND)), expected);
    }
    assert_eq!(show_time(Timestamp(7)), "1970-01-01T00:00:00.000007Z");
}
