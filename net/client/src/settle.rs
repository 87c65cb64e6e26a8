//! Finding out about an append whose outcome is not known.
//!
//! ```text
//!   check tail -> read from the last known position to it -> found: done
//!                        ^                                -> absent: append if tail is still that
//!                        +---- SEQ_MISMATCH: something was appended meanwhile ------+
//! ```
//! The records are recognised by their content, so they must differ from all others: by a header
//! with an id of their own, if not by nature.
//!
//! # Invariants
//! - Records are sent again only on condition that nothing was appended behind what was read.

use crate::client::{AppendOnce, Client};
use crate::core::{Ambiguity, Appended};
use crate::error::ClientError;
use crate::reader::ReadItem;
use nova_model::limits::CLIENT_RETRY_BUDGET_US;
use nova_model::request::{ReadLimits, ReadOpen, ReadStart, ServerTimes};
use nova_model::{Code, FencingToken, Position, Record, SequenceNumber, StreamName};
use std::time::Duration;

impl Client {
    /// Whether an append whose outcome was not known is in the stream by now: where, if it is.
    ///
    /// `None` means that it is not there at this moment. Until the connection that it was sent on
    /// is gone, it may still arrive; [`Client::settle_append`] guards against that.
    pub async fn find_append(
        &self,
        stream: &StreamName,
        ambiguity: &Ambiguity,
        records: &[Record],
    ) -> Result<Option<Appended>, ClientError> {
        let tail = self.check_tail(stream.clone()).await?;
        Ok(self.search(stream, ambiguity, records, tail).await?.1)
    }

    /// Finds an append whose outcome was not known, or does it again if it is absent.
    ///
    /// It is sent again only if nothing was appended since the search, so that one that arrives
    /// late is found and not doubled. Tried for up to the default retry budget while others append
    /// to the stream; then the outcome stays ambiguous.
    pub async fn settle_append(
        &self,
        stream: &StreamName,
        ambiguity: &Ambiguity,
        fence: Option<FencingToken>,
        records: &[Record],
    ) -> Result<Appended, ClientError> {
        let budget = Duration::from_micros(CLIENT_RETRY_BUDGET_US);
        let settling = self.settle(stream, ambiguity.clone(), fence, records);
        match tokio::time::timeout(budget, settling).await {
            Ok(settled) => settled,
            Err(_) => Err(ClientError::Ambiguous(Box::new(ambiguity.clone()))),
        }
    }

    async fn settle(
        &self,
        stream: &StreamName,
        mut ambiguity: Ambiguity,
        fence: Option<FencingToken>,
        records: &[Record],
    ) -> Result<Appended, ClientError> {
        loop {
            let tail = self.check_tail(stream.clone()).await?;
            let (id, found) = self.search(stream, &ambiguity, records, tail).await?;
            if let Some(appended) = found {
                return Ok(appended);
            }
            ambiguity.stream_id = id;
            let mut with = AppendOnce {
                stream_id: id,
                ..AppendOnce::default()
            };
            with.conditions.fence = fence.clone();
            with.conditions.match_sequence = Some(tail.sequence);
            match self.append_once(stream.clone(), records, with).await {
                Err(ClientError::Refused(refusal)) if refusal.code == Code::SeqMismatch => {}
                Err(ClientError::Ambiguous(_)) => {}
                done => return done,
            }
        }
    }

    /// Reads from the last known position up to `tail` and looks for the records.
    async fn search(
        &self,
        stream: &StreamName,
        ambiguity: &Ambiguity,
        records: &[Record],
        tail: Position,
    ) -> Result<(Option<nova_model::StreamId>, Option<Appended>), ClientError> {
        if tail.sequence <= ambiguity.since || records.is_empty() {
            return Ok((ambiguity.stream_id, None));
        }
        let limits = ReadLimits {
            until_sequence: Some(tail.sequence),
            ..ReadLimits::default()
        };
        let open = ReadOpen {
            stream: stream.clone(),
            stream_id: ambiguity.stream_id,
            start: ReadStart::Sequence(ambiguity.since),
            limits,
            follow: false,
            clamp: false,
        };
        let mut reader = self.read(open).await?;
        let id = reader.stream_id();
        while let Some(item) = reader.next_batch().await? {
            let ReadItem::Batch(batch) = item else {
                continue;
            };
            if let Some((start, end)) = find(&batch.to_records(), records) {
                let (duplicate, times) = (true, ServerTimes::default());
                return Ok((
                    id,
                    Some(Appended {
                        start,
                        end,
                        tail,
                        duplicate,
                        times,
                    }),
                ));
            }
        }
        Ok((id, None))
    }
}

/// Where `records` stand one after another in `stored`: a batch of the wire is never split, so
/// they are all in one.
fn find(stored: &[(Position, Record)], records: &[Record]) -> Option<(Position, Position)> {
    let same = |window: &[(Position, Record)]| {
        window
            .iter()
            .zip(records)
            .all(|((_, there), own)| there == own)
    };
    let window = stored.windows(records.len()).find(|window| same(window))?;
    let (first, last) = (window.first()?.0, window.last()?.0);
    let end = SequenceNumber(last.sequence.0 + 1);
    Some((
        first,
        Position {
            sequence: end,
            timestamp: last.timestamp,
        },
    ))
}

#[cfg(test)]
#[path = "settle_tests.rs"]
mod tests;
