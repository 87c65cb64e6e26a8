//! A star on a device whose power can be cut, and its ways up and down.
//!
//! ```text
//!   rise      power, mount (the journal is replayed), a start of the star
//!   fall      SIGKILL, the file system is taken away; the power has gone before
//! ```
//! What chance decides about a life: how many cores the star has, how it makes writes durable, how
//! slow the device is.

use crate::{POWER_DISK, SITE};
use nova_e2e::chance::Chance;
use nova_e2e::history::{Event, History};
use nova_e2e::home::{Home, Star};
use nova_e2e::small_disk::Kind as FileSystem;
use nova_powercut::device::{Cut, Kind, Survivors};
use nova_powercut::disk::{Ordered, PowerDisk};
use nova_powercut::order::Order;
use std::time::Duration;

/// The device's size.
const DEVICE_MIB: u64 = 512;
/// How long clients try: longer than a few starts in a row that are cut.
const RETRY_BUDGET: Duration = Duration::from_secs(300);
/// Milliseconds that a flush takes longer, in a life.
const DELAYS_MS: [u64; 4] = [0, 0, 2, 10];

/// A star, its home, the device.
pub struct Scene {
    // Dropped first: a star whose device hangs cannot be killed.
    pub disk: PowerDisk,
    pub star: Option<Star>,
    pub home: Home,
    pub chance: Chance,
    /// Cuts so far.
    pub cuts: u64,
    is_mounted: bool,
}

impl Scene {
    /// An empty file system and no star yet; nothing, and a printed line, where the machine lacks
    /// something.
    pub fn of(kind: FileSystem, seed: u64) -> Option<Scene> {
        let mut home = Home::new(SITE);
        match PowerDisk::of(&mut home, POWER_DISK, kind, DEVICE_MIB, seed) {
            Ok(disk) => Some(Scene {
                disk,
                star: None,
                home,
                chance: Chance(seed),
                cuts: 0,
                is_mounted: false,
            }),
            Err(missing) => {
                println!("not run: {missing}");
                None
            }
        }
    }

    /// The first start, after which clients know whom to trust.
    pub fn start_first(&mut self) {
        self.rise();
        let authorities = std::fs::read(self.disk.path("tls/ca.pem"));
        self.home.trust(authorities.expect("a star that is ready"));
        self.home.set_retry_budget(RETRY_BUDGET);
    }

    /// The running star.
    pub fn star(&self) -> &Star {
        self.star.as_ref().expect("it was started")
    }

    /// The star is ready on what survived. A mount or a start that does not succeed fails the test.
    #[track_caller]
    pub fn rise(&mut self) {
        self.choose_life();
        let mounted = self.disk.mount();
        self.is_mounted = true;
        assert_eq!(mounted, Ok(()), "after {} cuts", self.cuts);
        self.star = Some(self.home.start());
    }

    /// The same with a cut on the way: in the replay of the journal, in the start, or at the latest
    /// when the star is ready. Then everything is down.
    #[track_caller]
    pub fn rise_and_be_cut(&mut self, operations_max: u64) {
        self.choose_life();
        let operations = 1 + self.chance.below(operations_max);
        let ordered = self.set_cut(operations, Survivors::Some);
        let mounted = self.disk.mount();
        self.is_mounted = mounted.is_ok();
        match mounted {
            Ok(()) => {
                let star = self.star.insert(self.home.begin());
                star.process().wait_for_line_or_end(|line| line == "ready");
            }
            Err(error) => assert!(self.disk.has_happened(ordered), "{error}"),
        }
        if !self.disk.has_happened(ordered) {
            self.cut_now(Survivors::Some);
        }
        self.fall();
    }

    /// The power goes with the last of so many operations from now on.
    pub fn set_cut(&mut self, operations: u64, survivors: Survivors) -> Ordered {
        let seed = self.chance.below(u64::MAX);
        self.disk.begin(Order::Cut(Cut {
            operations,
            seed,
            survivors,
        }))
    }

    /// The power goes.
    #[track_caller]
    pub fn cut_now(&mut self, survivors: Survivors) {
        let ordered = self.set_cut(0, survivors);
        self.disk.wait_for(ordered);
    }

    /// The power goes, only what is on the medium survives, and the star is ready on that.
    #[track_caller]
    pub fn lose_cache_and_rise(&mut self, history: &History) {
        self.cut_now(Survivors::None);
        self.fall();
        history.note(Event::Killed);
        self.rise();
    }

    /// What a cut leaves of the processes and mounts: nothing.
    #[track_caller]
    pub fn fall(&mut self) {
        self.cuts += 1;
        if let Some(star) = self.star.take() {
            star.kill();
        }
        if std::mem::take(&mut self.is_mounted) {
            self.disk.unmount();
        }
    }

    fn choose_life(&mut self) {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let chosen = 1 + self.chance.below(cores.min(2) as u64) as usize;
        self.home.set_cores(chosen);
        self.home.clear_flags();
        if self.chance.hits(1, 3) {
            self.home.add_flag("--sync=fdatasync");
        }
        self.disk.order(Order::On);
        let delay = DELAYS_MS[self.chance.below(DELAYS_MS.len() as u64) as usize];
        self.disk.order(Order::Delay(Kind::Flush, delay));
    }
}
