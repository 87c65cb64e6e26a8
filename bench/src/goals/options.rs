//! The command line of `nova bench goals`.

use clap::{Args, ValueEnum};
use nova_quic::params::SPIN_DEFAULT;
use std::path::PathBuf;

/// Which scenarios run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Choice {
    /// One record per durable ack, against a bare ping-pong and a bare write.
    Latency,
    /// One session, pipelined, against bare 64 KiB frames and bare 1 MiB writes.
    Pipelined,
    /// CPU time of an idle star.
    Idle,
    /// Memory: idle, with a stalled reader, with 64 producers that never stop.
    Memory,
    /// What guarantees cost: the same load with and without, in pairs.
    Pairs,
    /// How long a producer is interrupted when its stream moves; redirects of first opens.
    Handoff,
    /// Appends' p99 while segments are trimmed and recycled, against that where all is kept.
    Forget,
    /// The same while segments are rewritten, since a stream in each of them is kept whole.
    Rewrite,
    /// Time to start with sealed data, against an empty star.
    Start,
    /// All of them.
    All,
}

/// What is measured, and how much of it.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
pub struct Options {
    /// What is measured.
    #[arg(value_enum, default_value = "all")]
    pub choice: Choice,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
    /// Directory for the data, on the file system to be measured; emptied again afterwards.
    #[arg(long, value_name = "DIR", default_value = "target/nova-bench")]
    pub data: PathBuf,
    /// Fewer rounds of less work: to see that everything runs.
    #[arg(long)]
    pub quick: bool,
    /// How often the measurements of a scenario take turns [default: 7, quick: 3]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub rounds: Option<u32>,
    /// Sealed data of the start scenario, in GiB [default: 10, quick: 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1024))]
    pub gib: Option<u64>,
    /// How long a core of the star, and the echo server, look for more before they sleep.
    #[arg(long, value_name = "US", default_value_t = SPIN_DEFAULT.as_micros() as u64)]
    pub spin_us: u64,
}

impl Options {
    /// Rounds of a scenario.
    pub fn rounds(&self) -> usize {
        let default = self.pick(7, 3);
        self.rounds.map_or(default, |rounds| rounds as usize)
    }

    /// Sealed data of the start scenario, in GiB.
    pub fn sealed_gib(&self) -> u64 {
        self.gib.unwrap_or(self.pick(10, 1))
    }

    /// The amount of the form that was asked for.
    pub fn pick<T>(&self, full: T, quick: T) -> T {
        if self.quick { quick } else { full }
    }

    /// Whether a scenario was asked for.
    pub fn has(&self, choice: Choice) -> bool {
        self.choice == Choice::All || self.choice == choice
    }
}

#[cfg(test)]
#[path = "options_tests.rs"]
mod tests;
