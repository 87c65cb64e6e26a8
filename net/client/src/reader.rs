//! The reader: batches of one stream, in order, across as many sessions as it takes.
//!
//! # Invariants
//! - What is buffered is bounded: the stream is read from the network only when the caller has
//!   taken the batches before; QUIC's flow control holds the star back.
//! - Dropping the future of [`Reader::next_batch`] loses nothing.

use crate::core::ReadCursor;
use crate::core::cursor::ReadBatch;
use crate::core::retry::Patience;
use crate::driver::dialer::DialError;
use crate::driver::pipe::{Lost, Pipe};
use crate::error::ClientError;
use crate::star::{Star, after_us, holder};
use nova_model::request::ReadOpen;
use nova_model::{Instant, Position, Refusal, SequenceNumber, StreamId};
use nova_proto::client::{ReadEvent, ReadLane};
use std::sync::Arc;

/// What a reader gives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReadItem {
    /// The next records.
    Batch(ReadBatch),
    /// All that is durable up to this tail was given.
    CaughtUp(Position),
}

/// Reads one stream. A broken connection is no error: the reader connects again, with backoff and
/// without an end, and goes on at the next record of the same incarnation of the stream.
#[derive(Debug)]
pub struct Reader {
    star: Arc<Star>,
    name: String,
    address: String,
    cursor: ReadCursor,
    link: Option<Box<Pipe<ReadLane>>>,
    patience: Patience,
    not_before: Option<Instant>,
    is_over: bool,
}

enum Step {
    Item(ReadItem),
    Over,
    More,
}

impl Reader {
    /// Opens a read; the first answer of the star must come within the retry budget.
    pub(crate) async fn open(star: Arc<Star>, open: ReadOpen) -> Result<Reader, ClientError> {
        open.check()?;
        let name = open.stream.to_string();
        let mut reader = Reader {
            address: star.entry(&name),
            patience: Patience::new(star.retry_budget_us),
            star,
            name,
            cursor: ReadCursor::new(open),
            link: None,
            not_before: None,
            is_over: false,
        };
        while reader.cursor.next().is_none() && !reader.cursor.is_done() {
            let now = reader.star.source.now();
            if reader.patience.is_spent(now) {
                return Err(ClientError::Unavailable {
                    sent: None,
                    last: None,
                });
            }
            if reader.link.is_none() {
                reader.connect().await?;
            } else {
                reader.turn().await;
                reader.take_opened()?;
            }
        }
        Ok(reader)
    }

    /// The next item; `None` once all that was asked for has been given. A following read without
    /// limits never ends.
    ///
    /// After an error (`TRIMMED` with the first record left, `CORRUPT` with the damaged range,
    /// `STREAM_NOT_FOUND`...) the reader is over.
    pub async fn next_batch(&mut self) -> Result<Option<ReadItem>, ClientError> {
        loop {
            if self.is_over || self.cursor.is_done() {
                self.is_over = true;
                self.link = None;
                return Ok(None);
            }
            let polled = self.link.as_mut().and_then(|pipe| pipe.lane.poll_event());
            match polled {
                Some(event) => match self.take(event) {
                    Ok(Step::Item(item)) => return Ok(Some(item)),
                    Ok(Step::Over) => self.is_over = true,
                    Ok(Step::More) => {}
                    Err(error) => {
                        self.is_over = true;
                        return Err(error);
                    }
                },
                None if self.link.is_some() => self.turn().await,
                None => {
                    if let Err(error) = self.connect().await {
                        self.is_over = true;
                        return Err(error);
                    }
                }
            }
        }
    }

    /// The record that is next.
    pub fn next_sequence(&self) -> Option<SequenceNumber> {
        self.cursor.next()
    }

    /// The incarnation of the stream that is read.
    pub fn stream_id(&self) -> Option<StreamId> {
        self.cursor.stream_id()
    }

    /// The committed tail, as last told by the star.
    pub fn tail(&self) -> Position {
        self.cursor.tail()
    }

    /// Connects and sends the open frame, after the wait that is due. Dropped on the way, it
    /// begins again.
    async fn connect(&mut self) -> Result<(), ClientError> {
        if let Some(not_before) = self.not_before {
            tokio::time::sleep_until(self.star.source.time_of(not_before)).await;
            self.not_before = None;
        }
        let connection = self
            .star
            .dialer
            .connection(&self.star.source, &self.address)
            .await;
        let opened = match connection {
            Ok(connection) => {
                let pipe = Pipe::read(connection, self.cursor.open_frame()).await;
                pipe.map_err(|Lost| DialError::Unreachable)
            }
            Err(error) => Err(error),
        };
        match opened {
            Ok(pipe) => self.link = Some(Box::new(pipe)),
            Err(DialError::Unresolvable { address }) => {
                self.star.holders.forget(&self.address);
                return Err(ClientError::HolderUnresolvable { address });
            }
            Err(DialError::Handshake(failure)) => {
                self.star.holders.forget(&self.address);
                return Err(ClientError::Handshake(failure));
            }
            Err(DialError::Unreachable) => {
                self.star.holders.forget(&self.address);
                self.address = self.star.entry(&self.name);
                self.dial_later();
            }
        }
        Ok(())
    }

    async fn turn(&mut self) {
        if let Some(pipe) = &mut self.link
            && pipe.turn().await == Err(Lost)
        {
            self.link = None;
            self.dial_later();
        }
    }

    /// While opening: takes the answer to the open frame, and nothing behind it.
    fn take_opened(&mut self) -> Result<(), ClientError> {
        let polled = self.link.as_mut().and_then(|pipe| pipe.lane.poll_event());
        if let Some(event) = polled {
            self.take(event)?;
        }
        Ok(())
    }

    fn take(&mut self, event: ReadEvent) -> Result<Step, ClientError> {
        match event {
            ReadEvent::Opened(opened) => {
                self.cursor.handle_opened(&opened);
                self.star.holders.remember(&self.name, &self.address);
                Ok(Step::More)
            }
            ReadEvent::Batch(stored) => {
                self.patience.reset();
                match self.cursor.handle_batch(stored) {
                    Ok(Some(batch)) => Ok(Step::Item(ReadItem::Batch(batch))),
                    Ok(None) => Ok(Step::More),
                    Err(skipped) => {
                        tracing::warn!(stream = self.name, %skipped, "a read begins again");
                        self.link = None;
                        self.back_off(None);
                        Ok(Step::More)
                    }
                }
            }
            ReadEvent::CaughtUp(tail) => {
                self.patience.reset();
                self.cursor.handle_tail(tail);
                Ok(Step::Item(ReadItem::CaughtUp(tail)))
            }
            ReadEvent::Heartbeat(tail) => {
                self.patience.reset();
                self.cursor.handle_tail(tail);
                Ok(Step::More)
            }
            ReadEvent::Ended { tail, .. } => {
                self.cursor.handle_tail(tail);
                Ok(Step::Over)
            }
            ReadEvent::Refused(refusal) | ReadEvent::Failed(refusal) => {
                self.refused(refusal).map(|()| Step::More)
            }
        }
    }

    fn refused(&mut self, refusal: Refusal) -> Result<(), ClientError> {
        self.link = None;
        if !refusal.retry {
            return Err(ClientError::Refused(refusal));
        }
        match holder(&refusal) {
            Some(Some(address)) => {
                self.star.holders.note_redirect();
                address.clone_into(&mut self.address);
                self.patience.begin(self.star.source.now());
                if self.patience.redirect_at_once() {
                    return Ok(());
                }
            }
            Some(None) => self.star.address.clone_into(&mut self.address),
            None => {}
        }
        self.back_off(after_us(&refusal));
        Ok(())
    }

    /// The star did not answer, or the connection is lost.
    fn dial_later(&mut self) {
        let at = self.star.source.moment();
        self.patience.begin(at.now);
        self.not_before = Some(self.patience.next_dial(at));
    }

    fn back_off(&mut self, after_us: Option<u64>) {
        let at = self.star.source.moment();
        self.patience.begin(at.now);
        self.not_before = Some(self.patience.next_attempt(at, after_us));
    }
}
