//! Which requests of a control lane are unanswered.
//!
//! # Invariants
//! - At most `CONTROL_WINDOW_REQUESTS`, each id once.

use crate::error::ProtocolError;
use crate::frame::{Kind, RawBatch, RequestId};
use nova_model::limits::CONTROL_WINDOW_REQUESTS;
use nova_model::request::OneShotAppend;
use nova_model::{EncodedBatch, Refusal};
use std::collections::BTreeMap;

/// What kind of answer a request waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pending {
    Request,
    AppendOnce,
}

/// The unanswered requests.
#[derive(Debug, Default)]
pub(super) struct Control {
    pending: BTreeMap<RequestId, Pending>,
}

impl Control {
    /// The window, if one more request goes beyond it.
    pub(super) fn window_exceeded(&self) -> Option<u32> {
        (!self.has_room()).then_some(CONTROL_WINDOW_REQUESTS as u32)
    }

    /// Whether one more request is within the window.
    pub(super) fn has_room(&self) -> bool {
        self.pending.len() < CONTROL_WINDOW_REQUESTS
    }

    /// Whether every request has its answer.
    pub(super) fn is_answered(&self) -> bool {
        self.pending.is_empty()
    }

    /// A request came.
    pub(super) fn begin(&mut self, id: RequestId, pending: Pending) -> Result<(), ProtocolError> {
        assert!(self.has_room(), "asked by the header");
        if self.pending.insert(id, pending).is_none() {
            return Ok(());
        }
        let kind = match pending {
            Pending::Request => Kind::Request,
            Pending::AppendOnce => Kind::AppendOnce,
        };
        Err(ProtocolError::RequestId { kind, id })
    }

    /// A request gets its answer.
    pub(super) fn answer(&mut self, id: RequestId, pending: Pending) {
        let found = self.pending.remove(&id);
        assert_eq!(found, Some(pending), "an answer for request {id}");
    }
}

/// Checks a one-shot append: the peer's error, or a refusal, or the batch.
pub(super) fn check_append_once(
    append: &OneShotAppend,
    batch: RawBatch,
) -> Result<Result<EncodedBatch, Refusal>, ProtocolError> {
    let batch = batch.check_for(Kind::AppendOnce)?;
    Ok(append.check().and(batch))
}
