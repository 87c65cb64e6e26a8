//! A process that writes entities through the real entity writer's core, with others beside it.
//!
//! ```text
//!   draws updates --> KeyedQueue --> FencedWrite of one entity --> errand: read, append, fence
//!        ^  new ones, those of others, told ones, other contents     |
//!        +--------------------- answers, to the oracle <-------------+
//! ```
//! A process hangs now and then, and is killed: it forgets all, and what it has sent arrives
//! still. An owner installs a fresh token before it writes an entity; fenced out, it may believe
//! on that the entity is its own.
//!
//! # Invariants
//! - Each try of an update ends in the oracle's book, but for those that die with their process.
//!
//! # Not here
//! - One batch of an entity: [`super::entity_batch`]. What the answers must be:
//!   [`crate::updates`].

use super::Surroundings;
use super::entity_batch::{Desk, EntityBatch};
use crate::history::body_of;
use crate::network::LinkId;
use crate::updates::{Try, UpdateId, UpdateNumber};
use nova_client::core::fenced::WriteRules;
use nova_client::core::fenced::memory::Memories;
use nova_client::core::keyed::{KeyedConfig, KeyedQueue};
use nova_model::StreamName;
use std::collections::BTreeMap;

/// How far back in the book of updates a process looks for one to try again.
const RECENT_UPDATES: u64 = 20;
/// What an update has besides its body, at most.
const HEAD_BYTES: usize = 100;

/// What kind of process it is.
#[derive(Debug, Clone)]
pub struct EntityKind {
    /// Whether it takes entities over by a token before it writes them.
    pub is_owner: bool,
    /// How many updates it writes.
    pub updates: u64,
    /// The longest pause between two.
    pub pause_us_max: u64,
    /// How many of 100 requests are refused for want of patience of the star.
    pub throttled: u64,
    /// When it is killed.
    pub deaths: Vec<u64>,
    /// When it hangs, and for how long.
    pub hangs: Vec<(u64, u64)>,
    /// The rules of its writes.
    pub rules: WriteRules,
    /// The bounds of its queue.
    pub keys: KeyedConfig,
}

/// The client.
pub struct EntityClient {
    kind: EntityKind,
    queue: KeyedQueue<StreamName, Try>,
    memories: Memories,
    running: BTreeMap<u64, EntityBatch>,
    last_run: u64,
    desk: Desk,
    updates_left: u64,
    next_at: u64,
}

impl EntityClient {
    /// A process that begins now.
    pub fn new(around: &mut Surroundings<'_>, kind: EntityKind) -> EntityClient {
        EntityClient {
            queue: KeyedQueue::new(kind.keys),
            memories: Memories::new(kind.rules.known_records),
            running: BTreeMap::new(),
            last_run: 0,
            desk: Desk::new(kind.rules.clone(), kind.throttled),
            updates_left: kind.updates,
            next_at: around.agenda.now(),
            kind,
        }
    }

    pub(super) fn is_done(&self) -> bool {
        self.updates_left == 0 && self.queue.is_idle() && self.running.is_empty()
    }

    pub(super) fn state(&self) -> String {
        format!("{:?} {:?}", self.kind, self.running)
    }

    pub(super) fn lost(&mut self, around: &mut Surroundings<'_>, link: LinkId) {
        let all: Vec<u64> = self.running.keys().copied().collect();
        for number in all {
            self.run(around, number, |run, around, desk| {
                run.lost(around, desk, link);
            });
        }
        self.step(around);
    }

    pub(super) fn step(&mut self, around: &mut Surroundings<'_>) {
        let now = around.agenda.now();
        if around.is_calm {
            self.updates_left = 0;
        }
        if let Some(until) = self.hangs_until(now).filter(|_| !around.is_calm) {
            return around.wake_after(until - now);
        }
        if self.kind.deaths.first().is_some_and(|at| *at <= now) {
            self.kind.deaths.remove(0);
            self.die(around);
        }
        self.submit_some(around);
        self.begin_batches(around);
        let all: Vec<u64> = self.running.keys().copied().collect();
        for number in all {
            self.run(around, number, EntityBatch::step);
        }
        self.begin_batches(around);
        self.plan(around);
    }

    fn hangs_until(&self, now: u64) -> Option<u64> {
        let mut hangs = self.kind.hangs.iter();
        let found = hangs.find(|(at, us)| (*at..*at + *us).contains(&now));
        found.map(|(at, us)| at + us)
    }

    fn plan(&self, around: &mut Surroundings<'_>) {
        let now = around.agenda.now();
        let ticks = self.running.values().filter_map(EntityBatch::next_deadline);
        let next = ticks.min();
        let pushes = (self.updates_left > 0).then_some(self.next_at);
        for at in next.into_iter().chain(pushes) {
            around.wake_after(at.saturating_sub(now));
        }
    }

    /// The process is killed, and another one takes its place.
    fn die(&mut self, around: &mut Surroundings<'_>) {
        around.say(|| "is killed".to_owned());
        for run in std::mem::take(&mut self.running).into_values() {
            run.die(around);
        }
        for waiting in self.queue.take_waiting() {
            around.oracle.update_not_applied(waiting);
        }
        self.queue = KeyedQueue::new(self.kind.keys);
        self.memories = Memories::new(self.kind.rules.known_records);
        self.desk = Desk::new(self.kind.rules.clone(), self.kind.throttled);
    }

    fn submit_some(&mut self, around: &mut Surroundings<'_>) {
        let now = around.agenda.now();
        while self.updates_left > 0 && self.next_at <= now {
            self.updates_left -= 1;
            if !around.rng.chance(40) {
                self.next_at = now + around.rng.between(1, self.kind.pause_us_max);
            }
            let update = draw(around);
            let entity = around.oracle.history.updates[update.0].entity.clone();
            let tried = around.oracle.try_update(update);
            around.say(|| format!("wants {tried:?} of {entity}"));
            let bytes = body_of(around.oracle.history.updates[update.0].record).len();
            if let Err(rejected) = self.queue.push(entity, tried, bytes + HEAD_BYTES) {
                around.oracle.update_not_applied(rejected.input);
            }
        }
    }

    fn begin_batches(&mut self, around: &mut Surroundings<'_>) {
        while let Some((entity, tries)) = self.queue.poll_batch() {
            let memory = self.memories.take(&entity);
            let mut batch = EntityBatch::new(around, entity, tries, memory);
            batch.begin(around, &mut self.desk, self.kind.is_owner);
            self.last_run += 1;
            self.running.insert(self.last_run, batch);
            self.run(around, self.last_run, EntityBatch::step);
        }
    }

    fn run(
        &mut self,
        around: &mut Surroundings<'_>,
        number: u64,
        act: impl FnOnce(&mut EntityBatch, &mut Surroundings<'_>, &mut Desk),
    ) {
        let Some(mut run) = self.running.remove(&number) else {
            return;
        };
        act(&mut run, around, &mut self.desk);
        if !run.is_over() {
            self.running.insert(number, run);
            return;
        }
        let (entity, memory) = run.into_memory();
        self.queue.handle_done(&entity);
        self.memories.keep(entity, memory);
    }
}

/// A new update, one that somebody has or had in hand, one that is stored, or other content for an
/// id that is in use.
fn draw(around: &mut Surroundings<'_>) -> UpdateNumber {
    let count = around.oracle.history.updates.len() as u64;
    let kind = around.rng.below(100);
    let back = 1 + around.rng.below(RECENT_UPDATES);
    let recent = (back <= count).then(|| UpdateNumber((count - back) as usize));
    let entity = around.rng.pick(around.entities()).clone();
    let Some(recent) = recent else {
        return around.oracle.new_update(&entity, None);
    };
    let known = &around.oracle.history.updates[recent.0];
    let (of, id): (StreamName, UpdateId) = (known.entity.clone(), known.id);
    let is_told = known.is_told();
    match kind {
        _ if known.is_settled() => around.oracle.new_update(&entity, None),
        0..=24 if !is_told => recent,
        25..=34 if is_told => recent,
        35..=39 => around.oracle.new_update(&of, Some(id)),
        _ => around.oracle.new_update(&entity, None),
    }
}
