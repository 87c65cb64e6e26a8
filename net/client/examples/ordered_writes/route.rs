//! The parent: issues updates, routes them to writers, kills writers, keeps their answers.
//!
//! # Invariants
//! - A writer gets the updates of an entity that have no answer in the order of issue, whenever it
//!   becomes one of the entity's writers.
//! - At most a window of updates of an entity is without an answer.

use crate::Failure;
use crate::check::FINDINGS_MAX;
use crate::settings::Settings;
use nova_client::StreamName;
use std::collections::VecDeque;
use std::fmt;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant};

/// Updates of an entity without an answer.
const WINDOW: usize = 32;
/// How often an update is sent at most while it has no answer: to two writers, and to those that
/// replace killed ones.
const SENDINGS_MAX: usize = 16;
/// How far back a late retry reaches; well within what an entity writer knows.
const LATE_MAX: u32 = 5_000;
/// Answers between two late retries.
const LATE_EVERY: u64 = 50;
/// How long the last answers may take.
const PATIENCE: Duration = Duration::from_secs(90);

/// What a run did and was told.
pub struct Run {
    pub entities: Vec<Entity>,
    pub findings: Vec<String>,
    kills: u64,
    late: u64,
    duplicates: u64,
    took: Duration,
}

/// One entity as its clients see it.
pub struct Entity {
    /// Where each update is, as its first answer said.
    pub places: Vec<Option<u64>>,
    open: VecDeque<u32>,
    routes: [usize; 2],
}

struct Writer {
    child: Child,
    input: ChildStdin,
    life: u64,
}

enum Event {
    Line(String),
    Gone { writer: usize, life: u64 },
}

struct Parent<'a> {
    settings: &'a Settings,
    names: &'a [StreamName],
    /// The addresses of the star's cores.
    entries: &'a [String],
    writers: Vec<Writer>,
    events: Receiver<Event>,
    sender: SyncSender<Event>,
    dice: u64,
    answers: u64,
    run: Run,
}

/// Runs the writers for the time that is set, and waits for the last answers.
pub fn run(settings: &Settings, names: &[StreamName], entries: &[String]) -> Result<Run, Failure> {
    // Room for all answers to what a window of each entity may have been sent as: who reads a
    // writer's answers never waits for this thread, which may be waiting for that writer to read.
    let (sender, events) = sync_channel(names.len() * WINDOW * SENDINGS_MAX);
    let entity = |number: usize| Entity {
        places: Vec::new(),
        open: VecDeque::new(),
        routes: [number % settings.writers, (number + 1) % settings.writers],
    };
    let mut parent = Parent {
        settings,
        names,
        entries,
        writers: Vec::new(),
        events,
        sender,
        dice: settings.seed,
        answers: 0,
        run: Run {
            entities: (0..names.len()).map(entity).collect(),
            findings: Vec::new(),
            kills: 0,
            late: 0,
            duplicates: 0,
            took: Duration::ZERO,
        },
    };
    for writer in 0..settings.writers {
        let started = parent.start(writer, 0)?;
        parent.writers.push(started);
    }
    let result = parent.drive();
    for mut writer in parent.writers {
        // What they still write is a repeat, or was never answered; the check sees all of it.
        let _ = writer.child.kill();
        let _ = writer.child.wait();
    }
    result?;
    Ok(parent.run)
}

impl Parent<'_> {
    fn drive(&mut self) -> Result<(), Failure> {
        let begin = Instant::now();
        let end = begin + self.settings.duration;
        let mut next_kill = begin + self.pause();
        while Instant::now() < end {
            self.issue();
            self.take_event(Duration::from_millis(5))?;
            if Instant::now() >= next_kill {
                let writer = self.below(self.writers.len() as u64) as usize;
                self.run.kills += 1;
                self.restart(writer)?;
                next_kill = Instant::now() + self.pause();
            }
        }
        let last = Instant::now() + PATIENCE;
        while self
            .run
            .entities
            .iter()
            .any(|entity| !entity.open.is_empty())
        {
            self.take_event(Duration::from_millis(100))?;
            if Instant::now() >= last {
                let finding = format!("updates without an answer after {PATIENCE:?}");
                self.run.findings.push(finding);
                break;
            }
        }
        self.run.took = begin.elapsed();
        Ok(())
    }

    /// Issues updates up to the window, each to both writers of its entity.
    fn issue(&mut self) {
        for number in 0..self.run.entities.len() {
            while self.run.entities[number].open.len() < WINDOW {
                let entity = &mut self.run.entities[number];
                let update = entity.places.len() as u32;
                entity.places.push(None);
                entity.open.push_back(update);
                for writer in entity.routes {
                    self.send(writer, number, update);
                }
            }
        }
    }

    fn send(&mut self, writer: usize, entity: usize, update: u32) {
        let line = format!("{} {entity} {update}\n", self.names[entity]);
        // A writer that is gone is started again when its end is heard of.
        let _ = self.writers[writer].input.write_all(line.as_bytes());
    }

    fn take_event(&mut self, patience: Duration) -> Result<(), Failure> {
        let mut event = match self.events.recv_timeout(patience) {
            Ok(event) => Some(event),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => return Err("no writer is left".into()),
        };
        while let Some(next) = event {
            match next {
                Event::Line(line) => self.answer(&line)?,
                Event::Gone { writer, life } if self.writers[writer].life == life => {
                    return Err("a writer ended by itself; its error is above".into());
                }
                Event::Gone { .. } => {}
            }
            event = self.events.try_recv().ok();
        }
        Ok(())
    }

    fn answer(&mut self, line: &str) -> Result<(), Failure> {
        let words: Vec<&str> = line.split(' ').collect();
        let [number, update, at, duplicate] = words[..] else {
            return Err(format!("a writer said '{line}'").into());
        };
        let (number, update): (usize, u32) = (number.parse()?, update.parse()?);
        let at: u64 = at.parse()?;
        self.run.duplicates += u64::from(duplicate == "true");
        let entity = &mut self.run.entities[number];
        entity.open.retain(|&open| open != update);
        let place = entity.places[update as usize].get_or_insert(at);
        if *place != at {
            let finding = format!("update {update} of entity {number}: at {place}, then at {at}");
            if self.run.findings.len() < FINDINGS_MAX {
                self.run.findings.push(finding);
            }
        }
        self.answers += 1;
        if self.answers.is_multiple_of(LATE_EVERY) {
            self.send_late(number, update);
        }
        Ok(())
    }

    /// Sends an update that was answered long ago once more, to any writer.
    fn send_late(&mut self, entity: usize, newest: u32) {
        let back = self.below(u64::from(newest.min(LATE_MAX)) + 1) as u32;
        let writer = self.below(self.writers.len() as u64) as usize;
        let update = newest - back;
        if self.run.entities[entity].places[update as usize].is_some() {
            self.run.late += 1;
            self.send(writer, entity, update);
        }
    }

    /// Kills a writer and starts another one; its entities get a new pair of writers.
    fn restart(&mut self, writer: usize) -> Result<(), Failure> {
        let life = self.writers[writer].life + 1;
        self.writers[writer].child.kill()?;
        self.writers[writer].child.wait()?;
        self.writers[writer] = self.start(writer, life)?;
        for number in 0..self.run.entities.len() {
            let routes = self.run.entities[number].routes;
            for (place, _) in (0..).zip(routes).filter(|(_, route)| *route == writer) {
                let next = self.below(self.writers.len() as u64) as usize;
                self.run.entities[number].routes[place] = next;
                for update in self.run.entities[number].open.clone() {
                    self.send(next, number, update);
                }
            }
        }
        Ok(())
    }

    /// Starts a writer process, which enters the star at any of its cores.
    fn start(&mut self, writer: usize, life: u64) -> Result<Writer, Failure> {
        let entry = self.below(self.entries.len() as u64) as usize;
        let verb = match self.settings.is_careless {
            true => "careless-writer",
            false => "writer",
        };
        let mut child = Command::new(std::env::current_exe()?)
            .arg(verb)
            .arg(&self.entries[entry])
            .arg(&self.settings.ca)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err("a writer without pipes".into());
        };
        let sender = self.sender.clone();
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                // The last line of a killed writer may be cut short.
                let is_whole = line.ends_with("true") || line.ends_with("false");
                if is_whole && sender.send(Event::Line(line)).is_err() {
                    return;
                }
            }
            let _ = sender.send(Event::Gone { writer, life });
        });
        Ok(Writer { child, input, life })
    }

    fn pause(&mut self) -> Duration {
        Duration::from_millis(100 + self.below(400))
    }

    /// A number below `bound`: SplitMix64 (Steele, Lea, Flood 2014).
    fn below(&mut self, bound: u64) -> u64 {
        self.dice = self.dice.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.dice;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % bound
    }
}

impl fmt::Display for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let issued: usize = self.entities.iter().map(|entity| entity.places.len()).sum();
        write!(
            f,
            "{issued} updates of {} entities in {:.1} s, each given to two writers; {} writers \
             killed, {} late retries, {} answers said that the update was there already",
            self.entities.len(),
            self.took.as_secs_f64(),
            self.kills,
            self.late,
            self.duplicates,
        )
    }
}
