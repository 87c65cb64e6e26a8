//! Changes and deletions of buckets.
//!
//! # Not here
//! - What is done when an answer is lost: [`crate::core::change`].

use super::{Change, found, told_nothing};
use crate::core::Ambiguity;
use crate::core::change::Seen;
use crate::core::retry::Patience;
use crate::error::ClientError;
use crate::star::{Repeat, Star, bucket, deleted};
use nova_model::request::{BucketInfo, Request};
use nova_model::settings::BucketChange;
use nova_model::{BucketName, Code, Refusal, Timestamp};

/// A change of a bucket's settings.
pub(crate) struct ReconfigureBucket {
    pub(crate) name: BucketName,
    pub(crate) change: BucketChange,
}

impl Change for ReconfigureBucket {
    type State = BucketInfo;
    type Done = BucketInfo;

    async fn look(&self, star: &Star, patience: Patience) -> Result<BucketInfo, ClientError> {
        bucket_info(star, patience, &self.name).await
    }

    async fn send(
        &self,
        star: &Star,
        patience: Patience,
        _: &BucketInfo,
    ) -> Result<BucketInfo, ClientError> {
        let request = Request::ReconfigureBucket {
            name: self.name.clone(),
            change: self.change,
        };
        let sent = star.request_within(patience, self.name.as_str(), request, Repeat::Harmful);
        Ok(bucket(sent.await?)?.0)
    }

    fn seen(&self, before: &BucketInfo, now: &BucketInfo) -> Seen {
        if before.created != now.created {
            Seen::Other
        } else if now.settings == now.settings.changed_by(&self.change) {
            Seen::Done
        } else if now.settings == before.settings {
            Seen::Before
        } else {
            Seen::Other
        }
    }

    fn done(&self, now: BucketInfo) -> BucketInfo {
        now
    }

    fn told(&self, _: &BucketInfo) -> Ambiguity {
        let message = "the settings were changed by somebody else meanwhile";
        told_nothing(Refusal::new(Code::Unavailable, message))
    }
}

/// The deletion of a bucket. One that is there under its name later is another one.
pub(crate) struct DeleteBucket {
    pub(crate) name: BucketName,
}

impl Change for DeleteBucket {
    type State = Option<Timestamp>;
    type Done = ();

    async fn look(&self, star: &Star, patience: Patience) -> Result<Self::State, ClientError> {
        let looked = bucket_info(star, patience, &self.name).await;
        Ok(found(looked, Code::BucketNotFound)?.map(|info| info.created))
    }

    async fn send(
        &self,
        star: &Star,
        patience: Patience,
        _: &Self::State,
    ) -> Result<(), ClientError> {
        let name = self.name.clone();
        let at = name.to_string();
        let request = Request::DeleteBucket { name };
        deleted(
            star.request_within(patience, &at, request, Repeat::Harmful)
                .await?,
        )
    }

    fn seen(&self, before: &Self::State, now: &Self::State) -> Seen {
        match now == before && now.is_some() {
            true => Seen::Before,
            false => Seen::Done,
        }
    }

    fn done(&self, _: Self::State) {}

    fn told(&self, _: &Self::State) -> Ambiguity {
        told_nothing(Refusal::new(Code::Unavailable, "the bucket is there"))
    }
}

async fn bucket_info(
    star: &Star,
    patience: Patience,
    name: &BucketName,
) -> Result<BucketInfo, ClientError> {
    let request = Request::DescribeBucket { name: name.clone() };
    let answer = star.request_within(patience, name.as_str(), request, Repeat::Asks);
    Ok(bucket(answer.await?)?.0)
}
