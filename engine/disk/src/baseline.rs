//! What the device itself can do, to hold the whole system's figures against.
//!
//! A closed loop, one write in flight, into space that was written before: 4 KiB as the smallest
//! commit, 1 MiB as the stream of full groups. Once through [`Driver`] and once through plain
//! blocking calls, in turns within one run, because the machine's state moves both by more than
//! they differ. The difference is what glommio and the driver cost.
//!
//! ```text
//!  each round:  driver 4 KiB | blocking 4 KiB | driver 1 MiB | blocking 1 MiB
//! ```
//!
//! # Invariants
//! - All files lie in a directory of their own below the one that is named, and go with it.
//!
//! # Not here
//! - Commits, groups, sessions: the benchmark measures those through the whole star.

use crate::{
    Completions, DEVICE_MEMORY_BYTES, DataDirectory, DirectoryError, Driver, DriverConfig,
    FileBootDisk, HugePages, SyncMode,
};
use bytes::Bytes;
use glommio::{LocalExecutorBuilder, Placement};
use nova_core::disk::{BootDisk, DiskError, DiskOp, DiskResult, OpToken, SegmentFile};
use nova_model::limits::{BLOCK_BYTES, ZERO_CHUNK_BYTES};
use nova_model::{LogId, SegmentNumber};
use rustix::fs::{FallocateFlags, OFlags, fallocate};
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::time::{Duration, Instant};

/// Bytes of one small write.
pub const SMALL_BYTES: usize = BLOCK_BYTES;
/// Bytes of one large write.
pub const LARGE_BYTES: usize = ZERO_CHUNK_BYTES;

/// Space that the writes go round in.
const SPACE_BYTES: u64 = 64 * LARGE_BYTES as u64;
const SEGMENT: SegmentFile = SegmentFile {
    log: LogId(0),
    number: SegmentNumber(1),
};

/// How much is measured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// How often the four measurements take turns.
    pub rounds: usize,
    /// Small writes of each round.
    pub small_writes: usize,
    /// Large writes of each round.
    pub large_writes: usize,
    /// How the driver makes writes durable; the blocking calls do the same.
    pub sync: SyncMode,
    /// The CPU that the loop runs on, or any.
    pub cpu: Option<usize>,
}

impl Default for Plan {
    fn default() -> Plan {
        let sync = SyncMode::default();
        Plan {
            rounds: 4,
            small_writes: 2_000,
            large_writes: 200,
            sync,
            cpu: None,
        }
    }
}

/// What a number of equal writes took.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Figures {
    /// Every write's time, ascending.
    times: Vec<Duration>,
    /// Bytes of one write.
    bytes: usize,
}

/// The four measurements.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Baseline {
    /// Small writes through the driver.
    pub driver_small: Figures,
    /// Small writes through blocking calls.
    pub blocking_small: Figures,
    /// Large writes through the driver.
    pub driver_large: Figures,
    /// Large writes through blocking calls.
    pub blocking_large: Figures,
}

/// Why there are no figures.
#[derive(Debug, thiserror::Error)]
pub enum BaselineError {
    /// The directory for the files could not be made.
    #[error(transparent)]
    Directory(#[from] DirectoryError),
    /// An operation of the driver failed.
    #[error(transparent)]
    Disk(#[from] DiskError),
    /// A blocking call failed.
    #[error("a file of the baseline failed: {0}")]
    Io(#[from] io::Error),
}

impl Figures {
    /// The time that `share` (0 to 1) of the writes were done in; zero without writes.
    pub fn quantile(&self, share: f64) -> Duration {
        let rank = (self.times.len() as f64 * share).ceil() as usize;
        let place = rank.clamp(1, self.times.len().max(1)) - 1;
        self.times.get(place).copied().unwrap_or_default()
    }

    /// Writes per second.
    pub fn per_second(&self) -> f64 {
        self.times.len() as f64 / self.total().as_secs_f64().max(f64::MIN_POSITIVE)
    }

    /// Millions of bytes per second.
    pub fn megabytes_per_second(&self) -> f64 {
        self.per_second() * self.bytes as f64 / 1e6
    }

    fn total(&self) -> Duration {
        self.times.iter().sum()
    }

    fn add(&mut self, bytes: usize, times: Vec<Duration>) {
        self.bytes = bytes;
        self.times.extend(times);
        self.times.sort_unstable();
    }
}

/// Measures in a directory of its own below `directory`. Not to be called inside of an executor.
pub fn measure(directory: &Path, plan: &Plan) -> Result<Baseline, BaselineError> {
    let root = directory.join(format!("nova-baseline-{}", std::process::id()));
    let opened = DataDirectory::open(&root)?;
    let measured = measure_in(&opened, plan);
    drop(opened);
    fs::remove_dir_all(&root)?;
    measured
}

fn measure_in(directory: &DataDirectory, plan: &Plan) -> Result<Baseline, BaselineError> {
    FileBootDisk::new(directory.layout().clone()).list(SEGMENT.log)?;
    let placement = plan.cpu.map_or(Placement::Unbound, Placement::Fixed);
    let executor = LocalExecutorBuilder::new(placement)
        .io_memory(DEVICE_MEMORY_BYTES)
        .make()
        .map_err(io::Error::from)?;
    executor.run(async {
        let through_driver = DriverTarget::new(directory, plan.sync).await?;
        let blocking = BlockingTarget::new(&directory.layout().root().join("blocking"), plan.sync)?;
        let (small, large) = (plan.small_writes, plan.large_writes);
        let mut baseline = Baseline {
            driver_small: Figures::default(),
            blocking_small: Figures::default(),
            driver_large: Figures::default(),
            blocking_large: Figures::default(),
        };
        for _ in 0..plan.rounds {
            let times = through_driver.writes(SMALL_BYTES, small).await?;
            baseline.driver_small.add(SMALL_BYTES, times);
            baseline
                .blocking_small
                .add(SMALL_BYTES, blocking.writes(SMALL_BYTES, small)?);
            let times = through_driver.writes(LARGE_BYTES, large).await?;
            baseline.driver_large.add(LARGE_BYTES, times);
            baseline
                .blocking_large
                .add(LARGE_BYTES, blocking.writes(LARGE_BYTES, large)?);
        }
        through_driver.driver.close().await;
        Ok(baseline)
    })
}

/// Where the n-th write goes: round and round in the space.
fn place(number: usize, bytes: usize) -> u64 {
    (number as u64 * bytes as u64) % SPACE_BYTES
}

struct DriverTarget {
    driver: Driver,
    completions: Completions,
}

impl DriverTarget {
    async fn new(directory: &DataDirectory, sync: SyncMode) -> Result<DriverTarget, BaselineError> {
        let completions = Completions::new();
        let queue = completions.clone();
        let config = DriverConfig {
            sync,
            ..DriverConfig::new(directory.layout().clone())
        };
        let driver = Driver::new(
            config,
            || Duration::ZERO,
            move |token, result| {
                queue.push(token, result);
            },
        );
        let driver = driver.await?;
        let target = DriverTarget {
            driver,
            completions,
        };
        target
            .act(DiskOp::CreateSegment {
                file: SEGMENT,
                length: SPACE_BYTES,
            })
            .await?;
        for number in 0..SPACE_BYTES as usize / ZERO_CHUNK_BYTES {
            let offset = place(number, ZERO_CHUNK_BYTES);
            target
                .act(DiskOp::Zero {
                    file: SEGMENT,
                    offset,
                    length: ZERO_CHUNK_BYTES,
                })
                .await?;
        }
        Ok(target)
    }

    async fn act(&self, op: DiskOp) -> Result<(), DiskError> {
        self.driver.submit(OpToken(0), op);
        match self.completions.next().await.1 {
            DiskResult::Failed(error) => Err(error),
            _ => Ok(()),
        }
    }

    async fn writes(&self, length: usize, count: usize) -> Result<Vec<Duration>, DiskError> {
        let content = Bytes::from(vec![0x5A; length]);
        let mut times = Vec::with_capacity(count);
        for number in 0..count {
            let begin = Instant::now();
            let (offset, parts) = (place(number, length), vec![content.clone()]);
            self.act(DiskOp::Write {
                file: SEGMENT,
                offset,
                parts,
                length,
            })
            .await?;
            times.push(begin.elapsed());
        }
        Ok(times)
    }
}

struct BlockingTarget {
    file: File,
    sync: SyncMode,
    content: HugePages,
}

impl BlockingTarget {
    fn new(path: &Path, sync: SyncMode) -> io::Result<BlockingTarget> {
        let flags = match sync {
            SyncMode::Dsync => OFlags::DIRECT | OFlags::DSYNC,
            SyncMode::Fdatasync => OFlags::DIRECT,
        };
        let file = File::options()
            .write(true)
            .create_new(true)
            .custom_flags(flags.bits() as i32)
            .open(path)?;
        fallocate(&file, FallocateFlags::empty(), 0, SPACE_BYTES)?;
        let mut content = HugePages::map(LARGE_BYTES)?;
        content.fill(0x5A);
        let target = BlockingTarget {
            file,
            sync,
            content,
        };
        target.writes(LARGE_BYTES, SPACE_BYTES as usize / LARGE_BYTES)?;
        Ok(target)
    }

    fn writes(&self, length: usize, count: usize) -> io::Result<Vec<Duration>> {
        let mut times = Vec::with_capacity(count);
        for number in 0..count {
            let begin = Instant::now();
            self.file
                .write_all_at(&self.content[..length], place(number, length))?;
            if self.sync == SyncMode::Fdatasync {
                self.file.sync_data()?;
            }
            times.push(begin.elapsed());
        }
        Ok(times)
    }
}

#[cfg(test)]
#[path = "baseline_tests.rs"]
mod tests;
