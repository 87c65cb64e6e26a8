//! One run: star, disk, links and clients on virtual time, from a plan.
//!
//! ```text
//!   faults and work ---calm_at---> no more faults, clients finish ---> orderly stop, last audit
//! ```
//!
//! # Invariants
//! - Before each start the disk is audited against all that was told.
//! - A run ends with the first finding.

mod faults;

use crate::agenda::{Agenda, Happening, Life};
use crate::clients::{
    Client, Control, EntityClient, Lister, ProducerClient, ReaderClient, Surroundings, kinds,
};
use crate::cold;
use crate::desk;
use crate::disk::SimDisk;
use crate::network::{LinkId, Network, Side, Way};
use crate::node::{BootEnd, Ground, Star, TurnEnd, boot};
use crate::oracle::Oracle;
use crate::plan::{Fault, Options, Plan};
use crate::rng::Rng;
use crate::trace::{Trace, words_of};
use nova_model::CoreId;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Virtual time that the clients have to finish once it is calm.
const CALM_US_MAX: u64 = 120_000_000;
/// Bits that turn in cold data at the end of a run, one at a time.
const DAMAGED_BITS: usize = 2;
/// Happenings after which a run goes round in circles.
const HAPPENINGS_MAX: u64 = 3_000_000;

/// How a run went.
#[derive(Debug)]
pub struct Report {
    /// The seed.
    pub seed: u64,
    /// The first broken promise.
    pub finding: Option<String>,
    /// The hash of the story.
    pub hash: u64,
    /// Happenings in it.
    pub events: u64,
    /// Things that were checked.
    pub checks: u64,
    /// Records that were acked.
    pub records: u64,
    /// Starts of the star.
    pub starts: u64,
    /// The lines of the story, if they were kept.
    pub lines: Vec<String>,
}

struct World {
    plan: Plan,
    agenda: Agenda,
    network: Network,
    disk: SimDisk,
    star: Option<Star>,
    clients: Vec<Client>,
    wakes: Vec<Option<u64>>,
    oracle: Oracle,
    trace: Trace,
    rng: Rng,
    life: Life,
    cores: u16,
    disk_slowness: u64,
    /// A crash that waits for an operation of this kind to be on its way to the disk.
    armed: Option<(Fault, &'static str)>,
    is_calm: bool,
}

/// Runs a seed.
pub fn run(seed: u64, options: &Options) -> Report {
    let mut rng = Rng::new(seed);
    let plan = Plan::new(&mut rng, options);
    let mut world = World {
        agenda: Agenda::default(),
        network: Network::new(rng.fork(), plan.delay_us_max),
        disk: SimDisk::new(plan.locks_work),
        star: None,
        clients: Vec::new(),
        wakes: Vec::new(),
        oracle: Oracle::default(),
        trace: Trace::new(options.with_lines),
        rng,
        life: Life(0),
        cores: plan.boot.cores,
        disk_slowness: 1,
        armed: None,
        is_calm: false,
        plan,
    };
    // A failed assertion ends the run as a finding, so that it comes with its seed and story.
    let played = catch_unwind(AssertUnwindSafe(|| {
        world.begin();
        world.go();
    }));
    if let Err(panic) = played {
        world.oracle.found(words_of(&*panic));
    }
    let World {
        oracle,
        trace,
        life,
        ..
    } = world;
    let acked = |sent: &&crate::history::Sent| matches!(sent.fate, crate::history::Fate::Acked(..));
    Report {
        seed,
        finding: oracle.finding().map(str::to_owned),
        hash: trace.hash(),
        events: trace.events(),
        checks: oracle.checks,
        records: oracle.history.sent.iter().filter(acked).count() as u64,
        starts: life.0,
        lines: trace.into_lines(),
    }
}

impl World {
    fn begin(&mut self) {
        let plan = format!("{:?}", self.plan);
        self.trace.note(0, "plan", 0, || plan);
        self.agenda.at(0, Happening::Boot);
        self.agenda.at(self.plan.calm_at, Happening::SpaceAgain);
        for (n, (time, _)) in self.plan.faults.iter().enumerate() {
            self.agenda.at(*time, Happening::Fault(n));
        }
        for name in &self.plan.streams {
            self.oracle.history.names.entry(name.clone()).or_default();
        }
        let [producers, readers, controls, writers, listers] = self.plan.clients;
        let calm_at = self.plan.calm_at;
        for n in 0..producers + readers + controls + writers + listers {
            self.with_surroundings(n as usize, |world_clients, around| {
                let client = if n < controls {
                    let requests = around.rng.between(5, 60);
                    Client::Control(Box::new(Control::new(around, requests)))
                } else if n < controls + producers {
                    let kind = kinds::producer(around);
                    Client::Producer(Box::new(ProducerClient::new(around, kind)))
                } else if n < controls + producers + readers {
                    let reads = around.rng.between(1, 12);
                    Client::Reader(Box::new(ReaderClient::new(around, reads)))
                } else if n < controls + producers + readers + writers {
                    let kind = kinds::entity(around, calm_at);
                    Client::Entity(Box::new(EntityClient::new(around, kind)))
                } else {
                    let pages = around.rng.between(5, 60);
                    Client::Lister(Box::new(Lister::new(around, pages)))
                };
                world_clients.push(client);
            });
            let first = self.rng.between(1, 60_000);
            self.agenda.at(first, Happening::Client(n as usize));
        }
    }

    fn go(&mut self) {
        let mut count = 0;
        while self.oracle.finding().is_none() {
            count += 1;
            if count > HAPPENINGS_MAX {
                self.oracle
                    .found("the run goes round in circles".to_owned());
                return;
            }
            if !self.is_calm && self.agenda.now() >= self.plan.calm_at {
                self.calm_down();
            }
            if self.is_calm && self.is_over() {
                break;
            }
            if self.agenda.now() > self.plan.calm_at + CALM_US_MAX {
                return self.is_stuck();
            }
            let Some(happening) = self.agenda.next() else {
                return self.is_stuck();
            };
            self.happen(happening);
        }
        if self.oracle.finding().is_none() {
            self.last_audit();
        }
    }

    fn is_over(&self) -> bool {
        self.star.is_some() && self.clients.iter().all(Client::is_done)
    }

    fn is_stuck(&mut self) {
        let waiting = self.clients.iter().enumerate();
        let waiting: Vec<String> = waiting
            .filter(|(_, client)| !client.is_done())
            .map(|(n, client)| format!("{n}: {}", client.state()))
            .collect();
        let text = format!("in calm times it does not come to an end: {waiting:#?}");
        self.oracle.found(text);
    }

    fn calm_down(&mut self) {
        self.is_calm = true;
        self.armed = None;
        self.disk_slowness = 1;
        self.disk.heal();
        self.set_clock(0);
        self.trace.note(self.agenda.now(), "calm", 0, String::new);
        for n in 0..self.clients.len() {
            self.agenda.after(0, Happening::Client(n));
        }
    }

    fn last_audit(&mut self) {
        let end = self.with_star(|star, ground| star.finish(ground));
        self.judge_turn(end);
        self.audit();
        if self.plan.damages {
            self.damage_cold_data();
        }
    }

    fn damage_cold_data(&mut self) {
        let mut plan = self.plan.boot.clone();
        plan.cores = self.cores;
        for _ in 0..DAMAGED_BITS {
            if self.oracle.finding().is_some() {
                return;
            }
            let (now, names) = (self.agenda.now(), &self.plan.streams);
            let oracle = &mut self.oracle;
            if let Err(text) = cold::check(oracle, &self.disk, &plan, names, now, &mut self.rng) {
                self.oracle.found(text);
            }
        }
    }

    fn happen(&mut self, happening: Happening) {
        self.oracle.history.clock = self.agenda.now();
        match happening {
            Happening::Boot => self.boot(),
            Happening::Turn(life, core) if self.is_alive(life) => {
                let end = self.with_star(|star, ground| star.turn(ground, core));
                self.judge_turn(end);
            }
            Happening::DiskDone(life, core, token) if self.is_alive(life) => {
                self.with_star(|star, ground| star.disk_done(ground, core, token));
            }
            Happening::Mail(life, to, from, mail) if self.is_alive(life) => {
                self.with_star(|star, ground| star.mail(ground, to, from, mail));
            }
            Happening::Turn(..) | Happening::DiskDone(..) | Happening::Mail(..) => {}
            Happening::Arrival(link, way) => self.arrival(link, way),
            Happening::Room(link) => self.star_link_moves(link),
            Happening::Lost(link, side) => self.lost(link, side),
            Happening::Client(n) => self.with_client(n, Client::step),
            Happening::Fault(n) => self.fault(self.plan.faults[n].1),
            Happening::SpaceAgain => self.disk.make_space(),
            Happening::BackgroundAgain => self.disk.mend(),
            Happening::ClockAgain => self.set_clock(0),
            Happening::Late => self.land_late(),
        }
    }

    fn is_alive(&self, life: Life) -> bool {
        self.star.as_ref().is_some_and(|star| star.life() == life)
    }

    fn judge_turn(&mut self, end: Option<TurnEnd>) {
        match end {
            None | Some(TurnEnd::Done) => self.strike_if_armed(),
            Some(TurnEnd::Wrong(text)) => self.oracle.found(text),
            Some(TurnEnd::Fatal(text)) => {
                let now = self.agenda.now();
                self.trace.note(now, "fatal", 0, || text);
                self.crash(Fault::Kill);
            }
        }
    }

    fn strike_if_armed(&mut self) {
        if let Some((fault, kind)) = self.armed
            && self
                .star
                .as_ref()
                .is_some_and(|star| star.has_in_flight(kind))
        {
            self.armed = None;
            self.crash(fault);
        }
    }

    fn arrival(&mut self, link: LinkId, way: Way) {
        self.network.arrive(link, way);
        match way {
            Way::Up => self.star_link_moves(link),
            Way::Down => {
                if let Some((client, _)) = self.network.ends(link) {
                    self.with_client(client, Client::step);
                }
            }
        }
    }

    fn star_link_moves(&mut self, link: LinkId) {
        if let Some(core) = self.network.star_end(link) {
            self.with_star(|star, ground| star.link_moves(ground, link, core));
        }
    }

    fn lost(&mut self, link: LinkId, side: Side) {
        let Some((client, _)) = self.network.ends(link) else {
            return;
        };
        match side {
            Side::Client => {
                self.with_client(client, |client, around| client.lost(around, link));
                self.network.leave(&mut self.agenda, link, Side::Client);
            }
            Side::Star => {
                if let Some(core) = self.network.star_end(link) {
                    self.with_star(|star, ground| star.link_lost(ground, link, core));
                    self.network.leave(&mut self.agenda, link, Side::Star);
                }
            }
        }
    }

    fn boot(&mut self) {
        self.audit();
        if self.oracle.finding().is_some() {
            return;
        }
        if self.rng.chance(25) {
            self.cores = self.rng.between(1, 3) as u16;
        }
        self.life = Life(self.life.0 + 1);
        let mut plan = self.plan.boot.clone();
        plan.cores = self.cores;
        if !self.is_calm && self.rng.chance(20) {
            plan.dies_at_call = Some(self.rng.between(1, 30));
        }
        let (now, life) = (self.agenda.now(), self.life);
        let end = boot(&mut self.disk, &plan, life, self.rng.fork());
        let cores = plan.cores;
        let older = self.disk.gone_back.take();
        self.oracle.started_with_an_older(older);
        match end {
            BootEnd::Running(star, recovered) => {
                self.trace.note(now, "boot", u64::from(cores), || {
                    let reports = recovered.iter().map(|log| log.report.to_string());
                    format!("{life:?} {cores} cores: {:?}", reports.collect::<Vec<_>>())
                });
                self.star = Some(star);
                self.oracle.started();
                for core in 0..cores {
                    let turn = Happening::Turn(life, CoreId(core));
                    self.agenda.after(0, turn);
                }
            }
            BootEnd::Died => {
                self.trace
                    .note(now, "boot", 0, || "dies on the way".to_owned());
                let wait = self.rng.between(500, 50_000);
                self.agenda.after(wait, Happening::Boot);
            }
            BootEnd::Refused(text) => self.oracle.found(text),
        }
    }

    fn audit(&mut self) {
        let names: Vec<_> = self.oracle.history.names.keys().cloned().collect();
        let mut plan = self.plan.boot.clone();
        plan.cores = self.cores;
        match desk::contents(&self.disk, &plan, &names, self.agenda.now()) {
            Ok(contents) => self.oracle.audit(&contents),
            Err(text) => self.oracle.found(text),
        }
    }

    fn with_star<T>(&mut self, act: impl FnOnce(&mut Star, &mut Ground<'_>) -> T) -> Option<T> {
        let star = self.star.as_mut()?;
        let mut ground = Ground {
            agenda: &mut self.agenda,
            network: &mut self.network,
            disk: &mut self.disk,
            trace: &mut self.trace,
            rng: &mut self.rng,
            disk_slowness: self.disk_slowness,
        };
        Some(act(star, &mut ground))
    }

    fn with_client(&mut self, n: usize, act: impl FnOnce(&mut Client, &mut Surroundings<'_>)) {
        self.with_surroundings(n, |clients, around| {
            if let Some(client) = clients.get_mut(n) {
                act(client, around);
            }
        });
    }

    fn with_surroundings(
        &mut self,
        me: usize,
        act: impl FnOnce(&mut Vec<Client>, &mut Surroundings<'_>),
    ) {
        if self.wakes.len() <= me {
            self.wakes.resize(me + 1, None);
        }
        let now = self.agenda.now();
        self.wakes[me].take_if(|at| *at <= now);
        let mut around = Surroundings {
            agenda: &mut self.agenda,
            network: &mut self.network,
            oracle: &mut self.oracle,
            trace: &mut self.trace,
            rng: &mut self.rng,
            cores: self.star.as_ref().map_or(0, Star::cores),
            me,
            wakes_at: &mut self.wakes[me],
            is_calm: self.is_calm,
            streams: &self.plan.streams,
            stable: self.plan.stable,
            entities: self.plan.entities,
            forgets: self.plan.forgets,
            is_by_age: self.plan.is_by_age(),
            life: self.life.0,
            bug: self.plan.client_bug,
        };
        act(&mut self.clients, &mut around);
    }
}
