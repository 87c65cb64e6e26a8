//! Rewrites a segment in memory, for tests.

use super::{Abandoned, Copy, Needed, Plan, Step};
use crate::index::SealedIndex;
use crate::state::StreamState;
use bytes::Bytes;
use std::sync::Arc;

/// A segment's next generation: its bytes and those of its index.
pub(crate) struct Rewrite {
    pub(crate) bytes: Vec<u8>,
    pub(crate) index: Vec<u8>,
}

/// Rewrites a segment with what `needed` says of each stream.
pub(crate) fn rewrite(
    bytes: &[u8],
    index: &Arc<SealedIndex>,
    mut needed: impl FnMut(&StreamState) -> Needed,
) -> Result<Rewrite, Abandoned> {
    let mut plan = Plan::new(Arc::clone(index));
    for row in 0..index.streams() {
        let state = index.nth(row)?.expect("a row of the table");
        let needed = needed(&state);
        plan.add(row, &state, needed)?;
    }
    let mut copy = Copy::new(plan, false).expect("a generation is left");
    let mut draft = Vec::new();
    loop {
        match copy.next()? {
            Step::Read { offset, length } => {
                let end = bytes.len().min(offset as usize + length);
                let read = Bytes::copy_from_slice(&bytes[offset as usize..end]);
                copy.read(&read)?;
            }
            Step::Write {
                offset,
                parts,
                length,
            } => {
                let (at, end) = (offset as usize, offset as usize + length);
                draft.resize(draft.len().max(end), 0);
                let parts = parts.concat();
                draft[at..at + parts.len()].copy_from_slice(&parts);
            }
            Step::Place { length, index } => {
                assert_eq!(draft.len() as u64, length);
                let index = index.to_vec();
                let bytes = draft;
                return Ok(Rewrite { bytes, index });
            }
            Step::Again => {}
        }
    }
}
