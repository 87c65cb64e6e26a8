//! Updates of entities: each is stored once under its id, whoever writes it and how often.
//!
//! ```text
//!   id 7:  content a -- tried by process 1, by process 2, again by 1 after its death
//!          content b -- tried by process 2: a conflict, if a is stored
//! ```
//! # Invariants
//! - Of all contents that were tried under an id one is stored at most, once.
//! - An update that may be trimmed is not tried again: after that it would be stored anew.
//!
//! # Not here
//! - The processes: [`crate::clients`]. Records at their places: [`crate::oracle`].

use crate::history::{Copies, Fate, Mark, RecordId};
use crate::oracle::Oracle;
use nova_client::core::fenced::outcome::Applied;
use nova_model::{Position, SequenceNumber, StreamId, StreamName};

/// The id of an update: all updates with this id in its entity are meant to be one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct UpdateId(pub u64);

/// An id and one content.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct UpdateNumber(pub usize);

/// What is known of an id with one content.
#[derive(Debug, Clone)]
pub struct UpdateFacts {
    /// Its entity.
    pub entity: StreamName,
    /// Its id.
    pub id: UpdateId,
    /// Its content.
    pub record: RecordId,
    /// The tail that was told when it was tried first.
    floor: u64,
    /// Tries without an answer, or with one that says that it may be stored still.
    open: u64,
    /// Where it is, and when that was told first.
    told: Option<(u64, Mark)>,
    /// Whether it may be trimmed: nobody tries it any more.
    is_settled: bool,
}

impl UpdateFacts {
    /// Whether somebody was told where it is.
    pub fn is_told(&self) -> bool {
        self.told.is_some()
    }

    /// Whether nobody may try it any more, since it may be trimmed.
    pub fn is_settled(&self) -> bool {
        self.is_settled
    }
}

/// One try of an update by one process.
#[derive(Debug, Clone, Copy)]
pub struct Try {
    /// Which update.
    pub update: UpdateNumber,
    /// When it was given to the process.
    pub asked: Mark,
    /// The tail that was told then.
    floor: u64,
}

impl Oracle {
    /// A new update; with the id of another one of the entity, and other content, if one is given.
    pub fn new_update(&mut self, entity: &StreamName, of: Option<UpdateId>) -> UpdateNumber {
        let number = self.history.updates.len();
        let id = of.unwrap_or(UpdateId(number as u64));
        let record = self.history.send(entity, Copies::One);
        self.history.sent[record.0 as usize].update = Some(id);
        let floor = self.entity_floor(entity);
        self.history.updates.push(UpdateFacts {
            entity: entity.clone(),
            id,
            record,
            floor,
            open: 0,
            told: None,
            is_settled: false,
        });
        UpdateNumber(number)
    }

    /// A process is given the update.
    pub fn try_update(&mut self, update: UpdateNumber) -> Try {
        let asked = self.history.mark();
        let entity = self.history.updates[update.0].entity.clone();
        let floor = self.entity_floor(&entity);
        let facts = &mut self.history.updates[update.0];
        facts.open += 1;
        let sent = &mut self.history.sent[facts.record.0 as usize];
        if sent.fate == Fate::Refused {
            sent.fate = Fate::Open;
        }
        Try {
            update,
            asked,
            floor,
        }
    }

    /// A try ended for certain without storing it.
    pub fn update_not_applied(&mut self, tried: Try) {
        let facts = &mut self.history.updates[tried.update.0];
        facts.open -= 1;
        let (record, is_gone) = (facts.record, facts.open == 0 && facts.told.is_none());
        if is_gone {
            self.refused(&[record]);
        }
    }

    /// A try ended with the answer that it is stored.
    pub fn update_applied(&mut self, tried: Try, applied: &Applied) {
        let now = self.history.mark();
        let at = applied.at.0;
        let facts = &mut self.history.updates[tried.update.0];
        facts.open -= 1;
        let (told_at, told) = *facts.told.get_or_insert((at, now));
        let floor = facts.floor;
        let (id, record, entity) = (facts.id, facts.record, facts.entity.clone());
        self.check(told_at == at, || {
            format!("{entity}: {id:?} was told to be at {told_at} and is at {at}")
        });
        let was_told = told < tried.asked;
        self.check(applied.duplicate || !was_told, || {
            format!("{entity}: {id:?} was applied before and is told to be new at {at}")
        });
        let floor = if applied.duplicate {
            floor
        } else {
            tried.floor
        };
        self.check(at >= floor, || {
            format!("{entity}: {id:?} is at {at}, and was asked for when the tail was {floor}")
        });
        if let Some(stream) = self.history.current(&entity) {
            self.found_update(stream, at, record);
        }
    }

    /// A try ended with the answer that its id is stored with other content.
    pub fn update_conflicts(&mut self, tried: Try, at: SequenceNumber) {
        let facts = &self.history.updates[tried.update.0];
        let (id, record, entity) = (facts.id, facts.record, facts.entity.clone());
        let mut rivals = self.history.updates.iter();
        let rivals: Vec<RecordId> = rivals
            .by_ref()
            .filter(|other| other.id == id && other.record != record)
            .map(|other| other.record)
            .collect();
        let Some(stream) = self.history.current(&entity) else {
            return self.update_not_applied(tried);
        };
        let known = self.history.accounts[&stream].records.get(&at.0).copied();
        let is_told = known.is_none_or(|told| rivals.contains(&told.record));
        self.check(is_told && !rivals.is_empty(), || {
            format!("{entity}: a conflict of {id:?} with {known:?} at {at}, tried were {rivals:?}")
        });
        self.update_not_applied(tried);
    }

    /// The first record of an entity that must stay, at most `most`: those before it are updates
    /// that nobody is trying. Nobody does so from now on, since an update is stored once until it
    /// is trimmed.
    pub fn settle_updates(&mut self, stream: StreamId, most: u64) -> u64 {
        let Some(account) = self.history.accounts.get(&stream) else {
            return 0;
        };
        let mut first = account.first_asked;
        let mut settled = Vec::new();
        while first < most
            && let Some(told) = account.records.get(&first)
        {
            if let Some(id) = self.history.sent[told.record.0 as usize].update {
                let mut same = self.history.updates.iter().filter(|facts| facts.id == id);
                if same.any(|facts| facts.open > 0) {
                    break;
                }
                settled.push(id);
            }
            first += 1;
        }
        for facts in &mut self.history.updates {
            facts.is_settled |= settled.contains(&facts.id);
        }
        first
    }

    fn found_update(&mut self, stream: StreamId, at: u64, record: RecordId) {
        self.history.sent[record.0 as usize].fate = Fate::Acked(stream, position_of(at));
        self.same_update(record);
        self.place(stream, at, record, None);
        let account = self.history.accounts.entry(stream).or_default();
        account.tail = account.tail.max(at + 1);
    }

    /// Of the contents under an id one is stored.
    pub(crate) fn same_update(&mut self, record: RecordId) {
        let Some(id) = self.history.sent[record.0 as usize].update else {
            return;
        };
        let stored = *self.stored.entry(id).or_insert(record);
        self.check(stored == record, || {
            format!("{id:?} is stored as {stored:?} and as {record:?}")
        });
    }

    fn entity_floor(&self, entity: &StreamName) -> u64 {
        let id = self.history.current(entity);
        id.map_or(0, |id| self.history.floor(id))
    }
}

fn position_of(at: u64) -> Position {
    Position {
        sequence: SequenceNumber(at),
        ..Position::default()
    }
}
