//! Random sequences of events against a model of a star, with an oracle.
//!
//! The model star keeps the contract's rules for one stream: a window, a stop behind a rejected
//! batch until `resume`, conditions, writers with their numbers. What it answers may be lost with
//! the session; it refuses at random; it forgets writers; it moves. A notice that is clean comes
//! behind the answers of all that was applied, one that is not may overtake them.
//!
//! The oracle: every batch is resolved once; an acknowledged one is where the ack says; one whose
//! failure is clean is nowhere; with a writer none is there twice; acknowledged batches are in
//! the producer's order; the window is kept. Where all refusals and notices are clean and nothing
//! is lost, no outcome is unknown and nothing is there twice, with a writer or without. The
//! canaries: a star that does not recognise repeats, and one whose clean notices overtake the
//! answers of what it has applied.

use super::rig::{ack, opened, rules};
use super::*;
use crate::core::batcher::BatcherConfig;
use nova_model::{Code, Epoch, Facts, Position, Timestamp};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

const WINDOW: usize = 4;

enum Message {
    Batch { append: SessionAppend, id: u64 },
    Resume,
}

/// A session as the star sees it.
#[derive(Default)]
struct Session {
    writer: Option<WriterId>,
    inbox: VecDeque<Message>,
    outbox: VecDeque<Result<Ack, Refusal>>,
    is_stopped: bool,
}

impl Session {
    fn unanswered(&self) -> usize {
        let batches = |message: &&Message| matches!(message, Message::Batch { .. });
        self.inbox.iter().filter(batches).count() + self.outbox.len()
    }
}

/// A stream whose records are the ids of batches.
#[derive(Default)]
struct Star {
    log: Vec<u64>,
    writers: BTreeMap<WriterId, Vec<(u64, usize)>>,
    forgotten: BTreeSet<WriterId>,
    kind: Kind,
}

/// What may happen in a run.
#[derive(Debug, Clone, Copy, Default)]
struct Kind {
    /// Producers number their batches.
    has_writer: bool,
    /// Nothing is lost, nothing forgotten, and all refusals are clean.
    is_orderly: bool,
    /// A mistake: repeats are applied again.
    repeats_apply: bool,
    /// A mistake: a clean notice overtakes answers.
    notices_overtake: bool,
}

impl Star {
    /// Judges a batch by the contract, section 2.3; `whim` may refuse it before or after.
    fn judge(
        &mut self,
        writer: Option<WriterId>,
        append: SessionAppend,
        id: u64,
        whim: u32,
    ) -> Result<Ack, Refusal> {
        let refusal = |code| Err(Refusal::new(code, "because"));
        let whim = match whim % 24 {
            3 | 5 if self.kind.is_orderly => 23,
            whim => whim,
        };
        match whim {
            0 => return refusal(Code::DiskFull),
            1 => return refusal(Code::RateLimited),
            2 => return refusal(Code::Invalid),
            3 => return refusal(Code::Unavailable),
            4 => return Err(moved()),
            _ => {}
        }
        if let (Some(writer), Some(sequence)) = (writer, append.writer_sequence) {
            if self.forgotten.contains(&writer) {
                return refusal(Code::WriterGap);
            }
            let known = self.writers.entry(writer).or_default();
            if let Some(&(old, at)) = known.get(sequence as usize)
                && !self.kind.repeats_apply
            {
                if old != id {
                    return refusal(Code::DuplicateMismatch);
                }
                return Ok(Ack {
                    duplicate: true,
                    ..ack(at as u64, 1)
                });
            }
            if sequence > known.len() as u64 {
                return refusal(Code::WriterGap);
            }
        }
        let tail = self.log.len();
        if append.match_sequence.is_some_and(|at| at.0 != tail as u64) {
            let tail = Position {
                sequence: SequenceNumber(tail as u64),
                timestamp: Timestamp(0),
            };
            return Err(Refusal::new(Code::SeqMismatch, "moved").with(Facts::Tail(tail)));
        }
        self.log.push(id);
        if let Some(writer) = writer {
            self.writers.entry(writer).or_default().push((id, tail));
        }
        if whim == 5 {
            return refusal(Code::Unavailable);
        }
        Ok(ack(tail as u64, 1))
    }
}

fn moved() -> Refusal {
    let address = Some("elsewhere:1".to_owned());
    Refusal::new(Code::NotOwner, "moved").with(Facts::Holder {
        address,
        epoch: Epoch(2),
    })
}

struct World {
    producer: Producer,
    batcher: Batcher,
    star: Star,
    session: Option<Session>,
    connecting: Option<AppendOpen>,
    now: Instant,
    draws: u64,
    kind: Kind,
    results: BTreeMap<u64, Result<Ack, AppendError>>,
    conditional: BTreeSet<u64>,
}

impl World {
    fn new(kind: Kind) -> World {
        World {
            producer: Producer::new(rules(), kind.has_writer.then_some(WriterId(1))),
            batcher: Batcher::new(BatcherConfig::default()),
            star: Star {
                kind,
                ..Star::default()
            },
            session: None,
            connecting: None,
            now: Instant(0),
            draws: 1,
            kind,
            results: BTreeMap::new(),
            conditional: BTreeSet::new(),
        }
    }

    fn at(&mut self) -> Moment {
        self.draws += 1;
        Moment {
            now: self.now,
            random: self.draws.wrapping_mul(0x9e37_79b9_7f4a_7c15),
        }
    }

    fn append(&mut self, match_sequence: Option<SequenceNumber>) {
        let id = self.batcher.next_number().0;
        self.batcher.flush();
        let records = vec![Record::new(id.to_string())];
        let pushed = self.batcher.push_batch(self.now, records, match_sequence);
        assert_eq!(pushed.expect("there is room").share.batch, BatchNumber(id));
        self.batcher.flush();
        if match_sequence.is_some() {
            self.conditional.insert(id);
        }
    }

    fn act(&mut self) {
        loop {
            self.producer.pump(self.now, &mut self.batcher);
            let Some(action) = self.producer.poll_action() else {
                return;
            };
            match action {
                Action::Connect { open, .. } => {
                    self.session = None;
                    self.connecting = Some(open);
                }
                Action::Disconnect => {
                    self.session = None;
                    self.connecting = None;
                }
                Action::Send {
                    number,
                    append,
                    batch,
                } => {
                    let session = self.session.as_mut().expect("sent on an open session");
                    batch.for_each(|record| {
                        assert_eq!(record.body(), number.0.to_string().as_bytes());
                    });
                    session.inbox.push_back(Message::Batch {
                        append,
                        id: number.0,
                    });
                    assert!(session.unanswered() <= WINDOW, "more than the window");
                }
                Action::Resume => {
                    // A notice may have come right behind the answer that it follows.
                    if let Some(session) = &mut self.session {
                        assert_eq!(session.unanswered(), 0);
                        session.inbox.push_back(Message::Resume);
                    }
                }
                Action::NeedWriter => {
                    let at = self.at();
                    self.producer
                        .set_writer(at, WriterId(u128::from(at.random)));
                }
                Action::Resolve { batch, result } => {
                    let before = self.results.insert(batch.0, result);
                    assert!(before.is_none(), "batch {} resolved twice", batch.0);
                }
            }
        }
    }

    /// The star takes one message.
    fn serve(&mut self, whim: u32) {
        let Some(session) = &mut self.session else {
            return;
        };
        match session.inbox.pop_front() {
            Some(Message::Resume) => session.is_stopped = false,
            Some(Message::Batch { append, id }) => {
                let answer = if session.is_stopped {
                    Err(Refusal::new(Code::BehindRejected, "behind"))
                } else {
                    self.star.judge(session.writer, append, id, whim)
                };
                session.is_stopped |= answer.is_err();
                session.outbox.push_back(answer);
            }
            None => {}
        }
    }

    /// The producer hears one answer.
    fn deliver(&mut self) {
        let answer = self
            .session
            .as_mut()
            .and_then(|session| session.outbox.pop_front());
        let at = self.at();
        match answer {
            Some(Ok(ack)) => self.producer.handle_acked(at, ack),
            Some(Err(refusal)) => self.producer.handle_rejected(at, refusal),
            None => {}
        }
    }

    /// The connection that was asked for comes about, or not.
    fn connect(&mut self, whim: u32) {
        let Some(open) = self.connecting.take() else {
            return;
        };
        let at = self.at();
        match whim % 12 {
            0 => self.producer.handle_lost(at),
            1 => self.producer.handle_open_refused(at, moved()),
            2 => {
                let busy = Refusal::new(Code::PolicyBusy, "busy");
                self.producer.handle_open_refused(at, busy);
            }
            3 => {
                let never = Refusal::new(Code::StreamNotFound, "gone");
                self.producer.handle_open_refused(at, never);
            }
            4 => self.producer.handle_unresolvable("nowhere:1".to_owned()),
            _ => {
                self.session = Some(Session {
                    writer: open.writer,
                    ..Session::default()
                });
                let tail = self.star.log.len() as u64;
                self.producer.handle_opened(opened(tail, WINDOW as u32));
            }
        }
    }

    /// The session breaks: what the star did not take is lost, and the answers that are on their
    /// way as well unless a clean notice is behind them.
    fn lose(&mut self, whim: u32) {
        if self.session.is_none() {
            return;
        }
        let notice = match whim % 8 {
            0 | 1 => Some(moved()),
            2 => Some(Refusal::new(Code::Fenced, "fenced")),
            3 => Some(Refusal::new(Code::PolicyBusy, "busy")),
            4 => Some(Refusal::new(Code::Unavailable, "who knows")),
            _ => None,
        };
        let is_clean = notice.as_ref().is_some_and(|notice| notice.clean);
        if self.kind.is_orderly && !is_clean {
            return;
        }
        if is_clean && !self.kind.notices_overtake {
            while self
                .session
                .as_ref()
                .is_some_and(|session| !session.outbox.is_empty())
            {
                self.deliver();
            }
        }
        if self.session.take().is_none() {
            return;
        }
        let at = self.at();
        match notice {
            Some(notice) => self.producer.handle_broken(at, notice),
            None => self.producer.handle_lost(at),
        }
    }

    fn tick(&mut self) {
        // An orderly star answers in time: nothing is given up while it has not.
        if self.kind.is_orderly && self.producer.in_flight() > 0 {
            return;
        }
        if let Some(deadline) = self.producer.next_deadline(&self.batcher) {
            self.now = self.now.max(deadline);
            let at = self.at();
            self.producer.handle_tick(at);
        }
    }

    fn step(&mut self, (kind, whim): (u8, u32)) {
        match kind % 16 {
            0..=3 => self.append(None),
            4 => {
                let right = (self.star.log.len() + self.producer.in_flight()) as u64;
                self.append(Some(SequenceNumber(right + u64::from(whim % 4 == 0))));
            }
            5..=8 => self.serve(whim),
            9..=11 => self.deliver(),
            12 => self.connect(whim),
            13 => self.tick(),
            14 => self.lose(whim),
            _ if whim % 8 == 0 && !self.kind.is_orderly => {
                let known = self.star.writers.keys().copied();
                self.star.forgotten.extend(known);
            }
            _ => self.connect(u32::MAX),
        }
        self.act();
    }

    /// Everything goes well from here on, until all is resolved.
    fn heal(&mut self) {
        const WELL: u32 = 23;
        for _ in 0..10_000 {
            self.act();
            if self.batcher.is_empty() && self.producer.is_quiet() {
                return;
            }
            self.connect(WELL);
            self.act();
            self.serve(WELL);
            self.deliver();
            self.act();
            let is_idle = self
                .session
                .as_ref()
                .is_none_or(|session| session.unanswered() == 0);
            if is_idle && self.connecting.is_none() {
                self.tick();
            }
        }
        panic!("not all was resolved: {:?}", self.producer);
    }

    fn check(&self) {
        let all = self.batcher.next_number().0;
        assert_eq!(self.results.len() as u64, all, "every batch is resolved");
        let mut last = None;
        for (&id, result) in &self.results {
            let times = self.star.log.iter().filter(|&&there| there == id).count();
            if self.kind.has_writer || self.kind.is_orderly {
                assert!(times <= 1, "batch {id} is there {times} times");
            }
            match result {
                Ok(ack) => {
                    let at = ack.start.sequence;
                    assert_eq!(
                        self.star.log.get(at.0 as usize),
                        Some(&id),
                        "not where acked"
                    );
                    assert!(last < Some(at), "batch {id} out of order");
                    last = Some(at);
                }
                Err(error) if error.is_clean() => {
                    assert_eq!(times, 0, "batch {id} is there, its error is clean: {error}");
                }
                Err(error) => {
                    assert!(!self.kind.is_orderly, "batch {id} is in doubt: {error}");
                    let since = error.ambiguity().expect("what is needed to find out").since;
                    let before = &self.star.log[..(since.0 as usize).min(self.star.log.len())];
                    let is_plain = !self.conditional.contains(&id);
                    assert!(
                        !is_plain || !before.contains(&id),
                        "batch {id} is before {since}"
                    );
                }
            }
        }
    }

    fn run(kind: Kind, steps: Vec<(u8, u32)>) {
        let mut world = World::new(kind);
        for step in steps {
            world.step(step);
        }
        world.heal();
        world.check();
    }
}

fn steps() -> impl Strategy<Value = Vec<(u8, u32)>> {
    proptest::collection::vec((any::<u8>(), any::<u32>()), 1..400)
}

fn config() -> ProptestConfig {
    ProptestConfig {
        cases: 2_000,
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn with_a_writer_nothing_is_lost_or_doubled(steps in steps()) {
        let kind = Kind { has_writer: true, ..Kind::default() };
        World::run(kind, steps);
    }

    #[test]
    fn without_a_writer_nothing_is_lost_and_errors_are_true(steps in steps()) {
        World::run(Kind::default(), steps);
    }

    #[test]
    fn where_all_is_clean_nothing_is_in_doubt(has_writer in any::<bool>(), steps in steps()) {
        let kind = Kind { has_writer, is_orderly: true, ..Kind::default() };
        World::run(kind, steps);
    }
}

#[path = "canary_tests.rs"]
mod canaries;
