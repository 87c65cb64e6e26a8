//! What a seed decides before anything happens: sizes, clients, faults and their times.
//!
//! # Invariants
//! - The plan depends on the seed and the options alone.

use crate::bugs::{Bug, ClientBug};
use crate::node::BootPlan;
use crate::rng::Rng;
use nova_model::StreamName;
use nova_model::limits::REWRITE_SAVED_BYTES_MIN;

/// Operations that a crash may wait for where much is forgotten.
const FORGETTING: [&str; 4] = ["recycle", "recycle", "draft", "place"];

/// In so many of 100 runs what is done in the background fails for a while, in as many the wall
/// clock is behind, and in as many there is little space: of all, and of those that forget much.
const ASIDE_PERCENT: u64 = 25;
const ASIDE_PERCENT_MUCH: u64 = 60;

/// More seconds than any age that a run comes to.
const AGE_S_MAX: u64 = 60;

/// How a run is made besides its seed.
#[derive(Debug, Clone, Copy, Default)]
pub struct Options {
    /// The bug to plant.
    pub bug: Option<Bug>,
    /// Whether the disk's locks work; decided by the seed if nothing is said.
    pub locks_work: Option<bool>,
    /// Whether the lines of the story are kept.
    pub with_lines: bool,
    /// Whether cold data is left alone at the end of a run.
    pub without_damage: bool,
    /// Whether much is trimmed and segments go often; decided by the seed if nothing is said.
    pub forgets: Option<bool>,
}

/// Something that goes wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The process is killed; its writes land later.
    Kill,
    /// The power is cut.
    PowerCut,
    /// The process stops in order.
    Stop,
    /// A link breaks.
    CutLink,
    /// The disk becomes this many times slower.
    Slowness(u64),
    /// No file finds space for so long.
    FullDisk(u64),
    /// The next write of a group fails.
    FailWrite,
    /// For so long what is done in the background may fail, by the numbers of a seed.
    FailBackground(u64, u64),
    /// For so long the wall clock is so many seconds behind.
    ClockBack(u64, u64),
    /// For so long no more is free than so many segments take.
    LittleSpace(u64, u64),
    /// Spare files with old content are left in the logs' directories.
    OldSpares,
}

/// The plan of a run.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Faults with their times, in order.
    pub faults: Vec<(u64, Fault)>,
    /// When the faults end and the clients finish.
    pub calm_at: u64,
    /// The first start; later ones may have other cores.
    pub boot: BootPlan,
    /// Whether the disk's locks work.
    pub locks_work: bool,
    /// Whether much is trimmed, segments are small, and crashes come while one is recycled.
    pub forgets: bool,
    /// Whether bits turn in cold data at the end.
    pub damages: bool,
    /// The longest usual time of a piece on a link.
    pub delay_us_max: u64,
    /// Streams; the first are never deleted.
    pub streams: Vec<StreamName>,
    /// How many of them.
    pub stable: usize,
    /// How many of the streams are entities; they come last.
    pub entities: usize,
    /// How many clients of each kind: producers, readers, control clients, entity writers, listers.
    pub clients: [u64; 5],
    /// The safeguard that clients leave out.
    pub client_bug: Option<ClientBug>,
}

impl Plan {
    /// The plan of a seed.
    pub fn new(rng: &mut Rng, options: &Options) -> Plan {
        let most = *rng.pick(&[600_000, 2_500_000, 2_500_000, 10_000_000]);
        let calm_at = rng.between(300_000, most);
        let drawn = rng.chance(30);
        let forgets = options.forgets.unwrap_or(drawn);
        let mut boot = BootPlan {
            cores: rng.between(1, 3) as u16,
            forget_us: *rng.pick(&[3_000, 20_000, 200_000]),
            // A group must fit a segment, and a group holds at most what may be pending.
            segment_bytes: *rng.pick(&[128 * 1024, 256 * 1024, 512 * 1024]),
            recent_bytes: *rng.pick(&[4 * 1024, 64 * 1024, 1024 * 1024]),
            ingress_bytes: *rng.pick(&[16 * 1024, 48 * 1024]),
            idle_us: *rng.pick(&[5_000, 100_000, 30_000_000]),
            planted: Bug::of_star(options.bug),
            allow_corrupt: false,
            dies_at_call: None,
        };
        if forgets {
            // Of the smallest there are many, but none is worth rewriting; small groups fit them.
            let is_smallest = boot.segment_bytes < 512 * 1024;
            (boot.forget_us, boot.segment_bytes) = (3_000, 128 * 1024);
            if is_smallest {
                (boot.segment_bytes, boot.ingress_bytes) = (64 * 1024, 16 * 1024);
            }
        }
        let stable = rng.between(1, 3) as usize;
        let churned = rng.below(3) as usize;
        let writers = *rng.pick(&[0, 0, 2, 3]);
        let entities = if writers == 0 { 0 } else { rng.between(1, 2) };
        let entities = entities as usize;
        let name = |n: usize| {
            let text = match n {
                _ if n < stable => format!("main/s{n}"),
                _ if n < stable + churned => format!("side-0/d{n}"),
                _ => format!("main/e{n}"),
            };
            StreamName::parse(&text).expect("a good name")
        };
        let locks = rng.chance(75);
        Plan {
            faults: faults(rng, calm_at, forgets),
            calm_at,
            boot,
            locks_work: options.locks_work.unwrap_or(locks),
            forgets,
            damages: !options.without_damage,
            delay_us_max: *rng.pick(&[60, 400, 5_000]),
            streams: (0..stable + churned + entities).map(name).collect(),
            stable,
            entities,
            clients: [
                rng.between(1, 4),
                rng.between(1, 3),
                rng.between(1, 2),
                writers,
                rng.below(3),
            ],
            client_bug: Bug::of_clients(options.bug),
        }
    }

    /// Whether records go by their age rather than otherwise: where the clock is far behind.
    pub fn is_by_age(&self) -> bool {
        let is_far_behind =
            |(_, fault): &(u64, Fault)| matches!(fault, Fault::ClockBack(_, AGE_S_MAX..));
        self.faults.iter().any(is_far_behind)
    }

    /// The kind of operation that a crash waits for.
    pub fn crash_waits_for(&self, rng: &mut Rng) -> &'static str {
        let kinds: &[&'static str] = match self.forgets && rng.chance(50) {
            true if self.boot.segment_bytes <= REWRITE_SAVED_BYTES_MIN => &["recycle"],
            true => &FORGETTING,
            false => &["write"],
        };
        kinds[rng.below(kinds.len() as u64) as usize]
    }
}

fn faults(rng: &mut Rng, calm_at: u64, forgets: bool) -> Vec<(u64, Fault)> {
    let mut faults = Vec::new();
    for _ in 0..rng.below(6) {
        let cut = Fault::PowerCut;
        let fault = *rng.pick(&[Fault::Kill, Fault::Kill, cut, cut, Fault::Stop]);
        faults.push((rng.below(calm_at), fault));
    }
    for _ in 0..rng.below(8) {
        faults.push((rng.below(calm_at), Fault::CutLink));
    }
    for _ in 0..rng.below(3) {
        let fault = match rng.below(4) {
            0 => Fault::FullDisk(rng.between(10_000, 2_000_000)),
            1 => Fault::FailWrite,
            2 => Fault::OldSpares,
            _ => Fault::Slowness(*rng.pick(&[1, 5, 30])),
        };
        faults.push((rng.below(calm_at), fault));
    }
    // Drawn aside, so that the other faults of a seed are the same with and without it.
    let mut aside = rng.clone().fork();
    let percent = match forgets {
        true => ASIDE_PERCENT_MUCH,
        false => ASIDE_PERCENT,
    };
    if aside.chance(percent) {
        let fault = Fault::FailBackground(aside.between(10_000, 3_000_000), aside.number());
        faults.push((aside.below(calm_at), fault));
    }
    if aside.chance(percent) {
        let seconds = *aside.pick(&[1, AGE_S_MAX, 86_400, 1_600_000_000]);
        let fault = Fault::ClockBack(aside.between(10_000, 1_000_000), seconds);
        faults.push((aside.below(calm_at), fault));
    }
    if aside.chance(percent) {
        let fault = Fault::LittleSpace(aside.between(10_000, 3_000_000), aside.between(2, 14));
        faults.push((aside.below(calm_at), fault));
    }
    faults.sort_by_key(|(time, _)| *time);
    faults
}
