//! What readers need from disk: reads that are begun, joined, taken and let go.
//!
//! # Invariants
//! - A place that a reader has before it is not read once more for another one.
//!
//! # Not here
//! - What a reader is served, and from where: [`super::read`]. Who shares a read:
//!   [`crate::reader::shared`].

use super::{OpOwner, Shard};
use crate::disk::{DiskOp, DiskResult, OpToken};
use crate::event::ReaderKey;
use crate::reader::shared::{Place, Taker};
use crate::reader::{NextRead, Read};

impl Shard {
    /// Begins the next reads while one is waited for, or while the client is sent what it brought,
    /// so that disk and network work at the same time. All readers of a core share what may be read
    /// ahead: those that stall hold that much at most, and the others then read without it, or what
    /// they hold.
    pub(super) fn read_ahead(&mut self, key: ReaderKey) {
        while let Some(next) = self.readers[&key].next_ahead() {
            if !self.shared_reads.has_room(&next.place) {
                return;
            }
            self.begin_read(key, &next, true);
        }
    }

    /// Begins a read, or takes part in that of another reader.
    pub(super) fn begin_read(&mut self, key: ReaderKey, next: &NextRead, is_ahead: bool) {
        let place = next.place;
        let by = Taker { key, is_ahead };
        let joined = self.shared_reads.join(&place, by);
        let (token, bytes) = joined.unwrap_or_else(|| {
            let Place {
                file,
                generation,
                offset,
                length,
            } = place;
            let op = DiskOp::Read {
                file,
                generation,
                offset,
                length,
            };
            let token = self.ask(OpOwner::Read(place), op);
            self.shared_reads.begin(place, token, by);
            (token, None)
        });
        if bytes.is_some() {
            self.hungry.insert(key);
        }
        let reader = self.readers.get_mut(&key).expect("an open reader");
        let segment = reader.segment.expect("a read has a segment");
        reader.runs.drain(..next.runs);
        reader.reads.push_back(Read {
            token,
            segment,
            first: next.first,
            place,
            is_ahead,
            result: bytes.map(DiskResult::Read),
        });
    }

    /// A read is done: those who wait for it have it.
    pub(super) fn handle_read(&mut self, place: &Place, token: OpToken, result: &DiskResult) {
        for key in self.shared_reads.end(place, token, result) {
            let Some(reader) = self.readers.get_mut(&key) else {
                continue;
            };
            if let Some(read) = reader.reads.iter_mut().find(|read| read.token == token) {
                read.result = Some(result.clone());
                self.hungry.insert(key);
            }
        }
    }

    /// What was looked up or read behind a reader's place is not what comes next.
    pub(super) fn forget_reads(&mut self, key: ReaderKey) {
        let reader = self.readers.get_mut(&key).expect("an open reader");
        reader.runs.clear();
        let reads = std::mem::take(&mut reader.reads);
        self.let_reads_go(key, reads);
    }

    /// A reader has these reads before it no more.
    pub(super) fn let_reads_go(&mut self, key: ReaderKey, reads: impl IntoIterator<Item = Read>) {
        for read in reads {
            self.shared_reads.leave(&read.place, read.token, key);
        }
    }
}
