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

#[test]
fn what_is_shown_can_be_given_back() {
    for us in [
        0,
        7,
        951_782_400_000_000,
        1_709_164_799_999_999,
        4_107_542_400_000_001,
    ] {
        let time = Timestamp(us);
        assert_eq!(When::parse(&show_time(time)), Ok(When::At(time)), "{us}");
    }
}

#[test]
fn times_and_ages_are_understood() {
    let day = 1_795_910_400;
    let at = |seconds: u64, us: u64| When::At(Timestamp((day + seconds) * US_PER_SECOND + us));
    let cases = [
        ("2026-11-29", at(0, 0)),
        ("2026-11-29T15:44", at(56_640, 0)),
        ("2026-11-29 15:44:26", at(56_666, 0)),
        ("2026-11-29T15:44:26Z", at(56_666, 0)),
        ("2026-11-29t15:44:26.5z", at(56_666, 500_000)),
        ("2026-11-29T15:44:26+02:00", at(49_466, 0)),
        ("2026-11-29T00:30-01:30", at(7_200, 0)),
        ("@12", When::At(Timestamp(12))),
        ("90", When::Ago(Duration::from_secs(90))),
        ("2d", When::Ago(Duration::from_secs(172_800))),
    ];
    for (text, expected) in cases {
        assert_eq!(When::parse(text), Ok(expected), "{text}");
    }
    let now = Timestamp(100 * US_PER_SECOND);
    assert_eq!(
        When::Ago(Duration::from_secs(30)).time(now),
        Timestamp(70 * US_PER_SECOND)
    );
    assert_eq!(When::Ago(Duration::from_secs(300)).time(now), Timestamp(0));
}

#[test]
fn what_is_no_time_is_told_with_the_forms_there_are() {
    let wrong = [
        "",
        "@",
        "@x",
        "soon",
        "5 fortnights",
        "2026-11-31",
        "2026-13-01",
        "2026-2-1",
        "1969-12-31",
        "2026-11-29T",
        "2026-11-29T25:00",
        "2026-11-29T15:44:26.1234567Z",
        "2026-11-29T15:44Zulu",
        "2026-11-29T15:44+2",
        "2026-11-29T15:44:26:01",
        "1970-01-01T00:00+01:00",
        "-5s",
    ];
    for text in wrong {
        let told = When::parse(text).expect_err(text);
        assert!(
            told.contains("15m") && told.contains("2026-11-29T"),
            "{told}"
        );
    }
}
