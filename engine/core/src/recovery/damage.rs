//! What a damaged range may have held, as far as its bytes still tell.
//!
//! Nothing here is trusted: it names streams for a sentence, and keeps sequence numbers that were
//! given out from being given out again. A claim counts only if it continues its stream's tail.
//!
//! # Not here
//! - Whether the damage is accepted: `scan`.

use super::pieces::Pieces;
use super::report::{DamagedRange, RecoveryError};
use crate::disk::SegmentFile;
use crate::index::DamagedSpan;
use crate::segment::{GroupHeader, entry_outlines};
use crate::state::StreamState;
use nova_model::limits::{
    BATCH_METERED_BYTES_MAX, BLOCK_BYTES, GROUP_BYTES_MAX, RECORD_METERED_BYTES_MIN,
};
use nova_model::position::SequenceNumber;
use nova_model::{SegmentId, StreamId};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

/// A stream that a damaged range claims to hold entries of.
pub(super) struct Claim {
    /// Its state before the range.
    pub(super) state: StreamState,
    /// One past the last record that it claims; the tail before, if it claims none.
    pub(super) end: SequenceNumber,
}

/// The claims of all groups that can be made out in a span; `known` gives a stream's state before.
pub(super) fn claims(
    pieces: &mut Pieces<'_>,
    span: DamagedSpan,
    segment: &SegmentId,
    known: impl Fn(StreamId) -> Option<StreamState>,
) -> Result<Vec<Claim>, RecoveryError> {
    let mut claims = BTreeMap::new();
    let (mut offset, mut is_first) = (u64::from(span.offset), true);
    let end = offset + u64::from(span.length);
    while offset < end {
        let block = pieces.at(offset, BLOCK_BYTES)?;
        let header = GroupHeader::decode(&block, segment).ok();
        let mut length = BLOCK_BYTES as u64;
        if header.is_some() || is_first {
            let claimed = header.map_or(GROUP_BYTES_MAX, |header| header.length as usize);
            let bytes = pieces.at(offset, claimed.min((end - offset) as usize))?;
            add_claims(&bytes, &mut claims, &known);
            if let Some(header) = header {
                length = u64::from(header.length).next_multiple_of(BLOCK_BYTES as u64);
            }
        }
        is_first = false;
        offset += length;
    }
    Ok(claims.into_values().collect())
}

fn add_claims(
    group: &[u8],
    claims: &mut BTreeMap<StreamId, Claim>,
    known: &impl Fn(StreamId) -> Option<StreamState>,
) {
    let records_max = (BATCH_METERED_BYTES_MAX / RECORD_METERED_BYTES_MIN) as u32;
    for (stream, records) in entry_outlines(group) {
        let claim = match claims.entry(stream) {
            Entry::Occupied(claim) => claim.into_mut(),
            Entry::Vacant(place) => {
                let Some(state) = known(stream) else {
                    continue;
                };
                let end = state.tail.sequence;
                place.insert(Claim { state, end })
            }
        };
        let Some((first, count)) = records else {
            continue;
        };
        if first == claim.end && (1..=records_max).contains(&count) {
            claim.end = claim.end.plus(u64::from(count));
        }
    }
}

/// The range of a span with the streams of its claims.
pub(super) fn range_of(file: SegmentFile, span: DamagedSpan, claims: &[Claim]) -> DamagedRange {
    DamagedRange {
        file,
        offset: u64::from(span.offset),
        length: u64::from(span.length),
        streams: claims.iter().map(|claim| claim.state.id).collect(),
        names: claims
            .iter()
            .map(|claim| claim.state.name.clone())
            .collect(),
    }
}
