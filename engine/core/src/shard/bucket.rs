//! Buckets: decided and stored by their home, noted by every core before the client is answered.

use super::Shard;
use super::durable::Held;
use crate::catalog::buckets::{Change, Step};
use crate::entry::Entry;
use crate::event::{Caller, Event, PeerMessage};
use nova_model::ids::StreamId;
use nova_model::limits::BUCKETS_MAX;
use nova_model::names::BucketName;
use nova_model::request::{Answer, BucketInfo, Request};
use nova_model::settings::{BucketChange, BucketSettings};
use nova_model::{Code, CoreId, Facts, Now, Refusal};

impl Shard {
    /// A request about one bucket.
    pub(super) fn bucket_request(&mut self, now: Now, caller: Caller, request: Request) {
        let result = match request {
            Request::CreateBucket {
                name,
                settings,
                exclusive,
            } => self.create_bucket(now, caller, name, settings, exclusive),
            Request::DescribeBucket { name } => self.describe_bucket(&name).map(Some),
            Request::ReconfigureBucket { name, change } => {
                self.reconfigure_bucket(caller, &name, &change)
            }
            Request::DeleteBucket { name } => self.delete_bucket(caller, &name),
            _ => unreachable!("only requests about one bucket come here"),
        };
        if let Some(result) = result.transpose() {
            self.events.push_back(Event::Answered(caller, result));
        }
    }

    fn create_bucket(
        &mut self,
        now: Now,
        caller: Caller,
        name: BucketName,
        settings: BucketSettings,
        exclusive: bool,
    ) -> Result<Option<Answer>, Refusal> {
        self.check_bucket_change(&name)?;
        if let Some(info) = self.buckets.known.get(&name) {
            if exclusive {
                let message = format!("there is a bucket {name} already");
                return Err(Refusal::new(Code::AlreadyExists, message));
            }
            return Ok(Some(Answer::Bucket {
                info: info.clone(),
                created: false,
            }));
        }
        if self.buckets.known.len() >= BUCKETS_MAX {
            let limit = BUCKETS_MAX as u64;
            let message = format!("a star has at most {limit} buckets");
            return Err(Refusal::invalid("bucket", Some(limit), message));
        }
        let info = BucketInfo {
            name,
            settings,
            created: now.wall,
        };
        self.put_bucket(caller, info, true);
        Ok(None)
    }

    fn describe_bucket(&self, name: &BucketName) -> Result<Answer, Refusal> {
        let info = self.buckets.known.get(name);
        let info = info.ok_or_else(|| Refusal::bucket_not_found(name))?;
        Ok(Answer::Bucket {
            info: info.clone(),
            created: false,
        })
    }

    fn reconfigure_bucket(
        &mut self,
        caller: Caller,
        name: &BucketName,
        change: &BucketChange,
    ) -> Result<Option<Answer>, Refusal> {
        self.check_bucket_change(name)?;
        let known = self.buckets.known.get(name);
        let known = known.ok_or_else(|| Refusal::bucket_not_found(name))?;
        let info = BucketInfo {
            settings: known.settings.changed_by(change),
            ..known.clone()
        };
        self.put_bucket(caller, info, false);
        Ok(None)
    }

    fn put_bucket(&mut self, caller: Caller, info: BucketInfo, created: bool) {
        let answer = Answer::Bucket {
            info: info.clone(),
            created,
        };
        let change = self.buckets.begin(Change {
            name: info.name.clone(),
            caller,
            waiting_for: 0,
            has_streams: false,
            step: Step::Telling(Box::new(answer)),
        });
        let ticket = self.log.push(Entry::BucketPut(info));
        self.hold(ticket, Held::BucketChange(change));
    }

    fn delete_bucket(
        &mut self,
        caller: Caller,
        name: &BucketName,
    ) -> Result<Option<Answer>, Refusal> {
        self.check_bucket_change(name)?;
        if !self.buckets.known.contains_key(name) {
            return Err(Refusal::bucket_not_found(name));
        }
        if self.drain.is_some() || self.questions.is_rebalancing() {
            // A stream on its way from one core to another could be overlooked.
            let message = "streams are being moved between cores";
            return Err(Refusal::new(Code::RateLimited, message).with(Facts::After(50_000)));
        }
        let has_streams = self.has_streams(name)?;
        self.ask_for_streams(caller, name, has_streams, false);
        Ok(None)
    }

    /// Closes a bucket on every core and asks whether it holds any stream of it.
    fn ask_for_streams(
        &mut self,
        caller: Caller,
        name: &BucketName,
        has_streams: bool,
        is_second: bool,
    ) {
        self.buckets.close(name);
        let change = self.buckets.begin(Change {
            name: name.clone(),
            caller,
            waiting_for: self.config.cores() - 1,
            has_streams,
            step: Step::Closing { is_second },
        });
        let name = name.clone();
        self.tell_peers(&PeerMessage::BucketClose { change, name });
        self.bucket_step(change);
    }

    /// Whether this core holds a stream of a closed bucket, or one has passed through it since. A
    /// damaged index leaves the question open: the bucket stays.
    fn holds_streams(&self, name: &BucketName) -> bool {
        self.buckets.has_come(name) || self.has_streams(name).unwrap_or(true)
    }

    /// Only the home changes buckets, one change of a bucket at a time.
    fn check_bucket_change(&self, name: &BucketName) -> Result<(), Refusal> {
        self.check_bucket_home(name)?;
        if self.buckets.is_changing(name) {
            let message = format!("bucket {name} is being changed");
            return Err(Refusal::new(Code::RateLimited, message).with(Facts::After(10_000)));
        }
        Ok(())
    }

    /// A bucket's change is durable: the other cores are told.
    pub(super) fn tell_bucket(&mut self, change: u64) {
        let peers = self.config.cores() - 1;
        let in_hand = self
            .buckets
            .changes
            .get_mut(&change)
            .expect("a change in hand");
        in_hand.waiting_for = peers;
        let info = match &in_hand.step {
            Step::Telling(answer) => match &**answer {
                Answer::Bucket { info, .. } => Some(info.clone()),
                _ => None,
            },
            Step::Closing { .. } => None,
        };
        let name = in_hand.name.clone();
        let message = match info {
            Some(info) => PeerMessage::BucketPut { change, info },
            None => PeerMessage::BucketGone { change, name },
        };
        self.tell_peers(&message);
        self.bucket_step(change);
    }

    pub(super) fn tell_peers(&mut self, message: &PeerMessage) {
        let others = (0..self.config.cores())
            .map(CoreId)
            .filter(|core| *core != self.config.core);
        self.events
            .extend(others.map(|core| Event::Peer(core, message.clone())));
    }

    /// Goes on with a change for which no core is waited for any more.
    fn bucket_step(&mut self, change: u64) {
        if self.buckets.changes[&change].waiting_for > 0 {
            return;
        }
        let Change {
            name,
            caller,
            has_streams,
            step,
            ..
        } = self
            .buckets
            .changes
            .remove(&change)
            .expect("a change in hand");
        match step {
            Step::Telling(answer) => self.events.push_back(Event::Answered(caller, Ok(*answer))),
            Step::Closing { .. } if has_streams => {
                self.buckets.closed.remove(&name);
                self.tell_peers(&PeerMessage::BucketReopen { name: name.clone() });
                let message = format!("bucket {name} still holds streams; delete them first");
                let refusal = Refusal::invalid("bucket", None, message);
                self.events.push_back(Event::Answered(caller, Err(refusal)));
            }
            Step::Closing { is_second: false } if self.config.cores() > 1 => {
                let has_streams = self.holds_streams(&name);
                self.ask_for_streams(caller, &name, has_streams, true);
            }
            Step::Closing { .. } => {
                let step = Step::Telling(Box::new(Answer::Deleted));
                let (waiting_for, has_streams) = (0, false);
                let telling = Change {
                    name: name.clone(),
                    caller,
                    waiting_for,
                    has_streams,
                    step,
                };
                let change = self.buckets.begin(telling);
                let ticket = self.log.push(Entry::BucketDeleted(name));
                self.hold(ticket, Held::BucketChange(change));
            }
        }
    }

    /// An entry that belongs to no stream is durable.
    pub(super) fn bucket_durable(&mut self, entry: &Entry) {
        match entry {
            Entry::BucketPut(info) => self.bucket_known(info.clone()),
            Entry::BucketDeleted(name) => self.buckets.remove(name),
            Entry::Released { log, numbers } => self.released_durable(*log, numbers),
            Entry::Batch(_)
            | Entry::Led(_)
            | Entry::Fence { .. }
            | Entry::Trim { .. }
            | Entry::Settings { .. }
            | Entry::Deleted { .. } => unreachable!("it belongs to a stream"),
        }
    }

    /// A bucket is this now: streams that follow its policy may have got another one.
    pub(super) fn bucket_known(&mut self, info: BucketInfo) {
        let in_bucket = self.streams.all().filter(|stream| {
            stream.assigned.name.bucket == info.name && !stream.sessions.is_empty()
        });
        let ids: Vec<StreamId> = in_bucket.map(|stream| stream.assigned.id).collect();
        let policy = |shard: &Shard, id| shard.settings_of(id).policy.value;
        let before: Vec<_> = ids.into_iter().map(|id| (id, policy(self, id))).collect();
        self.buckets.put(info);
        for (id, before) in before {
            if policy(self, id) != before {
                self.break_for_policy(id);
            }
        }
    }

    /// A message of another core.
    pub fn handle_peer(&mut self, from: CoreId, message: PeerMessage) {
        match message {
            PeerMessage::BucketPut { change, info } => {
                self.bucket_known(info);
                self.note(from, change, false);
            }
            PeerMessage::BucketGone { change, name } => {
                self.buckets.remove(&name);
                self.note(from, change, false);
            }
            PeerMessage::BucketClose { change, name } => {
                self.buckets.close(&name);
                let has_streams = self.holds_streams(&name);
                self.note(from, change, has_streams);
            }
            PeerMessage::BucketReopen { name } => {
                self.buckets.closed.remove(&name);
            }
            PeerMessage::Released { file, generation } => {
                self.let_segment_go(from, file, generation);
            }
            PeerMessage::LetGo { file, generation } => self.segment_let_go(file, generation),
            PeerMessage::Rewritten { index, replaced } => {
                self.use_rewritten(from, &index.0, replaced);
            }
            PeerMessage::Restate { name, id } => self.restate(&name, id),
            PeerMessage::Take(handover) => self.take(from, *handover),
            PeerMessage::Taken { id, epoch } => self.taken(id, epoch),
            PeerMessage::LedAt { name, core, epoch } => self.led_at(name, core, epoch),
            PeerMessage::Sealed(index) => self.indexes.share(index.0),
            PeerMessage::Change(number, step) => self.change_step(from, number, step),
            PeerMessage::Load(number, step) => self.load_step(from, number, step),
            PeerMessage::BucketNoted {
                change,
                has_streams,
            } => {
                if let Some(in_hand) = self.buckets.changes.get_mut(&change) {
                    in_hand.waiting_for -= 1;
                    in_hand.has_streams |= has_streams;
                    self.bucket_step(change);
                }
            }
        }
    }

    fn note(&mut self, home: CoreId, change: u64, has_streams: bool) {
        let message = PeerMessage::BucketNoted {
            change,
            has_streams,
        };
        self.events.push_back(Event::Peer(home, message));
    }
}
