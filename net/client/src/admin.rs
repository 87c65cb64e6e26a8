//! Buckets, streams and the star itself.
//!
//! # Invariants
//! - A page of streams is in key order over all cores, without gaps.

use crate::change::{Delete, DeleteBucket, Fence, Reconfigure, ReconfigureBucket, Trim, carry_out};
use crate::client::Client;
use crate::core::listing::{Listing, Round, Unfit};
use crate::error::ClientError;
use crate::star::{Repeat, bucket, stream, unfit_answer};
use nova_model::limits::{LIST_ROUNDS_MAX, STAR_CORES_MAX};
use nova_model::request::{
    Answer, BucketInfo, CoreSet, Page, Request, StarInfo, StarStatus, StreamInfo, StreamMove,
};
use nova_model::settings::{BucketChange, BucketSettings, StreamSettings};
use nova_model::{
    BucketName, Code, Conditions, CoreId, Epoch, FencingToken, Position, Refusal, SequenceNumber,
    StreamName,
};
use std::sync::Arc;
use tokio::task::JoinSet;

/// Who leads a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leader {
    /// The core.
    pub core: CoreId,
    /// Its advertised address.
    pub address: String,
    /// The epoch of its leadership.
    pub epoch: Epoch,
}

/// What drains and their ends have come to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placement {
    /// The cores that are drained now, ascending.
    pub drained: Vec<CoreId>,
    /// Streams that were handed from one core to another for it.
    pub moved: u64,
}

/// What a rebalance has done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rebalanced {
    /// The moves.
    pub moves: Vec<StreamMove>,
    /// Whether a further rebalance would find more to do.
    pub has_more: bool,
}

/// A page of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed<T> {
    /// In byte order of their names.
    pub items: Vec<T>,
    /// Whether there are more after the last.
    pub has_more: bool,
}

impl Client {
    /// Makes a bucket; `ALREADY_EXISTS` if it is there. If its answer is lost it is
    /// [`ClientError::Ambiguous`]: describe the bucket, which somebody else may have made, too.
    pub async fn create_bucket(
        &self,
        name: BucketName,
        settings: BucketSettings,
    ) -> Result<BucketInfo, ClientError> {
        Ok(self.make_bucket(name, settings, true).await?.0)
    }

    /// Makes a bucket or finds it there; and whether it was made now. Repeated if its answer is
    /// lost; it is found then, if the first attempt made it.
    pub async fn ensure_bucket(
        &self,
        name: BucketName,
        settings: BucketSettings,
    ) -> Result<(BucketInfo, bool), ClientError> {
        self.make_bucket(name, settings, false).await
    }

    async fn make_bucket(
        &self,
        name: BucketName,
        settings: BucketSettings,
        exclusive: bool,
    ) -> Result<(BucketInfo, bool), ClientError> {
        let at = name.to_string();
        let request = Request::CreateBucket {
            name,
            settings,
            exclusive,
        };
        let repeat = repeat_of_making(exclusive);
        bucket(self.star.request(&at, request, repeat).await?)
    }

    /// Tells a bucket's settings.
    pub async fn describe_bucket(&self, name: BucketName) -> Result<BucketInfo, ClientError> {
        let at = name.to_string();
        let answer = self
            .star
            .request(&at, Request::DescribeBucket { name }, Repeat::Asks)
            .await?;
        Ok(bucket(answer)?.0)
    }

    /// Changes the settings that are said; the others stay. If the answer is lost, they are looked
    /// at: sent again only if they are as before the call, and [`ClientError::Ambiguous`] if
    /// somebody else changed them.
    pub async fn reconfigure_bucket(
        &self,
        name: BucketName,
        change: BucketChange,
    ) -> Result<BucketInfo, ClientError> {
        carry_out(&self.star, &ReconfigureBucket { name, change }).await
    }

    /// Deletes a bucket that holds no stream. If the answer is lost, it is sent again only while
    /// the same bucket is there, and not if one was made anew under its name.
    pub async fn delete_bucket(&self, name: BucketName) -> Result<(), ClientError> {
        carry_out(&self.star, &DeleteBucket { name }).await
    }

    /// Lists buckets.
    pub async fn list_buckets(&self, page: Page) -> Result<Listed<BucketInfo>, ClientError> {
        match self
            .star
            .request("", Request::ListBuckets { page }, Repeat::Asks)
            .await?
        {
            Answer::Buckets { items, has_more } => Ok(Listed { items, has_more }),
            _ => Err(unfit_answer()),
        }
    }

    /// Makes a stream; `ALREADY_EXISTS` if it is there. If its answer is lost it is
    /// [`ClientError::Ambiguous`]: describe the stream, which somebody else may have made, too.
    pub async fn create_stream(
        &self,
        name: StreamName,
        settings: StreamSettings,
    ) -> Result<StreamInfo, ClientError> {
        Ok(self.make_stream(name, settings, true).await?.0)
    }

    /// Makes a stream or finds it there; and whether it was made now. Repeated if its answer is
    /// lost; it is found then, if the first attempt made it.
    pub async fn ensure_stream(
        &self,
        name: StreamName,
        settings: StreamSettings,
    ) -> Result<(StreamInfo, bool), ClientError> {
        self.make_stream(name, settings, false).await
    }

    async fn make_stream(
        &self,
        name: StreamName,
        settings: StreamSettings,
        exclusive: bool,
    ) -> Result<(StreamInfo, bool), ClientError> {
        let at = name.to_string();
        let request = Request::CreateStream {
            name,
            settings,
            exclusive,
        };
        let repeat = repeat_of_making(exclusive);
        stream(self.star.request(&at, request, repeat).await?)
    }

    /// Tells a stream's settings and state.
    pub async fn describe_stream(&self, name: StreamName) -> Result<StreamInfo, ClientError> {
        let at = name.to_string();
        let answer = self
            .star
            .request(&at, Request::DescribeStream { name }, Repeat::Asks)
            .await?;
        Ok(stream(answer)?.0)
    }

    /// Changes the settings that are said; the others stay. If the answer is lost, they are looked
    /// at: sent again only if they are as before the call, and [`ClientError::Ambiguous`] if
    /// somebody else changed them.
    pub async fn reconfigure_stream(
        &self,
        name: StreamName,
        change: StreamSettings,
    ) -> Result<StreamInfo, ClientError> {
        carry_out(&self.star, &Reconfigure { name, change }).await
    }

    /// Deletes a stream with all its records. If the answer is lost, it is sent again only while
    /// the same stream is there, and not if one was made anew under its name.
    pub async fn delete_stream(&self, name: StreamName) -> Result<(), ClientError> {
        carry_out(&self.star, &Delete { name }).await
    }

    /// Lists the streams of a bucket: every core is asked for the page, and again while streams
    /// move from core to core ([`crate::core::listing`]). Every stream that was there from the call
    /// to its answer is in it, once.
    pub async fn list_streams(
        &self,
        bucket: BucketName,
        page: Page,
    ) -> Result<Listed<StreamInfo>, ClientError> {
        for _ in 0..LIST_ROUNDS_MAX {
            let star = self.describe_star().await?;
            if let Some(listed) = self.list_at(&star, &bucket, &page).await? {
                return Ok(listed);
            }
        }
        let last = Refusal::new(Code::Unavailable, "the star starts again and again");
        Err(restless(last))
    }

    /// A page of one start of the star; nothing if another one came in between.
    async fn list_at(
        &self,
        star: &StarInfo,
        bucket: &BucketName,
        page: &Page,
    ) -> Result<Option<Listed<StreamInfo>>, ClientError> {
        let cores = &star.cores[..star.cores.len().min(STAR_CORES_MAX)];
        let mut listing = Listing::new(bucket.clone(), page.clone(), cores.len());
        loop {
            let is_of_one_start = listing.is_of(star.incarnation);
            let requests = match listing.next_round() {
                Round::Ask(_) | Round::Done(..) if !is_of_one_start => return Ok(None),
                Round::Ask(requests) => requests,
                Round::Done(items, has_more) => return Ok(Some(Listed { items, has_more })),
                Round::Restless(refusal) => return Err(restless(refusal)),
            };
            let mut asked = JoinSet::new();
            for (core, request) in requests.into_iter().enumerate() {
                let (star, address) = (Arc::clone(&self.star), cores[core].address.clone());
                asked.spawn(async move { (core, star.request_at(&address, request).await) });
            }
            while let Some(joined) = asked.join_next().await {
                let (core, answer) = joined.map_err(|_| ClientError::Closed)?;
                let fits = listing.answered(core, answer?);
                fits.map_err(|Unfit| unfit_answer())?;
            }
        }
    }

    /// Tells the committed tail: no append that was acknowledged before is past it.
    pub async fn check_tail(&self, name: StreamName) -> Result<Position, ClientError> {
        let at = name.to_string();
        match self
            .star
            .request(&at, Request::CheckTail { name }, Repeat::Asks)
            .await?
        {
            Answer::Tail(tail) => Ok(tail),
            _ => Err(unfit_answer()),
        }
    }

    /// Installs a fencing token, durably and in order with appends; the tail it was installed at,
    /// or a later one at which it is installed still. The conditions say which token and which
    /// tail must be there now; without any it is installed whatever is there.
    ///
    /// A fence whose answer is lost is never repeated blindly: that could take the stream back from
    /// whoever fenced in between. The stream is described then. If the token is there, the fence is
    /// done; if the one from before the call is, it is sent again; if there is another one, the
    /// result is [`ClientError::Ambiguous`] with a refusal that names that token, and whether this
    /// one was there in between is not known. Use a token that was never used before.
    pub async fn fence(
        &self,
        name: StreamName,
        token: FencingToken,
        conditions: Conditions,
    ) -> Result<Position, ClientError> {
        let fence = Fence {
            name,
            token,
            conditions,
        };
        carry_out(&self.star, &fence).await
    }

    /// Forgets the records before `first`, durably and in order with appends; the first record
    /// that is left and the tail. If the answer is lost, the stream is looked at: the trim is done
    /// if they are gone, and sent again if not. With conditions it is [`ClientError::Ambiguous`] if
    /// they are gone, since somebody else may have trimmed.
    pub async fn trim(
        &self,
        name: StreamName,
        first: SequenceNumber,
        conditions: Conditions,
    ) -> Result<(SequenceNumber, Position), ClientError> {
        let trim = Trim {
            name,
            first,
            conditions,
        };
        carry_out(&self.star, &trim).await
    }

    /// Hands the leadership of a stream to another core of the star: no record is copied, sessions
    /// and readers of the SDK follow by themselves. Who leads it then.
    pub async fn hand_off(&self, name: StreamName, to: CoreId) -> Result<Leader, ClientError> {
        let at = name.to_string();
        let request = Request::HandOff { name, to };
        match self.star.request(&at, request, Repeat::Harmless).await? {
            Answer::Moved {
                core,
                address,
                epoch,
            } => Ok(Leader {
                core,
                address,
                epoch,
            }),
            _ => Err(unfit_answer()),
        }
    }

    /// Hands all streams that these cores lead to the others, and resolves when they have them. No
    /// stream is placed on a drained core until [`Client::undrain`] or the star's next start. With
    /// every core drained the star is closed: it leads nothing and refuses streams as `DRAINING`.
    pub async fn drain(&self, cores: CoreSet) -> Result<Placement, ClientError> {
        placement(
            self.star
                .request("", Request::Drain { cores }, Repeat::Harmless)
                .await?,
        )
    }

    /// Places streams on these cores again.
    pub async fn undrain(&self, cores: CoreSet) -> Result<Placement, ClientError> {
        let request = Request::Undrain { cores };
        placement(self.star.request("", request, Repeat::Harmless).await?)
    }

    /// Spreads the streams that are led over the cores by measured load.
    pub async fn rebalance(&self) -> Result<Rebalanced, ClientError> {
        match self
            .star
            .request("", Request::Rebalance, Repeat::Harmless)
            .await?
        {
            Answer::Rebalanced { moves, has_more } => Ok(Rebalanced { moves, has_more }),
            _ => Err(unfit_answer()),
        }
    }

    /// Tells the load and the state of every core.
    pub async fn status(&self) -> Result<StarStatus, ClientError> {
        match self.star.request("", Request::Status, Repeat::Asks).await? {
            Answer::Status(status) => Ok(status),
            _ => Err(unfit_answer()),
        }
    }

    /// Tells who the star is and where its cores are.
    pub async fn describe_star(&self) -> Result<StarInfo, ClientError> {
        match self
            .star
            .request("", Request::DescribeStar, Repeat::Asks)
            .await?
        {
            Answer::Star(info) => Ok(info),
            _ => Err(unfit_answer()),
        }
    }
}

/// Whoever finds it there after a lost answer does not know who made it.
fn repeat_of_making(exclusive: bool) -> Repeat {
    match exclusive {
        true => Repeat::Harmful,
        false => Repeat::Harmless,
    }
}

fn placement(answer: Answer) -> Result<Placement, ClientError> {
    match answer {
        Answer::Placement { drained, moved } => Ok(Placement { drained, moved }),
        _ => Err(unfit_answer()),
    }
}

/// Nothing was applied, and another call may find the star at rest.
fn restless(last: Refusal) -> ClientError {
    let (sent, last) = (None, Some(Box::new(last)));
    ClientError::Unavailable { sent, last }
}
