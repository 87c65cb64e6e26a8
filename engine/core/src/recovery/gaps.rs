//! Segments that are not there: released, or lost.
//!
//! Each log was recovered by itself. What was released of a log is stated by the log, and of one
//! that no core writes any more by the logs of the cores that look after it; so this is judged when
//! all are known.
//!
//! ```text
//!   header of 9: its predecessor is 6;  held: .. 3, 9 ..  ->  4 to 6 must all be released
//! ```
//! # Invariants
//! - A log is accepted with exactly those gaps that it says were released.
//! - A segment that was released is not used, also if its file is still there: it goes now.
//!
//! # Not here
//! - What may be released, and when: the shard.

use super::{Flaw, RecoveredLog, RecoveryError, RecoveryOptions, accepted_range};
use crate::disk::{BootDisk, SegmentFile};
use crate::index::{DamagedSpan, IndexDamage, SealedIndex};
use crate::released::Released;
use nova_model::{Generation, LogId, SegmentNumber};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Compares what is there of all logs with what was released of them, and finishes what a crash
/// left undone of that.
pub fn reconcile<'a>(
    disk: &mut impl BootDisk,
    logs: impl IntoIterator<Item = &'a mut RecoveredLog>,
    options: RecoveryOptions,
) -> Result<(), RecoveryError> {
    let mut logs: Vec<&mut RecoveredLog> = logs.into_iter().collect();
    let mut released: BTreeMap<LogId, Released> = BTreeMap::new();
    for log in &logs {
        for (of, numbers) in stated(&log.indexes)? {
            released.entry(of).or_default().add_all(&numbers);
        }
    }
    let none = Released::default();
    for log in &mut logs {
        let numbers = released.get(&log.log).unwrap_or(&none);
        if !options.allow_corrupt {
            check(log, numbers)?;
        }
        let held = std::mem::take(&mut log.indexes);
        let is_gone = |index: &Arc<SealedIndex>| numbers.contains(index.file().number.0);
        let (gone, kept): (Vec<_>, Vec<_>) = held.into_iter().partition(is_gone);
        log.indexes = kept;
        log.report.segments = log.indexes.len();
        for index in gone {
            let (file, generation) = (index.file(), index.id().generation);
            if generation > Generation(0) {
                // The disk may be another one than that which recovered the log.
                disk.choose(file, generation)?;
            }
            disk.recycle(file)?;
            log.report.recycled += 1;
        }
        log.released = released.clone();
    }
    Ok(())
}

/// What the newest segment of a log states, or the one before it if its index is damaged.
fn stated(indexes: &[Arc<SealedIndex>]) -> Result<BTreeMap<LogId, Released>, RecoveryError> {
    let mut damaged: Option<(SegmentFile, IndexDamage)> = None;
    for index in indexes.iter().rev() {
        match index.released() {
            Ok(released) => return Ok(released),
            Err(damage) => {
                damaged.get_or_insert((index.file(), damage));
            }
        }
    }
    match damaged {
        None => Ok(BTreeMap::new()),
        Some((file, damage)) => Err(refused(file, Flaw::Index(damage))),
    }
}

fn check(log: &RecoveredLog, released: &Released) -> Result<(), RecoveryError> {
    let mut below = SegmentNumber(0);
    for index in &log.indexes {
        let number = index.file().number;
        let before = log.predecessors.get(&number).copied().flatten();
        if let Some(before) = before
            && before > below
            && !released.covers(below.0 + 1, before.0)
        {
            let file = SegmentFile {
                log: log.log,
                number: before,
            };
            return Err(refused(file, Flaw::Lost));
        }
        below = number;
    }
    Ok(())
}

fn refused(file: SegmentFile, flaw: Flaw) -> RecoveryError {
    let span = DamagedSpan {
        offset: 0,
        length: 0,
    };
    let range = Box::new(accepted_range(file, span, Vec::new()));
    RecoveryError::Damaged { range, flaw }
}
