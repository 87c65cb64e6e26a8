//! Who may append: what was told of leaderships, sessions, tokens and policies, and what follows.
//!
//! # Invariants
//! - A policy or a token is held against an answer only where it was certain from before the
//!   question until the answer.
//!
//! # Not here
//! - Which policies are possible at a time: [`crate::settings`]. Which token is newer than another:
//!   [`crate::oracle`].

use crate::history::Mark;
use crate::oracle::Oracle;
use nova_model::settings::ProducerPolicy;
use nova_model::{Epoch, StreamId, StreamName};

/// A leader: the start of the star and its core.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Leader {
    /// The start.
    pub life: u64,
    /// The core.
    pub core: u16,
}

/// An append session as its client knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Session {
    /// When it was asked for.
    pub asked: Mark,
    /// When it was told to be open.
    pub told: Mark,
}

/// A batch that was taken.
#[derive(Debug, Clone, Copy)]
pub struct Taken<'a> {
    /// Its stream.
    pub name: &'a StreamName,
    /// The incarnation.
    pub id: StreamId,
    /// The token that its writer presented.
    pub token: Option<&'a str>,
    /// When it was sent.
    pub sent: Mark,
    /// The session that took it; none for a one-shot append.
    pub session: Option<Session>,
}

/// The policy became certainly another one.
#[derive(Debug, Clone, Copy)]
pub struct PolicyChange {
    asked: Mark,
    ended: Mark,
}

impl Oracle {
    /// A session was opened under an epoch, by a leader, for somebody who had been told of
    /// `floor` before.
    pub fn opened(
        &mut self,
        id: StreamId,
        epoch: Epoch,
        leader: Leader,
        floor: Epoch,
        asked: Mark,
    ) -> Session {
        self.epoch(id, epoch, floor);
        let told = self.history.mark();
        let session = Session { asked, told };
        let account = self.history.accounts.entry(id).or_default();
        account.sessions.push(session);
        let known = *account.leaders.entry(epoch).or_insert(leader);
        self.check(known == leader, || {
            format!("{id}: {epoch} is that of {leader:?} and of {known:?}")
        });
        session
    }

    /// A stream is led by `leader` under this epoch, says the answer to a handoff. Of a stream at
    /// rest it names the epoch that was last, maybe that of an earlier start.
    pub fn moved(&mut self, id: StreamId, epoch: Epoch, leader: Leader, floor: Epoch) {
        self.epoch(id, epoch, floor);
        let account = self.history.accounts.entry(id).or_default();
        let known = account.leaders.get(&epoch).copied();
        let fits = known.is_none_or(|known| known.life != leader.life || known == leader);
        self.check(fits, || {
            format!("{id}: {epoch} is told to be that of {leader:?}, it is that of {known:?}")
        });
    }

    /// An epoch was told to somebody who had been told of `floor` before.
    pub fn epoch(&mut self, id: StreamId, epoch: Epoch, floor: Epoch) {
        self.check(epoch >= floor, || {
            format!("{id}: {epoch} is told after {floor} was")
        });
        let account = self.history.accounts.entry(id).or_default();
        account.epoch = account.epoch.max(epoch);
    }

    /// A batch was taken that had not been applied before.
    pub fn taken(&mut self, taken: Taken<'_>) {
        match taken.token {
            Some(token) => self.accepted_token(taken.id, token, taken.sent),
            None => self.accepted_without_token(&taken),
        }
        if let Some(session) = taken.session {
            self.check_session(&taken, session);
        }
    }

    /// While a token is installed, a `fenced` stream takes nothing without one.
    fn accepted_without_token(&mut self, taken: &Taken<'_>) {
        let account = self.history.accounts.entry(taken.id).or_default();
        let mut fences = account.fences.iter();
        let is_installed = fences.any(|fence| fence.told.is_some_and(|told| told < taken.sent));
        if !is_installed {
            return;
        }
        let is_fenced = self.was_fenced(taken.name, taken.id, taken.sent);
        self.check(!is_fenced, || {
            let name = taken.name;
            format!("{name} is fenced, and a batch without a token is acked")
        });
    }

    /// A change of the policy ends a session, and a `fenced` stream has one.
    fn check_session(&mut self, taken: &Taken<'_>, session: Session) {
        let account = self.history.accounts.entry(taken.id).or_default();
        let between =
            |change: &&PolicyChange| session.told < change.asked && change.ended < taken.sent;
        let survived = account.policy_changes.iter().find(between).copied();
        let begun_since = |other: &&Session| {
            session.told < other.asked && other.told < taken.sent && **other != session
        };
        let rival = account.sessions.iter().find(begun_since).copied();
        self.check(survived.is_none(), || {
            format!("{}: {session:?} outlives {survived:?}", taken.name)
        });
        if rival.is_some() {
            let is_fenced = self.was_fenced(taken.name, taken.id, session.asked);
            self.check(!is_fenced, || {
                let name = taken.name;
                format!("{name} is fenced and has two sessions: {session:?}, {rival:?}")
            });
        }
    }

    /// The policy asked for at `asked` is in force: whether it was certainly another one before.
    pub(crate) fn note_policy_change(
        &mut self,
        name: &StreamName,
        id: StreamId,
        asked: Mark,
        now: Mark,
    ) {
        let account = self.history.accounts.entry(id).or_default();
        let Some(policy) = account.settings.policy_asked(asked) else {
            return;
        };
        let others = self.policies(name, id, Some(asked), (asked, now));
        let is_change = |other: &ProducerPolicy| *other != policy;
        if !others.is_empty() && others.iter().all(is_change) {
            let account = self.history.accounts.entry(id).or_default();
            let ended = now;
            account.policy_changes.push(PolicyChange { asked, ended });
        }
    }
}
