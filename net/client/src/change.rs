//! Fences, settings, trims and deletions: requests whose second application could undo what others
//! did since the first.
//!
//! # Invariants
//! - They name the incarnation that the look found: one that comes late does nothing to another.
//! - None of them is repeated but by the rule of [`crate::core::change`].
//!
//! # Not here
//! - Requests whose repeat changes nothing: [`crate::star`] repeats them.

mod buckets;

pub(crate) use buckets::{DeleteBucket, ReconfigureBucket};

use crate::core::Ambiguity;
use crate::core::change::{Attempt, Seen, Verdict, judge};
use crate::core::retry::Patience;
use crate::error::ClientError;
use crate::star::{Repeat, Star, deleted, stream, unfit_answer};
use nova_model::request::{Answer, Request, StreamInfo};
use nova_model::settings::{EffectiveSettings, StreamSettings};
use nova_model::{
    Code, Conditions, Facts, FencingToken, Position, Refusal, SequenceNumber, StreamId, StreamName,
};

/// A request that is preceded by a look.
pub(crate) trait Change {
    /// What a look finds.
    type State;
    /// What it brings.
    type Done;

    fn look(
        &self,
        star: &Star,
        patience: Patience,
    ) -> impl Future<Output = Result<Self::State, ClientError>> + Send;

    /// Sends it once.
    fn send(
        &self,
        star: &Star,
        patience: Patience,
        before: &Self::State,
    ) -> impl Future<Output = Result<Self::Done, ClientError>> + Send;

    fn seen(&self, before: &Self::State, now: &Self::State) -> Seen;

    /// What it brought, as a later look tells it.
    fn done(&self, now: Self::State) -> Self::Done;

    /// Whether a refusal means that the look was too old.
    fn is_overtaken(&self, _: &ClientError) -> bool {
        false
    }

    /// What is there instead.
    fn told(&self, now: &Self::State) -> Ambiguity;
}

/// Looks, sends, and looks again where the answer was lost.
pub(crate) async fn carry_out<C: Change>(star: &Star, change: &C) -> Result<C::Done, ClientError> {
    let mut patience = Patience::new(star.retry_budget_us);
    let mut before = change.look(star, patience).await?;
    let mut doubt: Option<ClientError> = None;
    loop {
        let error = match change.send(star, patience, &before).await {
            Ok(done) => return Ok(done),
            Err(error) => error,
        };
        let attempt = match error.is_clean() {
            true if change.is_overtaken(&error) => Attempt::Overtaken,
            true => Attempt::Refused,
            false => Attempt::Doubtful,
        };
        if attempt == Attempt::Doubtful {
            doubt = Some(error.clone());
        }
        if attempt == Attempt::Refused && doubt.is_none() {
            return Err(error);
        }
        patience.begin(star.source.now());
        let now = match change.look(star, patience).await {
            Ok(now) => now,
            Err(blind) => return Err(doubt.unwrap_or(blind)),
        };
        match judge(attempt, doubt.is_some(), change.seen(&before, &now)) {
            Verdict::Done => return Ok(change.done(now)),
            Verdict::Refused => return Err(error),
            Verdict::Ambiguous => {
                return Err(ClientError::Ambiguous(Box::new(change.told(&now))));
            }
            Verdict::Again => {}
            Verdict::Anew => before = now,
        }
        let at = star.source.moment();
        if patience.is_spent(at.now) {
            return Err(doubt.unwrap_or(error));
        }
        let next = patience.next_attempt(at, None);
        tokio::time::sleep_until(star.source.time_of(next)).await;
    }
}

async fn stream_info(
    star: &Star,
    patience: Patience,
    name: &StreamName,
) -> Result<StreamInfo, ClientError> {
    let request = Request::DescribeStream { name: name.clone() };
    let at = name.to_string();
    let answer = star.request_within(patience, &at, request, Repeat::Asks);
    Ok(stream(answer.await?)?.0)
}

/// What is there, or `None` if it is not found.
fn found<T>(looked: Result<T, ClientError>, missing: Code) -> Result<Option<T>, ClientError> {
    match looked {
        Ok(info) => Ok(Some(info)),
        Err(ClientError::Refused(refusal)) if refusal.code == missing => Ok(None),
        Err(error) => Err(error),
    }
}

fn told_stream(info: &StreamInfo, refusal: Refusal) -> Ambiguity {
    Ambiguity {
        stream_id: Some(info.id),
        since: info.tail.sequence,
        refusal: Some(refusal),
    }
}

fn told_nothing(refusal: Refusal) -> Ambiguity {
    Ambiguity {
        stream_id: None,
        since: SequenceNumber(0),
        refusal: Some(refusal),
    }
}

/// A fence.
pub(crate) struct Fence {
    pub(crate) name: StreamName,
    pub(crate) token: FencingToken,
    pub(crate) conditions: Conditions,
}

impl Change for Fence {
    type State = StreamInfo;
    type Done = Position;

    async fn look(&self, star: &Star, patience: Patience) -> Result<StreamInfo, ClientError> {
        stream_info(star, patience, &self.name).await
    }

    async fn send(
        &self,
        star: &Star,
        patience: Patience,
        before: &StreamInfo,
    ) -> Result<Position, ClientError> {
        let held = self.conditions.fence.as_ref().unwrap_or(&before.fence);
        let request = Request::Fence {
            name: self.name.clone(),
            stream_id: Some(before.id),
            token: self.token.clone(),
            conditions: Conditions {
                fence: Some(held.clone()),
                match_sequence: self.conditions.match_sequence,
            },
        };
        let name = self.name.to_string();
        let sent = star.request_within(patience, &name, request, Repeat::Harmful);
        match sent.await? {
            Answer::Fenced { tail } => Ok(tail),
            _ => Err(unfit_answer()),
        }
    }

    fn seen(&self, before: &StreamInfo, now: &StreamInfo) -> Seen {
        match (before.id == now.id, &now.fence) {
            (true, token) if *token == self.token => Seen::Done,
            (true, token) if *token == before.fence => Seen::Before,
            _ => Seen::Other,
        }
    }

    fn done(&self, now: StreamInfo) -> Position {
        now.tail
    }

    fn is_overtaken(&self, error: &ClientError) -> bool {
        let is_fenced = error
            .refusal()
            .is_some_and(|refusal| refusal.code == Code::Fenced);
        is_replaced(error) || (self.conditions.fence.is_none() && is_fenced)
    }

    fn told(&self, now: &StreamInfo) -> Ambiguity {
        let message = match now.fence.is_none() {
            true => "no fencing token is installed; this one may have been".to_owned(),
            false => format!("'{}' is installed; this token may have been", now.fence),
        };
        let facts = Facts::Token(now.fence.to_string());
        told_stream(now, Refusal::new(Code::Fenced, message).with(facts))
    }
}

/// A change of a stream's settings.
pub(crate) struct Reconfigure {
    pub(crate) name: StreamName,
    pub(crate) change: StreamSettings,
}

impl Change for Reconfigure {
    type State = StreamInfo;
    type Done = StreamInfo;

    async fn look(&self, star: &Star, patience: Patience) -> Result<StreamInfo, ClientError> {
        stream_info(star, patience, &self.name).await
    }

    async fn send(
        &self,
        star: &Star,
        patience: Patience,
        before: &StreamInfo,
    ) -> Result<StreamInfo, ClientError> {
        let (name, change) = (self.name.clone(), self.change);
        let at = name.to_string();
        let request = Request::ReconfigureStream {
            name,
            stream_id: Some(before.id),
            change,
        };
        let sent = star.request_within(patience, &at, request, Repeat::Harmful);
        Ok(stream(sent.await?)?.0)
    }

    fn seen(&self, before: &StreamInfo, now: &StreamInfo) -> Seen {
        if before.id != now.id {
            Seen::Other
        } else if now.settings == laid_over(now.settings, &self.change) {
            Seen::Done
        } else if now.settings == before.settings {
            Seen::Before
        } else {
            Seen::Other
        }
    }

    fn done(&self, now: StreamInfo) -> StreamInfo {
        now
    }

    fn is_overtaken(&self, error: &ClientError) -> bool {
        is_replaced(error)
    }

    fn told(&self, now: &StreamInfo) -> Ambiguity {
        let message = "the settings were changed by somebody else meanwhile";
        told_stream(now, Refusal::new(Code::Unavailable, message))
    }
}

/// A trim.
pub(crate) struct Trim {
    pub(crate) name: StreamName,
    pub(crate) first: SequenceNumber,
    pub(crate) conditions: Conditions,
}

impl Change for Trim {
    type State = StreamInfo;
    type Done = (SequenceNumber, Position);

    async fn look(&self, star: &Star, patience: Patience) -> Result<StreamInfo, ClientError> {
        stream_info(star, patience, &self.name).await
    }

    async fn send(
        &self,
        star: &Star,
        patience: Patience,
        before: &StreamInfo,
    ) -> Result<Self::Done, ClientError> {
        let request = Request::Trim {
            name: self.name.clone(),
            stream_id: Some(before.id),
            first: self.first,
            conditions: self.conditions.clone(),
        };
        let name = self.name.to_string();
        let sent = star.request_within(patience, &name, request, Repeat::Harmful);
        match sent.await? {
            Answer::Trimmed { first, tail } => Ok((first, tail)),
            _ => Err(unfit_answer()),
        }
    }

    /// Records that are gone may have been trimmed by somebody else. That is as good, unless the
    /// trim was to be done under a condition.
    fn seen(&self, before: &StreamInfo, now: &StreamInfo) -> Seen {
        if before.id != now.id {
            Seen::Other
        } else if now.first < self.first {
            Seen::Before
        } else if self.conditions == Conditions::default() {
            Seen::Done
        } else {
            Seen::Other
        }
    }

    fn done(&self, now: StreamInfo) -> Self::Done {
        (now.first, now.tail)
    }

    fn is_overtaken(&self, error: &ClientError) -> bool {
        is_replaced(error)
    }

    fn told(&self, now: &StreamInfo) -> Ambiguity {
        let message = format!("the first record that is left is {}", now.first);
        told_stream(now, Refusal::new(Code::Unavailable, message))
    }
}

/// Whether the incarnation that the look found is gone. Another one may be there by now.
fn is_replaced(error: &ClientError) -> bool {
    let code = error.refusal().map(|refusal| refusal.code);
    code == Some(Code::StreamNotFound)
}

/// Settings in force, with those that were said laid over them.
fn laid_over(settings: EffectiveSettings, change: &StreamSettings) -> EffectiveSettings {
    let said = EffectiveSettings::resolve(change, &StreamSettings::default());
    EffectiveSettings {
        policy: change.policy.map_or(settings.policy, |_| said.policy),
        retention: change
            .retention
            .map_or(settings.retention, |_| said.retention),
        timestamps: change
            .timestamps
            .map_or(settings.timestamps, |_| said.timestamps),
        timestamps_uncapped: change
            .timestamps_uncapped
            .map_or(settings.timestamps_uncapped, |_| said.timestamps_uncapped),
        delete_on_empty_s: change
            .delete_on_empty_s
            .map_or(settings.delete_on_empty_s, |_| said.delete_on_empty_s),
    }
}

/// The deletion of a stream. One that is there under its name later is another one.
pub(crate) struct Delete {
    pub(crate) name: StreamName,
}

impl Change for Delete {
    type State = Option<StreamId>;
    type Done = ();

    async fn look(&self, star: &Star, patience: Patience) -> Result<Self::State, ClientError> {
        let looked = stream_info(star, patience, &self.name).await;
        Ok(found(looked, Code::StreamNotFound)?.map(|info| info.id))
    }

    async fn send(
        &self,
        star: &Star,
        patience: Patience,
        before: &Self::State,
    ) -> Result<(), ClientError> {
        let name = self.name.clone();
        if before.is_none() {
            return Err(ClientError::Refused(Refusal::stream_not_found(&name)));
        }
        let at = name.to_string();
        let request = Request::DeleteStream {
            name,
            stream_id: *before,
        };
        let sent = star.request_within(patience, &at, request, Repeat::Harmful);
        deleted(sent.await?)
    }

    fn seen(&self, before: &Self::State, now: &Self::State) -> Seen {
        match now == before && now.is_some() {
            true => Seen::Before,
            false => Seen::Done,
        }
    }

    fn done(&self, _: Self::State) {}

    fn told(&self, now: &Self::State) -> Ambiguity {
        Ambiguity {
            stream_id: *now,
            ..told_nothing(Refusal::new(Code::Unavailable, "the stream is there"))
        }
    }
}
