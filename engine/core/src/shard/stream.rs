//! Streams coming into memory and leaving it: look-up, creation, leadership, idleness.

use super::Shard;
use super::durable::Held;
use super::moves::MoveFor;
use crate::catalog::indexes::Found;
use crate::catalog::streams::Stream;
use crate::commit::gate::Ticket;
use crate::entry::Entry;
use crate::state::StreamState;
use nova_model::ids::{Epoch, StreamId};
use nova_model::names::StreamName;
use nova_model::settings::{BucketSettings, EffectiveSettings, ProducerPolicy, StreamSettings};
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
        if self.buckets.closed.contains_key(&name.bucket) {
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
        let here = self.indexes.active().and_then(|index| index.stream(id));
        if here.is_some_and(|here| (here.epoch, here.tail) != (epoch, state.tail)) {
            // It was led elsewhere since it was here before in the same segment, whose index would
            // not see the gap.
            self.log.roll();
        }
        state.epoch = epoch.next();
        self.config.planted.spoil_leadership(&mut state, epoch);
        self.commit(id, Entry::Led(Box::new(state)));
    }

    /// Starts the clock of a stream that nothing holds any more. Under the policy `fenced` its
    /// leadership is given up as soon as all is durable.
    pub(super) fn note_idle(&mut self, now: Instant, id: StreamId) {
        let Some(stream) = self.streams.get(id) else {
            return;
        };
        let is_held = !stream.sessions.is_empty() || !stream.readers.is_empty();
        let ticket = stream.last_ticket;
        let mut deadline = (!is_held).then(|| now.plus_us(self.config.idle_us));
        if self.is_given_up(id) {
            // Not at once: whoever notes this may be in the middle of something.
            match ticket > self.durable {
                true => self.hold(ticket, Held::Release(id)),
                false => deadline = Some(now),
            }
        }
        self.streams.set_deadline(id, deadline);
    }

    /// Whether this core leads a stream whose policy says that its last handle takes the leadership
    /// along.
    fn is_given_up(&self, id: StreamId) -> bool {
        let stream = self.stream(id);
        let is_fenced = self.settings_of(id).policy.value == ProducerPolicy::Fenced;
        is_fenced && stream.is_led && stream.sessions.is_empty()
    }

    /// Gives the leadership of a `fenced` stream up, unless it is wanted again. Its readers stay,
    /// but for those of a guest, which goes home: they follow it.
    pub(super) fn release_leadership(&mut self, id: StreamId) {
        if self.streams.get(id).is_none() || !self.is_given_up(id) {
            return;
        }
        let stream = self.stream(id);
        let name = &stream.assigned.name;
        if self.moving.contains_key(&id) || self.is_put_off(name) {
            return;
        }
        let ticket = stream.last_ticket;
        if ticket > self.durable {
            return self.hold(ticket, Held::Release(id));
        }
        let home = self.places.current.home(name);
        if home != self.config.core {
            self.begin_move(id, home, MoveFor::Home);
        } else if stream.readers.is_empty() {
            self.forget(id);
        } else {
            self.stream_mut(id).is_led = false;
        }
    }

    /// Lets an idle stream go; it is found again through the indexes. One with entries on their way
    /// waits for another round.
    pub(super) fn let_go(&mut self, now: Instant, id: StreamId) {
        let Some(stream) = self.streams.get(id) else {
            return;
        };
        if self.is_given_up(id) {
            return self.release_leadership(id);
        }
        if !stream.is_idle(self.durable) {
            return self.note_idle(now, id);
        }
        let name = &stream.assigned.name;
        if self.moving.contains_key(&id) {
            return;
        }
        // A deleted incarnation is of no use once another one has its name.
        if self.streams.find(name) != Some(id) {
            return self.forget(id);
        }
        if self.is_put_off(name) {
            return;
        }
        let home = self.places.current.home(name);
        if home != self.config.core {
            return self.begin_move(id, home, MoveFor::Home);
        }
        self.forget(id);
    }

    /// Takes a stream that nothing holds out of memory.
    pub(super) fn forget(&mut self, id: StreamId) {
        if let Some(gone) = self.streams.remove(id) {
            self.recent.forget(&gone);
            self.past_load.add(self.seen, gone.load);
        }
    }
}
