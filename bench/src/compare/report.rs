//! What a comparison came to: medians of each system, and ratios within each round.
//!
//! # Invariants
//! - A ratio is made of two values of one round; above 1 it speaks for nova in every column.

use crate::machine::Machine;
use crate::series::{Role, Series, Unit};
use serde::Serialize;
use std::fmt;

/// What is measured of each system.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Column {
    /// One producer, one record per ack: p50.
    OnePerAck,
    /// One producer that keeps many batches unanswered.
    Pipelined,
    /// 16 producers, one record per ack each.
    ManyOnePerAck,
    /// 16 producers, batches.
    ManyBatched,
    /// One reader from the start to the end.
    Read,
}

impl Column {
    /// All of them, in the order in which they are measured.
    pub const ALL: [Column; 5] = [
        Column::OnePerAck,
        Column::Pipelined,
        Column::ManyOnePerAck,
        Column::ManyBatched,
        Column::Read,
    ];

    fn text(self) -> &'static str {
        match self {
            Column::OnePerAck => "one record per ack, p50",
            Column::Pipelined => "one producer, pipelined",
            Column::ManyOnePerAck => "16 producers, one record per ack",
            Column::ManyBatched => "16 producers, batched",
            Column::Read => "read from the start",
        }
    }

    fn unit(self) -> Unit {
        match self {
            Column::OnePerAck => Unit::Micros,
            _ => Unit::MegabytesPerSecond,
        }
    }
}

/// One system and its rounds.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    /// Its name.
    pub system: &'static str,
    /// The version that ran.
    pub version: String,
    /// How its acks are durable.
    pub durable_by: &'static str,
    /// What was measured, a series for each column.
    pub columns: Vec<Series>,
}

impl Row {
    /// Without rounds.
    pub fn new(system: &'static str, version: String, durable_by: &'static str) -> Row {
        let columns = Column::ALL.map(|column| {
            let (name, unit) = (column.text(), column.unit());
            Series::new(Role::Context, name, unit)
        });
        Row {
            system,
            version,
            durable_by,
            columns: columns.to_vec(),
        }
    }
}

/// nova against one system in one column.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Ratio {
    /// The other system.
    pub system: &'static str,
    /// What is compared.
    pub column: Column,
    /// How much better nova is: the median over the rounds.
    pub median: f64,
    /// A quarter and three quarters of the rounds are below these.
    pub quartiles: [f64; 2],
}

/// A system that did not take part.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Skipped {
    /// Its name.
    pub system: &'static str,
    /// Why.
    pub why: String,
    /// What makes it take part.
    pub install: &'static str,
}

/// All of a comparison.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Comparison {
    /// The machine.
    pub machine: Machine,
    /// Whether it was the short form.
    pub quick: bool,
    /// nova first.
    pub rows: Vec<Row>,
    /// nova against each of the others.
    pub ratios: Vec<Ratio>,
    /// Who did not take part.
    pub skipped: Vec<Skipped>,
    /// Why the numbers may be no good.
    pub warnings: Vec<String>,
}

impl Comparison {
    /// Puts it together; the first row is nova's.
    pub fn new(machine: Machine, quick: bool, rows: Vec<Row>, skipped: Vec<Skipped>) -> Comparison {
        let warnings = machine.warnings();
        let (nova, others) = rows.split_first().expect("nova takes part");
        let ratios = others
            .iter()
            .flat_map(|other| Column::ALL.map(|column| ratio(nova, other, column)))
            .collect();
        Comparison {
            machine,
            quick,
            ratios,
            rows,
            skipped,
            warnings,
        }
    }
}

fn ratio(nova: &Row, other: &Row, column: Column) -> Ratio {
    let of = |row: &Row| row.columns[column as usize].rounds.clone();
    let mut ratios = Series::new(Role::Context, column.text(), Unit::Percent);
    for (ours, theirs) in of(nova).into_iter().zip(of(other)) {
        ratios.push(match column.unit() {
            Unit::Micros => theirs / ours,
            _ => ours / theirs,
        });
    }
    Ratio {
        system: other.system,
        column,
        median: ratios.median(),
        quartiles: ratios.quartiles(),
    }
}

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let machine = &self.machine;
        let form = if self.quick { ", quick form" } else { "" };
        writeln!(f, "nova bench compare, commit {}{form}", machine.commit)?;
        writeln!(f, "  kernel       {}", machine.kernel)?;
        let (star, client) = (machine.star_cpu, machine.client_cpu);
        write!(f, "  CPUs         {} of {}", machine.cpus, machine.cpu)?;
        writeln!(f, "; servers on {star}, clients on {client}")?;
        writeln!(f, "  file system  {}", machine.file_system)?;
        writeln!(f, "  load before  {}", machine.load_before)?;
        writeln!(f, "  load after   {}", machine.load_after)?;
        for row in &self.rows {
            write!(
                f,
                "\n{} ({}), {}\n",
                row.system, row.version, row.durable_by
            )?;
            for (column, series) in Column::ALL.into_iter().zip(&row.columns) {
                let (value, unit) = (series.median(), series.unit.text());
                let spread = series.spread_percent();
                write!(f, "  {:<33} {value:>9.1} {unit:<4}", series.name)?;
                write!(f, " spread {spread:>3.0} %")?;
                let is_meant =
                    |ratio: &&Ratio| (ratio.system, ratio.column) == (row.system, column);
                if let Some(ratio) = self.ratios.iter().find(is_meant) {
                    let [low, high] = ratio.quartiles;
                    write!(
                        f,
                        "   nova {:.2} times ({low:.2} to {high:.2})",
                        ratio.median
                    )?;
                }
                writeln!(f)?;
            }
        }
        for skipped in &self.skipped {
            write!(f, "\nskipped: {}: {}\n", skipped.system, skipped.why)?;
            writeln!(f, "  {}", skipped.install)?;
        }
        for warning in &self.warnings {
            writeln!(f, "\nWARNING: {warning}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
#[path = "report_tests.rs"]
mod tests;
