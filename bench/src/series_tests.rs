//! Medians, spreads and quantiles of known values.

use super::*;

fn series(rounds: &[f64]) -> Series {
    let mut series = Series::new(Role::Baseline, "any", Unit::Micros);
    rounds.iter().for_each(|&value| series.push(value));
    series
}

#[test]
fn the_median_is_the_middle_one() {
    let cases: [(&[f64], f64); 5] = [
        (&[], 0.0),
        (&[7.0], 7.0),
        (&[9.0, 1.0], 5.0),
        (&[9.0, 1.0, 4.0], 4.0),
        (&[100.0, 1.0, 4.0, 2.0], 3.0),
    ];
    for (rounds, median) in cases {
        assert_eq!(series(rounds).median(), median, "{rounds:?}");
    }
}

#[test]
fn the_spread_is_a_share_of_the_median() {
    let cases: [(&[f64], f64); 4] = [
        (&[], 0.0),
        (&[7.0], 0.0),
        (&[90.0, 100.0, 120.0], 30.0),
        (&[0.0, 0.0], 0.0),
    ];
    for (rounds, spread) in cases {
        assert_eq!(series(rounds).spread_percent(), spread, "{rounds:?}");
    }
    assert_eq!(series(&[3.0, 8.0, 5.0]).most(), 8.0);
    assert_eq!(series(&[5.0, 1.0, 4.0, 2.0, 3.0]).quartiles(), [2.0, 4.0]);
    assert_eq!(series(&[]).quartiles(), [0.0, 0.0]);
}

#[test]
fn quantiles_keep_three_digits() {
    let mut times = Times::default();
    times.extend((1..=1000).map(Duration::from_micros));
    for (share, micros) in [(0.5, 500.0), (0.99, 990.0), (1.0, 1000.0)] {
        let found = times.quantile_us(share);
        assert!((found - micros).abs() <= micros / 1e3, "{share}: {found}");
    }
    times.record(Duration::from_secs(7200));
    assert!(
        times.quantile_us(1.0) >= 3600e6,
        "more than fits is the most"
    );
}
