//! The JSON of a star and its cores, typed.

use super::whole::Whole;
use nova_model::CoreId;
use nova_model::request::{CoreStatus, StarInfo, StarStatus, StreamMove};
use serde::Serialize;
use utoipa::ToSchema;

/// A star.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Star)]
pub(crate) struct StarShape {
    star: String,
    /// How often it was started.
    incarnation: Whole,
    cores: Vec<CoreShape>,
}

/// A core of a star.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Core)]
pub(crate) struct CoreShape {
    core: u16,
    /// Where sessions dial it, `HOST:PORT`.
    address: String,
}

impl From<&StarInfo> for StarShape {
    fn from(info: &StarInfo) -> StarShape {
        let cores = info.cores.iter();
        StarShape {
            star: info.star.to_string(),
            incarnation: Whole(info.incarnation.0),
            cores: cores
                .map(|core| CoreShape {
                    core: core.core.0,
                    address: core.address.clone(),
                })
                .collect(),
        }
    }
}

/// Which cores are drained now.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Placement)]
pub(crate) struct PlacementShape {
    /// The cores, ascending.
    pub(crate) drained: Vec<u16>,
    /// Streams that were handed from one core to another for it.
    pub(crate) moved: Whole,
}

impl PlacementShape {
    pub(crate) fn new(drained: &[CoreId], moved: u64) -> PlacementShape {
        PlacementShape {
            drained: drained.iter().map(|core| core.0).collect(),
            moved: Whole(moved),
        }
    }
}

/// What a rebalance moved.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Rebalanced)]
pub(crate) struct RebalancedShape {
    pub(crate) moves: Vec<MoveShape>,
    /// Whether a further rebalance would find more to do.
    pub(crate) has_more: bool,
}

/// A stream that went from one core to another.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Move)]
pub(crate) struct MoveShape {
    /// BUCKET/KEY.
    stream: String,
    from: u16,
    to: u16,
}

impl From<&StreamMove> for MoveShape {
    fn from(moved: &StreamMove) -> MoveShape {
        MoveShape {
            stream: moved.name.to_string(),
            from: moved.from.0,
            to: moved.to.0,
        }
    }
}

/// A star and each of its cores as they are at the moment.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = StarStatus)]
pub(crate) struct StatusShape {
    star: String,
    /// How often it was started.
    incarnation: Whole,
    cores: Vec<CoreStatusShape>,
}

/// A core as it is at the moment. Rates are means that forget within some ten seconds.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = CoreStatus)]
pub(crate) struct CoreStatusShape {
    core: u16,
    /// Where sessions dial it, `HOST:PORT`.
    address: String,
    /// Whether it is drained: it leads nothing.
    is_drained: bool,
    /// Whether its disk has no space for appends.
    is_disk_full: bool,
    streams_led: Whole,
    streams_loaded: Whole,
    streams_moving: Whole,
    sessions: Whole,
    readers: Whole,
    appended_bytes_per_s: Whole,
    appended_records_per_s: Whole,
    read_bytes_per_s: Whole,
    segments: Whole,
    log_bytes: Whole,
    pending_bytes: Whole,
    recent_bytes: Whole,
}

impl From<&StarStatus> for StatusShape {
    fn from(status: &StarStatus) -> StatusShape {
        StatusShape {
            star: status.star.to_string(),
            incarnation: Whole(status.incarnation.0),
            cores: status.cores.iter().map(CoreStatusShape::from).collect(),
        }
    }
}

impl From<&CoreStatus> for CoreStatusShape {
    fn from(core: &CoreStatus) -> CoreStatusShape {
        CoreStatusShape {
            core: core.core.0,
            address: core.address.clone(),
            is_drained: core.is_drained,
            is_disk_full: core.is_disk_full,
            streams_led: Whole(core.streams_led),
            streams_loaded: Whole(core.streams_loaded),
            streams_moving: Whole(core.streams_moving),
            sessions: Whole(core.sessions),
            readers: Whole(core.readers),
            appended_bytes_per_s: Whole(core.appended_bytes_per_s),
            appended_records_per_s: Whole(core.appended_records_per_s),
            read_bytes_per_s: Whole(core.read_bytes_per_s),
            segments: Whole(core.segments),
            log_bytes: Whole(core.log_bytes),
            pending_bytes: Whole(core.pending_bytes),
            recent_bytes: Whole(core.recent_bytes),
        }
    }
}
