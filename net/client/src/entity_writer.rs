//! The entity writer: updates of many entities, each stored once, whichever process writes it.
//!
//! ```text
//!   write(entity, update) -> KeyedBatcher, by entity -> FencedWrite -> Reader, append_once
//!          ^                                              |
//!          +------ Applied, or why not <------------------+
//! ```
//! # Not here
//! - The protocol and what it guarantees: [`crate::core::fenced`].

use crate::client::{AppendOnce, Client};
use crate::core::Appended;
use crate::core::fenced::memory::{Memories, Memory};
use crate::core::fenced::outcome::{Applied, UpdateError};
use crate::core::fenced::update::Update;
use crate::core::fenced::{Action, FencedWrite, WriteRules};
use crate::core::keyed::KeyedConfig;
use crate::error::ClientError;
use crate::keyed_batcher::{BatchError, KeyedBatcher};
use crate::reader::{ReadItem, Reader};
use nova_model::limits::{
    BATCH_METERED_BYTES_MAX, ENTITY_ATTEMPT_US, ENTITY_KNOWN_RECORDS_DEFAULT,
};
use nova_model::request::{ReadLimits, ReadOpen, ReadStart};
use nova_model::{Conditions, FencingToken, Record, StreamId, StreamName};
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::sync::oneshot;

/// How an entity writer behaves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EntityWriterConfig {
    /// The fencing token that its writes present. Whoever takes an entity over installs one
    /// that was never used ([`Client::fence`]); this writer's updates are refused `FENCED` then.
    pub fence: Option<FencingToken>,
    /// How many entities are written at once, and how many updates may wait.
    pub keys: KeyedConfig,
    /// Newest records of an entity whose update ids are known: an update that is sent again is
    /// recognised if fewer records were stored since. By default 16,384.
    pub known_records: u64,
    /// How long a read or write may be without progress before it is done again; by default 5 s.
    /// For how long a batch is tried is the client's [`ClientConfig::retry_budget`].
    ///
    /// [`ClientConfig::retry_budget`]: crate::ClientConfig::retry_budget
    pub attempt: Duration,
}

impl Default for EntityWriterConfig {
    fn default() -> EntityWriterConfig {
        EntityWriterConfig {
            fence: None,
            keys: KeyedConfig::default(),
            known_records: ENTITY_KNOWN_RECORDS_DEFAULT,
            attempt: Duration::from_micros(ENTITY_ATTEMPT_US),
        }
    }
}

impl EntityWriterConfig {
    fn rules(&self, retry_budget_us: u64) -> WriteRules {
        let us = |time: Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        WriteRules {
            fence: self.fence.clone(),
            known_records: self.known_records,
            retry_budget_us,
            attempt_us: us(self.attempt).max(1),
        }
    }
}

type Outcome = Result<Applied, UpdateError>;

struct Call {
    update: Update,
    reply: oneshot::Sender<Outcome>,
}

/// Writes updates to entities; an entity is a stream. Share it between tasks behind an `Arc`.
#[derive(Debug)]
pub struct EntityWriter {
    batcher: KeyedBatcher<StreamName, Call, (), Infallible>,
}

impl Client {
    /// A writer of entities. To be called inside a tokio runtime.
    pub fn entity_writer(&self, config: EntityWriterConfig) -> Result<EntityWriter, ClientError> {
        let rules = config.rules(self.star.retry_budget_us);
        rules.check()?;
        let mut keys = config.keys;
        keys.batch_bytes_max = keys.batch_bytes_max.min(BATCH_METERED_BYTES_MAX);
        let shared = Arc::new(Shared {
            client: self.clone(),
            memories: Mutex::new(Memories::new(rules.known_records)),
            rules,
        });
        let batcher = KeyedBatcher::new(keys, move |entity, calls: Vec<Call>| {
            let shared = Arc::clone(&shared);
            async move {
                let done = vec![(); calls.len()];
                shared.write(entity, calls).await;
                Ok(done)
            }
        })?;
        Ok(EntityWriter { batcher })
    }
}

impl EntityWriter {
    /// Writes an update; resolves once it is durable, or was found to be.
    ///
    /// Whatever the error, the same update may be written again, here or by another process.
    pub async fn write(&self, entity: StreamName, update: Update) -> Result<Applied, UpdateError> {
        self.write_async(entity, update)?.await
    }

    /// Takes a place for an update behind those of the same entity that were written before. What
    /// comes back waits for the result.
    pub fn write_async(
        &self,
        entity: StreamName,
        update: Update,
    ) -> Result<UpdateTicket, UpdateError> {
        let (reply, receiver) = oneshot::channel();
        let bytes = update.record().metered_bytes();
        let submitted = self
            .batcher
            .submit_async(entity, Call { update, reply }, bytes);
        match submitted {
            // The update's own channel tells more than that its batch is over.
            Ok(_) => Ok(UpdateTicket { receiver }),
            Err(BatchError::Rejected) => Err(UpdateError::Rejected),
            Err(
                BatchError::Closed
                | BatchError::Failed(_)
                | BatchError::Panicked
                | BatchError::Miscounted { .. },
            ) => Err(UpdateError::Closed { is_clean: true }),
        }
    }

    /// Takes no more updates, and waits until all have their result.
    pub async fn close(&self) {
        self.batcher.close().await;
    }
}

/// The result of an update that is on its way: a future. Dropping it does not take the update
/// back.
#[derive(Debug)]
#[must_use = "an update that nobody waits for may fail unseen"]
pub struct UpdateTicket {
    receiver: oneshot::Receiver<Outcome>,
}

impl Future for UpdateTicket {
    type Output = Outcome;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Outcome> {
        let received = Pin::new(&mut self.receiver).poll(context);
        let closed = Err(UpdateError::Closed { is_clean: false });
        received.map(|received| received.unwrap_or(closed))
    }
}

struct Shared {
    client: Client,
    rules: WriteRules,
    memories: Mutex<Memories>,
}

type Asked<T> = Pin<Box<dyn Future<Output = Result<T, ClientError>> + Send>>;

/// The read or write that is under way.
enum Work {
    None,
    Opening(Asked<Reader>),
    Reading(Box<Reader>),
    Writing(Asked<Appended>),
}

enum Event {
    Opened(Result<Reader, ClientError>),
    Read(Result<Option<ReadItem>, ClientError>),
    Written(Result<Appended, ClientError>),
    Tick,
}

impl Work {
    async fn next(&mut self) -> Event {
        match self {
            Work::None => std::future::pending().await,
            Work::Opening(opening) => Event::Opened(opening.await),
            Work::Reading(reader) => Event::Read(reader.next_batch().await),
            Work::Writing(writing) => Event::Written(writing.await),
        }
    }
}

impl Shared {
    async fn write(&self, entity: StreamName, calls: Vec<Call>) {
        let memory = self.with_memories(|memories| memories.take(&entity));
        let memory = self.drive(&entity, memory, calls).await;
        self.with_memories(|memories| memories.keep(entity, memory));
    }

    fn with_memories<T>(&self, act: impl FnOnce(&mut Memories) -> T) -> T {
        let mut memories = self.memories.lock().unwrap_or_else(PoisonError::into_inner);
        act(&mut memories)
    }

    async fn drive(&self, entity: &StreamName, memory: Memory, calls: Vec<Call>) -> Memory {
        let source = &self.client.star.source;
        let pairs = calls
            .into_iter()
            .map(|call| (call.update, Some(call.reply)));
        let (updates, mut replies): (Vec<_>, Vec<_>) = pairs.unzip();
        let mut write = FencedWrite::new(self.rules.clone(), updates, memory);
        let mut work = Work::None;
        write.start(source.now());
        loop {
            while let Some(action) = write.poll_action() {
                match action {
                    Action::Read { stream_id, start } => {
                        work = Work::Opening(self.read(entity, stream_id, start));
                    }
                    Action::Write {
                        stream_id,
                        conditions,
                        records,
                    } => {
                        work = Work::Writing(self.append(entity, stream_id, conditions, records));
                    }
                    Action::Cancel => work = Work::None,
                    Action::Resolve { update, result } => {
                        if let Some(reply) = replies[update].take() {
                            // The caller may have stopped waiting.
                            let _ = reply.send(result);
                        }
                    }
                }
            }
            let Some(deadline) = write.next_deadline() else {
                return write.into_memory();
            };
            let event = tokio::select! {
                event = work.next() => event,
                () = tokio::time::sleep_until(source.time_of(deadline)) => Event::Tick,
            };
            self.handle(&mut write, &mut work, event);
        }
    }

    fn handle(&self, write: &mut FencedWrite, work: &mut Work, event: Event) {
        let at = self.client.star.source.moment();
        match event {
            Event::Tick => return write.handle_tick(at),
            Event::Opened(Ok(reader)) => {
                if let (Some(id), Some(start)) = (reader.stream_id(), reader.next_sequence()) {
                    write.handle_read_begun(id, start);
                }
                *work = Work::Reading(Box::new(reader));
                return;
            }
            Event::Read(Ok(Some(ReadItem::Batch(batch)))) => {
                return write.handle_stored(at.now, &batch);
            }
            Event::Read(Ok(Some(ReadItem::CaughtUp(_)))) => return,
            Event::Read(Ok(None)) => write.handle_read_all(at.now),
            Event::Written(Ok(appended)) => {
                write.handle_written(at, appended.start.sequence, appended.end.sequence);
            }
            Event::Opened(Err(error)) | Event::Read(Err(error)) | Event::Written(Err(error)) => {
                write.handle_failed(at, error.into());
            }
        }
        *work = Work::None;
    }

    fn read(
        &self,
        entity: &StreamName,
        stream_id: Option<StreamId>,
        start: ReadStart,
    ) -> Asked<Reader> {
        let client = self.client.clone();
        let open = ReadOpen {
            stream: entity.clone(),
            stream_id,
            start,
            limits: ReadLimits::default(),
            follow: false,
            clamp: false,
        };
        Box::pin(async move { client.read(open).await })
    }

    fn append(
        &self,
        entity: &StreamName,
        stream_id: Option<StreamId>,
        conditions: Conditions,
        records: Vec<Record>,
    ) -> Asked<Appended> {
        let (client, entity) = (self.client.clone(), entity.clone());
        Box::pin(async move {
            let with = AppendOnce {
                conditions,
                stream_id,
                writer: None,
            };
            client.append_once(entity, &records, with).await
        })
    }
}
