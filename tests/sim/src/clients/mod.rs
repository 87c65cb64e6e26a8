//! The clients: the real client's state machines with callers who are drawn from the seed.
//!
//! # Invariants
//! - A client tells the oracle all it is told, and nothing else.
//!
//! # Not here
//! - What the answers must be: [`crate::oracle`].

mod control;
mod entity;
mod entity_batch;
mod errand;
pub mod kinds;
mod lister;
mod operations;
mod pipe;
mod producer;
mod reader;

pub use control::Control;
pub use entity::{EntityClient, EntityKind};
pub use lister::Lister;
pub use producer::{ProducerClient, ProducerKind};
pub use reader::ReaderClient;

use crate::agenda::{Agenda, Happening};
use crate::bugs::ClientBug;
use crate::network::{LinkId, Network};
use crate::oracle::Oracle;
use crate::rng::Rng;
use crate::trace::Trace;
use nova_client::core::Moment;
use nova_model::{Facts, Instant};
use nova_model::{Refusal, StreamName};
use std::collections::BTreeMap;

/// What clients share with the rest of the world.
pub struct Surroundings<'a> {
    /// Virtual time.
    pub agenda: &'a mut Agenda,
    /// The links.
    pub network: &'a mut Network,
    /// The judge.
    pub oracle: &'a mut Oracle,
    /// The story.
    pub trace: &'a mut Trace,
    /// Chance.
    pub rng: &'a mut Rng,
    /// Cores of the star; 0 while it is down.
    pub cores: u16,
    /// Which client this is.
    pub me: usize,
    /// When its next step is planned.
    pub wakes_at: &'a mut Option<u64>,
    /// Whether no more is to be begun.
    pub is_calm: bool,
    /// The streams there may be.
    pub streams: &'a [StreamName],
    /// How many of them are never deleted; they come first.
    pub stable: usize,
    /// How many of them are entities, which are not deleted, and trimmed as far as their updates
    /// are done; they come last.
    pub entities: usize,
    /// Whether much is trimmed.
    pub forgets: bool,
    /// Whether more of that is left to retention by age.
    pub is_by_age: bool,
    /// Which start of the star this is.
    pub life: u64,
    /// The safeguard that clients leave out.
    pub bug: Option<ClientBug>,
}

impl<'a> Surroundings<'a> {
    fn now(&self) -> Instant {
        Instant(self.agenda.now())
    }

    fn moment(&mut self) -> Moment {
        Moment {
            now: self.now(),
            random: self.rng.number(),
        }
    }

    /// Plans the next step; the earliest of all that were asked for counts.
    fn wake_after(&mut self, us: u64) {
        let at = self.agenda.now() + us.max(1);
        if self.wakes_at.is_none_or(|planned| at < planned) {
            *self.wakes_at = Some(at);
            self.agenda.at(at, Happening::Client(self.me));
        }
    }

    /// Whether a stream is never deleted, and written by anybody.
    fn is_stable(&self, name: &StreamName) -> bool {
        self.streams[..self.stable].contains(name)
    }

    /// The streams that entity writers write.
    fn entities(&self) -> &'a [StreamName] {
        &self.streams[self.streams.len() - self.entities..]
    }

    /// All other streams.
    fn plain_streams(&self) -> &'a [StreamName] {
        &self.streams[..self.streams.len() - self.entities]
    }

    fn say(&mut self, what: impl FnOnce() -> String) {
        let (now, me) = (self.agenda.now(), self.me as u64);
        self.trace
            .note(now, "client", me, || format!("{me} {}", what()));
    }
}

/// Where a client believes streams to be.
#[derive(Debug, Default)]
struct Holders(BTreeMap<StreamName, u16>);

impl Holders {
    fn core(&self, name: &StreamName, around: &mut Surroundings<'_>) -> u16 {
        let cores = around.cores.max(1);
        match self.0.get(name) {
            Some(core) if *core < cores => *core,
            _ => around.rng.below(u64::from(cores)) as u16,
        }
    }

    fn learn(&mut self, name: &StreamName, refusal: &Refusal) {
        if let Facts::Holder {
            address: Some(address),
            ..
        } = &refusal.facts
            && let Some(core) = crate::node::core_of(address)
        {
            self.0.insert(name.clone(), core);
        }
    }
}

/// One client.
pub enum Client {
    /// Appends through a producer.
    Producer(Box<ProducerClient>),
    /// Reads.
    Reader(Box<ReaderClient>),
    /// Sends requests and one-shot appends.
    Control(Box<Control>),
    /// Writes entities.
    Entity(Box<EntityClient>),
    /// Lists streams.
    Lister(Box<Lister>),
}

impl Client {
    /// Takes what has come in and does the next thing.
    pub fn step(&mut self, around: &mut Surroundings<'_>) {
        match self {
            Client::Producer(client) => client.step(around),
            Client::Reader(client) => client.step(around),
            Client::Control(client) => client.step(around),
            Client::Entity(client) => client.step(around),
            Client::Lister(client) => client.step(around),
        }
    }

    /// Learns that a link is broken.
    pub fn lost(&mut self, around: &mut Surroundings<'_>, link: LinkId) {
        match self {
            Client::Producer(client) => client.lost(around, link),
            Client::Reader(client) => client.lost(around, link),
            Client::Control(client) => client.lost(around, link),
            Client::Entity(client) => client.lost(around, link),
            Client::Lister(client) => client.lost(around, link),
        }
    }

    /// Whether everything it began is over.
    pub fn is_done(&self) -> bool {
        match self {
            Client::Producer(client) => client.is_done(),
            Client::Reader(client) => client.is_done(),
            Client::Control(client) => client.is_done(),
            Client::Entity(client) => client.is_done(),
            Client::Lister(client) => client.is_done(),
        }
    }

    /// What it does at the moment, for a run that does not come to its end.
    pub fn state(&self) -> String {
        match self {
            Client::Producer(client) => client.state(),
            Client::Reader(client) => client.state(),
            Client::Control(client) => client.state(),
            Client::Entity(client) => client.state(),
            Client::Lister(client) => client.state(),
        }
    }
}
