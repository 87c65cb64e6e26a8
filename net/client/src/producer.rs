//! The producer: appends to one stream, batched on the way.
//!
//! # Not here
//! - Batching, resending, redirects: [`crate::core`].

use crate::config::ProducerConfig;
use crate::core::batcher::batch_metered;
use crate::core::{self, Appended, ProducerRules};
use crate::driver::producer_task::ProducerTask;
use crate::driver::staging::{Phase, Staging};
use crate::error::ClientError;
use crate::star::Star;
use crate::ticket::Ticket;
use nova_model::{Instant, Record, SequenceNumber, StreamName};
use std::sync::Arc;
use tokio::task::JoinHandle;

/// Appends to one stream. Share it between tasks behind an `Arc`; their records ride together.
///
/// Dropped without [`Producer::close`], it sends nothing more: every ticket without a result gets
/// an error (see [`Ticket`]).
#[derive(Debug)]
pub struct Producer {
    star: Arc<Star>,
    staging: Arc<Staging>,
    task: JoinHandle<()>,
}

impl Producer {
    pub(crate) fn begin(
        star: Arc<Star>,
        stream: StreamName,
        config: ProducerConfig,
    ) -> Result<Producer, ClientError> {
        stream.check()?;
        let staging = Arc::new(Staging::new(config.batcher()?));
        let writer = config.recognise_repeats.then(|| star.source.writer_id());
        let rules = ProducerRules {
            stream: stream.clone(),
            fence: config.fence,
            retry_budget_us: star.retry_budget_us,
            silence_us_max: star.silence_us_max,
        };
        let rules = core::Producer::new(rules, writer);
        let task = ProducerTask::new(Arc::clone(&star), Arc::clone(&staging), rules, stream);
        let task = tokio::spawn(task.run());
        Ok(Producer {
            star,
            staging,
            task,
        })
    }

    /// Appends a record; resolves once it is durable.
    pub async fn append(&self, record: Record) -> Result<Appended, ClientError> {
        self.append_async(record).await?.await
    }

    /// Appends records of which either all or none are applied; resolves once they are durable.
    pub async fn append_batch(&self, records: Vec<Record>) -> Result<Appended, ClientError> {
        self.append_batch_async(records).await?.await
    }

    /// Appends records if the first of them gets the sequence number `match_sequence`; otherwise
    /// the refusal is `SEQ_MISMATCH` with the tail, and nothing is applied. The condition is
    /// judged with all earlier appends applied, so several may be under way.
    pub async fn append_if(
        &self,
        match_sequence: SequenceNumber,
        records: Vec<Record>,
    ) -> Result<Appended, ClientError> {
        self.append_if_async(match_sequence, records).await?.await
    }

    /// Appends a record, waiting only until there is room to stage it.
    pub async fn append_async(&self, record: Record) -> Result<Ticket, ClientError> {
        record.check()?;
        self.staging.reserve(record.metered_bytes()).await?;
        Ok(Ticket::new(self.staging.push(self.now(), record)?))
    }

    /// As [`Producer::append_batch`], waiting only until there is room to stage the records.
    pub async fn append_batch_async(&self, records: Vec<Record>) -> Result<Ticket, ClientError> {
        self.stage(records, None).await
    }

    /// As [`Producer::append_if`], waiting only until there is room to stage the records.
    pub async fn append_if_async(
        &self,
        match_sequence: SequenceNumber,
        records: Vec<Record>,
    ) -> Result<Ticket, ClientError> {
        self.stage(records, Some(match_sequence)).await
    }

    /// A barrier: resolves once everything appended before has its result. The error is the first
    /// failure since the last flush, whether or not somebody waits for that append.
    pub async fn flush(&self) -> Result<(), ClientError> {
        let target = {
            let mut staged = self.staging.lock();
            staged.batcher.flush();
            staged.batcher.next_number()
        };
        self.staging.work.notify_one();
        loop {
            let settling = self.staging.settling.notified();
            tokio::pin!(settling);
            settling.as_mut().enable();
            {
                let mut staged = self.staging.lock();
                if staged.settled() >= target {
                    return staged.first_failure.take().map_or(Ok(()), Err);
                }
            }
            settling.await;
        }
    }

    /// Sends what is staged, waits for all results and ends the session. The error is the first
    /// failure since the last flush.
    pub async fn close(mut self) -> Result<(), ClientError> {
        self.staging.enter(Phase::Draining);
        if let Err(error) = (&mut self.task).await {
            tracing::error!(%error, "the task of a producer ended early");
        }
        self.staging.lock().first_failure.take().map_or(Ok(()), Err)
    }

    async fn stage(
        &self,
        records: Vec<Record>,
        match_sequence: Option<SequenceNumber>,
    ) -> Result<Ticket, ClientError> {
        self.staging.reserve(batch_metered(&records)?).await?;
        Ok(Ticket::new(self.staging.push_batch(
            self.now(),
            records,
            match_sequence,
        )?))
    }

    /// The time, where a push needs it.
    fn now(&self) -> Instant {
        if self.staging.lingers() {
            self.star.source.now()
        } else {
            Instant::default()
        }
    }
}

impl Drop for Producer {
    fn drop(&mut self) {
        self.staging.enter(Phase::Abandoned);
    }
}
