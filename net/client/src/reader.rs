//! The reader: batches of one stream, in order, across as many sessions as it takes.
//!
//! ```text
//!   connect --open frame--> turn <--> take an event --> an item for the caller
//!      ^                      |  lost, silent, moved, told to come back
//!      +------- backoff <-----+                           final: an error, and over
//! ```
//!
//! # Invariants
//! - What is buffered is bounded: the stream is read from the network only when the caller has
//!   taken the batches before; QUIC's flow control holds the star back.
//! - Dropping the future of [`Reader::next_batch`] loses nothing.
//! - A read that has begun is tried for without an end, whatever goes wrong on the way.
//!
//! # Not here
//! - Which records are given, and for how long a star may be silent: [`crate::core::cursor`].

use crate::core::ReadCursor;
use crate::core::cursor::{ReadBatch, SkippedRecords, UnfitOpening};
use crate::core::retry::Patience;
use crate::driver::dialer::DialError;
use crate::driver::pipe::{Lost, Pipe};
use crate::error::ClientError;
use crate::read_stream::ReadStream;
use crate::star::{Star, after_us, holder};
use nova_model::request::{ReadOpen, ReadOpened};
use nova_model::{Code, Instant, Position, Refusal, SequenceNumber, StreamId};
use nova_proto::client::{ReadEvent, ReadLane};
use std::sync::Arc;

/// What a reader gives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReadItem {
    /// The next records.
    Batch(ReadBatch),
    /// All that is durable up to this tail was given. A following read is told when it gets there,
    /// and then every few seconds for as long as nothing is new: the star's heartbeat.
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
    /// When the star was heard last, or asked.
    heard: Instant,
    last_refusal: Option<Box<Refusal>>,
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
        let holders = Arc::clone(&star);
        let asking = holders.holders.asking(&name);
        let opened = Reader::open_now(star, name.clone(), open).await;
        asking.finish();
        opened
    }

    async fn open_now(
        star: Arc<Star>,
        name: String,
        open: ReadOpen,
    ) -> Result<Reader, ClientError> {
        let mut reader = Reader {
            address: star.entry(&name),
            patience: Patience::new(star.retry_budget_us),
            heard: star.source.now(),
            star,
            name,
            cursor: ReadCursor::new(open),
            link: None,
            not_before: None,
            last_refusal: None,
            is_over: false,
        };
        while reader.cursor.next().is_none() && !reader.cursor.is_done() {
            let now = reader.star.source.now();
            if reader.patience.is_spent(now) {
                let last = reader.last_refusal.take();
                return Err(ClientError::Unavailable { sent: None, last });
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
    /// `STREAM_NOT_FOUND` once the stream is deleted, whether or not it was made again...) the
    /// reader is over.
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

    /// The same items as a `Stream`, which ends after an error.
    pub fn into_stream(self) -> ReadStream {
        ReadStream::new(self)
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
        let error = match opened {
            Ok(pipe) => {
                self.link = Some(Box::new(pipe));
                self.cursor.handle_asked();
                self.heard = self.star.source.now();
                return Ok(());
            }
            Err(error) => error,
        };
        self.star.holders.forget(&self.address);
        match error {
            // What resolved when the read began does so again some time.
            DialError::Unresolvable { address }
                if self.cursor.next().is_none() || address != self.star.address =>
            {
                Err(ClientError::HolderUnresolvable { address })
            }
            DialError::Handshake(failure) => Err(ClientError::Handshake(failure)),
            DialError::Unresolvable { .. } | DialError::Unreachable => {
                self.address = self.star.entry(&self.name);
                self.dial_later();
                Ok(())
            }
        }
    }

    /// Writes what there is and reads once. A star that is silent for too long is as good as lost.
    async fn turn(&mut self) {
        let Some(pipe) = &mut self.link else { return };
        let silence = self.cursor.silence_us(self.star.silence_us_max);
        let turned = match silence.map(|silence| self.heard.plus_us(silence)) {
            Some(until) => {
                let until = self.star.source.time_of(until);
                let turned = tokio::time::timeout_at(until, pipe.turn()).await;
                turned.unwrap_or(Err(Lost))
            }
            None => pipe.turn().await,
        };
        if turned == Err(Lost) {
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
        self.heard = self.star.source.now();
        match event {
            ReadEvent::Opened(opened) => self.opened(&opened),
            ReadEvent::Batch(stored) => {
                self.patience.reset();
                match self.cursor.handle_batch(stored) {
                    Ok(Some(batch)) => Ok(Step::Item(ReadItem::Batch(batch))),
                    Ok(None) => Ok(Step::More),
                    Err(skipped) => Ok(self.skipped(&skipped)),
                }
            }
            ReadEvent::CaughtUp(tail) | ReadEvent::Heartbeat(tail) => {
                self.patience.reset();
                Ok(match self.cursor.handle_caught_up(tail) {
                    true => Step::Item(ReadItem::CaughtUp(tail)),
                    false => Step::More,
                })
            }
            ReadEvent::Ended { next, tail } => {
                self.cursor.handle_tail(tail);
                Ok(match self.cursor.check_ended(next) {
                    Ok(()) => Step::Over,
                    Err(skipped) => self.skipped(&skipped),
                })
            }
            ReadEvent::Refused(refusal) | ReadEvent::Failed(refusal) => {
                self.refused(refusal).map(|()| Step::More)
            }
        }
    }

    fn opened(&mut self, opened: &ReadOpened) -> Result<Step, ClientError> {
        match self.cursor.check_opened(opened) {
            Ok(()) => {
                self.cursor.handle_opened(opened);
                self.star.holders.remember(&self.name, &self.address);
                Ok(Step::More)
            }
            Err(UnfitOpening::Skipped(skipped)) => Ok(self.skipped(&skipped)),
            Err(unfit @ UnfitOpening::MadeAnew) => {
                let refusal = Refusal::new(Code::StreamNotFound, unfit.to_string());
                Err(ClientError::Refused(refusal))
            }
        }
    }

    /// The star left records out: they are asked for again.
    fn skipped(&mut self, skipped: &SkippedRecords) -> Step {
        tracing::warn!(stream = self.name, %skipped, "a read begins again");
        self.link = None;
        self.back_off(None);
        Step::More
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
        self.last_refusal = Some(Box::new(refusal));
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
