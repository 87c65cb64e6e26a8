//! The requests with one answer: streams, fences, trims, tails.

use super::Shard;
use super::stream::Resolved;
use crate::admission;
use crate::commit::gate::Ticket;
use crate::entry::Entry;
use crate::event::{Caller, Event};
use crate::planted::PlantedBug;
use nova_model::condition::{Conditions, FencingToken};
use nova_model::ids::StreamId;
use nova_model::names::StreamName;
use nova_model::placement::bucket_home;
use nova_model::position::SequenceNumber;
use nova_model::request::{Answer, CoreInfo, Request, StarInfo, StreamInfo};
use nova_model::settings::{ProducerPolicy, StreamSettings};
use nova_model::{Code, Facts, Now, Refusal};

/// An answer and the group it depends on.
type Judged = Result<(Ticket, Answer), (Ticket, Refusal)>;

impl Shard {
    /// A request; answered once by [`Event::Answered`]. `fresh` becomes the id of a stream that it
    /// creates.
    pub fn request(&mut self, now: Now, caller: Caller, request: Request, fresh: StreamId) {
        if self.is_stopping
            && let Err(refusal) = self.check_open_star()
        {
            return self.events.push_back(Event::Answered(caller, Err(refusal)));
        }
        let judged = match request {
            Request::CreateStream {
                name,
                settings,
                exclusive,
            } => self.create_stream(now, &name, settings, exclusive, fresh),
            Request::DescribeStream { name } => self.describe_stream(now, &name),
            Request::ReconfigureStream {
                name,
                stream_id,
                change,
            } => self.reconfigure_stream(now, &name, stream_id, &change),
            Request::DeleteStream { name, stream_id } => self.delete_stream(now, &name, stream_id),
            Request::CheckTail { name } => self.check_tail(now, &name),
            Request::Fence {
                name,
                stream_id,
                token,
                conditions,
            } => self.fence(now, (&name, stream_id), token, &conditions),
            Request::Trim {
                name,
                stream_id,
                first,
                conditions,
            } => self.trim(now, (&name, stream_id), first, &conditions),
            Request::ListStreams {
                bucket,
                page,
                known,
            } => now_answered(self.list_streams(&bucket, &page, known)),
            Request::DescribeStar => Ok((Ticket(0), Answer::Star(self.describe_star()))),
            Request::ListBuckets { page } => now_answered(self.list_buckets(&page)),
            Request::Drain { cores } => return self.begin_drain(caller, cores, true),
            Request::Undrain { cores } => return self.begin_drain(caller, cores, false),
            Request::Rebalance => return self.rebalance(caller),
            Request::Status => return self.ask_status(caller),
            Request::HandOff { name, to } => return self.hand_off(now, caller, &name, to),
            Request::CreateBucket { .. }
            | Request::DescribeBucket { .. }
            | Request::ReconfigureBucket { .. }
            | Request::DeleteBucket { .. } => return self.bucket_request(now, caller, request),
        };
        let (ticket, result) = match judged {
            Ok((ticket, answer)) => (ticket, Ok(answer)),
            Err((ticket, refusal)) => (ticket, Err(refusal)),
        };
        let event = Event::Answered(caller, result);
        match &event {
            Event::Answered(_, Err(_)) => self.hold_refusal(ticket, event),
            _ => self.hold_event(ticket, event),
        }
    }

    /// A stream that must be there.
    pub(super) fn live(
        &mut self,
        now: Now,
        name: &StreamName,
    ) -> Result<StreamId, (Ticket, Refusal)> {
        match self.resolve(name).map_err(at_once)? {
            Resolved::Live(id) => {
                self.note_idle(now.instant, id);
                Ok(id)
            }
            Resolved::Absent { .. } if !self.buckets.known.contains_key(&name.bucket) => {
                Err(at_once(Refusal::bucket_not_found(&name.bucket)))
            }
            Resolved::Absent { ticket, .. } => Err((ticket, Refusal::stream_not_found(name))),
        }
    }

    /// A stream that must be there, and be this incarnation if one is named.
    fn live_as(
        &mut self,
        now: Now,
        name: &StreamName,
        wanted: Option<StreamId>,
    ) -> Result<StreamId, (Ticket, Refusal)> {
        let id = self.live(now, name)?;
        match wanted.is_none_or(|wanted| wanted == id) {
            true => Ok(id),
            false => Err((self.stream(id).last_ticket, Refusal::stream_not_found(name))),
        }
    }

    fn create_stream(
        &mut self,
        now: Now,
        name: &StreamName,
        settings: StreamSettings,
        exclusive: bool,
        fresh: StreamId,
    ) -> Judged {
        match self.resolve(name).map_err(at_once)? {
            Resolved::Live(id) => {
                self.note_idle(now.instant, id);
                let ticket = self.stream(id).last_ticket;
                if exclusive {
                    let message = format!("there is a stream {name} already");
                    return Err((ticket, Refusal::new(Code::AlreadyExists, message)));
                }
                Ok((
                    ticket,
                    Answer::Stream {
                        info: self.info(id),
                        created: false,
                    },
                ))
            }
            Resolved::Absent { epoch, .. } => {
                let id = self
                    .create(now, name, settings, epoch, fresh)
                    .map_err(at_once)?;
                let info = self.info(id);
                Ok((
                    self.stream(id).last_ticket,
                    Answer::Stream {
                        info,
                        created: true,
                    },
                ))
            }
        }
    }

    fn describe_stream(&mut self, now: Now, name: &StreamName) -> Judged {
        let id = self.live(now, name)?;
        let info = self.info(id);
        Ok((
            self.stream(id).last_ticket,
            Answer::Stream {
                info,
                created: false,
            },
        ))
    }

    /// The stream with all that was admitted; true once its last group is durable.
    pub(super) fn info(&self, id: StreamId) -> StreamInfo {
        let state = &self.stream(id).assigned;
        StreamInfo {
            name: state.name.clone(),
            id,
            settings: self.settings_of(id),
            fence: state.fence.clone(),
            first: state.trimmed,
            tail: state.tail,
            epoch: state.epoch,
            created: state.created,
        }
    }

    fn reconfigure_stream(
        &mut self,
        now: Now,
        name: &StreamName,
        stream_id: Option<StreamId>,
        change: &StreamSettings,
    ) -> Judged {
        let id = self.live_as(now, name, stream_id)?;
        self.lead(id);
        let before = self.settings_of(id).policy.value;
        let state = &self.stream(id).assigned;
        let (epoch, settings) = (state.epoch, state.settings.changed_by(change));
        let ticket = self.commit(
            id,
            Entry::Settings {
                stream: id,
                epoch,
                settings,
            },
        );
        if self.settings_of(id).policy.value != before {
            self.break_for_policy(id);
        }
        Ok((
            ticket,
            Answer::Stream {
                info: self.info(id),
                created: false,
            },
        ))
    }

    fn delete_stream(
        &mut self,
        now: Now,
        name: &StreamName,
        stream_id: Option<StreamId>,
    ) -> Judged {
        let id = self.live_as(now, name, stream_id)?;
        self.lead(id);
        let epoch = self.stream(id).assigned.epoch;
        let ticket = self.commit(id, Entry::Deleted { stream: id, epoch });
        self.break_sessions(id, &Refusal::stream_not_found(name), |_| true);
        self.note_idle(now.instant, id);
        Ok((ticket, Answer::Deleted))
    }

    /// The tail as it is durable now: every append acked before is in it. That the stream is there
    /// at all is told once its creation is durable.
    fn check_tail(&mut self, now: Now, name: &StreamName) -> Judged {
        let id = self.live(now, name)?;
        let stream = self.stream(id);
        Ok((stream.created_in, Answer::Tail(stream.marks.durable())))
    }

    fn fence(
        &mut self,
        now: Now,
        (name, stream_id): (&StreamName, Option<StreamId>),
        token: FencingToken,
        conditions: &Conditions,
    ) -> Judged {
        let id = self.live_as(now, name, stream_id)?;
        self.check_conditions(id, conditions)?;
        self.lead(id);
        let epoch = self.stream(id).assigned.epoch;
        let tail = self.stream(id).assigned.tail;
        let ticket = self.commit(
            id,
            Entry::Fence {
                stream: id,
                epoch,
                token: token.clone(),
            },
        );
        if self.config.planted.has(PlantedBug::NoFence) {
            return Ok((ticket, Answer::Fenced { tail }));
        }
        let is_fenced = self.settings_of(id).policy.value == ProducerPolicy::Fenced;
        let facts = Facts::Token(token.as_str().to_owned());
        let message = format!("the stream is fenced by '{token}' now");
        let refusal = Refusal::new(Code::Fenced, message).with(facts);
        self.break_sessions(id, &refusal, |session| match &session.fence {
            Some(held) => *held != token,
            None => is_fenced && !token.is_none(),
        });
        Ok((ticket, Answer::Fenced { tail }))
    }

    fn trim(
        &mut self,
        now: Now,
        (name, stream_id): (&StreamName, Option<StreamId>),
        first: SequenceNumber,
        conditions: &Conditions,
    ) -> Judged {
        let id = self.live_as(now, name, stream_id)?;
        self.check_conditions(id, conditions)?;
        let state = &self.stream(id).assigned;
        let (tail, last_ticket) = (state.tail, self.stream(id).last_ticket);
        if first > tail.sequence {
            let message = format!("cannot trim to {first}, the tail is at {}", tail.sequence);
            let refusal = Refusal::new(Code::PastTail, message).with(Facts::Tail(tail));
            return Err((last_ticket, refusal));
        }
        if first <= state.trimmed {
            return Ok((
                last_ticket,
                Answer::Trimmed {
                    first: state.trimmed,
                    tail,
                },
            ));
        }
        self.lead(id);
        let epoch = self.stream(id).assigned.epoch;
        let ticket = self.commit(
            id,
            Entry::Trim {
                stream: id,
                epoch,
                first,
                at: now.wall,
            },
        );
        Ok((ticket, Answer::Trimmed { first, tail }))
    }

    /// For commands the presented token is a condition on the one installed, whatever the policy.
    fn check_conditions(
        &self,
        id: StreamId,
        conditions: &Conditions,
    ) -> Result<(), (Ticket, Refusal)> {
        let stream = self.stream(id);
        let state = &stream.assigned;
        admission::check_fence(state, ProducerPolicy::Any, conditions.fence.as_ref())
            .and_then(|()| admission::check_match(state, conditions.match_sequence))
            .map_err(|refusal| (stream.last_ticket, refusal))
    }

    fn describe_star(&self) -> StarInfo {
        let cores = self.config.addresses.iter().enumerate();
        StarInfo {
            star: self.config.star,
            incarnation: self.config.incarnation,
            core: self.config.core,
            cores: cores
                .map(|(core, address)| CoreInfo {
                    core: nova_model::CoreId(core as u16),
                    address: address.clone(),
                })
                .collect(),
        }
    }

    /// Refuses what only the buckets' home can do.
    pub(super) fn check_bucket_home(&self, name: &nova_model::BucketName) -> Result<(), Refusal> {
        self.check_home(bucket_home(name))
    }
}

fn at_once(refusal: Refusal) -> (Ticket, Refusal) {
    (Ticket(0), refusal)
}

fn now_answered(result: Result<Answer, Refusal>) -> Judged {
    match result {
        Ok(answer) => Ok((Ticket(0), answer)),
        Err(refusal) => Err(at_once(refusal)),
    }
}
