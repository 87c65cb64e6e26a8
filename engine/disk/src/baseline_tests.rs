//! The measurement counts right and cleans up; how fast the device is, is not tested.

use super::*;
use crate::trial_tests::names;

#[test]
fn a_short_measurement_counts_every_write_and_cleans_up() {
    let root = tempfile::tempdir().unwrap();
    for sync in [SyncMode::Dsync, SyncMode::Fdatasync] {
        let plan = Plan {
            rounds: 2,
            small_writes: 3,
            large_writes: 2,
            sync,
            cpu: None,
        };
        let baseline = measure(root.path(), &plan).unwrap();
        assert_eq!(baseline.driver_small.times.len(), 6);
        assert_eq!(baseline.blocking_small.times.len(), 6);
        assert_eq!(baseline.driver_large.times.len(), 4);
        assert_eq!(baseline.blocking_large.times.len(), 4);
        assert!(baseline.driver_large.megabytes_per_second() > 0.0);
        assert!(names(root.path()).is_empty());
    }
}

#[test]
fn quantiles_are_ranks() {
    let times = (1..=100).map(Duration::from_micros).collect();
    let figures = Figures {
        times,
        bytes: 1_000_000,
    };
    for (share, micros) in [(0.0, 1), (0.5, 50), (0.99, 99), (0.995, 100), (1.0, 100)] {
        assert_eq!(figures.quantile(share), Duration::from_micros(micros));
    }
    assert_eq!(Figures::default().quantile(0.5), Duration::ZERO);
    let mean_us = 50.5;
    assert!((figures.megabytes_per_second() - 1e6 / mean_us).abs() < 1.0);
}
