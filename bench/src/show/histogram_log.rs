//! Histograms in the two formats that HDR plotters open.
//!
//! | file | opened by |
//! | --- | --- |
//! | `NAME.hgrm` | the plotter of percentiles on hdrhistogram.github.io: values in ms |
//! | `NAME.hlog` | HistogramLogAnalyzer, HistogramLogProcessor, hdr-plot: one line an interval |
//!
//! A line of a log is `start,length,max,histogram` in seconds, seconds and ms; the histogram is in
//! nanoseconds, in version 2 of the format, deflated, in base64 (HistogramLogWriter of
//! HdrHistogram, log format 1.3).

use crate::error::BenchError;
use crate::run::conductor::Interval;
use crate::run::quantiles::Point;
use crate::series::Times;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::serialization::{Serializer, V2DeflateSerializer};
use std::fmt::Write;

/// A histogram as a log has it.
pub fn encode(times: &Times) -> Result<String, BenchError> {
    let mut bytes = Vec::new();
    let encoded = V2DeflateSerializer::new().serialize(times.histogram(), &mut bytes);
    encoded.map_err(|error| BenchError::Histogram(format!("{error:?}")))?;
    Ok(STANDARD.encode(bytes))
}

/// The log of a load that began at a time, in seconds since the epoch.
pub fn log(title: &str, began: f64, intervals: &[Interval]) -> String {
    let mut text = format!(
        "#[{title}]\n#[Histogram log format version 1.3]\n\
         #[StartTime: {began:.3} (seconds since epoch)]\n\
         #[BaseTime: {began:.3} (seconds since epoch)]\n\
         \"StartTimestamp\",\"Interval_Length\",\"Interval_Max\",\
         \"Interval_Compressed_Histogram\"\n"
    );
    for interval in intervals.iter().filter(|interval| interval.max_us > 0.0) {
        let Interval { at, seconds, .. } = interval;
        let max_ms = interval.max_us / 1e3;
        let encoded = &interval.encoded;
        writeln!(text, "{at:.3},{seconds:.3},{max_ms:.3},{encoded}").expect("a string takes it");
    }
    text
}

/// The distribution of percentiles, in ms.
pub fn distribution(curve: &[Point], times: (u64, f64, f64)) -> String {
    let (count, mean_us, max_us) = times;
    let mut text = format!(
        "{:>12} {:>14} {:>10} {:>14}\n\n",
        "Value", "Percentile", "TotalCount", "1/(1-Percentile)"
    );
    for Point { share, us } in curve {
        let below = (share * count as f64).round();
        let value = us / 1e3;
        write!(text, "{value:12.6} {share:14.12} {below:10}").expect("a string takes it");
        if *share < 1.0 {
            write!(text, " {:14.2}", 1.0 / (1.0 - share)).expect("a string takes it");
        }
        text.push('\n');
    }
    let (mean, max) = (mean_us / 1e3, max_us / 1e3);
    write!(
        text,
        "#[Mean    = {mean:12.3}, StdDeviation   = {:12.3}]\n\
         #[Max     = {max:12.3}, Total count    = {count:12}]\n\
         #[Buckets = {:12}, SubBuckets     = {:12}]\n",
        0.0, 1, 2048
    )
    .expect("a string takes it");
    text
}

#[cfg(test)]
#[path = "histogram_log_tests.rs"]
mod tests;
