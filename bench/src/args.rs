//! The command line of `nova bench`.
//!
//! # Not here
//! - What the words of a load mean: [`crate::workload`].

use crate::goals::options::Options;
use clap::Subcommand;

const EXAMPLES: &str = "\
Examples:
  nova bench goals                          All ratios that must hold; about ten minutes
  nova bench goals handoff --quick          One of them, only to see that it runs";

/// Measure a star against what the disk and the network of this machine can do without it
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct BenchArgs {
    #[command(subcommand)]
    pub(crate) what: What,
}

/// What is measured.
#[derive(Debug, Subcommand)]
pub(crate) enum What {
    /// The ratios that must hold: star and bare machine in turns, judged against their bounds
    Goals(Options),
}

impl BenchArgs {
    /// Whether results and errors are wanted as JSON.
    pub fn is_json(&self) -> bool {
        match &self.what {
            What::Goals(options) => options.json,
        }
    }
}
