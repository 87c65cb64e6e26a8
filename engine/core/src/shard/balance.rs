//! What core 0 asks all cores about their load: for the star's status, and to spread it.
//!
//! ```text
//!   core 0   Ask ------------> all       status: answered when all have told
//!            <------------ Told
//!            plan, Order ----> leaders   rebalance: answered when the moves are done
//!            <------------ Done
//! ```
//!
//! # Invariants
//! - One rebalance at a time, not during a drain.
//!
//! # Not here
//! - The plan: [`crate::rebalance`]. The moves: `moves`.

use super::Shard;
use crate::event::{Caller, Event, LoadStep, LoadTold, PeerMessage};
use crate::load::Rates;
use crate::rebalance::{CoreLoad, Order, plan};
use nova_model::ids::{CoreId, StreamId};
use nova_model::limits::{
    DRAIN_PATIENCE_US, REBALANCE_MOVES_MAX, REBALANCE_STREAMS_MAX, STATUS_REQUESTS_MAX,
};
use nova_model::request::Answer;
use nova_model::star::{CoreStatus, StarStatus, StreamMove};
use nova_model::{Code, Facts, Instant, Refusal};
use std::collections::BTreeMap;

/// The questions that core 0 waits for answers to.
#[derive(Default)]
pub(super) struct Questions {
    asked: BTreeMap<u64, Question>,
    last_number: u64,
}

struct Question {
    caller: Caller,
    is_rebalance: bool,
    /// By core.
    told: BTreeMap<CoreId, LoadTold>,
    /// Moves that are under way, once they are planned.
    moves: Option<Moves>,
}

struct Moves {
    under_way: BTreeMap<StreamId, Order>,
    done: Vec<StreamMove>,
    has_more: bool,
    /// When it is answered with what is done.
    deadline: Instant,
}

impl Questions {
    pub(super) fn next_number(&mut self) -> u64 {
        self.last_number += 1;
        self.last_number
    }

    pub(super) fn is_rebalancing(&self) -> bool {
        self.asked.values().any(|question| question.is_rebalance)
    }

    /// When moves that take long are not waited for any more.
    pub(super) fn deadline(&self) -> Option<Instant> {
        let moves = self.asked.values().filter_map(|asked| asked.moves.as_ref());
        moves.map(|moves| moves.deadline).min()
    }
}

impl Shard {
    /// Tells the state of all cores.
    pub(super) fn ask_status(&mut self, caller: Caller) {
        let is_full = self.questions.asked.len() >= STATUS_REQUESTS_MAX;
        let checked = self.check_home(CoreId(0)).and_then(|()| match is_full {
            false => Ok(()),
            true => {
                let message = "too many wait for the star's status";
                Err(Refusal::new(Code::RateLimited, message).with(Facts::After(50_000)))
            }
        });
        self.ask_cores(caller, false, checked);
    }

    /// Spreads the led streams over the cores by their load.
    pub(super) fn rebalance(&mut self, caller: Caller) {
        let checked = self.check_home(CoreId(0));
        let checked = checked.and_then(|()| self.check_nothing_in_hand());
        self.ask_cores(caller, true, checked);
    }

    fn ask_cores(&mut self, caller: Caller, is_rebalance: bool, checked: Result<(), Refusal>) {
        if let Err(refusal) = checked {
            let event = Event::Answered(caller, Err(refusal));
            return self.events.push_back(event);
        }
        let number = self.questions.next_number();
        let question = Question {
            caller,
            is_rebalance,
            told: BTreeMap::new(),
            moves: None,
        };
        self.questions.asked.insert(number, question);
        let with_streams = is_rebalance;
        for core in self.all_cores() {
            let step = LoadStep::Ask { with_streams };
            self.tell(core, PeerMessage::Load(number, step));
        }
    }

    /// Core 0 asks or orders, or another core answers.
    pub(super) fn load_step(&mut self, from: CoreId, number: u64, step: LoadStep) {
        match step {
            LoadStep::Ask { with_streams } => {
                let told = Box::new(self.tell_load(with_streams));
                self.tell(from, PeerMessage::Load(number, LoadStep::Told(told)));
            }
            LoadStep::Order { stream, to } => self.order_move(number, stream, to),
            LoadStep::Told(told) => self.load_told(from, number, *told),
            LoadStep::Done { stream, name } => {
                let patience = self.seen.plus_us(DRAIN_PATIENCE_US);
                let question = self.questions.asked.get_mut(&number);
                let Some(moves) = question.and_then(|question| question.moves.as_mut()) else {
                    return;
                };
                moves.deadline = patience;
                if let Some(order) = moves.under_way.remove(&stream) {
                    let Order { from, to, .. } = order;
                    moves
                        .done
                        .extend(name.map(|name| StreamMove { name, from, to }));
                }
                if moves.under_way.is_empty() {
                    self.answer_moves(number);
                }
            }
        }
    }

    fn load_told(&mut self, from: CoreId, number: u64, told: LoadTold) {
        let cores = usize::from(self.config.cores());
        let Some(question) = self.questions.asked.get_mut(&number) else {
            return;
        };
        question.told.insert(from, told);
        if question.told.len() < cores {
            return;
        }
        let told = std::mem::take(&mut question.told);
        if question.is_rebalance {
            return self.order_moves(number, told);
        }
        let question = self.questions.asked.remove(&number).expect("it was asked");
        let status = StarStatus {
            star: self.config.star,
            incarnation: self.config.incarnation,
            cores: told.into_values().map(|told| told.status).collect(),
        };
        let answer = Ok(Answer::Status(status));
        self.events
            .push_back(Event::Answered(question.caller, answer));
    }

    fn order_moves(&mut self, number: u64, told: BTreeMap<CoreId, LoadTold>) {
        let open = told
            .into_iter()
            .filter(|(core, _)| !self.places.current.is_drained(*core));
        let cores = open.map(|(core, told)| CoreLoad {
            core,
            weight: told.weight,
            streams: told.streams,
        });
        let (orders, has_more) = plan(cores.collect(), REBALANCE_MOVES_MAX);
        let question = self.questions.asked.get_mut(&number);
        question.expect("it was asked").moves = Some(Moves {
            under_way: orders.iter().map(|order| (order.stream, *order)).collect(),
            done: Vec::new(),
            has_more,
            deadline: self.seen.plus_us(DRAIN_PATIENCE_US),
        });
        if orders.is_empty() {
            return self.answer_moves(number);
        }
        for Order { stream, from, to } in orders {
            let step = LoadStep::Order { stream, to };
            self.tell(from, PeerMessage::Load(number, step));
        }
    }

    fn answer_moves(&mut self, number: u64) {
        let Some(question) = self.questions.asked.remove(&number) else {
            return;
        };
        let moves = question.moves.expect("they were planned");
        let has_more = moves.has_more || !moves.under_way.is_empty();
        let moves = moves.done;
        let answer = Answer::Rebalanced { moves, has_more };
        self.events
            .push_back(Event::Answered(question.caller, Ok(answer)));
    }

    /// Answers with what is done when no move has ended for long.
    pub(super) fn answer_overdue(&mut self, now: Instant) {
        let is_overdue = |question: &Question| {
            let moves = question.moves.as_ref();
            moves.is_some_and(|moves| moves.deadline <= now)
        };
        let asked = self.questions.asked.iter();
        let overdue = asked.filter(|(_, question)| is_overdue(question));
        let overdue: Vec<u64> = overdue.map(|(number, _)| *number).collect();
        for number in overdue {
            self.answer_moves(number);
        }
    }

    fn tell_load(&self, with_streams: bool) -> LoadTold {
        let now = self.seen;
        let mut rates = Rates::default();
        let (mut led, mut streams) = (0, Vec::new());
        for id in self.streams.ids() {
            let stream = self.stream(id);
            let of_stream = stream.load.rates(now);
            rates = rates.plus(of_stream);
            let is_led = stream.is_led && !stream.assigned.deleted;
            led += u64::from(is_led);
            if with_streams && is_led && !self.moving.contains_key(&id) {
                streams.push((id, of_stream.weight()));
            }
        }
        let weight = rates.weight();
        streams.sort_by_key(|(id, weight)| (std::cmp::Reverse(*weight), *id));
        streams.truncate(REBALANCE_STREAMS_MAX);
        let rates = rates.plus(self.past_load.rates(now));
        let (segments, sealed_bytes) = self.indexes.log_extent();
        let core = self.config.core;
        let status = CoreStatus {
            core,
            address: self.config.addresses[usize::from(core.0)].clone(),
            is_drained: self.places.current.is_drained(core),
            is_disk_full: self.is_disk_full(),
            streams_led: led,
            streams_loaded: self.streams.len() as u64,
            streams_moving: self.moving.len() as u64,
            sessions: self.sessions.len() as u64,
            readers: self.readers.len() as u64,
            appended_bytes_per_s: rates.appended_bytes,
            appended_records_per_s: rates.appended_records,
            read_bytes_per_s: rates.read_bytes,
            segments,
            log_bytes: sealed_bytes + self.log.active_bytes(),
            pending_bytes: self.log.pending_bytes() as u64,
            recent_bytes: self.recent.bytes() as u64,
        };
        LoadTold {
            status,
            weight,
            streams,
        }
    }
}
