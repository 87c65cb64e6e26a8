//! The ratios that must hold: each scenario starts its own star, measures in turns, is judged.
//!
//! One record per durable ack, pipelined throughput, CPU and memory of an idle and of a pressed
//! star, the time of a start, the cost of guarantees, the interruption by a move, the cost of
//! forgetting.
//!
//! # Invariants
//! - A scenario has a folder of its own, which is gone when it has ended.

pub mod forget;
pub mod handoff;
pub mod idle;
pub mod latency;
pub mod load;
pub mod memory;
pub mod options;
pub mod pairs;
pub mod pipelined;
pub mod start;

use crate::Outcome;
use crate::cpus::Cpus;
use crate::error::BenchError;
use crate::folder::Folder;
use crate::machine::Machine;
use crate::report::{Report, Section};
use crate::star::{Star, StarProgram};
use nova_client::Client;
use options::{Choice, Options};
use std::fs;
use std::path::Path;

/// Bytes of a record, as the goals have it.
pub const RECORD_BYTES: usize = 1024;

type Scenario = fn(&Bench) -> Result<Section, BenchError>;

const SCENARIOS: [(Choice, Scenario); 9] = [
    (Choice::Latency, latency::run),
    (Choice::Pipelined, pipelined::run),
    (Choice::Idle, idle::run),
    (Choice::Memory, memory::run),
    (Choice::Pairs, pairs::run),
    (Choice::Handoff, handoff::run),
    (Choice::Forget, forget::trim),
    (Choice::Rewrite, forget::rewrite),
    (Choice::Start, start::run),
];

/// Measures what was asked for, and prints it.
pub fn measure(options: Options, program: StarProgram) -> Result<Outcome, BenchError> {
    let cpus = Cpus::choose();
    fs::create_dir_all(&options.data).map_err(BenchError::io("making the --data directory"))?;
    let mut machine = Machine::look(&options.data, cpus.there, cpus.star, cpus.client);
    let bench = Bench {
        options,
        cpus,
        program,
    };
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
    Ok(match report.missed() {
        missed if missed.is_empty() => Outcome::Measured,
        missed => Outcome::Missed(missed),
    })
}

/// What every scenario works with.
#[derive(Debug)]
pub struct Bench {
    /// What was asked for.
    pub options: Options,
    /// Who has which CPU.
    pub cpus: Cpus,
    /// What a star is made by.
    pub program: StarProgram,
}

impl Bench {
    /// Makes the folder of a scenario that will write at most `needed` bytes.
    pub fn folder(&self, what: &'static str, needed: u64) -> Result<Folder, BenchError> {
        Folder::make(&self.options.data, what, needed)
    }

    /// Starts a star of one core.
    pub fn star(&self, data: &Path) -> Result<Star, BenchError> {
        self.star_of(data, 1)
    }

    /// Starts a star.
    pub fn star_of(&self, data: &Path, cores: usize) -> Result<Star, BenchError> {
        self.star_with(data, cores, &[])
    }

    /// Starts a star with further words for its command line.
    pub fn star_with(&self, data: &Path, cores: usize, words: &[&str]) -> Result<Star, BenchError> {
        Star::start_with(&self.program, data, cores, self.options.spin_us, words)
    }

    /// Says on the error stream what goes on: a full run takes minutes.
    pub fn progress(&self, text: &str) {
        eprintln!("nova bench: {text}");
    }
}

/// A client of a star, from within the client's runtime.
pub fn connect(star: &Star) -> Result<Client, BenchError> {
    Client::connect(star.client_config()).map_err(BenchError::client("connecting"))
}
