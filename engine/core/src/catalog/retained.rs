//! What the indexes say of records that have had their time, of all streams at rest, and of
//! segments that may go.
//!
//! ```text
//!   newest segment of a stream --previous--> ... --> one with a run that has expired: up to there
//!                              --previous--> ... --> the one with the trim point: unless one of
//!                                                    these has a record that is younger
//! ```
//! The star's clock may have been set meanwhile, back or ahead. What arrived while it was behind
//! looks old at once, and must not take with it what lies before.
//!
//! # Invariants
//! - Each step looks into one index, so that the caller can bound a turn.
//! - Damage stops a search: nothing that cannot be seen is found to have expired.

use super::indexes::{IndexRef, Indexes};
use crate::disk::SegmentFile;
use crate::index::{ActiveIndex, Expiry, IndexDamage, NameHash, Run, SealedIndex};
use crate::state::StreamState;
use nova_model::ids::{LogId, SegmentNumber, StreamId};
use nova_model::names::StreamName;
use nova_model::{Generation, SequenceNumber};
use std::sync::Arc;

/// What one segment says of a stream's expired records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Expired {
    /// All before this record have expired.
    Before(SequenceNumber),
    /// Older records are in this segment, and decide: whether all before a record that was found
    /// here, or in a newer segment, have expired, or any if none was.
    Perhaps(SegmentFile, Option<SequenceNumber>),
    /// Nothing has.
    Nothing,
}

/// How much of a stream is looked at in one segment, and how much of it that was.
struct Looked {
    /// All before this record here have expired.
    upto: Option<SequenceNumber>,
    runs: usize,
}

/// A place in the round over the streams at rest.
pub(crate) enum Resting {
    /// The segment being written, behind this stream.
    Active(Option<StreamId>),
    /// Row `n` of a sealed index.
    Sealed(Arc<SealedIndex>, usize),
}

impl Indexes {
    /// Looks into one segment for expired records of a stream whose trim point is `trimmed`, where
    /// newer segments may have found them up to `upto`. Also gives how many runs were looked at.
    pub(crate) fn expired_in(
        &self,
        stream: StreamId,
        file: SegmentFile,
        expiry: &Expiry,
        trimmed: SequenceNumber,
        upto: Option<SequenceNumber>,
    ) -> (Expired, usize) {
        let looked = self
            .index_of(stream, file)
            .map(|index| look(&index, stream, expiry, trimmed, upto));
        let Some(Ok((looked, older))) = looked else {
            return (before(upto, trimmed), 0);
        };
        let expired = match older {
            Some(older) => Expired::Perhaps(older, looked.upto),
            None => before(looked.upto, trimmed),
        };
        (expired, looked.runs)
    }

    /// The places at which a round over all streams begins: the segment being written, and every
    /// sealed one.
    pub(crate) fn resting(&self) -> Vec<Resting> {
        let sealed = self.all_sealed();
        let sealed = sealed.map(|index| Resting::Sealed(Arc::clone(index), 0));
        sealed.chain([Resting::Active(None)]).collect()
    }

    /// The stream at a place with the segment that states it, and the place moves on; none at its
    /// end.
    pub(crate) fn next_resting(&self, place: &mut Resting) -> Option<(StreamState, SegmentFile)> {
        match place {
            Resting::Active(after) => {
                let index = self.active()?;
                let state = index.stream_behind(*after)?.clone();
                *after = Some(state.id);
                Some((state, index.file()))
            }
            Resting::Sealed(index, n) => {
                // A damaged index is told of when somebody asks for what is in it.
                let state = index.nth(*n).ok().flatten()?;
                *n += 1;
                Some((state, index.file()))
            }
        }
    }

    /// How many indexes a look-up by name may go through.
    pub(crate) fn depth(&self) -> usize {
        let logs = self.at_start.values().chain(self.sealed.values());
        1 + logs.map(Vec::len).sum::<usize>()
    }

    /// Sealed segments that may be given up, oldest first: of the logs that `is_mine` names, but
    /// not the last one of a log that nobody writes.
    pub(crate) fn recyclable(
        &self,
        is_mine: impl Fn(LogId) -> bool,
    ) -> impl Iterator<Item = Arc<SealedIndex>> {
        let logs = self.at_start.iter().filter(move |(log, _)| is_mine(**log));
        let earlier = logs.flat_map(|(log, indexes)| {
            let kept = usize::from(*log != self.log);
            &indexes[..indexes.len().saturating_sub(kept)]
        });
        let this_start = self.sealed.get(&self.log).into_iter().flatten();
        earlier.chain(this_start).cloned()
    }

    /// The number of the last segment with groups before one, of the same log.
    pub(crate) fn number_below(&self, file: SegmentFile) -> Option<SegmentNumber> {
        let numbers = self.known_files().filter(|known| known.log == file.log);
        let numbers = numbers.map(|known| known.number);
        numbers.filter(|number| *number < file.number).max()
    }

    /// Whether any segment but `file` states a stream of that name; damage leaves it open.
    pub(crate) fn is_stated_elsewhere(&self, name: &StreamName, file: SegmentFile) -> bool {
        let in_memory = self.in_memory().filter(|index| index.file() != file);
        let mut in_memory = in_memory.map(|index| index.find_name(name).is_some());
        let sealed = self.all_sealed().filter(|index| index.file() != file);
        let hash = NameHash::of(name);
        let mut sealed = sealed.map(|index| !matches!(index.find_name(name, hash), Ok(None)));
        in_memory.any(|is_stated| is_stated) || sealed.any(|is_stated| is_stated)
    }

    /// Forgets the sealed segments of a log whose numbers `is_gone` names; which those were, with
    /// their generations.
    pub(crate) fn let_go(
        &mut self,
        log: LogId,
        is_gone: impl Fn(SegmentNumber) -> bool,
    ) -> Vec<(SegmentFile, Generation)> {
        let mut gone = Vec::new();
        let mut keep = |index: &Arc<SealedIndex>| {
            let file = index.file();
            let goes = file.log == log && is_gone(file.number);
            if goes {
                gone.push((file, index.id().generation));
            }
            !goes
        };
        for logs in [&mut self.at_start, &mut self.sealed] {
            if let Some(indexes) = logs.get_mut(&log) {
                indexes.retain(&mut keep);
            }
        }
        self.adopted
            .retain(|(_, file), _| file.log != log || !is_gone(file.number));
        gone
    }

    fn all_sealed(&self) -> impl Iterator<Item = &Arc<SealedIndex>> {
        self.at_start.values().chain(self.sealed.values()).flatten()
    }

    fn known_files(&self) -> impl Iterator<Item = SegmentFile> {
        let in_memory = self.in_memory().map(ActiveIndex::file);
        in_memory.chain(self.all_sealed().map(|index| index.file()))
    }
}

fn before(upto: Option<SequenceNumber>, trimmed: SequenceNumber) -> Expired {
    let upto = upto.filter(|upto| *upto > trimmed);
    upto.map_or(Expired::Nothing, Expired::Before)
}

/// Looks at the runs of one segment, and where older ones are that are not trimmed.
fn look(
    index: &IndexRef<'_>,
    stream: StreamId,
    expiry: &Expiry,
    trimmed: SequenceNumber,
    upto: Option<SequenceNumber>,
) -> Result<(Looked, Option<SegmentFile>), IndexDamage> {
    let upto = match (upto, index) {
        (Some(_), _) => upto,
        (None, IndexRef::Active(index)) => index.first_kept(stream, expiry),
        (None, IndexRef::Sealed(index)) => index.first_kept(stream, expiry)?,
    };
    let first = match index {
        IndexRef::Active(index) => index.first_sequence(stream),
        IndexRef::Sealed(index) => index.first_sequence(stream)?,
    };
    let looked = match (upto, index) {
        (None, _) => Looked { upto, runs: 0 },
        // The bytes before a record only grow, so all before one that passes do.
        (Some(_), _) if expiry.arrived_by.is_none() => return Ok((Looked { upto, runs: 0 }, None)),
        (Some(upto), IndexRef::Active(index)) => {
            confirmed(index.runs_from(stream, trimmed).map(Ok), expiry, upto)?
        }
        (Some(upto), IndexRef::Sealed(index)) => {
            confirmed(index.runs_from(stream, trimmed)?, expiry, upto)?
        }
    };
    let older = match first {
        Some(first) if first <= trimmed => None,
        _ => index.previous(stream)?,
    };
    Ok((looked, older))
}

/// How far all runs before `upto` have expired: to `upto`, or to the last one before the first that
/// is to be kept; nowhere if that is the first of all.
fn confirmed(
    runs: impl Iterator<Item = Result<Run, IndexDamage>>,
    expiry: &Expiry,
    upto: SequenceNumber,
) -> Result<Looked, IndexDamage> {
    let (mut last, mut count) = (None, 0);
    for run in runs {
        let run = run?;
        if run.first.sequence >= upto {
            break;
        }
        count += 1;
        if expiry.keeps(&run) {
            return Ok(Looked {
                upto: last,
                runs: count,
            });
        }
        last = Some(run.first.sequence);
    }
    Ok(Looked {
        upto: Some(upto),
        runs: count,
    })
}
