//! One batch of updates of one entity, driven as the client's entity writer drives it.
//!
//! # Not here
//! - Which updates ride together: [`super::entity`]. Links and redirects: [`super::errand`].

use super::errand::{Ask, Errand, Heard};
use super::{Holders, Surroundings};
use crate::bugs::ClientBug;
use crate::history::body_of;
use crate::network::LinkId;
use crate::sessions::Taken;
use crate::updates::Try;
use nova_client::core::AppendError;
use nova_client::core::fenced::memory::Memory;
use nova_client::core::fenced::outcome::{Applied, UpdateError};
use nova_client::core::fenced::update::Update;
use nova_client::core::fenced::{Action, FencedWrite, WriteRules};
use nova_model::condition::{Conditions, FencingToken};
use nova_model::request::{OneShotAppend, ReadLimits, ReadOpen, ReadStart, Request};
use nova_model::{Code, EncodedBatch, Facts, Record, Refusal, StreamId, StreamName};
use std::collections::BTreeMap;

/// How many of 100 owners that are fenced out take the entity over again at once.
const FIGHTING: u64 = 60;

/// What the batches of a process share.
pub(super) struct Desk {
    holders: Holders,
    /// The tokens that the process installed.
    tokens: BTreeMap<StreamName, FencingToken>,
    rules: WriteRules,
    throttled: u64,
}

impl Desk {
    pub(super) fn new(rules: WriteRules, throttled: u64) -> Desk {
        Desk {
            holders: Holders::default(),
            tokens: BTreeMap::new(),
            rules,
            throttled,
        }
    }
}

#[derive(Debug)]
enum Stage {
    /// It waits for its token.
    TakingOver {
        updates: Vec<Update>,
        memory: Memory,
        token: FencingToken,
    },
    /// It is written.
    Writing(Box<FencedWrite>),
    /// Its process is gone, or it goes from one stage to the next.
    None,
}

/// A batch; see the module.
#[derive(Debug)]
pub(super) struct EntityBatch {
    entity: StreamName,
    tries: Vec<Option<Try>>,
    stage: Stage,
    errand: Option<Errand>,
    /// The token that it presents.
    token: Option<FencingToken>,
}

impl EntityBatch {
    pub(super) fn new(
        around: &mut Surroundings<'_>,
        entity: StreamName,
        tries: Vec<Try>,
        memory: Memory,
    ) -> EntityBatch {
        let updates = tries.iter().map(|tried| update(around, tried)).collect();
        EntityBatch {
            entity,
            tries: tries.into_iter().map(Some).collect(),
            stage: Stage::TakingOver {
                updates,
                memory,
                token: FencingToken::default(),
            },
            errand: None,
            token: None,
        }
    }

    /// Begins: an owner that has no token yet installs one first.
    pub(super) fn begin(&mut self, around: &mut Surroundings<'_>, desk: &mut Desk, is_owner: bool) {
        let known = around.oracle.history.current(&self.entity);
        match (desk.tokens.get(&self.entity).cloned(), known) {
            (None, Some(id)) if is_owner => self.take_over(around, desk, id),
            (token, _) => self.start(around, desk, token),
        }
    }

    fn take_over(&mut self, around: &mut Surroundings<'_>, desk: &mut Desk, id: StreamId) {
        let text = format!("t{}", around.rng.number());
        around.oracle.history.ask_fence(id, &text);
        let fresh = FencingToken::parse(&text).expect("a short token");
        if let Stage::TakingOver { token, .. } = &mut self.stage {
            *token = fresh.clone();
        }
        let request = Request::Fence {
            name: self.entity.clone(),
            stream_id: None,
            token: fresh,
            conditions: Conditions::default(),
        };
        let fence = Ask::Fence(request);
        let errand = Errand::ask(around, &mut desk.holders, &self.entity, fence);
        self.errand = Some(errand);
    }

    fn start(&mut self, around: &mut Surroundings<'_>, desk: &Desk, token: Option<FencingToken>) {
        let stage = std::mem::replace(&mut self.stage, Stage::None);
        let Stage::TakingOver {
            updates, memory, ..
        } = stage
        else {
            return;
        };
        self.token.clone_from(&token);
        let rules = WriteRules {
            fence: token,
            ..desk.rules.clone()
        };
        let mut write = FencedWrite::new(rules, updates, memory);
        write.start(around.now());
        self.stage = Stage::Writing(Box::new(write));
    }

    pub(super) fn is_over(&self) -> bool {
        matches!(&self.stage, Stage::Writing(write) if write.is_over())
    }

    pub(super) fn into_memory(self) -> (StreamName, Memory) {
        match self.stage {
            Stage::Writing(write) => (self.entity, write.into_memory()),
            Stage::TakingOver { memory, .. } => (self.entity, memory),
            Stage::None => unreachable!("a batch that lives has a stage"),
        }
    }

    pub(super) fn next_deadline(&self) -> Option<u64> {
        match &self.stage {
            Stage::Writing(write) => write.next_deadline().map(|at| at.0),
            Stage::TakingOver { .. } | Stage::None => None,
        }
    }

    /// The process is killed: what was sent may arrive still.
    pub(super) fn die(self, around: &mut Surroundings<'_>) {
        if let Some(errand) = self.errand {
            errand.drop(around);
        }
    }

    /// A link is broken; what had arrived on it counts.
    pub(super) fn lost(&mut self, around: &mut Surroundings<'_>, desk: &mut Desk, link: LinkId) {
        let is_on = |errand: &mut Errand| errand.is_on(link);
        if !self.errand.as_mut().is_some_and(is_on) {
            return;
        }
        self.hear(around, desk);
        if let Some(errand) = self.errand.take_if(is_on) {
            let lost = errand.lost();
            errand.drop(around);
            self.take(around, desk, lost);
        }
        self.step(around, desk);
    }

    /// Takes what has come in and does what follows, until there is nothing left.
    pub(super) fn step(&mut self, around: &mut Surroundings<'_>, desk: &mut Desk) {
        loop {
            self.hear(around, desk);
            self.tick(around);
            if !self.act(around, desk) {
                break;
            }
        }
        if let Some(errand) = &mut self.errand {
            errand.flush(around);
        }
    }

    fn hear(&mut self, around: &mut Surroundings<'_>, desk: &mut Desk) {
        while let Some(errand) = &mut self.errand
            && let Some(heard) = errand.hear(around, &mut desk.holders)
        {
            if heard.is_end()
                && let Some(errand) = self.errand.take()
            {
                errand.drop(around);
            }
            self.take(around, desk, heard);
        }
    }

    fn tick(&mut self, around: &mut Surroundings<'_>) {
        let at = around.moment();
        if let Stage::Writing(write) = &mut self.stage
            && write.next_deadline().is_some_and(|due| due <= at.now)
        {
            write.handle_tick(at);
        }
    }

    fn take(&mut self, around: &mut Surroundings<'_>, desk: &mut Desk, heard: Heard) {
        let at = around.moment();
        if let Stage::TakingOver { token, .. } = &self.stage {
            let token = matches!(heard, Heard::Fenced).then(|| token.clone());
            if let Some(token) = &token {
                desk.tokens.insert(self.entity.clone(), token.clone());
            }
            return self.start(around, desk, token);
        }
        let Stage::Writing(write) = &mut self.stage else {
            return;
        };
        match heard {
            Heard::Begun(id, start) => write.handle_read_begun(id, start),
            Heard::Stored(batch) => write.handle_stored(at.now, &batch),
            Heard::AllRead => write.handle_read_all(at.now),
            Heard::Written(ack, sent) => {
                write.handle_written(at, ack.start.sequence, ack.end.sequence);
                if let Some(id) = around.oracle.history.current(&self.entity) {
                    around.oracle.taken(Taken {
                        name: &self.entity,
                        id,
                        token: self.token.as_ref().map(FencingToken::as_str),
                        sent,
                        session: None,
                    });
                }
            }
            Heard::Failed(error) => {
                around.say(|| format!("fails: {error}"));
                write.handle_failed(at, error);
            }
            Heard::Fenced => {}
        }
    }

    /// Does what the write asks for; whether there was something.
    fn act(&mut self, around: &mut Surroundings<'_>, desk: &mut Desk) -> bool {
        let mut has_acted = false;
        while let Stage::Writing(write) = &mut self.stage
            && let Some(action) = write.poll_action()
        {
            has_acted = true;
            match action {
                Action::Read { stream_id, start } => self.read(around, desk, stream_id, start),
                Action::Write {
                    stream_id,
                    conditions,
                    records,
                } => self.write(around, desk, stream_id, conditions, &records),
                Action::Cancel => {
                    if let Some(errand) = self.errand.take() {
                        errand.drop(around);
                    }
                }
                Action::Resolve { update, result } => {
                    if let Some(tried) = self.tries[update].take() {
                        self.resolve(around, desk, tried, result);
                    }
                }
            }
        }
        has_acted
    }

    fn read(
        &mut self,
        around: &mut Surroundings<'_>,
        desk: &mut Desk,
        stream_id: Option<StreamId>,
        start: ReadStart,
    ) {
        if self.is_throttled(around, desk) {
            return;
        }
        let open = ReadOpen {
            stream: self.entity.clone(),
            stream_id,
            start,
            limits: ReadLimits::default(),
            follow: false,
            clamp: false,
        };
        let errand = Errand::read(around, &mut desk.holders, open);
        self.errand = Some(errand);
    }

    fn write(
        &mut self,
        around: &mut Surroundings<'_>,
        desk: &mut Desk,
        stream_id: Option<StreamId>,
        mut conditions: Conditions,
        records: &[Record],
    ) {
        if self.is_throttled(around, desk) {
            return;
        }
        match around.bug {
            Some(ClientBug::WriteWithoutCondition) => conditions.match_sequence = None,
            Some(ClientBug::WriteWithoutToken) => conditions.fence = None,
            _ => {}
        }
        let batch = EncodedBatch::encode(records).expect("a batch of small records");
        let head = OneShotAppend {
            stream: self.entity.clone(),
            stream_id,
            conditions,
            writer: None,
        };
        let what = Ask::Append(head, batch);
        let errand = Errand::ask(around, &mut desk.holders, &self.entity, what);
        self.errand = Some(errand);
    }

    /// The star has no patience with this request.
    fn is_throttled(&mut self, around: &mut Surroundings<'_>, desk: &Desk) -> bool {
        if around.is_calm || !around.rng.chance(desk.throttled) {
            return false;
        }
        let after = Facts::After(around.rng.between(1_000, 40_000));
        let refusal = Refusal::new(Code::RateLimited, "too many requests").with(after);
        let at = around.moment();
        if let Stage::Writing(write) = &mut self.stage {
            write.handle_failed(at, AppendError::Refused(refusal));
        }
        true
    }

    fn resolve(
        &mut self,
        around: &mut Surroundings<'_>,
        desk: &mut Desk,
        tried: Try,
        result: Result<Applied, UpdateError>,
    ) {
        around.say(|| format!("{tried:?} is told {result:?}"));
        let error = match result {
            Ok(applied) => return around.oracle.update_applied(tried, &applied),
            Err(error) => error,
        };
        if error.is_fenced() && around.rng.chance(FIGHTING) {
            desk.tokens.remove(&self.entity);
        }
        match error {
            UpdateError::Conflict { at } => around.oracle.update_conflicts(tried, at),
            error if error.is_clean() => around.oracle.update_not_applied(tried),
            _ => {}
        }
    }
}

/// The update as it is given to the writer.
fn update(around: &Surroundings<'_>, tried: &Try) -> Update {
    let facts = &around.oracle.history.updates[tried.update.0];
    let id = match around.bug {
        Some(ClientBug::FreshIdOnRetry) => format!("u{}-{}", facts.id.0, tried.asked.0),
        _ => format!("u{}", facts.id.0),
    };
    let record = Record::new(body_of(facts.record));
    Update::new(id.into_bytes(), record).expect("a short id and a small record")
}
