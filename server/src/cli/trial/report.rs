//! What a trial came to, for people and for scripts.

use crate::cli::latency::Latencies;
use crate::cli::trial::Back;
use crate::cli::trial::digest::Digest;
use crate::config::DATA_DEFAULT;
use crate::config::units::{show_bytes, show_count};
use nova_client::SequenceNumber;
use nova_disk::ProbeReport;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// What was sent.
#[derive(Debug)]
pub(crate) struct Sent {
    /// Where the lines came from.
    pub(crate) origin: String,
    /// All bodies.
    pub(crate) digest: Digest,
    /// The sequence number of the first record.
    pub(crate) first: Option<SequenceNumber>,
    /// Records that went one by one.
    pub(crate) one_by_one: u64,
    /// Their latencies.
    pub(crate) one_by_one_latencies: Latencies,
    /// Records that went all at once.
    pub(crate) at_once: u64,
    /// Bytes of their bodies.
    pub(crate) at_once_bytes: u64,
    /// From the first of them until the last was durable.
    pub(crate) at_once_took: Duration,
    /// Their latencies.
    pub(crate) at_once_latencies: Latencies,
}

impl Default for Sent {
    fn default() -> Sent {
        Sent {
            origin: String::new(),
            digest: Digest::default(),
            first: None,
            one_by_one: 0,
            one_by_one_latencies: Latencies::new(),
            at_once: 0,
            at_once_bytes: 0,
            at_once_took: Duration::ZERO,
            at_once_latencies: Latencies::new(),
        }
    }
}

/// All of it.
#[derive(Debug)]
pub(crate) struct Report {
    /// The stream.
    pub(crate) stream: &'static str,
    /// The data directory's full path.
    pub(crate) data: PathBuf,
    /// The data directory as it was named.
    pub(crate) named: PathBuf,
    /// The addresses of the star's cores.
    pub(crate) addresses: Vec<String>,
    /// What the disk is.
    pub(crate) probe: Option<ProbeReport>,
    /// What was sent.
    pub(crate) sent: Sent,
    /// What came back.
    pub(crate) back: Back,
}

impl Report {
    /// For people.
    pub(crate) fn to_text(&self) -> String {
        let Report { sent, back, .. } = self;
        let (records, bytes) = (sent.digest.records(), sent.digest.bytes());
        let mut text = format!(
            "{} records ({}, {}) were sent, became durable, and came back the same.\n\n",
            show_count(records),
            show_bytes(bytes),
            sent.origin
        );
        if sent.one_by_one > 0 {
            text += &row(
                "one by one",
                sent.one_by_one,
                &sent.one_by_one_latencies.to_text(),
            );
        }
        if sent.at_once > 0 {
            let speed = speed(sent.at_once_bytes, sent.at_once, sent.at_once_took);
            let latencies = sent.at_once_latencies.to_text();
            text += &row(
                "all at once",
                sent.at_once,
                &format!("{latencies}, {speed}"),
            );
        }
        text += &row("read back", records, &speed(bytes, records, back.took));
        text += &format!("\n  star         {}\n", self.star_text());
        text += &format!("  data         {}\n", self.data.display());
        text += &format!(
            "  stream       {}, records {}\n\n",
            self.stream,
            self.range()
        );
        text + &self.next()
    }

    /// For scripts.
    pub(crate) fn to_json(&self) -> Value {
        let Report { sent, back, .. } = self;
        let first = sent.first.map_or(0, |first| first.0);
        json!({
            "stream": self.stream,
            "data": self.data.display().to_string(),
            "cores": self.addresses.len(),
            "in_memory": self.probe.as_ref().map(|probe| probe.in_memory),
            "records": sent.digest.records(),
            "bytes": sent.digest.bytes(),
            "first": first,
            "last": first + sent.digest.records() - 1,
            "one_by_one": {
                "records": sent.one_by_one,
                "ack_us": sent.one_by_one_latencies.to_json(),
            },
            "at_once": {
                "records": sent.at_once,
                "bytes": sent.at_once_bytes,
                "seconds": sent.at_once_took.as_secs_f64(),
                "ack_us": sent.at_once_latencies.to_json(),
            },
            "read_back": {
                "records": back.digest.records(),
                "bytes": back.digest.bytes(),
                "seconds": back.took.as_secs_f64(),
            },
            "same": true,
        })
    }

    fn range(&self) -> String {
        let first = self.sent.first.map_or(0, |first| first.0);
        format!("{first}..{}", first + self.sent.digest.records() - 1)
    }

    fn star_text(&self) -> String {
        let cores = match self.addresses.len() {
            1 => "1 core".to_owned(),
            cores => format!("{cores} cores"),
        };
        let disk = match &self.probe {
            None => String::new(),
            Some(probe) if probe.in_memory => {
                ", on a file system in memory: nothing there survives a loss of power".to_owned()
            }
            Some(probe) => format!(", Linux {}", probe.kernel),
        };
        format!("{cores}, with this client on the same machine{disk}")
    }

    fn next(&self) -> String {
        let nova = std::env::args().next().unwrap_or_else(|| "nova".to_owned());
        let data = match self.named.as_path() == Path::new(DATA_DEFAULT) {
            true => String::new(),
            false => format!(" --data {}", self.named.display()),
        };
        format!(
            "Try next (the star of this trial has been stopped):\n\
             \u{20} {nova} serve{data} &\n\
             \u{20} {nova} read {stream}{data} --tail 3\n\
             \u{20} {nova} bucket create logs{data}\n\
             \u{20} tail -f some.log | {nova} append logs/some{data} &\n\
             \u{20} {nova} read logs/some{data} --follow\n",
            stream = self.stream
        )
    }
}

fn row(what: &str, records: u64, rest: &str) -> String {
    format!("  {what:<12} {:>11} records  {rest}\n", show_count(records))
}

fn speed(bytes: u64, records: u64, took: Duration) -> String {
    let seconds = took.as_secs_f64().max(1e-6);
    let megabytes = bytes as f64 / 1e6 / seconds;
    let records = show_count((records as f64 / seconds) as u64);
    format!("{megabytes:.1} MB/s, {records} records/s")
}

#[cfg(test)]
#[path = "report_tests.rs"]
mod tests;
