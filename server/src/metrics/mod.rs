//! Figures of the star in the text form of Prometheus.
//!
//! ```text
//!   core k: notes (atomics) ----> CoreFigures <--+
//!   gateway: notes -------------> HttpFigures <--+-- /metrics: text
//!   start: what recovery found -> Recovered <----+
//!   kernel: /proc, statvfs ----------------------+
//! ```
//! docs/OPERATIONS.md explains each; docs/grafana-dashboard.json shows them.
//!
//! # Invariants
//! - Nobody who notes a figure waits, and no figure names a stream: their number is bounded.

pub(crate) mod figures;
pub(crate) mod histogram;
pub(crate) mod http;
mod process;
mod text;

use figures::CoreFigures;
use http::HttpFigures;
use nova_core::recovery::RecoveryReport;
use nova_model::LogId;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use text::{Kind, Text};

/// A figure: its name, what it is, and where it stands.
type TimesFigure = (
    &'static str,
    &'static str,
    fn(&CoreFigures) -> &figures::Times,
);
type Figure<F, V> = (&'static str, &'static str, fn(&F) -> V);

/// Everything that `/metrics` tells.
pub(crate) struct Metrics {
    cores: Vec<Arc<CoreFigures>>,
    pub(crate) http: HttpFigures,
    recovered: OnceLock<Vec<Recovered>>,
    budgets: Budgets,
}

/// What bounds the star.
#[derive(Debug, Clone)]
pub(crate) struct Budgets {
    /// The data directory.
    pub(crate) data: PathBuf,
    /// Bytes admitted and not yet durable, of each core.
    pub(crate) ingress_bytes: usize,
    /// Bytes of the newest batches, of each core.
    pub(crate) recent_bytes: usize,
}

/// What the recovery of one log found.
#[derive(Debug, Clone)]
pub(crate) struct Recovered {
    pub(crate) log: LogId,
    pub(crate) report: RecoveryReport,
    pub(crate) took: Duration,
}

impl Metrics {
    pub(crate) fn new(cores: Vec<Arc<CoreFigures>>, budgets: Budgets) -> Metrics {
        Metrics {
            cores,
            http: HttpFigures::new(),
            recovered: OnceLock::new(),
            budgets,
        }
    }

    /// What the start has found.
    pub(crate) fn set_recovered(&self, recovered: Vec<Recovered>) {
        self.recovered.get_or_init(|| recovered);
    }

    /// Whether every core takes appends: none lacks space.
    pub(crate) fn are_all_writable(&self) -> bool {
        self.cores.iter().all(|core| core.is_disk_full.value() == 0)
    }

    /// The text. `memory_used` is what HTTP requests hold.
    pub(crate) fn text(&self, memory_used: usize) -> String {
        let mut text = Text::default();
        let version = env!("CARGO_PKG_VERSION");
        text.head("nova_build_info", "The version that runs", Kind::Gauge);
        text.line("nova_build_info", &[("version", version)], 1.0);
        self.add_appends(&mut text);
        self.add_reads(&mut text);
        self.add_state(&mut text);
        self.add_refusals(&mut text);
        self.add_recovery(&mut text);
        self.http.add(&mut text, memory_used);
        process::add(&mut text, &self.budgets.data);
        text.finish()
    }

    fn add_appends(&self, text: &mut Text) {
        let times: [TimesFigure; 4] = [
            (
                "nova_append_queued_seconds",
                "From arrival of a batch until its group was sent to the disk",
                |core| &core.queued_us,
            ),
            (
                "nova_append_written_seconds",
                "From then until the group was durable",
                |core| &core.written_us,
            ),
            (
                "nova_append_total_seconds",
                "From arrival of a batch to its ack",
                |core| &core.total_us,
            ),
            (
                "nova_turn_seconds",
                "Length of a turn of a core's loop",
                |core| &core.turn_us,
            ),
        ];
        for (name, help, of) in times {
            text.head(name, help, Kind::Histogram);
            for (label, core) in self.labelled() {
                text.histogram(name, &[("core", &label)], &of(core).snapshot(), 1e6);
            }
        }
        let name = "nova_group_bytes";
        text.head(name, "Bytes of a write of the log", Kind::Histogram);
        for (label, core) in self.labelled() {
            let snapshot = core.group_bytes.snapshot();
            text.histogram(name, &[("core", &label)], &snapshot, 1.0);
        }
        self.counters(
            text,
            &[
                (
                    "nova_received_batches_total",
                    "Batches that arrived",
                    |core| core.batches_in.value(),
                ),
                ("nova_received_records_total", "Their records", |core| {
                    core.records_in.value()
                }),
                ("nova_received_bytes_total", "Their encoded bytes", |core| {
                    core.bytes_in.value()
                }),
                ("nova_acks_total", "Batches that were acked", |core| {
                    core.acks.value()
                }),
                ("nova_repeats_total", "Acks of repeats", |core| {
                    core.repeats.value()
                }),
            ],
        );
    }

    fn add_reads(&self, text: &mut Text) {
        self.counters(
            text,
            &[
                (
                    "nova_sent_batches_total",
                    "Batches handed to readers",
                    |core| core.batches_out.value(),
                ),
                ("nova_sent_records_total", "Their records", |core| {
                    core.records_out.value()
                }),
                ("nova_sent_bytes_total", "Their encoded bytes", |core| {
                    core.bytes_out.value()
                }),
                (
                    "nova_disk_reads_total",
                    "Reads from disk for readers",
                    |core| core.disk_reads.value(),
                ),
                ("nova_disk_read_bytes_total", "Their bytes", |core| {
                    core.disk_read_bytes.value()
                }),
                (
                    "nova_segments_created_total",
                    "Segments made in this start",
                    |core| core.segments_made.value(),
                ),
                (
                    "nova_segments_recycled_total",
                    "Segments whose space was given back in this start",
                    |core| core.segments_recycled.value(),
                ),
                (
                    "nova_segments_rewritten_total",
                    "Mostly dead segments rewritten in this start",
                    |core| core.segments_rewritten.value(),
                ),
                (
                    "nova_rewritten_bytes_total",
                    "Bytes copied for that",
                    |core| core.rewritten_bytes.value(),
                ),
                (
                    "nova_rewriting_freed_bytes_total",
                    "Bytes that came free by it",
                    |core| core.rewriting_freed_bytes.value(),
                ),
            ],
        );
    }

    fn add_state(&self, text: &mut Text) {
        let budgets = &self.budgets;
        let gauges: [Figure<CoreFigures, u64>; 8] = [
            ("nova_sessions", "Open append sessions", |core| {
                core.sessions.value()
            }),
            ("nova_readers", "Open readers", |core| core.readers.value()),
            (
                "nova_streams_loaded",
                "Streams in memory, led or only read",
                |core| core.streams_loaded.value(),
            ),
            (
                "nova_streams_led",
                "Streams that the core leads, once a second",
                |core| core.streams_led.value(),
            ),
            (
                "nova_pending_bytes",
                "Bytes admitted and not yet durable",
                |core| core.pending_bytes.value(),
            ),
            (
                "nova_recent_bytes",
                "Bytes of newest batches kept for readers",
                |core| core.recent_bytes.value(),
            ),
            (
                "nova_disk_floor_bytes",
                "Free space below which a core refuses appends",
                |core| core.disk_floor_bytes.value(),
            ),
            (
                "nova_disk_full",
                "1 while appends are refused for want of space",
                |core| core.is_disk_full.value(),
            ),
        ];
        for (name, help, of) in gauges {
            text.head(name, help, Kind::Gauge);
            for (label, core) in self.labelled() {
                text.line(name, &[("core", &label)], of(core) as f64);
            }
        }
        let budgets = [
            (
                "nova_pending_bytes_max",
                "Bytes of each core above which it takes no more appends",
                budgets.ingress_bytes,
            ),
            (
                "nova_recent_bytes_max",
                "Most bytes of newest batches of each core",
                budgets.recent_bytes,
            ),
        ];
        for (name, help, value) in budgets {
            text.head(name, help, Kind::Gauge);
            text.line(name, &[], value as f64);
        }
    }

    fn add_refusals(&self, text: &mut Text) {
        let name = "nova_refusals_total";
        text.head(name, "Refusals of a core, by code", Kind::Counter);
        for (label, core) in self.labelled() {
            for (code, count) in core.refusals() {
                text.line(
                    name,
                    &[("core", &label), ("code", code.name())],
                    count as f64,
                );
            }
        }
    }

    fn add_recovery(&self, text: &mut Text) {
        let Some(recovered) = self.recovered.get() else {
            return;
        };
        let gauges: [Figure<Recovered, f64>; 6] = [
            (
                "nova_recovery_seconds",
                "How long the recovery of a log took",
                |log| log.took.as_secs_f64(),
            ),
            (
                "nova_recovery_segments",
                "Segments with groups that it found",
                |log| log.report.segments as f64,
            ),
            ("nova_recovery_groups", "Groups that it read", |log| {
                log.report.groups as f64
            }),
            ("nova_recovery_kept_bytes", "Bytes of those groups", |log| {
                log.report.kept_bytes as f64
            }),
            (
                "nova_recovery_cut_bytes",
                "Bytes of a torn last group",
                |log| log.report.cut_bytes as f64,
            ),
            (
                "nova_recovery_damaged_ranges",
                "Damaged ranges that cannot be read",
                |log| log.report.damaged.len() as f64,
            ),
        ];
        for (name, help, of) in gauges {
            text.head(name, help, Kind::Gauge);
            for log in recovered {
                text.line(name, &[("log", &log.log.0.to_string())], of(log));
            }
        }
    }

    fn counters(&self, text: &mut Text, counters: &[Figure<CoreFigures, u64>]) {
        for (name, help, of) in counters {
            text.head(name, help, Kind::Counter);
            for (label, core) in self.labelled() {
                text.line(name, &[("core", &label)], of(core) as f64);
            }
        }
    }

    fn labelled(&self) -> impl Iterator<Item = (String, &CoreFigures)> {
        let numbered = self.cores.iter().enumerate();
        numbered.map(|(number, core)| (number.to_string(), &**core))
    }
}

#[cfg(test)]
#[path = "metrics_tests.rs"]
mod tests;
