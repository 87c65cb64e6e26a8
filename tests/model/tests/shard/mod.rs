//! One shard with a disk that does everything at once and keeps nothing: enough for its answers.
//!
//! # Not here
//! - Failures, time and what survives them: `tests/sim`.

use nova_core::disk::{DiskOp, DiskResult};
use nova_core::{Caller, Event, Shard, ShardConfig, ShardStart};
use nova_model::condition::{Conditions, FencingToken};
use nova_model::ids::{SegmentNumber, StreamId};
use nova_model::request::{Ack, Answer, OneShotAppend, Request};
use nova_model::settings::{BucketSettings, ProducerPolicy, StreamSettings};
use nova_model::{
    BucketName, CoreId, EncodedBatch, Incarnation, Now, Position, Record, Refusal, StarId,
    StreamName,
};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The one stream.
pub fn stream_name() -> StreamName {
    StreamName::parse("bucket/key").expect("legal")
}

/// A batch of one record.
pub fn batch(body: &str) -> EncodedBatch {
    EncodedBatch::encode(&[Record::new(body.to_owned())]).expect("legal")
}

/// A star of one core with one stream.
pub struct Star {
    shard: Shard,
    calls: u64,
}

impl Star {
    /// A star whose stream has this policy.
    pub fn new(policy: ProducerPolicy) -> Star {
        let addresses = vec!["star.example:1".to_owned()];
        let config = ShardConfig::new(StarId(1), Incarnation(1), CoreId(0), addresses);
        let start = ShardStart {
            end: Default::default(),
            next_number: SegmentNumber(1),
            indexes: Arc::default(),
            released: BTreeMap::new(),
            buckets: BTreeMap::new(),
        };
        let shard = Shard::new(config, start);
        let mut star = Star { shard, calls: 0 };
        let bucket = Request::CreateBucket {
            name: BucketName::parse("bucket").expect("legal"),
            settings: BucketSettings::default(),
            exclusive: true,
        };
        star.request(bucket);
        let settings = StreamSettings {
            policy: Some(policy),
            ..StreamSettings::default()
        };
        star.request(Request::CreateStream {
            name: stream_name(),
            settings,
            exclusive: true,
        });
        star
    }

    /// Appends once.
    pub fn append(&mut self, append: OneShotAppend, batch: EncodedBatch) -> Result<Ack, Refusal> {
        let caller = self.next_caller();
        let fresh = StreamId(u128::from(caller.0));
        self.shard
            .append_once(Now::default(), caller, append, batch, fresh);
        match self.answer() {
            Event::AppendedOnce(to, result) if to == caller => result,
            other => panic!("an append is answered, not {other:?}"),
        }
    }

    /// Installs a fencing token.
    pub fn fence(&mut self, token: &str) {
        let fence = Request::Fence {
            name: stream_name(),
            stream_id: None,
            token: FencingToken::parse(token).expect("legal"),
            conditions: Conditions::default(),
        };
        assert!(matches!(self.request(fence), Answer::Fenced { .. }));
    }

    /// The durable tail.
    pub fn tail(&mut self) -> Position {
        match self.request(Request::CheckTail {
            name: stream_name(),
        }) {
            Answer::Tail(tail) => tail,
            other => panic!("a tail is answered, not {other:?}"),
        }
    }

    fn request(&mut self, request: Request) -> Answer {
        let caller = self.next_caller();
        let fresh = StreamId(u128::from(caller.0));
        self.shard.request(Now::default(), caller, request, fresh);
        match self.answer() {
            Event::Answered(to, Ok(answer)) if to == caller => answer,
            other => panic!("a request is answered, not {other:?}"),
        }
    }

    fn next_caller(&mut self) -> Caller {
        self.calls += 1;
        Caller(self.calls)
    }

    /// Does what the shard asks of the disk until it answers.
    fn answer(&mut self) -> Event {
        let now = Now::default();
        loop {
            match self.shard.poll_event() {
                Some(Event::Ready) => continue,
                Some(event) => return event,
                None => {}
            }
            let next = self.shard.poll_disk(now.instant);
            let (token, op) = next.expect("who has no answer yet waits for the disk");
            let result = match op {
                // As a file that was written before, it needs no zeros ahead.
                DiskOp::CreateSegment { .. } => DiskResult::Created {
                    written_before: true,
                },
                DiskOp::Write { .. } | DiskOp::Zero { .. } => DiskResult::Written,
                DiskOp::FinishSegment { .. } => DiskResult::Finished,
                DiskOp::Space { .. } => DiskResult::Space {
                    free: u64::MAX,
                    total: u64::MAX,
                },
                DiskOp::Read { .. }
                | DiskOp::StoreIndex { .. }
                | DiskOp::Recycle { .. }
                | DiskOp::LetGo { .. }
                | DiskOp::WriteDraft { .. }
                | DiskOp::PlaceDraft { .. }
                | DiskOp::DropDraft { .. } => {
                    unreachable!("one young segment, and nobody reads")
                }
            };
            self.shard.handle_disk(now, token, result);
        }
    }
}
