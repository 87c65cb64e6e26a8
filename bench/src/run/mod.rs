//! Loads: each against a fresh star, or one that runs, with baselines before and after.
//!
//! ```text
//!   bare disk, network | star started, streams made | warm-up, load | read back | bare ... again
//! ```
//! # Invariants
//! - Streams of a load are new: what is read back is what it appended.

pub mod bare;
pub mod bodies;
pub mod conductor;
pub mod outcome;
pub mod pacer;
pub mod quantiles;
pub mod reading;
pub mod recorder;
pub mod schedule;
pub mod session;
pub mod worker;

use crate::Outcome;
use crate::args::LoadOptions;
use crate::cpus::{Cpus, Seats};
use crate::error::BenchError;
use crate::folder::{Folder, MIB};
use crate::machine::{Machine, Noise};
use crate::show::progress::Progress;
use crate::show::report::LoadReport;
use crate::star::{Star, StarProgram};
use crate::workload::{Pace, Shape, Workload, workloads};
use bare::Bare;
use bodies::{Bodies, Digest};
use conductor::{Conducted, Look, conduct};
use nova_client::{BucketName, BucketSettings, Client, ClientConfig, StreamName, StreamSettings};
use outcome::{LoadResult, Verified};
use recorder::Shared;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use worker::{Ended, Share};

/// The bucket of all streams.
const BUCKET: &str = "bench";
/// What a star may write in a second of a closed loop.
const CLOSED_BYTES_PER_S: f64 = 1e9;

/// What all loads of a run have.
struct Run<'a> {
    options: &'a LoadOptions,
    program: StarProgram,
    seats: Seats,
    id: u64,
}

/// The star of a load.
struct Target {
    config: ClientConfig,
    own: Option<Star>,
}

/// Measures the loads of a shape, and prints what they came to.
pub fn measure(
    shape: Shape,
    options: &LoadOptions,
    mut program: StarProgram,
) -> Result<Outcome, BenchError> {
    let loads = workloads(shape, options)?;
    if let Some(path) = &options.star.program {
        program.path.clone_from(path);
    }
    let data = &options.star.data;
    std::fs::create_dir_all(data).map_err(BenchError::io("making the --data directory"))?;
    let seats = Seats::choose(options.star.cores, options.star.star.is_some())?;
    let cpus = seats.bare();
    let mut machine = Machine::look(data, cpus.there, cpus.star, cpus.client);
    let noise = Noise::begin()?;
    let run = Run {
        options,
        program,
        seats,
        id: now_seconds(),
    };
    let mut results = Vec::new();
    for workload in loads {
        results.push(run.one(workload)?);
    }
    machine.look_again();
    let report = LoadReport::new(machine, noise.end()?, options, shape, results);
    if let Some(out) = &options.out {
        report.write(out)?;
    }
    if options.json {
        println!("{}", serde_json::to_string_pretty(&report)?);
    } else {
        print!("{}", report.to_text());
    }
    Ok(report.outcome())
}

impl Run<'_> {
    fn one(&self, workload: Workload) -> Result<LoadResult, BenchError> {
        let data = &self.options.star.data;
        let folder = Folder::make(data, workload.shape.name(), needed(&workload))?;
        let mut baselines = Vec::new();
        baselines.extend(self.bare(&folder, &workload)?);
        let target = self.target(&folder)?;
        let client = self.seats.bare();
        let streams = client.run_client(async || self.prepare(&target.config, &workload).await)?;
        let loaded = self.load(&workload, &target, &Arc::new(streams.clone()));
        if target.own.is_none() {
            client.run_client(async || remove(&target.config, streams).await)?;
        }
        let (conducted, verified) = loaded?;
        if let Some(star) = target.own {
            star.stop()?;
        }
        baselines.extend(self.bare(&folder, &workload)?);
        Ok(LoadResult::new(workload, conducted, verified, baselines))
    }

    fn bare(&self, folder: &Folder, workload: &Workload) -> Result<Option<Bare>, BenchError> {
        if self.options.no_baselines {
            return Ok(None);
        }
        let spin_us = self.options.star.spin_us;
        let cpus: Cpus = self.seats.bare();
        bare::measure(folder.path(), &cpus, workload, spin_us).map(Some)
    }

    fn target(&self, folder: &Folder) -> Result<Target, BenchError> {
        let which = &self.options.star;
        if let (Some(address), Some(authority)) = (&which.star, &which.ca) {
            let mut config = ClientConfig::new(address, authority);
            config.server_name.clone_from(&which.server_name);
            return Ok(Target { config, own: None });
        }
        let cores = self.seats.cores;
        let star = Star::start(&self.program, &folder.data("star"), cores, which.spin_us)?;
        Ok(Target {
            config: star.client_config(),
            own: Some(star),
        })
    }

    /// Makes the streams of a load.
    async fn prepare(
        &self,
        config: &ClientConfig,
        workload: &Workload,
    ) -> Result<Vec<StreamName>, BenchError> {
        let client = Client::connect(config.clone()).map_err(BenchError::client("connecting"))?;
        let bucket = BucketName::parse(BUCKET).expect("letters are legal");
        let made = client
            .ensure_bucket(bucket, BucketSettings::default())
            .await;
        made.map_err(BenchError::client("making the bucket"))?;
        let mut streams = Vec::with_capacity(workload.streams);
        let (id, cell) = (self.id, workload.producers);
        for number in 0..workload.streams {
            let name = format!("{BUCKET}/run-{id}-{cell}x{}-{number}", workload.streams);
            let name = StreamName::parse(&name).expect("letters, digits and dashes are legal");
            let made = client
                .create_stream(name.clone(), StreamSettings::default())
                .await;
            made.map_err(BenchError::client("making a stream"))?;
            streams.push(name);
        }
        client.close().await;
        Ok(streams)
    }

    fn load(
        &self,
        workload: &Workload,
        target: &Target,
        streams: &Arc<Vec<StreamName>>,
    ) -> Result<(Conducted, Verified), BenchError> {
        let progress = Progress::new(workload);
        let mut appending = workload.clone();
        if workload.shape == Shape::CatchUp {
            (appending.warm_up, appending.readers) = (Duration::ZERO, 0);
        }
        let shares = self.shares(&appending, target, streams);
        let appended = self.conduct(shares, &appending, target, &progress)?;
        let reads = match workload.shape {
            Shape::CatchUp => (0..workload.readers.max(1)).collect(),
            _ if workload.verify => (0..workload.streams).collect(),
            _ => Vec::new(),
        };
        if reads.is_empty() {
            return Ok((appended, Verified::NotAsked));
        }
        progress.says("reading back");
        let reads: Vec<usize> = reads.iter().map(|read| read % workload.streams).collect();
        let shares = self.reading(&appending, target, streams, &reads);
        let silent = progress.silent_unless(workload.shape == Shape::CatchUp);
        let mut look = appending.clone();
        look.warm_up = Duration::ZERO;
        let read = self.conduct(shares, &look, target, &silent)?;
        let verified = compare(&appended.ended, &read.ended, streams);
        if workload.shape == Shape::CatchUp {
            return Ok((read, verified));
        }
        Ok((appended, verified))
    }

    fn conduct(
        &self,
        shares: Vec<Share>,
        workload: &Workload,
        target: &Target,
        progress: &Progress,
    ) -> Result<Conducted, BenchError> {
        let mut look = Look {
            warm_up: workload.warm_up,
            duration: workload.duration,
            star: target.own.as_ref().map(Star::pid),
            tell: &mut |interval| progress.tell(interval),
        };
        conduct(shares, &self.seats.clients, &mut look)
    }

    /// An empty share for each of the client's CPUs.
    fn blank(
        &self,
        workload: &Workload,
        target: &Target,
        streams: &Arc<Vec<StreamName>>,
    ) -> Vec<Share> {
        let bodies = Arc::new(Bodies::new(workload.record_bytes, self.id));
        let is_over = Arc::default();
        let share = |_| Share {
            config: target.config.clone(),
            workload: workload.clone(),
            streams: Arc::clone(streams),
            sessions: Vec::new(),
            follows: Vec::new(),
            reads: Vec::new(),
            bodies: Arc::clone(&bodies),
            recorder: Shared::default(),
            is_over: Arc::clone(&is_over),
        };
        self.seats.clients.iter().map(share).collect()
    }

    fn shares(
        &self,
        workload: &Workload,
        target: &Target,
        streams: &Arc<Vec<StreamName>>,
    ) -> Vec<Share> {
        let mut shares = self.blank(workload, target, streams);
        let count = shares.len();
        for session in workload.sessions() {
            // All sessions of a client share its connections, so they are on one thread.
            shares[session.client % count].sessions.push(session);
        }
        for reader in 0..workload.readers {
            shares[reader % count]
                .follows
                .push(reader % workload.streams);
        }
        shares
    }

    fn reading(
        &self,
        workload: &Workload,
        target: &Target,
        streams: &Arc<Vec<StreamName>>,
        reads: &[usize],
    ) -> Vec<Share> {
        let mut shares = self.blank(workload, target, streams);
        let count = shares.len();
        for (number, &stream) in reads.iter().enumerate() {
            shares[number % count].reads.push(stream);
        }
        shares.retain(|share| !share.reads.is_empty());
        shares
    }
}

/// Deletes the streams of a load from a star that goes on.
async fn remove(config: &ClientConfig, streams: Vec<StreamName>) -> Result<(), BenchError> {
    let client = Client::connect(config.clone()).map_err(BenchError::client("connecting"))?;
    for name in streams {
        let deleted = client.delete_stream(name).await;
        deleted.map_err(BenchError::client("deleting a stream of the load"))?;
    }
    client.close().await;
    Ok(())
}

/// Holds what was read to what was acked.
fn compare(appended: &[Ended], read: &[Ended], streams: &[StreamName]) -> Verified {
    let mut acked: BTreeMap<usize, Digest> = BTreeMap::new();
    for (stream, digest) in appended.iter().flat_map(|end| &end.digests) {
        acked.entry(*stream).or_default().merge(digest);
    }
    let unsure: u64 = appended.iter().map(|end| end.failed).sum();
    let (mut records_acked, mut records_read) = (0, 0);
    let mut different = Vec::new();
    for (stream, found) in read.iter().flat_map(|end| &end.digests) {
        let expected = acked.get(stream).copied().unwrap_or_default();
        records_acked += expected.records;
        records_read += found.records;
        if expected != *found && (unsure == 0 || found.records <= expected.records) {
            different.push(streams[*stream].to_string());
        }
    }
    match (different.is_empty(), unsure) {
        (false, _) => Verified::Different { streams: different },
        (true, 0) => Verified::Same {
            records: records_read,
        },
        (true, _) if records_read <= records_acked + unsure => Verified::Unsure {
            acked: records_acked,
            read: records_read,
        },
        (true, _) => Verified::Different {
            streams: vec!["more records than were ever appended".to_owned()],
        },
    }
}

/// Bytes that a load and its baselines may write.
fn needed(workload: &Workload) -> u64 {
    let time = (workload.warm_up + workload.duration).as_secs_f64();
    let record = (workload.record_bytes + 512) as f64;
    let bytes = match (workload.pace, workload.records_max) {
        (Pace::Open { per_second }, _) => per_second as f64 * time * record,
        (Pace::Closed { .. }, Some(records)) => {
            let sessions = workload.producers.max(workload.streams) as f64;
            records as f64 * sessions * record
        }
        (Pace::Closed { .. }, None) => time * CLOSED_BYTES_PER_S,
    };
    (bytes * 1.25) as u64 + 1024 * MIB
}

fn now_seconds() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.unwrap_or_default().as_secs()
}

#[cfg(test)]
#[path = "run_tests.rs"]
mod tests;
