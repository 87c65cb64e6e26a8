//! One page of streams out of many indexes, each of which has them in the order of their keys.
//!
//! A merge: of each index only the next statement is in hand. A page costs what it tells and one
//! look into each index, however many streams an index holds behind it.
//!
//! # Invariants
//! - Of several statements of one key that of the highest epoch counts; of equal epochs that of the
//!   index that was added first, since a leadership states its stream anew in each of its segments.

use crate::state::StreamState;
use nova_model::Refusal;
use nova_model::names::StreamKey;
use std::collections::BTreeMap;

/// Streams found by several indexes, and up to which key none of them has any that is missing.
pub(crate) struct Listing {
    pub(crate) streams: BTreeMap<StreamKey, StreamState>,
    pub(crate) complete_to: Option<StreamKey>,
}

/// What one index has, in the order of keys.
type States<'a> = Box<dyn Iterator<Item = Result<StreamState, Refusal>> + 'a>;

/// Several indexes as one.
#[derive(Default)]
pub(super) struct Merge<'a> {
    sources: Vec<States<'a>>,
    /// The next statement of each source that has any left.
    heads: BTreeMap<(StreamKey, usize), StreamState>,
}

impl<'a> Merge<'a> {
    /// Adds an index, newer ones first.
    pub(super) fn add(
        &mut self,
        states: impl Iterator<Item = Result<StreamState, Refusal>> + 'a,
    ) -> Result<(), Refusal> {
        self.sources.push(Box::new(states));
        self.step(self.sources.len() - 1)
    }

    /// The first `limit` keys.
    pub(super) fn take(mut self, limit: usize) -> Result<Listing, Refusal> {
        let mut streams: BTreeMap<StreamKey, StreamState> = BTreeMap::new();
        while let Some(((key, source), state)) = self.heads.pop_first() {
            match streams.get(&key) {
                Some(known) if known.epoch >= state.epoch => {}
                None if streams.len() == limit => {
                    let complete_to = streams.keys().next_back().cloned();
                    return Ok(Listing {
                        streams,
                        complete_to,
                    });
                }
                Some(_) | None => {
                    streams.insert(key, state);
                }
            }
            self.step(source)?;
        }
        Ok(Listing {
            streams,
            complete_to: None,
        })
    }

    fn step(&mut self, source: usize) -> Result<(), Refusal> {
        if let Some(state) = self.sources[source].next().transpose()? {
            self.heads.insert((state.name.key.clone(), source), state);
        }
        Ok(())
    }
}

#[cfg(test)]
#[path = "listing_tests.rs"]
mod tests;
