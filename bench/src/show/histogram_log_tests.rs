//! What is written is what the readers of the formats read.

use super::*;
use crate::run::quantiles::curve;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::Deserializer;
use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};
use std::time::Duration;

fn times() -> Times {
    let mut times = Times::default();
    times.extend((1..=1_000).map(Duration::from_micros));
    times
}

#[test]
fn a_log_is_read_back() {
    let interval = |at| Interval {
        at,
        seconds: 1.0,
        max_us: 1_000.0,
        encoded: encode(&times()).unwrap(),
        ..Interval::default()
    };
    let text = log(
        "any load",
        1_500_000_000.25,
        &[interval(0.0), interval(1.0)],
    );
    let mut starts = Vec::new();
    for entry in IntervalLogIterator::new(text.as_bytes()) {
        match entry.unwrap() {
            LogEntry::StartTime(time) => assert_eq!(time.as_secs(), 1_500_000_000),
            LogEntry::BaseTime(_) => {}
            LogEntry::Interval(interval) => {
                assert_eq!((interval.max() * 1e3).round(), 1e3);
                let bytes = STANDARD.decode(interval.encoded_histogram()).unwrap();
                let found: Histogram<u64> =
                    Deserializer::new().deserialize(&mut &bytes[..]).unwrap();
                assert_eq!(found.len(), 1_000);
                assert_eq!(found.max(), times().histogram().max());
                starts.push(interval.start_timestamp().as_secs());
            }
        }
    }
    assert_eq!(starts, [0, 1]);
}

#[test]
fn a_distribution_has_four_columns() {
    let times = times();
    let of = (times.count(), times.mean_us(), times.most_us());
    let text = distribution(&curve(&times), of);
    let rows: Vec<Vec<f64>> = text
        .lines()
        .skip(2)
        .filter(|line| !line.starts_with('#'))
        .map(|line| {
            line.split_whitespace()
                .map(|field| field.parse().unwrap())
                .collect()
        })
        .collect();
    let (last, before) = rows.split_last().unwrap();
    assert!(before.iter().any(|row| row.len() == 4));
    assert_eq!(&last[1..], [1.0, 1_000.0]);
    assert!((last[0] - 1.0).abs() < 0.01, "1,000 us are 1 ms");
}
