//! The requests and one-shot appends of a control client, and what their answers must say.
//!
//! # Invariants
//! - Streams that are never deleted are the only ones that are trimmed, fenced and appended to by
//!   name alone: of the others nobody knows which incarnation an answer without an id meant.

use super::{Surroundings, kinds};
use crate::history::{Copies, Mark, RecordId, body_of};
use crate::sessions::{Leader, Taken};
use nova_model::condition::{Conditions, FencingToken, WriterStamp};
use nova_model::request::{Ack, Answer, OneShotAppend, Page, Request};
use nova_model::settings::{BucketSettings, ProducerPolicy, StreamSettings};
use nova_model::{
    Code, CoreId, EncodedBatch, Epoch, Record, Refusal, SequenceNumber, StreamId, StreamName,
    WriterId,
};

/// What was asked, with what was known then.
#[derive(Debug, Clone)]
pub(super) struct Asked {
    pub(super) what: What,
    pub(super) mark: Mark,
    /// The incarnation that was known, and the tail told of it.
    known: Option<(StreamId, u64)>,
    /// The epoch told of it.
    epoch: Epoch,
    life: u64,
}

/// A request, or a one-shot append.
#[derive(Debug, Clone)]
pub(super) enum What {
    Request(Request),
    Append(Box<Append>),
}

/// A one-shot append that may be sent again.
#[derive(Debug, Clone)]
pub(super) struct Append {
    pub(super) head: OneShotAppend,
    pub(super) batch: EncodedBatch,
    pub(super) records: Vec<RecordId>,
    id: StreamId,
}

impl What {
    /// The stream that it is about.
    pub(super) fn stream(&self) -> Option<&StreamName> {
        match self {
            What::Append(append) => Some(&append.head.stream),
            What::Request(request) => match request {
                Request::CreateStream { name, .. }
                | Request::DescribeStream { name }
                | Request::ReconfigureStream { name, .. }
                | Request::DeleteStream { name, .. }
                | Request::CheckTail { name }
                | Request::Fence { name, .. }
                | Request::HandOff { name, .. }
                | Request::Trim { name, .. } => Some(name),
                _ => None,
            },
        }
    }
}

/// The first bucket, which is never deleted.
pub(super) fn first_request(around: &Surroundings<'_>) -> Request {
    let settings = BucketSettings {
        create_stream_on_append: true,
        ..BucketSettings::default()
    };
    Request::CreateBucket {
        name: around.streams[0].bucket.clone(),
        settings,
        exclusive: false,
    }
}

/// Draws what to ask next.
pub(super) fn draw(around: &mut Surroundings<'_>, stamp: &mut Option<WriterStamp>) -> What {
    let name = around.rng.pick(around.streams).clone();
    let known = around.oracle.history.current(&name);
    let is_stable = around.is_stable(&name);
    let is_lasting = is_stable || around.entities().contains(&name);
    let drawn = match around.forgets && around.rng.chance(25) {
        true => 6,
        false => around.rng.below(25),
    };
    let request = match (drawn, known) {
        (0..=5, Some(id)) => return append(around, &name, id, stamp),
        (6..=7, Some(id)) if is_lasting => trim(around, name, id),
        (8, Some(id)) if is_lasting => fence(around, name, id),
        (9, Some(id)) if !is_lasting => {
            around.oracle.history.ask_delete(&name);
            let stream_id = around.rng.chance(50).then_some(id);
            Request::DeleteStream { name, stream_id }
        }
        (10, Some(_)) if is_lasting => Request::CheckTail { name },
        (11, Some(_)) => Request::DescribeStream { name },
        (12, Some(_)) => reconfigure(around, name),
        (13, _) => Request::ListStreams {
            bucket: name.bucket,
            page: Page {
                limit: 100,
                ..Page::default()
            },
            known: None,
        },
        (14, _) => kinds::side_bucket(around),
        (15, _) => Request::DescribeStar,
        (16, _) => Request::ListBuckets {
            page: Page {
                limit: 10,
                ..Page::default()
            },
        },
        (22..=24, _) => kinds::placement(around),
        (17, Some(_)) => Request::HandOff {
            name,
            to: CoreId(around.rng.below(3) as u16),
        },
        (18, _) => kinds::defaults(around),
        (19, Some(_)) => reconfigure(around, name),
        _ => Request::CreateStream {
            name,
            settings: kinds::settings(around),
            exclusive: around.rng.chance(20),
        },
    };
    What::Request(request)
}

fn append(
    around: &mut Surroundings<'_>,
    name: &StreamName,
    id: StreamId,
    stamp: &mut Option<WriterStamp>,
) -> What {
    let count = around.rng.between(1, 3);
    let records: Vec<RecordId> = (0..count)
        .map(|_| around.oracle.history.send(name, Copies::One))
        .collect();
    let bodies: Vec<Record> = records.iter().map(|id| Record::new(body_of(*id))).collect();
    let batch = EncodedBatch::encode(&bodies).expect("small records make a batch");
    let floor = around.oracle.history.floor(id);
    let writer = match around.rng.chance(50) {
        true => Some(*stamp.get_or_insert_with(|| WriterStamp {
            writer: WriterId(around.rng.wide()),
            sequence: 0,
        })),
        false => None,
    };
    let is_stable = around.is_stable(name);
    let conditions = Conditions {
        fence: token(around, id),
        match_sequence: around.rng.chance(30).then_some(SequenceNumber(floor)),
    };
    let is_bound = !is_stable || around.rng.chance(50);
    let head = OneShotAppend {
        stream: name.clone(),
        stream_id: is_bound.then_some(id),
        conditions,
        writer,
    };
    What::Append(Box::new(Append {
        head,
        batch,
        records,
        id,
    }))
}

/// Now and then the token that was told last, or an older one.
fn token(around: &mut Surroundings<'_>, id: StreamId) -> Option<FencingToken> {
    if !around.rng.chance(20) {
        return None;
    }
    let fences = &around.oracle.history.accounts.get(&id)?.fences;
    let told = fences.iter().filter(|fence| fence.told.is_some());
    let told: Vec<&str> = told.map(|fence| fence.token.as_str()).collect();
    let back = around.rng.below(2) as usize;
    let token = told.iter().rev().nth(back)?;
    FencingToken::parse(token).ok()
}

fn trim(around: &mut Surroundings<'_>, name: StreamName, id: StreamId) -> Request {
    let tail = around.oracle.history.floor(id);
    // Often all but the last ones, so that segments become free.
    let mut first = match around.rng.chance(50) && !around.is_by_age {
        true => tail.saturating_sub(around.rng.below(5)),
        false => around.rng.below(tail / 2 + 2),
    };
    if around.entities().contains(&name) {
        first = around.oracle.settle_updates(id, first);
    }
    around.oracle.history.ask_trim(id, first);
    Request::Trim {
        name,
        stream_id: around.rng.chance(50).then_some(id),
        first: SequenceNumber(first),
        conditions: Conditions::default(),
    }
}

fn fence(around: &mut Surroundings<'_>, name: StreamName, id: StreamId) -> Request {
    let text = format!("t{}", around.rng.number());
    around.oracle.history.ask_fence(id, &text);
    let match_sequence = match around.rng.chance(30) {
        true => Some(SequenceNumber(around.oracle.history.floor(id))),
        false => None,
    };
    let conditions = Conditions {
        fence: None,
        match_sequence,
    };
    let token = FencingToken::parse(&text).expect("a short token");
    Request::Fence {
        name,
        stream_id: around.rng.chance(50).then_some(id),
        token,
        conditions,
    }
}

fn reconfigure(around: &mut Surroundings<'_>, name: StreamName) -> Request {
    let change = match around.rng.chance(30) {
        true => StreamSettings {
            policy: Some(ProducerPolicy::Any),
            ..StreamSettings::default()
        },
        false => kinds::settings(around),
    };
    Request::ReconfigureStream {
        name,
        stream_id: None,
        change,
    }
}

impl Asked {
    /// Something is about to be sent.
    pub(super) fn new(around: &mut Surroundings<'_>, what: What) -> Asked {
        let history = &mut around.oracle.history;
        let known = what.stream().and_then(|name| history.current(name));
        let epoch = known.map_or(Epoch(0), |id| history.epoch_floor(id));
        let known = known.map(|id| (id, history.floor(id)));
        let mark = history.mark();
        let asked = Asked {
            what,
            mark,
            known,
            epoch,
            life: around.life,
        };
        asked.wish(around);
        asked
    }

    /// What may come true from now on.
    fn wish(&self, around: &mut Surroundings<'_>) {
        let What::Request(request) = &self.what else {
            return;
        };
        let oracle = &mut *around.oracle;
        match request {
            Request::CreateBucket { name, .. } => oracle.bucket_wanted(name, self.mark),
            Request::DeleteBucket { name } => oracle.bucket_unwanted(name),
            Request::ReconfigureBucket { name, change } => {
                oracle.defaults_wanted(name, &change.defaults, self.mark);
            }
            Request::CreateStream { name, settings, .. } => {
                oracle.create_wanted(name, settings, self.mark);
            }
            Request::ReconfigureStream { name, change, .. } => {
                oracle.history.keep_stream(name, change);
                if let Some((id, _)) = self.known {
                    oracle.change_wanted(id, change, self.mark);
                }
            }
            _ => {}
        }
    }

    /// What was wished for is done, or certainly was not.
    fn wish_ended(&self, around: &mut Surroundings<'_>, is_done: bool) {
        let What::Request(request) = &self.what else {
            return;
        };
        match (request, self.known) {
            (Request::CreateBucket { name, .. }, _) => {
                around.oracle.bucket_make_ended(name, self.mark);
            }
            (Request::ReconfigureBucket { name, .. }, _) => {
                around.oracle.defaults_ended(name, self.mark, is_done);
            }
            (Request::ReconfigureStream { name, .. }, Some((id, _))) => {
                around.oracle.change_ended(name, id, self.mark, is_done);
            }
            _ => {}
        }
    }

    fn floor(&self, id: StreamId) -> u64 {
        self.known
            .filter(|(known, _)| *known == id)
            .map_or(0, |(_, floor)| floor)
    }

    /// The tail and the epoch that were told before.
    fn floors(&self, id: StreamId) -> (u64, Epoch) {
        let is_known = self.known.is_some_and(|(known, _)| known == id);
        let epoch = if is_known { self.epoch } else { Epoch(0) };
        (self.floor(id), epoch)
    }

    /// The answer of a request.
    pub(super) fn answered(&self, around: &mut Surroundings<'_>, answer: &Answer) {
        let What::Request(request) = &self.what else {
            unreachable!("an answer belongs to a request");
        };
        self.wish_ended(around, true);
        let oracle = &mut *around.oracle;
        match (request, answer) {
            (_, Answer::Stream { info, created }) => {
                let (floor, epoch) = self.floors(info.id);
                oracle.alive(&info.name, info.id, self.mark);
                if *created {
                    oracle.created(info.id, self.mark);
                }
                oracle.described(info, self.mark, floor, epoch);
            }
            (_, Answer::Streams { items, .. }) => {
                for info in items {
                    oracle.described(info, self.mark, 0, Epoch(0));
                }
            }
            (Request::HandOff { .. }, Answer::Moved { core, epoch, .. }) => {
                if let Some((id, _)) = self.known.filter(|(id, _)| oracle.is_lasting_id(*id)) {
                    let (life, core) = (self.life, core.0);
                    oracle.moved(id, *epoch, Leader { life, core }, self.epoch);
                }
            }
            (_, Answer::Bucket { info, .. }) => oracle.bucket_there(&info.name, self.mark),
            (Request::DeleteBucket { name }, Answer::Deleted) => {
                oracle.bucket_delete_ended(name, self.mark, true);
            }
            (Request::DeleteStream { name, .. }, Answer::Deleted) => {
                oracle.deleted(name, self.mark);
            }
            (Request::CheckTail { .. }, Answer::Tail(tail)) => {
                if let Some((id, floor)) = self.known {
                    oracle.tail(id, *tail, floor);
                }
            }
            (Request::Fence { token, .. }, Answer::Fenced { tail }) => {
                if let Some((id, floor)) = self.known {
                    oracle.tail(id, *tail, floor);
                    oracle.token(id, token.as_str(), self.mark);
                }
            }
            (Request::Trim { first, .. }, Answer::Trimmed { first: left, tail }) => {
                if let Some((id, floor)) = self.known {
                    oracle.tail(id, *tail, floor);
                    oracle.first(id, left.0);
                    oracle.check(left >= first, || {
                        format!("{first} was asked, {left} is left")
                    });
                }
            }
            _ => {}
        }
    }

    /// The ack of a one-shot append.
    pub(super) fn acked(&self, around: &mut Surroundings<'_>, ack: &Ack) {
        let What::Append(append) = &self.what else {
            unreachable!("an ack belongs to an append");
        };
        let floor = self.floor(append.id);
        around.oracle.acked(append.id, &append.records, ack, floor);
        if !ack.duplicate && append.head.writer.is_none() {
            around.oracle.taken(Taken {
                name: &append.head.stream,
                id: append.id,
                token: append.head.conditions.fence.as_ref().map(|t| t.as_str()),
                sent: self.mark,
                session: None,
            });
        }
    }

    /// A refusal of either.
    pub(super) fn refused(&self, around: &mut Surroundings<'_>, refusal: &Refusal) {
        if refusal.clean {
            self.wish_ended(around, false);
        }
        let oracle = &mut *around.oracle;
        let name = self.what.stream();
        if let (Some(name), Code::StreamNotFound | Code::BucketNotFound) = (name, refusal.code) {
            let is_bound = match &self.what {
                What::Append(append) => append.head.stream_id.is_some(),
                What::Request(request) => is_bound(request),
            };
            if !is_bound {
                oracle.gone(name, self.mark);
            }
        }
        if let Some((id, floor)) = self.known {
            oracle.refusal(id, refusal, self.mark, floor);
        }
        match (&self.what, refusal.code) {
            (What::Request(Request::DeleteStream { name, .. }), _) => {
                oracle.history.delete_ended(name);
            }
            (What::Request(Request::DeleteBucket { name }), _) => {
                oracle.bucket_delete_ended(name, self.mark, false);
            }
            (What::Request(Request::DescribeBucket { name }), Code::BucketNotFound) => {
                oracle.bucket_not_there(name, self.mark);
            }
            _ => {}
        }
    }
}

/// Whether a request is about one incarnation alone.
fn is_bound(request: &Request) -> bool {
    match request {
        Request::DeleteStream { stream_id, .. }
        | Request::Trim { stream_id, .. }
        | Request::Fence { stream_id, .. }
        | Request::ReconfigureStream { stream_id, .. } => stream_id.is_some(),
        _ => false,
    }
}
