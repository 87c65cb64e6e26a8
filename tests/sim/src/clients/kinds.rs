//! What kinds of clients a seed draws, and with what they ask.

use super::{EntityKind, ProducerKind, Surroundings};
use crate::expiry::KEPT_MIN;
use crate::history::{RecordId, body_of};
use nova_client::core::BatcherConfig;
use nova_client::core::fenced::WriteRules;
use nova_client::core::keyed::KeyedConfig;
use nova_model::request::{CoreSet, Request};
use nova_model::settings::{
    BucketChange, BucketSettings, ProducerPolicy, Retention, StreamSettings, TimestampMode,
};
use nova_model::{BucketName, CoreId, Record, Timestamp};

/// The most bytes of a batch of updates: a group must fit a small segment.
const UPDATES_BYTES_MAX: usize = 12_000;

/// A producer.
pub fn producer(around: &mut Surroundings<'_>) -> ProducerKind {
    let most = *around.rng.pick(&[10, 40, 120, 120, 400]);
    ProducerKind {
        stream: around.rng.pick(around.plain_streams()).clone(),
        has_writer: around.rng.chance(65),
        has_token: around.rng.chance(40),
        conditional: *around.rng.pick(&[0, 10, 100]),
        pushes: around.rng.between(3, most),
        pause_us_max: *around.rng.pick(&[300, 5_000, 60_000]),
        batching: BatcherConfig {
            batch_bytes: *around.rng.pick(&[64, 1_000, 20_000]),
            linger_us: *around.rng.pick(&[0, 0, 3_000]),
        },
    }
}

/// A process that writes entities until it is calm, at `calm_at`.
pub fn entity(around: &mut Surroundings<'_>, calm_at: u64) -> EntityKind {
    let times = |around: &mut Surroundings<'_>| {
        let count = around.rng.below(4);
        let mut times: Vec<u64> = (0..count).map(|_| around.rng.below(calm_at)).collect();
        times.sort_unstable();
        times
    };
    let deaths = times(around);
    let hangs = times(around).into_iter();
    let hangs = hangs.map(|at| (at, *around.rng.pick(&[3_000, 50_000, 400_000])));
    let hangs = hangs.collect();
    // With so little time for an attempt nothing may ever succeed, and each batch be given up.
    let (attempt_us, budgets) = match around.rng.below(3) {
        0 => (4_000, [100_000, 400_000]),
        1 => (40_000, [400_000, 5_000_000]),
        _ => (400_000, [5_000_000, 30_000_000]),
    };
    EntityKind {
        deaths,
        hangs,
        is_owner: around.rng.chance(50),
        updates: around.rng.between(5, 60),
        pause_us_max: *around.rng.pick(&[500, 8_000, 60_000]),
        throttled: *around.rng.pick(&[0, 3, 20]),
        rules: WriteRules {
            retry_budget_us: *around.rng.pick(&budgets),
            attempt_us,
            ..WriteRules::default()
        },
        keys: KeyedConfig {
            keys_in_flight: *around.rng.pick(&[1, 8]),
            queueing_max: *around.rng.pick(&[3, 1_000]),
            batch_inputs_max: *around.rng.pick(&[1, 4, 1_000]),
            batch_bytes_max: UPDATES_BYTES_MAX,
            ..KeyedConfig::default()
        },
    }
}

/// A record; some have a time of their client, maybe one to come, some a header.
pub(super) fn record_of(around: &mut Surroundings<'_>, id: RecordId) -> Record {
    let record = Record::new(body_of(id));
    match around.rng.below(4) {
        0 => {
            let back = around.rng.below(5_000_000);
            let wall = crate::node::reading(around.agenda.now()).wall.0;
            record.with_timestamp(Timestamp(wall + 1_000_000 - back))
        }
        1 => record.with_header(&b"kind"[..], &b"simulated"[..]),
        _ => record,
    }
}

/// So long and so much that nothing goes, and each time another one; or so little that records go,
/// where no entities need theirs.
pub(super) fn retention(around: &mut Surroundings<'_>) -> Retention {
    let is_short = around.forgets && around.entities().is_empty();
    match around.rng.below(4) {
        0..=2 if is_short && around.is_by_age => Retention {
            age_s: Some(around.rng.between(1, 3)),
            bytes: None,
        },
        0 if is_short => Retention {
            age_s: Some(around.rng.between(1, 3)),
            bytes: None,
        },
        1 | 2 if is_short => Retention {
            age_s: None,
            bytes: Some(around.rng.between(200, 60_000)),
        },
        _ => Retention {
            age_s: Some(KEPT_MIN + around.rng.below(KEPT_MIN)),
            bytes: (around.rng.chance(50)).then(|| KEPT_MIN + around.rng.below(KEPT_MIN)),
        },
    }
}

pub(super) fn settings(around: &mut Surroundings<'_>) -> StreamSettings {
    StreamSettings {
        policy: match around.rng.below(4) {
            0 => Some(ProducerPolicy::Fenced),
            1 => Some(ProducerPolicy::Any),
            _ => None,
        },
        timestamps: match around.rng.below(4) {
            0 => Some(TimestampMode::Arrival),
            _ => None,
        },
        retention: around.rng.chance(30).then(|| retention(around)),
        timestamps_uncapped: around.rng.chance(10).then(|| around.rng.chance(50)),
        delete_on_empty_s: around
            .rng
            .chance(10)
            .then(|| KEPT_MIN + around.rng.below(KEPT_MIN)),
    }
}

/// Other defaults of the bucket that is never deleted; now and then with a policy.
pub(super) fn defaults(around: &mut Surroundings<'_>) -> Request {
    let mut defaults = settings(around);
    defaults.policy = match around.rng.below(8) {
        0 => Some(ProducerPolicy::Fenced),
        1..=4 => Some(ProducerPolicy::Any),
        _ => None,
    };
    Request::ReconfigureBucket {
        name: around.streams[0].bucket.clone(),
        change: BucketChange {
            defaults,
            create_stream_on_append: around.rng.chance(50).then_some(true),
            ..BucketChange::default()
        },
    }
}

/// Drains and their ends, so that mostly some core is left.
pub(super) fn placement(around: &mut Surroundings<'_>) -> Request {
    let one = CoreSet::One(CoreId(
        around.rng.below(u64::from(around.cores.max(1))) as u16
    ));
    match around.rng.below(20) {
        0..=7 => Request::Drain { cores: one },
        8 => Request::Drain {
            cores: CoreSet::All,
        },
        9..=11 => Request::Undrain { cores: one },
        12..=15 => Request::Undrain {
            cores: CoreSet::All,
        },
        16 => Request::Status,
        _ => Request::Rebalance,
    }
}

pub(super) fn side_bucket(around: &mut Surroundings<'_>) -> Request {
    let text = format!("side-{}", around.rng.below(3));
    let name = BucketName::parse(&text).expect("a good name");
    match around.rng.below(3) {
        0 => Request::DeleteBucket { name },
        1 => Request::DescribeBucket { name },
        _ => Request::CreateBucket {
            name,
            settings: BucketSettings::default(),
            exclusive: false,
        },
    }
}
