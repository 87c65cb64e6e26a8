//! A producer on virtual time, driven by hand, and the values its tests are made of.

use super::*;
use crate::core::batcher::{BatcherConfig, Share};
use nova_model::limits::{CLIENT_RETRY_BUDGET_US, CLIENT_SILENCE_US};
use nova_model::request::ServerTimes;
use nova_model::{Code, Epoch, Facts, Position, Timestamp};

pub(crate) fn rules() -> ProducerRules {
    ProducerRules {
        stream: StreamName::parse("bucket/stream").expect("a legal name"),
        fence: None,
        retry_budget_us: CLIENT_RETRY_BUDGET_US,
        silence_us_max: CLIENT_SILENCE_US,
    }
}

pub(crate) fn position(sequence: u64) -> Position {
    Position {
        sequence: SequenceNumber(sequence),
        timestamp: Timestamp(0),
    }
}

pub(crate) fn opened(tail: u64, window: u32) -> AppendOpened {
    AppendOpened {
        stream_id: StreamId(1),
        epoch: Epoch(1),
        tail: position(tail),
        window_batches: window,
        idle_timeout_us: 0,
    }
}

pub(crate) fn ack(start: u64, records: u64) -> Ack {
    Ack {
        start: position(start),
        end: position(start + records),
        tail: position(start + records),
        duplicate: false,
        times: ServerTimes::default(),
    }
}

pub(crate) fn refusal(code: Code) -> Refusal {
    Refusal::new(code, "because")
}

pub(crate) fn holder(address: &str) -> Refusal {
    let address = Some(address.to_owned());
    refusal(Code::NotOwner).with(Facts::Holder {
        address,
        epoch: Epoch(2),
    })
}

pub(crate) fn mismatch_at(tail: u64) -> Refusal {
    refusal(Code::SeqMismatch).with(Facts::Tail(position(tail)))
}

/// A producer on virtual time and what it asked for since the last look, one word each.
pub(crate) struct Rig {
    pub(crate) producer: Producer,
    pub(crate) batcher: Batcher,
    pub(crate) now: Instant,
    pub(crate) log: Vec<String>,
    pub(crate) results: Vec<(u64, Result<Ack, AppendError>)>,
}

impl Rig {
    pub(crate) fn new(writer: Option<u128>) -> Rig {
        Rig {
            producer: Producer::new(rules(), writer.map(WriterId)),
            batcher: Batcher::new(BatcherConfig::default()),
            now: Instant(0),
            log: Vec::new(),
            results: Vec::new(),
        }
    }

    /// With a session of this window open.
    pub(crate) fn open(writer: Option<u128>, window: u32) -> Rig {
        let mut rig = Rig::new(writer);
        rig.producer.start();
        rig.producer.handle_opened(opened(0, window));
        rig.look();
        rig
    }

    pub(crate) fn at(&self) -> Moment {
        Moment {
            now: self.now,
            random: 1,
        }
    }

    /// One batch of its own with this body.
    pub(crate) fn append(&mut self, body: &str) -> Share {
        self.batcher.flush();
        let pushed = self.batcher.push(self.now, Record::new(body.to_owned()));
        pushed.expect("there is room").share
    }

    pub(crate) fn append_if(&mut self, body: &str, at: u64) -> Share {
        let records = vec![Record::new(body.to_owned())];
        let pushed = self
            .batcher
            .push_batch(self.now, records, Some(SequenceNumber(at)));
        pushed.expect("there is room").share
    }

    /// Pumps and tells what it wants: `connect`, `b0#3` (batch 0 as the writer's 3), `resume`...
    pub(crate) fn look(&mut self) -> Vec<String> {
        self.producer.pump(self.now, &mut self.batcher);
        while let Some(action) = self.producer.poll_action() {
            let word = match action {
                Action::Connect {
                    target: Target::Star,
                    ..
                } => "connect".to_owned(),
                Action::Connect {
                    target: Target::Address(address),
                    ..
                } => {
                    format!("connect {address}")
                }
                Action::Disconnect => "disconnect".to_owned(),
                Action::Send { number, append, .. } => match append.writer_sequence {
                    Some(stamp) => format!("b{}#{stamp}", number.0),
                    None => format!("b{}", number.0),
                },
                Action::Resume => "resume".to_owned(),
                Action::NeedWriter => "writer".to_owned(),
                Action::Resolve { batch, result } => {
                    let word = match &result {
                        Ok(_) => format!("ok{}", batch.0),
                        Err(error) => format!("{}{}", kind(error), batch.0),
                    };
                    self.results.push((batch.0, result));
                    word
                }
            };
            self.log.push(word);
            self.producer.pump(self.now, &mut self.batcher);
        }
        std::mem::take(&mut self.log)
    }

    pub(crate) fn acked(&mut self, start: u64) {
        let at = self.at();
        self.producer.handle_acked(at, ack(start, 1));
    }

    pub(crate) fn rejected(&mut self, refusal: Refusal) {
        let at = self.at();
        self.producer.handle_rejected(at, refusal);
    }

    pub(crate) fn broken(&mut self, refusal: Refusal) {
        let at = self.at();
        self.producer.handle_broken(at, refusal);
    }

    pub(crate) fn lost(&mut self) {
        let at = self.at();
        self.producer.handle_lost(at);
    }

    /// Lets time pass until the next deadline.
    pub(crate) fn tick(&mut self) {
        let deadline = self
            .producer
            .next_deadline(&self.batcher)
            .expect("a deadline");
        self.now = self.now.max(deadline);
        let at = self.at();
        self.producer.handle_tick(at);
    }
}

pub(crate) fn kind(error: &AppendError) -> &'static str {
    match error {
        AppendError::Refused(_) => "refused",
        AppendError::Ambiguous(_) => "ambiguous",
        AppendError::Unavailable { .. } => "unavailable",
        AppendError::HolderUnresolvable { .. } => "unresolvable",
        AppendError::Handshake(_) => "handshake",
        AppendError::Closed => "closed",
    }
}
