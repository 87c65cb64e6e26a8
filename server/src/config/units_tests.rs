//! Tests of sizes and durations.

use super::*;

#[test]
fn sizes_are_read_with_and_without_units() {
    let cases = [
        ("0", Ok(0)),
        ("4096", Ok(4096)),
        ("16_384", Ok(16_384)),
        ("1KB", Ok(1000)),
        ("1 KiB", Ok(1024)),
        ("256MiB", Ok(256 << 20)),
        ("256mib", Ok(256 << 20)),
        ("2GiB", Ok(2 << 30)),
        ("", Err(())),
        ("MiB", Err(())),
        ("1.5MiB", Err(())),
        ("-1", Err(())),
        ("1 parsec", Err(())),
        ("99999999999999TiB", Err(())),
    ];
    for (text, expected) in cases {
        assert_eq!(parse_bytes(text).map_err(|_| ()), expected, "{text}");
    }
}

#[test]
fn durations_are_read_with_and_without_units() {
    let cases = [
        ("0", Ok(0)),
        ("5", Ok(5_000)),
        ("250us", Ok(250)),
        ("5ms", Ok(5_000)),
        ("1s", Ok(1_000_000)),
        ("2 h", Ok(7_200_000_000)),
        ("7d", Ok(604_800_000_000)),
        ("1w", Ok(604_800_000_000)),
        ("ms", Err(())),
        ("5 moons", Err(())),
        ("0.5s", Err(())),
    ];
    for (text, expected) in cases {
        let parsed = parse_duration(text, "ms").map(|duration| duration.as_micros());
        assert_eq!(parsed.map_err(|_| ()), expected, "{text}");
    }
}

#[test]
fn numbers_are_shown_short() {
    assert_eq!(show_bytes(12), "12 B");
    assert_eq!(show_bytes(256 << 20), "256 MiB");
    assert_eq!(show_bytes(1536), "1.5 KiB");
    assert_eq!(show_count(0), "0");
    assert_eq!(show_count(999), "999");
    assert_eq!(show_count(1_048_576), "1,048,576");
    assert_eq!(show_us(310), "310 us");
    assert_eq!(show_us(1_420), "1.42 ms");
    assert_eq!(show_us(21_000), "21.0 ms");
    assert_eq!(show_us(2_100_000), "2.1 s");
}
