//! The load generator: a real star in its own process against the bare transport and bare disk.
//!
//! ```text
//!   this process, client's CPU            child, star's CPU       this process, star's CPU
//!   load, goals -> SDK ------ QUIC -----> star -> disk
//!               -> echo client -- QUIC ------------------------>  echo server
//!               -> (waits)                                        bare writes
//! ```
//! | command | what it is for |
//! | --- | --- |
//! | `nova bench latency`, ... | one load, looked at closely: `run` |
//! | `nova bench goals` | the ratios that a change must not break: `goals` |
//! | `nova bench compare` | the same work for other systems that are installed: `compare` |
//!
//! Seconds of one machine say little, because its own speed changes from hour to hour by more than
//! a star adds to it. So every run measures what the machine can do without a star, too, and prints
//! the ratio, the machine's facts and what makes the numbers doubtful. How to run it and what came
//! out is in docs/BENCHMARKS.md.
//!
//! # Invariants
//! - Star and baselines have the same durability (O_DIRECT and O_DSYNC) and the same file system,
//!   cipher, CPU and spin.
//! - A ratio is made of what was measured in the same run.
//!
//! # Not here
//! - The star: it is this same program with another command. Small pieces: `bench/pieces`.
//! - Whether answers are right under failures: `tests`.
#![deny(unsafe_code)]

mod args;
mod bare_reads;
mod bare_writes;
mod baselines;
mod compare;
mod cpus;
mod error;
mod folder;
mod goals;
mod machine;
mod process;
mod report;
mod run;
mod series;
mod show;
mod star;
mod workload;

pub use args::BenchArgs;
pub use error::BenchError;
pub use star::StarProgram;

use args::What;

/// What a benchmark came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// It was measured, and what was read back is what was acked.
    Measured,
    /// What was read back is not what was acked.
    Different,
    /// It was measured, and these verdicts say that a bound is not kept.
    Missed(Vec<String>),
}

/// Does what the command line says, with stars that are made by `program`.
pub fn run(args: BenchArgs, program: StarProgram) -> Result<Outcome, BenchError> {
    if let Some((shape, options)) = args.what.load() {
        return run::measure(shape, options, program);
    }
    match args.what {
        What::Goals(options) => goals::measure(options, program),
        What::Compare(options) => compare::measure(&options, &program),
        _ => unreachable!("every other word is a load"),
    }
}
