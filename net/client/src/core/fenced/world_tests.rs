//! Several processes that write the same entities through a network that loses, delays and
//! refuses, on virtual time, all from one seed.
//!
//! ```text
//!   feeder of an entity --submit--> process: KeyedQueue -> FencedWrite --request--> ModelStar
//!      ^  (in order, to one process or two at once)   ^                              |
//!      +------------------- answers ------------------+------------- answers --------+
//! ```
//! A process that crashes loses all it holds; its requests stay on the wire. The feeder sends what
//! has no answer again, in order, wherever its entity is routed then. [`World::check`] is the
//! checker that every safeguard's absence has to wake.

use super::dice_tests::Dice;
use super::memory::Memories;
use super::model_tests::{ModelStar, ReadAnswer, entity};
use super::outcome::{Applied, UpdateError};
use super::update::{UPDATE_ID_HEADER, Update};
use super::{Action, FencedWrite, Safeguard, WriteRules};
use crate::core::Moment;
use crate::core::keyed::{KeyedConfig, KeyedQueue};
use crate::core::outcome::{Ambiguity, AppendError};
use nova_model::request::ReadStart;
use nova_model::{Conditions, Instant, Record, Refusal, SequenceNumber, StreamId};
use std::collections::BTreeMap;

/// What becomes of a request: delays in microseconds, `None` if it gets lost.
#[derive(Debug, Clone)]
pub struct Fate {
    pub request_us: Option<u64>,
    pub answer_us: Option<u64>,
    /// The star says this: instead of acting, or after it if the refusal is not clean.
    pub refuse: Option<Refusal>,
}

impl Default for Fate {
    fn default() -> Fate {
        Fate {
            request_us: Some(1_000),
            answer_us: Some(1_000),
            refuse: None,
        }
    }
}

/// What a fate is chosen by.
#[derive(Debug, Clone, Copy)]
pub struct Request {
    pub now_us: u64,
    pub process: usize,
    pub is_write: bool,
}

type Ask = (usize, Option<StreamId>, Asked);

#[derive(Debug, Clone)]
enum Asked {
    Read(ReadStart),
    Write(Conditions, Vec<Record>),
}

#[derive(Debug)]
enum Reply {
    Read(Result<ReadAnswer, Refusal>),
    Written(Result<(SequenceNumber, SequenceNumber), Refusal>),
    /// The connection broke.
    Lost,
}

/// Who waits for a reply: process, its life, the write, the attempt.
type Asker = (usize, u32, u64, u64);

enum Event {
    Arrive(Asker, Ask, Fate),
    Reply(Asker, Reply),
    Tick(usize, u32, u64),
    Script(Box<dyn FnOnce(&mut World)>),
}

struct Running {
    entity: usize,
    write: FencedWrite,
    calls: Vec<usize>,
    attempt: u64,
}

struct Process {
    life: u32,
    queue: KeyedQueue<usize, usize>,
    memories: Memories,
    running: BTreeMap<u64, Running>,
}

/// An answer that a client got.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answered {
    pub process: usize,
    pub update: usize,
    pub result: Result<Applied, UpdateError>,
}

/// Says what becomes of each request.
pub type Fates = Box<dyn FnMut(&mut Dice, Request) -> Fate>;

/// How a world is set up.
pub struct Plan {
    pub seed: u64,
    pub processes: usize,
    pub entities: usize,
    pub rules: WriteRules,
    pub without: Option<Safeguard>,
    pub overlaps: bool,
    pub fate: Fates,
}

impl Default for Plan {
    fn default() -> Plan {
        Plan {
            seed: 1,
            processes: 2,
            entities: 1,
            rules: WriteRules {
                known_records: 256,
                retry_budget_us: 60_000_000,
                attempt_us: 1_000_000,
                ..WriteRules::default()
            },
            without: None,
            overlaps: false,
            fate: Box::new(|_, _| Fate::default()),
        }
    }
}

pub struct World {
    pub plan: Plan,
    pub star: ModelStar,
    pub dice: Dice,
    pub now_us: u64,
    pub answers: Vec<Answered>,
    /// Requests that were sent.
    pub requests: u64,
    updates: Vec<(usize, Update)>,
    processes: Vec<Process>,
    events: BTreeMap<(u64, u64), Event>,
    serial: u64,
    finding: Option<String>,
    /// By entity: the processes it is routed to, and its updates in order.
    pub routes: Vec<Vec<usize>>,
    issued: Vec<Vec<usize>>,
}

impl World {
    pub fn new(plan: Plan) -> World {
        let mut star = ModelStar::default();
        (0..plan.entities).for_each(|number| star.create(&entity(number)));
        let process = |_| Process::new(&plan, 0);
        World {
            star,
            dice: Dice(plan.seed),
            now_us: 0,
            answers: Vec::new(),
            requests: 0,
            updates: Vec::new(),
            processes: (0..plan.processes).map(process).collect(),
            events: BTreeMap::new(),
            serial: 0,
            finding: None,
            routes: vec![vec![0]; plan.entities],
            issued: vec![Vec::new(); plan.entities],
            plan,
        }
    }

    /// Makes an update known; it is sent with [`World::submit`] or [`World::feed`].
    pub fn update(&mut self, entity: usize, id: &str, body: &str) -> usize {
        let update = Update::new(id.to_owned(), Record::new(body.to_owned()));
        self.updates.push((entity, update.expect("a legal update")));
        self.updates.len() - 1
    }

    pub fn at(&mut self, us: u64, act: impl FnOnce(&mut World) + 'static) {
        self.schedule(us, Event::Script(Box::new(act)));
    }

    /// The next numbered update of an entity, to all processes it is routed to.
    pub fn feed(&mut self, entity: usize) {
        let number = self.issued[entity].len();
        let update = self.update(entity, &format!("{number}"), &format!("body {number}"));
        self.issued[entity].push(update);
        for process in self.routes[entity].clone() {
            self.submit(process, update);
        }
    }

    /// Sends what has no answer again, in order.
    pub fn feed_again(&mut self, entity: usize, process: usize) {
        for update in self.issued[entity].clone() {
            if !self.is_applied(update) {
                self.submit(process, update);
            }
        }
    }

    pub fn is_applied(&self, update: usize) -> bool {
        let mut answers = self.answers.iter();
        answers.any(|answer| answer.update == update && answer.result.is_ok())
    }

    pub fn submit(&mut self, process: usize, update: usize) {
        let entity = self.updates[update].0;
        let pushed = self.processes[process].queue.push(entity, update, 1);
        pushed.expect("the tests stay below the limit");
        self.pump(process);
    }

    /// The process dies and starts again, knowing nothing; what it sent stays on the wire.
    pub fn crash(&mut self, process: usize) {
        let life = self.processes[process].life + 1;
        self.processes[process] = Process::new(&self.plan, life);
    }

    /// Runs until nothing is left to happen.
    pub fn run(&mut self) {
        for _ in 0..1_000_000 {
            let Some(((us, _), event)) = self.events.pop_first() else {
                return;
            };
            self.now_us = us;
            match event {
                Event::Script(act) => act(self),
                Event::Arrive(asker, ask, fate) => self.arrive(asker, ask, fate),
                Event::Reply(asker, reply) => self.reply(asker, reply),
                Event::Tick(process, life, number) => self.tick(process, life, number),
            }
        }
        self.find(format!("no end by {} us", self.now_us));
    }

    /// What the checker says of the whole run: every update that was fed is stored once, in order,
    /// where its answers say, and has an answer.
    pub fn check(&self) -> Result<(), String> {
        if let Some(finding) = &self.finding {
            return Err(finding.clone());
        }
        for (number, issued) in self.issued.iter().enumerate() {
            let ids = ids(&self.star.records(&entity(number)));
            let expected: Vec<String> = (0..issued.len()).map(|n| n.to_string()).collect();
            if ids != expected {
                return Err(format!(
                    "entity {number} holds {ids:?}, not each once in order"
                ));
            }
            if let Some(update) = issued.iter().find(|update| !self.is_applied(**update)) {
                return Err(format!("update {update} was never answered"));
            }
        }
        Ok(())
    }

    fn find(&mut self, finding: String) {
        self.finding.get_or_insert(finding);
    }

    fn schedule(&mut self, us: u64, event: Event) {
        self.serial += 1;
        self.events
            .insert((us.max(self.now_us), self.serial), event);
    }

    fn moment(&mut self) -> Moment {
        Moment {
            now: Instant(self.now_us),
            random: self.dice.roll(),
        }
    }

    fn pump(&mut self, process: usize) {
        while let Some((number, calls)) = self.processes[process].queue.poll_batch() {
            let updates = calls.iter().map(|&call| self.updates[call].1.clone());
            let updates = updates.collect();
            let memory = self.processes[process].memories.take(&entity(number));
            let mut write = FencedWrite::new(self.plan.rules.clone(), updates, memory);
            write.without = self.plan.without;
            write.start(Instant(self.now_us));
            self.serial += 1;
            let running = Running {
                entity: number,
                write,
                calls,
                attempt: 0,
            };
            let serial = self.serial;
            self.processes[process].running.insert(serial, running);
            self.act(process, serial);
        }
    }

    fn act(&mut self, process: usize, number: u64) {
        let life = self.processes[process].life;
        while let Some(running) = self.processes[process].running.get_mut(&number) {
            let entity = running.entity;
            let Some(action) = running.write.poll_action() else {
                break;
            };
            let (id, asked) = match action {
                Action::Read { stream_id, start } => (stream_id, Asked::Read(start)),
                Action::Write {
                    stream_id,
                    conditions,
                    records,
                } => (stream_id, Asked::Write(conditions, records)),
                Action::Cancel => {
                    running.attempt += 1;
                    continue;
                }
                Action::Resolve { update, result } => {
                    let update = running.calls[update];
                    self.answer(process, update, result);
                    continue;
                }
            };
            running.attempt += 1;
            let asker = (process, life, number, running.attempt);
            self.ask(asker, (entity, id, asked));
        }
        self.after(process, number);
    }

    /// Schedules the tick that is due, or ends a write that is over.
    fn after(&mut self, process: usize, number: u64) {
        let Some(running) = self.processes[process].running.get(&number) else {
            return;
        };
        if let Some(deadline) = running.write.next_deadline() {
            let life = self.processes[process].life;
            return self.schedule(deadline.0, Event::Tick(process, life, number));
        }
        let own = &mut self.processes[process];
        if let Some(running) = own.running.remove(&number) {
            let memory = running.write.into_memory();
            own.memories.keep(entity(running.entity), memory);
            own.queue.handle_done(&running.entity);
        }
        self.pump(process);
    }

    fn ask(&mut self, asker: Asker, ask: Ask) {
        let request = Request {
            now_us: self.now_us,
            process: asker.0,
            is_write: matches!(ask.2, Asked::Write(..)),
        };
        self.requests += 1;
        let fate = (self.plan.fate)(&mut self.dice, request);
        if let Some(us) = fate.request_us {
            self.schedule(self.now_us + us, Event::Arrive(asker, ask, fate));
        }
    }

    fn arrive(&mut self, asker: Asker, (number, id, asked): Ask, fate: Fate) {
        let name = entity(number);
        let is_write = matches!(asked, Asked::Write(..));
        let (refused, unclean) = match fate.refuse {
            Some(refusal) if refusal.clean => (Some(refusal), None),
            unclean => (None, unclean),
        };
        let mut reply = match (refused, asked) {
            (Some(refusal), Asked::Read(_)) => Reply::Read(Err(refusal)),
            (Some(refusal), Asked::Write(..)) => Reply::Written(Err(refusal)),
            (None, Asked::Read(start)) => Reply::Read(self.star.read(&name, id, start)),
            (None, Asked::Write(conditions, records)) => {
                Reply::Written(self.star.append(&name, id, &conditions, &records))
            }
        };
        if let (Some(refusal), true) = (unclean, is_write) {
            // It was done, and the star says that it does not know.
            reply = Reply::Written(Err(refusal));
        }
        match fate.answer_us {
            Some(us) => self.schedule(self.now_us + us, Event::Reply(asker, reply)),
            // Every second loss is noticed as a broken connection, the others by their silence.
            None if self.dice.below(2) == 0 => {
                self.schedule(self.now_us + 1_000, Event::Reply(asker, Reply::Lost));
            }
            None => {}
        }
    }

    fn reply(&mut self, (process, life, number, attempt): Asker, reply: Reply) {
        let at = self.moment();
        let own = &mut self.processes[process];
        let Some(running) = own.running.get_mut(&number) else {
            return;
        };
        if own.life != life || running.attempt != attempt {
            return;
        }
        let write = &mut running.write;
        match reply {
            Reply::Read(Ok(answer)) => {
                write.handle_read_begun(answer.id, answer.start);
                for batch in &answer.batches {
                    write.handle_stored(at.now, batch);
                }
                write.handle_read_all(at.now);
            }
            Reply::Written(Ok((start, end))) => write.handle_written(at, start, end),
            Reply::Read(Err(refusal)) | Reply::Written(Err(refusal)) => {
                write.handle_failed(at, AppendError::Refused(refusal));
            }
            Reply::Lost => {
                let ambiguity = Ambiguity {
                    stream_id: None,
                    since: SequenceNumber(0),
                    refusal: None,
                };
                write.handle_failed(at, AppendError::Ambiguous(Box::new(ambiguity)));
            }
        }
        self.act(process, number);
    }

    fn tick(&mut self, process: usize, life: u32, number: u64) {
        let at = self.moment();
        let own = &mut self.processes[process];
        let Some(running) = own.running.get_mut(&number).filter(|_| own.life == life) else {
            return;
        };
        // A tick of an earlier state changes nothing, and its successor is scheduled already.
        if running
            .write
            .next_deadline()
            .is_some_and(|due| due <= at.now)
        {
            running.write.handle_tick(at);
            self.act(process, number);
        }
    }

    /// A client gets its answer: true at this moment, or the checker says so.
    fn answer(&mut self, process: usize, update: usize, result: Result<Applied, UpdateError>) {
        let (number, own) = &self.updates[update];
        if let Ok(applied) = &result {
            let records = self.star.records(&entity(*number));
            let stored = records.get(applied.at.0 as usize);
            if stored != Some(own.record()) {
                let at = applied.at;
                self.find(format!(
                    "update {update} is not at {at}, where its answer says"
                ));
            }
        }
        self.answers.push(Answered {
            process,
            update,
            result,
        });
    }
}

/// The update ids of records.
pub fn ids(records: &[Record]) -> Vec<String> {
    let id = |record: &Record| {
        let mut headers = record.headers.iter();
        let header = headers.find(|header| header.name == UPDATE_ID_HEADER);
        header.map(|header| String::from_utf8_lossy(&header.value).into_owned())
    };
    records.iter().filter_map(id).collect()
}

impl Process {
    fn new(plan: &Plan, life: u32) -> Process {
        let mut queue = KeyedQueue::new(KeyedConfig {
            batch_inputs_max: 8,
            ..KeyedConfig::default()
        });
        queue.overlaps = plan.overlaps;
        Process {
            life,
            queue,
            memories: Memories::new(plan.rules.known_records),
            running: BTreeMap::new(),
        }
    }
}
