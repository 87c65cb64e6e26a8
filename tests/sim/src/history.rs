//! What the clients have sent and what they were told: the facts that the oracle holds the star to.
//!
//! # Invariants
//! - A record is known by its body alone: [`body_of`] gives each record number another one, so a
//!   record that nobody sent or that was damaged is recognised wherever it turns up.
//! - Marks are the order in which clients saw things; what was told before a mark was told before
//!   everything sent after it.
//!
//! # Not here
//! - The judgement: [`crate::oracle`].

use crate::buckets::Bucket;
use crate::expiry::Kept;
use crate::rng::mix;
use crate::sessions::{Leader, PolicyChange, Session};
use crate::settings::Settings;
use crate::updates::{UpdateFacts, UpdateId};
use bytes::Bytes;
use nova_model::settings::{BucketSettings, StreamSettings};
use nova_model::{BucketName, Epoch, Position, StreamId, StreamName};
use std::collections::BTreeMap;

/// Number of a record in a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct RecordId(pub u64);

/// A moment in the order in which clients saw things.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Mark(pub u64);

/// How often a record may be in streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Copies {
    /// Once: its writer is numbered, or it was conditional, or it was sent once.
    One,
    /// More than once: it was sent again, without a number, after its answer was lost.
    Many,
}

/// What became of a record, as far as its sender was told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// Nothing certain.
    Open,
    /// It is there.
    Acked(StreamId, Position),
    /// It certainly is not.
    Refused,
}

/// A record that was given to the client.
#[derive(Debug, Clone)]
pub struct Sent {
    /// Where it is to go.
    pub stream: StreamName,
    /// How often it may be there.
    pub copies: Copies,
    /// What became of it.
    pub fate: Fate,
    /// When it was given to the client.
    pub at: u64,
    /// The id of the update that it is, if it is one.
    pub update: Option<UpdateId>,
}

/// A record that somebody was told of at its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Told {
    /// Which it is.
    pub record: RecordId,
    /// Its timestamp, where it was told.
    pub timestamp: Option<u64>,
}

/// A fencing token that was asked for.
#[derive(Debug, Clone)]
pub struct Fence {
    /// The token; each request has another one.
    pub token: String,
    /// When it was asked for.
    pub asked: Mark,
    /// When it was told that it is installed.
    pub told: Option<Mark>,
}

/// What was told about one incarnation of a stream.
#[derive(Debug, Clone, Default)]
pub struct Account {
    /// Records at their places.
    pub records: BTreeMap<u64, Told>,
    /// The highest tail.
    pub tail: u64,
    /// The highest first record that is left.
    pub first: u64,
    /// The highest first record that was asked for.
    pub first_asked: u64,
    /// The tail at which leaderships were told to have begun or to go on.
    pub epochs: BTreeMap<Epoch, u64>,
    /// Tokens, in the order in which they were asked for.
    pub fences: Vec<Fence>,
    /// The token told last, as an index into the fences.
    pub fence_told: Option<usize>,
    /// The highest epoch.
    pub epoch: Epoch,
    /// Who led under an epoch.
    pub leaders: BTreeMap<Epoch, Leader>,
    /// Append sessions that were told to be open.
    pub sessions: Vec<Session>,
    /// Its settings.
    pub settings: Settings,
    /// When the policy certainly became another one.
    pub policy_changes: Vec<PolicyChange>,
}

/// What was told about a name.
#[derive(Debug, Clone, Default)]
pub struct Named {
    /// Incarnations that were told to be there, with the first time each was.
    pub alive: BTreeMap<StreamId, Mark>,
    /// Incarnations that are gone for good, with the time it was told.
    pub dead: BTreeMap<StreamId, Mark>,
    /// When deleting was asked for last.
    pub delete_asked: Option<Mark>,
    /// Deletions that have no answer yet or never got one.
    pub deletes_open: u64,
    /// What those said who wanted to create it, and when.
    pub creates: Vec<(StreamSettings, Mark)>,
}

/// A time during which the star's wall clock is behind.
#[derive(Debug, Default)]
pub struct Behind {
    /// When it ended; nothing while it lasts.
    pub until: Option<u64>,
    /// What was told of the tails of streams when it began.
    pub tails: BTreeMap<StreamId, u64>,
}

/// All of it.
#[derive(Debug, Default)]
pub struct History {
    pub(crate) sent: Vec<Sent>,
    pub(crate) accounts: BTreeMap<StreamId, Account>,
    pub(crate) names: BTreeMap<StreamName, Named>,
    pub(crate) buckets: BTreeMap<BucketName, Bucket>,
    /// The defaults of buckets.
    pub(crate) defaults: BTreeMap<BucketName, Settings>,
    /// Updates of entities.
    pub(crate) updates: Vec<UpdateFacts>,
    /// What was asked to be kept of streams, and of those of buckets.
    pub(crate) kept: BTreeMap<StreamName, Kept>,
    pub(crate) kept_by_default: BTreeMap<BucketName, Kept>,
    /// The time.
    pub(crate) clock: u64,
    /// The time during which the star's wall clock was behind, if it ever was.
    pub(crate) behind: Option<Behind>,
    /// When the disk was looked at last, and the settings that were found then.
    pub(crate) audited: Mark,
    pub(crate) found: BTreeMap<StreamId, StreamSettings>,
    pub(crate) found_defaults: BTreeMap<BucketName, BucketSettings>,
    mark: u64,
}

impl History {
    /// The next moment.
    pub fn mark(&mut self) -> Mark {
        self.mark += 1;
        Mark(self.mark)
    }

    /// The moment that was last.
    pub fn now(&self) -> Mark {
        Mark(self.mark)
    }

    /// The star's wall clock is behind from now on, or right.
    pub fn clock_is_set(&mut self, is_behind: bool) {
        if is_behind {
            let accounts = self.accounts.iter();
            self.behind = Some(Behind {
                until: None,
                tails: accounts.map(|(id, account)| (*id, account.tail)).collect(),
            });
        } else if let Some(behind) = &mut self.behind {
            behind.until.get_or_insert(self.clock);
        }
    }

    /// A record is about to be given to the client.
    pub fn send(&mut self, stream: &StreamName, copies: Copies) -> RecordId {
        self.names.entry(stream.clone()).or_default();
        self.sent.push(Sent {
            stream: stream.clone(),
            copies,
            fate: Fate::Open,
            at: self.clock,
            update: None,
        });
        RecordId(self.sent.len() as u64 - 1)
    }

    /// A record may be there more than once from now on.
    pub fn allow_copies(&mut self, record: RecordId) {
        self.sent[record.0 as usize].copies = Copies::Many;
    }

    /// The epoch that an operation sent now must not come before.
    pub fn epoch_floor(&self, id: StreamId) -> Epoch {
        self.accounts.get(&id).map_or(Epoch(0), |known| known.epoch)
    }

    /// The tail that an operation sent now must not come before.
    pub fn floor(&self, id: StreamId) -> u64 {
        self.accounts.get(&id).map_or(0, |account| account.tail)
    }

    /// Somebody asks for records to be forgotten.
    pub fn ask_trim(&mut self, id: StreamId, first: u64) {
        let account = self.accounts.entry(id).or_default();
        account.first_asked = account.first_asked.max(first);
    }

    /// Somebody asks for a token.
    pub fn ask_fence(&mut self, id: StreamId, token: &str) {
        let asked = self.mark();
        self.accounts.entry(id).or_default().fences.push(Fence {
            token: token.to_owned(),
            asked,
            told: None,
        });
    }

    /// Somebody asks for a stream to be deleted.
    pub fn ask_delete(&mut self, name: &StreamName) -> Mark {
        let mark = self.mark();
        let named = self.names.entry(name.clone()).or_default();
        named.delete_asked = Some(mark);
        named.deletes_open += 1;
        mark
    }

    /// A deletion certainly did not happen, or did and was told.
    pub fn delete_ended(&mut self, name: &StreamName) {
        if let Some(named) = self.names.get_mut(name) {
            named.deletes_open = named.deletes_open.saturating_sub(1);
        }
    }

    /// The incarnation of a name that was told last.
    pub fn current(&self, name: &StreamName) -> Option<StreamId> {
        let named = self.names.get(name)?;
        let living = named
            .alive
            .iter()
            .filter(|(id, _)| !named.dead.contains_key(id));
        living.max_by_key(|(_, mark)| **mark).map(|(id, _)| *id)
    }
}

/// The most bytes of a usual body.
const USUAL_BYTES: u64 = 220;
/// The most bytes of a large one.
const LARGE_BYTES: u64 = 5000;

/// The body of a record: its number and as much more as the number says.
pub fn body_of(record: RecordId) -> Bytes {
    let shape = mix(record.0 ^ 0xb0d7);
    let most = if shape.is_multiple_of(6) {
        LARGE_BYTES
    } else {
        USUAL_BYTES
    };
    let length = (shape >> 8) % most;
    let mut body = record.0.to_le_bytes().to_vec();
    let words = length.div_ceil(8);
    body.extend((0..words).flat_map(|word| mix(record.0 << 20 ^ word).to_le_bytes()));
    body.truncate(8 + length as usize);
    body.into()
}

/// The record that has this body.
pub fn record_of(body: &[u8], sent: u64) -> Option<RecordId> {
    let number = u64::from_le_bytes(body.get(..8)?.try_into().ok()?);
    let record = RecordId(number);
    (number < sent && body_of(record) == body).then_some(record)
}
