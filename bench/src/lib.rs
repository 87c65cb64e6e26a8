//! The load generator: a real star in its own process against the bare transport and bare disk.
//!
//! ```text
//!   this process, client's CPU            child, star's CPU       this process, star's CPU
//!   scenario -> SDK ------- QUIC -------> star -> disk
//!            -> echo client -- QUIC --------------------------->  echo server
//!            -> (waits)                                           bare writes
//! ```
//! Goals are ratios, because a machine's own speed changes from hour to hour by more than a star
//! adds to it. So each scenario measures star and baselines in turns within one run and prints all
//! of them, with the machine's facts and what makes the numbers doubtful. How to run it and what
//! came out is in docs/BENCHMARKS.md; small pieces are measured by `benches/`.
//!
//! # Invariants
//! - Star and baselines have the same durability (O_DIRECT and O_DSYNC) and the same file system,
//!   cipher, CPU and spin.
//! - A ratio is made of medians over the rounds of the same run.
//!
//! # Not here
//! - Whether the answers are right: `tests`.
#![forbid(unsafe_code)]

mod baselines;
mod cpus;
mod error;
mod load;
mod machine;
mod options;
mod process;
mod report;
mod scenario;
mod series;
mod star;

use clap::Parser;
use cpus::Cpus;
pub use error::BenchError;
use machine::Machine;
use nova_server::config::{ServeSettings, resolve};
use options::{Choice, Options};
use report::{Report, Section};
use scenario::{Bench, idle, latency, memory, pipelined, start};
use star::STAR_COMMAND;
use std::ffi::OsString;

/// What the child understands.
#[derive(Parser)]
struct StarOptions {
    #[command(flatten)]
    settings: ServeSettings,
}

type Scenario = fn(&Bench) -> Result<Section, BenchError>;

const SCENARIOS: [(Choice, Scenario); 5] = [
    (Choice::Latency, latency::run),
    (Choice::Pipelined, pipelined::run),
    (Choice::Idle, idle::run),
    (Choice::Memory, memory::run),
    (Choice::Start, start::run),
];

/// Does what the command line says: measures, or is the star that is measured.
pub fn run() -> Result<(), BenchError> {
    let mut arguments: Vec<OsString> = std::env::args_os().collect();
    if arguments.get(1).is_some_and(|first| first == STAR_COMMAND) {
        arguments.remove(1);
        return serve(StarOptions::parse_from(arguments).settings);
    }
    measure(Options::parse_from(arguments))
}

fn serve(settings: ServeSettings) -> Result<(), BenchError> {
    tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .with_env_filter(tracing_subscriber::EnvFilter::new("warn"))
        .init();
    nova_server::boot::serve(&resolve(settings)?)?;
    Ok(())
}

fn measure(options: Options) -> Result<(), BenchError> {
    let cpus = Cpus::choose();
    std::fs::create_dir_all(&options.data)
        .map_err(BenchError::io("making the --data directory"))?;
    let mut machine = Machine::look(&options.data, cpus.there, cpus.star, cpus.client);
    let bench = Bench { options, cpus };
    let mut sections = Vec::new();
    for (choice, scenario) in SCENARIOS {
        if bench.options.has(choice) {
            sections.push(scenario(&bench)?);
        }
    }
    machine.look_again();
    let options = &bench.options;
    let report = Report::new(machine, options.quick, options.spin_us, sections);
    if options.json {
        println!("{}", serde_json::to_string_pretty(&report)?);
    } else {
        print!("{report}");
    }
    Ok(())
}
