//! What a shard is told at its start.

use crate::planted::PlantedBugs;
use nova_model::limits;
use nova_model::{CoreId, Incarnation, LogId, StarId};

/// The fixed facts of a shard.
#[derive(Debug, Clone)]
pub struct ShardConfig {
    /// The star.
    pub star: StarId,
    /// This start of the star.
    pub incarnation: Incarnation,
    /// The core that the shard runs on; it writes the log of the same number.
    pub core: CoreId,
    /// The advertised address of each core, in their order.
    pub addresses: Vec<String>,
    /// Size of a segment file in bytes.
    pub segment_bytes: u64,
    /// Bytes of the newest batches that are kept in memory for followers.
    pub recent_bytes: usize,
    /// Bytes admitted and not yet durable above which no more appends are taken.
    pub ingress_bytes: usize,
    /// How long an idle stream stays in memory, in microseconds.
    pub idle_us: u64,
    /// Time between two looks at what has had its time, in microseconds.
    pub forget_us: u64,
    /// Free bytes below which appends are refused; by segments and file system if none.
    pub floor_bytes: Option<u64>,
    /// Mistakes that the simulator must find; none outside of it.
    pub planted: PlantedBugs,
}

impl ShardConfig {
    /// The defaults of [`limits`] for one core.
    pub fn new(
        star: StarId,
        incarnation: Incarnation,
        core: CoreId,
        addresses: Vec<String>,
    ) -> ShardConfig {
        assert!(
            usize::from(core.0) < addresses.len(),
            "a core has an address"
        );
        ShardConfig {
            star,
            incarnation,
            core,
            addresses,
            segment_bytes: limits::SEGMENT_BYTES_DEFAULT,
            recent_bytes: limits::RECENT_BYTES_DEFAULT,
            ingress_bytes: limits::INGRESS_BYTES_DEFAULT,
            idle_us: limits::LEADERSHIP_IDLE_US,
            forget_us: limits::FORGET_US,
            floor_bytes: None,
            planted: PlantedBugs::default(),
        }
    }

    /// The log that the core writes.
    pub fn log(&self) -> LogId {
        LogId(self.core.0)
    }

    /// Number of cores of the star.
    pub fn cores(&self) -> u16 {
        self.addresses.len() as u16
    }
}
