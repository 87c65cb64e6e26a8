//! All of a run, and where it is written.

use crate::Outcome;
use crate::args::LoadOptions;
use crate::error::BenchError;
use crate::machine::{Machine, Others};
use crate::run::outcome::{LoadResult, Verified};
use crate::show::{histogram_log, page, text};
use crate::workload::Shape;
use serde::Serialize;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// All of a run.
#[derive(Debug, Clone, Serialize)]
pub struct LoadReport {
    /// What was asked for.
    pub shape: Shape,
    /// The machine.
    pub machine: Machine,
    /// What others did on it meanwhile.
    pub others: Others,
    /// The star and its settings, in words.
    pub star: String,
    /// When it ended, in seconds since the epoch.
    pub ended: f64,
    /// What the loads came to.
    pub loads: Vec<LoadResult>,
    /// What makes all numbers doubtful.
    pub warnings: Vec<String>,
    /// Where it is written.
    #[serde(skip)]
    pub out: Option<PathBuf>,
}

impl LoadReport {
    /// Puts it together.
    pub fn new(
        machine: Machine,
        others: Others,
        options: &LoadOptions,
        shape: Shape,
        loads: Vec<LoadResult>,
    ) -> LoadReport {
        let which = &options.star;
        let star = match &which.star {
            Some(address) => format!("the one at {address}"),
            None => {
                let cores = which.cores.unwrap_or((machine.cpus / 2).max(1));
                format!(
                    "its own, cores {cores}, spin {} us, new data directory",
                    which.spin_us
                )
            }
        };
        let mut warnings = machine.warnings();
        warnings.extend(others.warnings());
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        LoadReport {
            shape,
            machine,
            others,
            star,
            ended: now.unwrap_or_default().as_secs_f64(),
            loads,
            warnings,
            out: options.out.clone(),
        }
    }

    /// As text.
    pub fn to_text(&self) -> String {
        text::report(self)
    }

    /// Whether all that was acked was read back.
    pub fn outcome(&self) -> Outcome {
        let is_different = |load: &LoadResult| matches!(load.verified, Verified::Different { .. });
        match self.loads.iter().any(is_different) {
            true => Outcome::Different,
            false => Outcome::Measured,
        }
    }

    /// Writes the page, the numbers and the histograms.
    pub fn write(&self, out: &Path) -> Result<(), BenchError> {
        let failed = |path: &Path| BenchError::io(format!("writing {}", path.display()));
        fs::create_dir_all(out).map_err(failed(out))?;
        let write = |name: &str, text: &str| {
            let path = out.join(name);
            fs::write(&path, text).map_err(failed(&path))
        };
        write("report.html", &page::page(self))?;
        write("results.json", &serde_json::to_string_pretty(self)?)?;
        for load in &self.loads {
            let (producers, streams) = (load.workload.producers, load.workload.streams);
            let name = format!("{}-{producers}x{streams}", self.shape.name());
            let began = self.ended - load.seconds;
            let log = histogram_log::log(&load.title, began, &load.intervals);
            write(&format!("{name}.hlog"), &log)?;
            let latency = &load.latency;
            let of = (latency.count, latency.mean, latency.max);
            let distribution = histogram_log::distribution(&load.curve, of);
            write(&format!("{name}.hgrm"), &distribution)?;
        }
        Ok(())
    }
}
