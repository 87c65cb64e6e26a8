//! May this append be admitted? One pure decision over the stream's state with all earlier
//! admitted batches applied (contract, section 2.3).
//!
//! Form, sizes, incarnation and leadership are checked by those who know them before; here come,
//! in this order: duplicate, fence, expected sequence number, timestamps, space.
//!
//! # Invariants
//! - A repeat of an applied batch is recognised before anything else can refuse it.
//!
//! # Not here
//! - When the refusal may leave: [`crate::commit::gate`].

use crate::state::{StreamState, WriterBatch, WriterVerdict};
use nova_model::condition::{FencingToken, WriterStamp};
use nova_model::position::SequenceNumber;
use nova_model::settings::{EffectiveSettings, ProducerPolicy, TimestampMode};
use nova_model::{Code, EncodedBatch, Facts, Refusal};

/// An append as far as its admission goes.
pub(crate) struct AppendCase<'a> {
    /// The stream with all earlier admitted batches applied.
    pub(crate) state: &'a StreamState,
    /// Its settings in force.
    pub(crate) settings: &'a EffectiveSettings,
    /// The token that the writer presents.
    pub(crate) fence: Option<&'a FencingToken>,
    /// The sequence number that the first record must get.
    pub(crate) match_sequence: Option<SequenceNumber>,
    /// The writer's own number.
    pub(crate) writer: Option<WriterStamp>,
    /// The batch.
    pub(crate) batch: &'a EncodedBatch,
    /// Why there is no space for it, if there is none.
    pub(crate) shortage: Option<Refusal>,
}

/// What becomes of an append.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It gets the next positions.
    Admit,
    /// It was applied before, there.
    Repeat(WriterBatch),
    /// It is refused.
    Refuse(Refusal),
}

/// Decides about an append.
pub(crate) fn judge(case: &AppendCase<'_>) -> Verdict {
    match case.writer.map(|stamp| judge_writer(case, stamp)) {
        Some(WriterVerdict::Repeat(batch)) => return Verdict::Repeat(batch),
        Some(WriterVerdict::Mismatch { expected }) => {
            return Verdict::Refuse(duplicate_mismatch(expected));
        }
        Some(WriterVerdict::Gap { expected }) => return Verdict::Refuse(writer_gap(expected)),
        Some(WriterVerdict::Next) | None => {}
    }
    let checks = check_fence(case.state, case.settings.policy.value, case.fence)
        .and_then(|()| check_match(case.state, case.match_sequence))
        .and_then(|()| check_timestamps(case.settings.timestamps.value, case.batch))
        .and_then(|()| case.shortage.clone().map_or(Ok(()), Err));
    match checks {
        Ok(()) => Verdict::Admit,
        Err(refusal) => Verdict::Refuse(refusal),
    }
}

fn judge_writer(case: &AppendCase<'_>, stamp: WriterStamp) -> WriterVerdict {
    case.state
        .writers
        .judge(stamp, case.batch.checksum(), case.batch.records())
}

/// On `any` a token binds only the writer that presents one; on `fenced` it is mandatory while one
/// is installed.
pub(crate) fn check_fence(
    state: &StreamState,
    policy: ProducerPolicy,
    presented: Option<&FencingToken>,
) -> Result<(), Refusal> {
    let installed = &state.fence;
    let passes = match (policy, presented) {
        (_, Some(token)) => token == installed,
        (ProducerPolicy::Any, None) => true,
        (ProducerPolicy::Fenced, None) => installed.is_none(),
    };
    if passes {
        return Ok(());
    }
    let message = match (installed.is_none(), presented) {
        (true, _) => "no fencing token is installed, the writer presents one".to_owned(),
        (false, None) => format!("the stream is fenced by '{installed}', the writer has no token"),
        (false, Some(token)) => format!("the stream is fenced by '{installed}', not by '{token}'"),
    };
    let facts = Facts::Token(installed.as_str().to_owned());
    Err(Refusal::new(Code::Fenced, message).with(facts))
}

/// The tail with all admitted batches applied must be the expected one.
pub(crate) fn check_match(
    state: &StreamState,
    expected: Option<SequenceNumber>,
) -> Result<(), Refusal> {
    let tail = state.tail;
    match expected {
        Some(expected) if expected != tail.sequence => {
            let message = format!(
                "expected the tail at {expected}, it is at {}",
                tail.sequence
            );
            Err(Refusal::new(Code::SeqMismatch, message).with(Facts::Tail(tail)))
        }
        Some(_) | None => Ok(()),
    }
}

fn check_timestamps(mode: TimestampMode, batch: &EncodedBatch) -> Result<(), Refusal> {
    if mode != TimestampMode::ClientRequire || !batch.client_times().is_any_missing {
        return Ok(());
    }
    let message = "the stream requires the client's timestamp on each record";
    Err(Refusal::invalid("timestamp", None, message))
}

fn duplicate_mismatch(expected: u64) -> Refusal {
    let message = "the writer used this number before for a batch of other content";
    Refusal::new(Code::DuplicateMismatch, message).with(Facts::Expected(expected))
}

fn writer_gap(expected: u64) -> Refusal {
    let message = format!("the writer's next number is {expected}, or it is not remembered");
    Refusal::new(Code::WriterGap, message).with(Facts::Expected(expected))
}

#[cfg(test)]
#[path = "admission_tests.rs"]
mod tests;
