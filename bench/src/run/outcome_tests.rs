//! Ratios are made of the means of the baselines; what makes numbers doubtful is said.

use super::*;
use std::time::Instant;

fn bare(us: f64, rate: f64) -> Bare {
    let times = Quantiles {
        p50: us,
        p99: 2.0 * us,
        ..Quantiles::default()
    };
    Bare {
        write_bytes: 4096,
        write: times,
        large_writes_mb_per_s: 2.0 * rate,
        request_bytes: 1088,
        round_trip: times,
        round_trip_with_write: Quantiles {
            p50: 4.0 * us,
            ..times
        },
        echo_mb_per_s: rate,
        one_way_mb_per_s: 3.0 * rate,
        reading: None,
    }
}

/// A load of the given pace; other suites show it, too.
pub(crate) fn result(pace: Pace, baselines: Vec<Bare>) -> LoadResult {
    result_of(Shape::Latency, pace, baselines)
}

fn result_of(shape: Shape, pace: Pace, baselines: Vec<Bare>) -> LoadResult {
    let workload = Workload {
        shape,
        producers: 1,
        clients: 1,
        streams: 1,
        record_bytes: 1024,
        pace,
        warm_up: Duration::ZERO,
        duration: Duration::from_secs(2),
        records_max: None,
        readers: 0,
        verify: true,
    };
    let mut conducted = Conducted {
        time: Duration::from_secs(1),
        ..Conducted::default()
    };
    let total = &mut conducted.total;
    total.latency.record_many(Duration::from_micros(400), 1_000);
    total.acked = 1_000;
    total.acked_bytes = 100_000_000;
    if shape == Shape::CatchUp {
        (total.read, total.read_bytes) = (1_000, 100_000_000);
    }
    total.last = Some(Instant::now());
    total.behind_max = 7;
    for number in 0..4 {
        conducted.intervals.push(Interval {
            at: f64::from(number),
            seconds: 1.0,
            acked: 250,
            acked_bytes: 25_000_000,
            p50_us: 400.0,
            p99_us: 400.0 * f64::from(number + 1),
            max_us: 900.0,
            ..Interval::default()
        });
    }
    let verified = Verified::Same { records: 1_000 };
    LoadResult::new(workload, conducted, verified, baselines)
}

#[test]
fn an_open_loop_is_held_to_a_round_trip_and_a_write() {
    let pace = Pace::Open { per_second: 500 };
    let result = result(pace, vec![bare(90.0, 1.0), bare(110.0, 1.0)]);
    assert!(
        (result.ratios[0].value - 2.0).abs() < 0.01,
        "{:?}",
        result.ratios
    );
    let with_write = &result.ratios[1];
    assert!((with_write.value - 1.0).abs() < 0.01, "{with_write:?}");
    assert_eq!(result.records_per_s, 500.0, "it lasted two seconds");
    assert_eq!(result.warnings, [""; 0]);
}

#[test]
fn a_full_pipeline_is_held_to_the_smaller_rate() {
    let pace = Pace::Closed { in_flight: 100 };
    let result = result(pace, vec![bare(1.0, 200.0)]);
    assert_eq!(result.ratios.len(), 1);
    assert_eq!(result.ratios[0].value, 0.5);
    assert_eq!(result.mb_per_s, 100.0);
}

#[test]
fn reading_is_held_to_the_smaller_of_disk_and_network() {
    let reading = |reads_mb_per_s, frames_mb_per_s| BareReading {
        volume_bytes: 1 << 30,
        at_once: 4,
        reads_mb_per_s,
        frames_mb_per_s,
    };
    let with = |reads, frames| Bare {
        reading: Some(reading(reads, frames)),
        ..bare(1.0, 200.0)
    };
    let pace = Pace::Closed { in_flight: 100 };
    let disk_is_slower = result_of(Shape::CatchUp, pace, vec![with(200.0, 400.0)]);
    let values: Vec<f64> = disk_is_slower
        .ratios
        .iter()
        .map(|ratio| ratio.value)
        .collect();
    assert_eq!(values, [0.5, 0.5, 0.25]);
    let network_is_slower = result_of(Shape::CatchUp, pace, vec![with(400.0, 125.0)]);
    assert_eq!(network_is_slower.ratios[0].value, 0.8);
    let none = result_of(Shape::CatchUp, pace, Vec::new());
    assert!(none.ratios.is_empty());
}

#[test]
fn baselines_that_differ_are_warned_of() {
    let pace = Pace::Closed { in_flight: 1 };
    let result = result(pace, vec![bare(100.0, 1.0), bare(136.0, 1.0)]);
    assert!(result.warnings[0].contains("36 %"), "{:?}", result.warnings);
}

#[test]
fn without_baselines_there_is_no_ratio() {
    let result = result(Pace::Open { per_second: 1 }, Vec::new());
    assert!(result.ratios.is_empty());
}
