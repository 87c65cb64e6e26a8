//! Streams coming into memory and leaving it: look-up, creation, leadership, idleness.

use super::Shard;
use crate::catalog::indexes::Found;
use crate::catalog::streams::Stream;
use crate::commit::gate::Ticket;
use crate::entry::Entry;
use crate::state::StreamState;
use nova_model::ids::{Epoch, StreamId};
use nova_model::names::StreamName;
use nova_model::placement::stream_home;
use nova_model::settings::{BucketSettings, EffectiveSettings, StreamSettings};
use nova_model::{Code, Facts, Instant, Now, Refusal};

/// What a name leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Resolved {
    /// A stream in memory.
    Live(StreamId),
    /// None, or none any more.
    Absent {
        /// The epoch that the next incarnation goes on from.
        epoch: Epoch,
        /// The group that the answer "not there" depends on.
        ticket: Ticket,
    },
}

impl Shard {
    pub(super) fn stream(&self, id: StreamId) -> &Stream {
        self.streams.get(id).expect("the stream is in memory")
    }

    pub(super) fn stream_mut(&mut self, id: StreamId) -> &mut Stream {
        self.streams.get_mut(id).expect("the stream is in memory")
    }

    /// The settings in force of a stream in memory.
    pub(super) fn settings_of(&self, id: StreamId) -> EffectiveSettings {
        let stream = self.stream(id);
        let bucket = self.buckets.known.get(&stream.assigned.name.bucket);
        let defaults = bucket
            .map(|info| info.settings.defaults)
            .unwrap_or_default();
        stream.settings(&defaults)
    }

    /// Finds a stream of this core by name, bringing it into memory.
    pub(super) fn resolve(&mut self, name: &StreamName) -> Result<Resolved, Refusal> {
        self.check_owner(name)?;
        if let Some(id) = self.streams.find(name) {
            let stream = self.stream(id);
            let (epoch, ticket) = (stream.assigned.epoch, stream.last_ticket);
            return Ok(match stream.assigned.deleted {
                false => Resolved::Live(id),
                true => Resolved::Absent { epoch, ticket },
            });
        }
        match self.indexes.find(name)? {
            Some(Found {
                state, records_in, ..
            }) if !state.deleted => {
                let id = state.id;
                self.streams.insert(Stream::at_rest(state, records_in));
                Ok(Resolved::Live(id))
            }
            Some(Found { state, .. }) => Ok(Resolved::Absent {
                epoch: state.epoch,
                ticket: Ticket(0),
            }),
            None => Ok(Resolved::Absent {
                epoch: Epoch(0),
                ticket: Ticket(0),
            }),
        }
    }

    /// The same, creating the stream if its bucket says so for appends.
    pub(super) fn resolve_for_append(
        &mut self,
        now: Now,
        name: &StreamName,
        fresh: StreamId,
    ) -> Result<Resolved, Refusal> {
        self.resolve_or_create(now, name, fresh, |bucket| bucket.create_stream_on_append)
    }

    /// The same, creating the stream if its bucket says so for reads.
    pub(super) fn resolve_for_read(
        &mut self,
        now: Now,
        name: &StreamName,
        fresh: StreamId,
    ) -> Result<Resolved, Refusal> {
        self.resolve_or_create(now, name, fresh, |bucket| bucket.create_stream_on_read)
    }

    fn resolve_or_create(
        &mut self,
        now: Now,
        name: &StreamName,
        fresh: StreamId,
        is_wanted: impl Fn(&BucketSettings) -> bool,
    ) -> Result<Resolved, Refusal> {
        let resolved = self.resolve(name)?;
        let Resolved::Absent { epoch, .. } = resolved else {
            return Ok(resolved);
        };
        let Some(bucket) = self.buckets.known.get(&name.bucket) else {
            return Err(Refusal::bucket_not_found(&name.bucket));
        };
        if !is_wanted(&bucket.settings) {
            return Ok(resolved);
        }
        self.create(now, name, StreamSettings::default(), epoch, fresh)
            .map(Resolved::Live)
    }

    /// Creates a stream under a name that leads to none.
    pub(super) fn create(
        &mut self,
        now: Now,
        name: &StreamName,
        settings: StreamSettings,
        epoch: Epoch,
        fresh: StreamId,
    ) -> Result<StreamId, Refusal> {
        if !self.buckets.known.contains_key(&name.bucket) {
            return Err(Refusal::bucket_not_found(&name.bucket));
        }
        if self.buckets.closed.contains(&name.bucket) {
            let message = format!("bucket {} is being deleted", name.bucket);
            return Err(Refusal::new(Code::RateLimited, message).with(Facts::After(10_000)));
        }
        if let Some(refusal) = self.shortage() {
            return Err(refusal);
        }
        let mut state = StreamState::new(fresh, name.clone(), now.wall, settings);
        state.epoch = epoch;
        self.streams.insert(Stream::at_rest(state, None));
        self.lead(fresh);
        let stream = self.stream_mut(fresh);
        stream.created_in = stream.last_ticket;
        self.note_idle(now.instant, fresh);
        Ok(fresh)
    }

    /// Takes the leadership of a stream if this start does not have it yet: the next epoch, stored
    /// before anything is answered under it.
    pub(super) fn lead(&mut self, id: StreamId) {
        let stream = self.stream_mut(id);
        if stream.is_led {
            return;
        }
        stream.is_led = true;
        let (mut state, epoch) = (stream.assigned.clone(), stream.assigned.epoch);
        state.epoch = epoch.next();
        self.config.planted.spoil_leadership(&mut state, epoch);
        self.commit(id, Entry::Led(Box::new(state)));
    }

    /// Starts the clock of a stream that nothing holds any more.
    pub(super) fn note_idle(&mut self, now: Instant, id: StreamId) {
        let deadline = now.plus_us(self.config.idle_us);
        if let Some(stream) = self.streams.get(id) {
            let is_held = !stream.sessions.is_empty() || !stream.readers.is_empty();
            self.streams
                .set_deadline(id, (!is_held).then_some(deadline));
        }
    }

    /// Lets an idle stream go; it is found again through the indexes. One with entries on their way
    /// waits for another round.
    pub(super) fn let_go(&mut self, now: Instant, id: StreamId) {
        let Some(stream) = self.streams.get(id) else {
            return;
        };
        if !stream.is_idle(self.durable) {
            return self.note_idle(now, id);
        }
        if self.moving.contains_key(&id) {
            return;
        }
        let home = stream_home(&stream.assigned.name, self.config.cores());
        if home != self.config.core && !stream.assigned.deleted {
            return self.begin_move(id, home, None);
        }
        if let Some(gone) = self.streams.remove(id) {
            self.recent.forget(&gone);
        }
    }
}
