//! What a run prints: the machine, every quantity with its rounds, every ratio with its bound.
//!
//! ```text
//!   latency: one producer, one 1 KiB record per durable ack ...
//!     baseline  quinn ping-pong of 128 B, p50     70.1 us  spread   8 %  [71.0 70.1 69.8]
//!     star      append to durable ack, p50       160.2 us  spread   4 %  [...]
//!     holds     1.17, at most 1.30: p50 / (ping-pong p50 + write p50)
//! ```
//! # Invariants
//! - A ratio stands next to the raw quantities it was made of, all of the same run.
//! - Text and JSON say the same.

use crate::machine::Machine;
use crate::series::{Role, Series};
use serde::Serialize;
use std::fmt;

/// A baseline whose rounds differ by more than this makes its ratios doubtful.
pub const SPREAD_PERCENT_MAX: f64 = 35.0;

/// Which side of its bound a value must be on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Bound {
    /// The value is at most the limit.
    AtMost,
    /// The value is at least the limit.
    AtLeast,
}

/// A value with the bound it has to keep.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Verdict {
    /// What the value is made of.
    pub what: String,
    /// The value.
    pub value: f64,
    /// Which side.
    pub bound: Bound,
    /// Of what.
    pub limit: f64,
    /// Whether it is kept.
    pub holds: bool,
}

impl Verdict {
    /// Judges a value.
    pub fn new(what: impl Into<String>, value: f64, bound: Bound, limit: f64) -> Verdict {
        let holds = match bound {
            Bound::AtMost => value <= limit,
            Bound::AtLeast => value >= limit,
        };
        Verdict {
            what: what.into(),
            value,
            bound,
            limit,
            holds,
        }
    }

    /// What was to be kept, without whether it was.
    fn text(&self) -> String {
        let side = match self.bound {
            Bound::AtMost => "at most",
            Bound::AtLeast => "at least",
        };
        let Verdict {
            what, value, limit, ..
        } = self;
        let value = number(*value);
        format!("{value}, {side} {limit:.2}: {what}")
    }
}

/// The results of one scenario.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Section {
    /// Its name on the command line.
    pub name: &'static str,
    /// What was done.
    pub title: String,
    /// What was measured.
    pub series: Vec<Series>,
    /// What is judged.
    pub verdicts: Vec<Verdict>,
    /// What a reader should know.
    pub notes: Vec<String>,
}

impl Section {
    /// Baselines that vary too much.
    fn warnings(&self) -> impl Iterator<Item = String> + '_ {
        let doubtful = |series: &&Series| {
            series.role == Role::Baseline && series.spread_percent() > SPREAD_PERCENT_MAX
        };
        self.series.iter().filter(doubtful).map(|series| {
            let spread = series.spread_percent();
            let (scenario, name) = (self.name, series.name);
            format!("{scenario}: the rounds of '{name}' differ by {spread:.0} %")
        })
    }
}

/// All of a run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    /// The machine.
    pub machine: Machine,
    /// Whether it was the short form.
    pub quick: bool,
    /// How long an idle core spins, in microseconds; that of the star and of the echo server.
    pub spin_us: u64,
    /// The scenarios' results.
    pub sections: Vec<Section>,
    /// Why the numbers may be no good.
    pub warnings: Vec<String>,
}

impl Report {
    /// Puts a report together once everything is measured.
    pub fn new(machine: Machine, quick: bool, spin_us: u64, sections: Vec<Section>) -> Report {
        let mut warnings = machine.warnings();
        warnings.extend(sections.iter().flat_map(Section::warnings));
        Report {
            machine,
            quick,
            spin_us,
            sections,
            warnings,
        }
    }

    /// The verdicts whose bound is not kept, each with its scenario.
    pub fn missed(&self) -> Vec<String> {
        let mut missed = Vec::new();
        for section in &self.sections {
            let failed = section.verdicts.iter().filter(|verdict| !verdict.holds);
            missed.extend(failed.map(|verdict| format!("{}: {}", section.name, verdict.text())));
        }
        missed
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let machine = &self.machine;
        let form = if self.quick { ", quick form" } else { "" };
        writeln!(f, "nova bench goals, commit {}{form}", machine.commit)?;
        writeln!(f, "  kernel       {}", machine.kernel)?;
        let (star, client) = (machine.star_cpu, machine.client_cpu);
        write!(f, "  CPUs         {} of {}", machine.cpus, machine.cpu)?;
        writeln!(f, "; star on {star}, client on {client}")?;
        writeln!(f, "  file system  {}", machine.file_system)?;
        writeln!(f, "  load before  {}", machine.load_before)?;
        writeln!(f, "  load after   {}", machine.load_after)?;
        writeln!(f, "  spin         {} us", self.spin_us)?;
        for section in &self.sections {
            write!(f, "\n{section}")?;
        }
        for warning in &self.warnings {
            write!(f, "\nWARNING: {warning}")?;
        }
        if !self.warnings.is_empty() {
            writeln!(f)?;
        }
        Ok(())
    }
}

impl fmt::Display for Section {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}: {}", self.name, self.title)?;
        let lengths = self.series.iter().map(|series| series.name.len());
        let width = lengths.max().unwrap_or_default();
        for series in &self.series {
            write_series(f, series, width)?;
        }
        for verdict in &self.verdicts {
            writeln!(f, "  {verdict}")?;
        }
        for note in &self.notes {
            writeln!(f, "  note      {note}")?;
        }
        Ok(())
    }
}

fn write_series(f: &mut fmt::Formatter<'_>, series: &Series, width: usize) -> fmt::Result {
    let role = match series.role {
        Role::Star => "star",
        Role::Baseline => "baseline",
        Role::Context => "",
    };
    let (name, unit) = (series.name, series.unit.text());
    write!(f, "  {role:<9} {name:<width$} ")?;
    write!(f, "{:>9} {unit}", number(series.median()))?;
    if series.rounds.len() > 1 {
        let rounds: Vec<String> = series.rounds.iter().map(|x| format!("{x:.1}")).collect();
        let spread = series.spread_percent();
        write!(f, ", spread {spread:.0} % [{}]", rounds.join(" "))?;
    }
    writeln!(f)
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let holds = if self.holds { "holds" } else { "FAILS" };
        write!(f, "{holds:<9} {}", self.text())
    }
}

/// Two decimals, or four where two would show nothing.
fn number(value: f64) -> String {
    if value.abs() < 0.1 {
        format!("{value:.4}")
    } else {
        format!("{value:.2}")
    }
}

#[cfg(test)]
#[path = "report_tests.rs"]
mod tests;
