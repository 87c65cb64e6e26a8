//! A read that goes on wherever its stream is led.
//!
//! # Invariants
//! - A credit is given only when what the last one brought was taken, so that a slow reader holds
//!   one credit's batches and no more.
//! - Records come in order, each once, also across a move of the stream; a read is never continued
//!   in another incarnation.

use super::cores::{Cores, Line, is_passing};
use crate::core::desk::ReaderItem;
use nova_model::cursor::ReadCursor;
use nova_model::request::{ReadOpen, ReadOpened, ReadStart};
use nova_model::{Position, Refusal, SequenceNumber, StoredBatch};
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

/// An open read.
pub(crate) struct Read {
    cores: Arc<Cores>,
    open: ReadOpen,
    opened: ReadOpened,
    cursor: ReadCursor,
    line: Line,
    is_credited: bool,
    batches: VecDeque<StoredBatch>,
}

/// What a read comes to next.
pub(crate) enum Step {
    /// These records of a batch.
    Records(StoredBatch, Range<usize>),
    /// All that is durable was read.
    CaughtUp(Position),
    /// Nothing new for a while.
    Heartbeat(Position),
    /// The read is over.
    Ended(Position),
}

impl Read {
    pub(crate) async fn open(cores: &Arc<Cores>, open: ReadOpen) -> Result<Read, Refusal> {
        let (line, opened) = cores.open(&open).await?;
        Ok(Read {
            cores: Arc::clone(cores),
            cursor: ReadCursor::new(opened.start, open.limits),
            open,
            opened,
            line,
            is_credited: false,
            batches: VecDeque::new(),
        })
    }

    /// What the star said when it was opened.
    pub(crate) fn opened(&self) -> ReadOpened {
        self.opened
    }

    /// The sequence number that comes next.
    pub(crate) fn position(&self) -> SequenceNumber {
        self.cursor.next()
    }

    /// What comes next. Dropped before it is there, nothing is lost.
    pub(crate) async fn next(&mut self) -> Result<Step, Refusal> {
        loop {
            while let Some(batch) = self.batches.pop_front() {
                let taken = self.cursor.take(&batch);
                if !taken.records.is_empty() {
                    return Ok(Step::Records(batch, taken.records));
                }
            }
            if !self.is_credited {
                self.line.credit().await?;
                self.is_credited = true;
            }
            match self.line.next().await? {
                ReaderItem::Opened(_) => {}
                ReaderItem::Batches(batches) => {
                    self.is_credited = false;
                    self.batches.extend(batches);
                }
                ReaderItem::CaughtUp(tail) => return Ok(Step::CaughtUp(tail)),
                ReaderItem::Heartbeat(tail) => return Ok(Step::Heartbeat(tail)),
                ReaderItem::Ended(tail) => return Ok(Step::Ended(tail)),
                ReaderItem::Failed(refusal) if is_passing(&refusal) => {
                    if self.cursor.is_ended() {
                        return Ok(Step::Ended(self.opened.tail));
                    }
                    self.go_on_elsewhere().await?;
                }
                ReaderItem::Failed(refusal) => return Err(refusal),
            }
        }
    }

    /// The stream has moved: opens the rest of the read where it is now.
    async fn go_on_elsewhere(&mut self) -> Result<(), Refusal> {
        let rest = ReadOpen {
            stream: self.open.stream.clone(),
            stream_id: Some(self.opened.stream_id),
            start: ReadStart::Sequence(self.cursor.next()),
            limits: self.cursor.remaining(),
            follow: self.open.follow,
            clamp: false,
        };
        let (line, _opened) = self.cores.open(&rest).await?;
        self.line = line;
        self.is_credited = false;
        Ok(())
    }
}
