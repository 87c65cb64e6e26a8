//! A start of the star: recovery of every log, then a shard for each core.
//!
//! # Invariants
//! - The number of the start is raised durably before any segment is touched.
//! - Logs that no core writes any more are closed before any shard runs.

use super::core::{Bounds, Core};
use super::{Star, address_of};
use crate::agenda::Life;
use crate::disk::SimDisk;
use crate::disk::boot::Boot;
use crate::rng::Rng;
use nova_core::planted::PlantedBugs;
use nova_core::recovery::{RecoveredLog, RecoveryOptions, reconcile, recover};
use nova_core::{Shard, ShardConfig, ShardStart, StarIndexes};
use nova_model::names::BucketName;
use nova_model::request::BucketInfo;
use nova_model::{CoreId, Incarnation, LogId, StarId};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The star's identity; there is one star in a run.
const STAR: StarId = StarId(0x5eed);

/// What one more input can add to what is pending when the bound is nearly reached.
const PENDING_SLACK_BYTES: usize = 256 * 1024;

/// How a star is started.
#[derive(Debug, Clone)]
pub struct BootPlan {
    /// Cores of this start.
    pub cores: u16,
    /// Size of a segment's file.
    pub segment_bytes: u64,
    /// Memory for recent batches.
    pub recent_bytes: usize,
    /// Memory for what is admitted and not durable.
    pub ingress_bytes: usize,
    /// How long idle streams stay.
    pub idle_us: u64,
    /// Time between two looks at what has had its time.
    pub forget_us: u64,
    /// Bugs to find.
    pub planted: PlantedBugs,
    /// Serve everything else when something is damaged.
    pub allow_corrupt: bool,
    /// The call of recovery at which the process dies.
    pub dies_at_call: Option<u64>,
}

/// How a start ended.
pub enum BootEnd {
    /// The star runs.
    Running(Star, Vec<RecoveredLog>),
    /// The process died on the way, as planned.
    Died,
    /// Recovery refuses what it finds.
    Refused(String),
}

/// Starts the star.
pub fn boot(disk: &mut SimDisk, plan: &BootPlan, life: Life, rng: Rng) -> BootEnd {
    let incarnation = disk.next_incarnation();
    let mut logs: Vec<LogId> = (0..plan.cores).map(LogId).collect();
    logs.extend(disk.logs().into_iter().filter(|log| log.0 >= plan.cores));
    let mut storage = Boot::new(disk, plan.dies_at_call, rng);
    let mut recovered = Vec::new();
    for log in logs {
        let options = RecoveryOptions {
            allow_corrupt: plan.allow_corrupt,
            closing: (log.0 >= plan.cores).then_some(incarnation),
            planted: plan.planted,
        };
        match recover(&mut storage, log, STAR, options) {
            Ok(log) => recovered.push(log),
            Err(_) if storage.is_crashed() => return BootEnd::Died,
            Err(error) => return BootEnd::Refused(format!("{log} is refused: {error}")),
        }
    }
    // As a star does it: with another view of the disk.
    storage.forget_chosen();
    let options = RecoveryOptions {
        allow_corrupt: plan.allow_corrupt,
        closing: None,
        planted: plan.planted,
    };
    match reconcile(&mut storage, &mut recovered, options) {
        Ok(()) => {}
        Err(_) if storage.is_crashed() => return BootEnd::Died,
        Err(error) => return BootEnd::Refused(error.to_string()),
    }
    match shards(plan, incarnation, &recovered) {
        Ok(shards) => {
            let cores = (0..).map(CoreId).zip(shards);
            let bounds = Bounds {
                pending_bytes_max: plan.ingress_bytes + PENDING_SLACK_BYTES,
                recent_bytes_max: plan.recent_bytes,
            };
            let cores = cores.map(|(id, shard)| Core::new(id, shard, bounds));
            let cores = cores.collect();
            BootEnd::Running(Star { life, cores }, recovered)
        }
        Err(error) => BootEnd::Refused(error),
    }
}

fn shards(
    plan: &BootPlan,
    incarnation: Incarnation,
    recovered: &[RecoveredLog],
) -> Result<Vec<Shard>, String> {
    let indexes: StarIndexes = recovered
        .iter()
        .map(|log| (log.log, log.indexes.clone()))
        .collect();
    let indexes = Arc::new(indexes);
    let buckets = buckets(&recovered[0])?;
    let addresses: Vec<String> = (0..plan.cores).map(address_of).collect();
    let writable = recovered.iter().take(usize::from(plan.cores));
    let shards = writable.map(|log| {
        let core = CoreId(log.log.0);
        let mut config = ShardConfig::new(STAR, incarnation, core, addresses.clone());
        config.segment_bytes = plan.segment_bytes;
        config.recent_bytes = plan.recent_bytes;
        config.ingress_bytes = plan.ingress_bytes;
        config.idle_us = plan.idle_us;
        config.forget_us = plan.forget_us;
        config.planted = plan.planted;
        let start = ShardStart {
            end: log.end,
            next_number: log.next_number,
            indexes: Arc::clone(&indexes),
            released: log.released.clone(),
            buckets: buckets.clone(),
        };
        Shard::new(config, start)
    });
    Ok(shards.collect())
}

/// The buckets, as the newest segment of their home's log leaves them.
fn buckets(home: &RecoveredLog) -> Result<BTreeMap<BucketName, BucketInfo>, String> {
    match home.indexes.last() {
        None => Ok(BTreeMap::new()),
        Some(index) => index
            .buckets()
            .map_err(|damage| format!("the buckets cannot be read: {damage}")),
    }
}
