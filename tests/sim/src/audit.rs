//! The audit after a crash: what a copy of the disk holds, against all that was ever told.
//!
//! # Invariants
//! - Whatever the disk holds must be explained by what was sent, and whatever was told must be
//!   there.
//!
//! # Not here
//! - How the copy is read: [`crate::desk`].

use crate::desk::{Contents, Found};
use crate::history::{Copies, RecordId};
use crate::oracle::{Oracle, Seen};
use nova_model::request::StreamInfo;
use nova_model::{StreamId, StreamName};
use std::collections::BTreeMap;

/// Where the audit has found records so far.
type Places = BTreeMap<RecordId, u64>;

impl Oracle {
    /// Holds what is on the disk against all that was told.
    pub fn audit(&mut self, contents: &Contents) {
        let names: Vec<StreamName> = self.history.names.keys().cloned().collect();
        let mut places = BTreeMap::new();
        for name in &names {
            let found = contents.streams.get(name);
            self.audit_name(name, found.map(|found| found.info.id));
            if let Some(found) = found {
                self.audit_stream(name, found, &mut places);
            }
        }
        self.audit_lists(contents);
        self.audit_buckets(contents);
        self.audit_settings(contents);
    }

    fn audit_name(&mut self, name: &StreamName, found: Option<StreamId>) {
        let named = &self.history.names[name];
        let newest = named.alive.iter().max_by_key(|(_, mark)| **mark);
        let newest = newest.map(|(id, mark)| (*id, *mark));
        let may_be_gone = named.delete_asked.is_some();
        let is_dead = found.is_some_and(|id| named.dead.contains_key(&id));
        let deletes_open = named.deletes_open;
        let deleted_since =
            |mark| named.delete_asked.is_some_and(|asked| asked > mark) || deletes_open > 0;
        let is_kept = match newest {
            None => true,
            Some((id, mark)) => found == Some(id) || (may_be_gone && deleted_since(mark)),
        };
        let is_unknown = newest.is_none_or(|(id, _)| named.dead.contains_key(&id));
        self.check(!is_dead, || {
            format!("{name}: {found:?} was deleted for good and is there")
        });
        self.check(is_kept || is_unknown, || {
            format!("{name}: {newest:?} was told to be there; {found:?} is")
        });
    }

    fn audit_stream(&mut self, name: &StreamName, found: &Found, places: &mut Places) {
        let info = &found.info;
        let id = info.id;
        let account = self.history.accounts.entry(id).or_default().clone();
        let (first, tail) = (info.first.0, info.tail.sequence.0);
        self.check(tail >= account.tail, || {
            format!("{name}: the tail is {tail}, {} was told", account.tail)
        });
        self.audit_first(name, (id, first, tail), &account);
        self.audit_token(name, found, &account);
        self.check(info.epoch >= account.epoch, || {
            format!(
                "{name}: {} is there, {} was told",
                info.epoch, account.epoch
            )
        });
        if let Some(failure) = &found.failure {
            self.found(format!(
                "{name} cannot be read to its tail {tail}: {failure}"
            ));
            return;
        }
        let (mut next, mut last, mut epoch) = (first, 0, 0);
        for batch in &found.batches {
            self.check(batch.epoch.0 >= epoch, || {
                format!("{name}: at {next} the epoch goes back to {}", batch.epoch)
            });
            epoch = batch.epoch.0;
            batch.for_each(|position, record| {
                if position.sequence.0 < first {
                    return;
                }
                let (sequence, time) = (position.sequence.0, position.timestamp.0);
                self.check(sequence == next && time >= last, || {
                    format!("{name}: {sequence} at {time} follows {next} at {last}")
                });
                (next, last) = (sequence + 1, time);
                let seen = Seen {
                    position,
                    epoch: batch.epoch,
                    body: record.body(),
                };
                let Some(record) = self.judge_record(name, id, seen) else {
                    return;
                };
                let told = account.records.get(&sequence).copied();
                let fits = told.is_none_or(|told| {
                    told.record == record && told.timestamp.is_none_or(|told| told == time)
                });
                self.check(fits, || {
                    format!(
                        "{name}: {sequence} was told to be {told:?} and is {record:?} at {time}"
                    )
                });
                let before = places.insert(record, sequence);
                let is_once = self.history.sent[record.0 as usize].copies == Copies::One;
                self.check(!is_once || before.is_none(), || {
                    format!("{name}: {record:?} is at {before:?} and at {sequence}")
                });
                let place = self.place_of(record).filter(|_| is_once);
                self.check(place.is_none_or(|place| place == (id, sequence)), || {
                    format!("{name}: {record:?} was at {place:?} and is at {sequence} of {id}")
                });
            });
        }
        self.check(next == tail, || {
            format!("{name}: read to {next}, the tail is {tail}")
        });
    }

    fn audit_first(
        &mut self,
        name: &StreamName,
        (id, first, tail): (StreamId, u64, u64),
        account: &crate::history::Account,
    ) {
        let (told, asked) = (account.first, account.first_asked);
        let has_expired = match first == tail {
            true => self.history.may_be_empty(id, tail),
            false => self.history.may_have_expired(id, first),
        };
        self.check(first >= told && (first <= asked || has_expired), || {
            format!("{name}: trimmed to {first}, told {told}, asked for {asked}")
        });
    }

    fn audit_token(&mut self, name: &StreamName, found: &Found, account: &crate::history::Account) {
        let token = found.info.fence.as_str();
        let at = account.fences.iter().position(|fence| fence.token == token);
        let is_older = match (at, account.fence_told) {
            (_, None) => false,
            (None, Some(_)) => true,
            (Some(at), Some(told)) => account.is_before(at, told),
        };
        let told = account
            .fence_told
            .map(|told| account.fences[told].token.clone());
        self.check(!is_older && (at.is_some() || token.is_empty()), || {
            format!("{name}: the token is '{token}', told was {told:?}")
        });
    }

    fn audit_lists(&mut self, contents: &Contents) {
        let mut listed: BTreeMap<&StreamName, &StreamInfo> = BTreeMap::new();
        for info in &contents.listed {
            let before = listed.insert(&info.name, info);
            self.check(before.is_none(), || {
                format!("{} is listed twice", info.name)
            });
        }
        for (name, found) in &contents.streams {
            let info = listed.remove(name);
            self.check(info == Some(&found.info), || {
                format!("{name} is listed as {info:?}, it is {:?}", found.info)
            });
        }
        let more: Vec<_> = listed.keys().collect();
        self.check(more.is_empty(), || {
            format!("listed, but not there: {more:?}")
        });
    }
}
