//! What an entity writer has under way for one batch: a read, an append, or a fence, each on a lane
//! of its own.
//!
//! Redirects are followed here, as the client's driver does; whatever else goes wrong is the
//! writer's to judge.
//!
//! # Not here
//! - What to do next: [`super::entity`].

use super::pipe::Pipe;
use super::{Holders, Surroundings};
use crate::history::Mark;
use crate::network::LinkId;
use crate::oracle::Seen;
use nova_client::core::cursor::ReadBatch;
use nova_client::core::{Ambiguity, AppendError, ReadCursor};
use nova_model::request::{Ack, Answer, OneShotAppend, ReadOpen, Request};
use nova_model::{Code, EncodedBatch, Facts, Refusal, SequenceNumber, StreamId, StreamName};
use nova_proto::client::{ControlEvent, ControlLane, ReadEvent, ReadLane};

/// Redirects of one errand that are followed.
const REDIRECTS_MAX: u32 = 4;

/// Something under way.
#[derive(Debug)]
pub(super) struct Errand {
    entity: StreamName,
    work: Work,
    asked: Mark,
    floor: u64,
    redirects: u32,
}

#[derive(Debug)]
enum Work {
    Read {
        pipe: Pipe<ReadLane>,
        cursor: Box<ReadCursor>,
        has_begun: bool,
    },
    Ask {
        pipe: Pipe<ControlLane>,
        what: Box<Ask>,
    },
}

/// What is asked once.
#[derive(Debug, Clone)]
pub(super) enum Ask {
    Append(OneShotAppend, EncodedBatch),
    Fence(Request),
}

/// What came of it.
#[derive(Debug)]
pub(super) enum Heard {
    Begun(StreamId, SequenceNumber),
    Stored(ReadBatch),
    AllRead,
    Written(Ack, Mark),
    Fenced,
    Failed(AppendError),
}

impl Heard {
    /// Whether the errand is over.
    pub(super) fn is_end(&self) -> bool {
        !matches!(self, Heard::Begun(..) | Heard::Stored(_))
    }
}

impl Errand {
    pub(super) fn read(
        around: &mut Surroundings<'_>,
        holders: &mut Holders,
        open: ReadOpen,
    ) -> Errand {
        let entity = open.stream.clone();
        let core = holders.core(&entity, around);
        let cursor = Box::new(ReadCursor::new(open));
        let pipe = Pipe::open(around, core, ReadLane::new(cursor.open_frame()));
        let has_begun = false;
        let work = Work::Read {
            pipe,
            cursor,
            has_begun,
        };
        Errand::new(around, entity, work)
    }

    pub(super) fn ask(
        around: &mut Surroundings<'_>,
        holders: &mut Holders,
        entity: &StreamName,
        what: Ask,
    ) -> Errand {
        let core = holders.core(entity, around);
        let pipe = open_control(around, core, &what);
        let what = Box::new(what);
        Errand::new(around, entity.clone(), Work::Ask { pipe, what })
    }

    fn new(around: &mut Surroundings<'_>, entity: StreamName, work: Work) -> Errand {
        let mut errand = Errand {
            entity,
            work,
            asked: Mark(0),
            floor: 0,
            redirects: 0,
        };
        errand.note_asked(around);
        errand
    }

    fn note_asked(&mut self, around: &mut Surroundings<'_>) {
        let history = &mut around.oracle.history;
        self.asked = history.mark();
        let id = history.current(&self.entity);
        self.floor = id.map_or(0, |id| history.floor(id));
    }

    /// Waits for it no longer; what was sent may arrive still.
    pub(super) fn drop(self, around: &mut Surroundings<'_>) {
        match self.work {
            Work::Read { pipe, .. } => pipe.leave(around),
            Work::Ask { pipe, .. } => pipe.leave(around),
        }
    }

    pub(super) fn is_on(&self, link: LinkId) -> bool {
        match &self.work {
            Work::Read { pipe, .. } => pipe.link == link,
            Work::Ask { pipe, .. } => pipe.link == link,
        }
    }

    pub(super) fn flush(&mut self, around: &mut Surroundings<'_>) {
        match &mut self.work {
            Work::Read { pipe, .. } => pipe.flush(around),
            Work::Ask { pipe, .. } => pipe.flush(around),
        }
    }

    /// What the loss of its link means: an append may have been applied.
    pub(super) fn lost(&self) -> Heard {
        let is_append = match &self.work {
            Work::Read { .. } => false,
            Work::Ask { what, .. } => matches!(**what, Ask::Append(..)),
        };
        Heard::Failed(match is_append {
            true => AppendError::Ambiguous(Box::new(Ambiguity {
                stream_id: None,
                since: SequenceNumber(0),
                refusal: None,
            })),
            false => AppendError::Unavailable {
                sent: None,
                last: None,
            },
        })
    }

    /// The next thing that was heard.
    pub(super) fn hear(
        &mut self,
        around: &mut Surroundings<'_>,
        holders: &mut Holders,
    ) -> Option<Heard> {
        loop {
            let refusal = match &mut self.work {
                Work::Read { .. } => match self.hear_read(around)? {
                    Ok(Some(heard)) => return Some(heard),
                    Ok(None) => continue,
                    Err(refusal) => refusal,
                },
                Work::Ask { .. } => match self.hear_answer(around)? {
                    Ok(heard) => return Some(heard),
                    Err(refusal) => refusal,
                },
            };
            self.tell_oracle(around, &refusal);
            holders.learn(&self.entity, &refusal);
            let is_redirect = refusal.clean
                && matches!(refusal.code, Code::NotOwner | Code::Draining)
                && matches!(
                    &refusal.facts,
                    Facts::Holder {
                        address: Some(_),
                        ..
                    }
                );
            if !is_redirect || self.redirects >= REDIRECTS_MAX {
                return Some(Heard::Failed(AppendError::Refused(refusal)));
            }
            self.go_on_elsewhere(around, holders);
        }
    }

    fn go_on_elsewhere(&mut self, around: &mut Surroundings<'_>, holders: &mut Holders) {
        self.redirects += 1;
        let core = holders.core(&self.entity, around);
        match &mut self.work {
            Work::Read { pipe, cursor, .. } => {
                let fresh = Pipe::open(around, core, ReadLane::new(cursor.open_frame()));
                std::mem::replace(pipe, fresh).leave(around);
            }
            Work::Ask { pipe, what } => {
                let fresh = open_control(around, core, what);
                std::mem::replace(pipe, fresh).leave(around);
            }
        }
        self.note_asked(around);
    }

    fn hear_read(
        &mut self,
        around: &mut Surroundings<'_>,
    ) -> Option<Result<Option<Heard>, Refusal>> {
        let Work::Read {
            pipe,
            cursor,
            has_begun,
        } = &mut self.work
        else {
            return None;
        };
        pipe.receive(around);
        let event = pipe.lane.poll_event()?;
        around.say(|| format!("hears {event:?}"));
        Some(match event {
            ReadEvent::Opened(opened) => {
                let id = opened.stream_id;
                around.oracle.alive(&self.entity, id, self.asked);
                around.oracle.tail(id, opened.tail, self.floor);
                cursor.handle_opened(&opened);
                let is_first = !std::mem::replace(has_begun, true);
                Ok(is_first.then_some(Heard::Begun(id, opened.start)))
            }
            ReadEvent::Batch(stored) => {
                let epoch = stored.epoch;
                let Ok(batch) = cursor.handle_batch(stored) else {
                    let entity = &self.entity;
                    around
                        .oracle
                        .found(format!("{entity}: a read left records out"));
                    return None;
                };
                let id = cursor.stream_id();
                if let (Some(batch), Some(id)) = (&batch, id) {
                    batch.for_each(|position, record| {
                        let body = record.body();
                        let seen = Seen {
                            position,
                            epoch,
                            body,
                        };
                        around.oracle.read(&self.entity, id, seen);
                    });
                }
                Ok(batch.map(Heard::Stored))
            }
            ReadEvent::CaughtUp(_) | ReadEvent::Heartbeat(_) => Ok(None),
            ReadEvent::Ended { .. } => Ok(Some(Heard::AllRead)),
            ReadEvent::Refused(refusal) | ReadEvent::Failed(refusal) => Err(refusal),
        })
    }

    fn hear_answer(&mut self, around: &mut Surroundings<'_>) -> Option<Result<Heard, Refusal>> {
        let Work::Ask { pipe, what } = &mut self.work else {
            return None;
        };
        pipe.receive(around);
        let event = pipe.lane.poll_event()?;
        around.say(|| format!("hears {event:?}"));
        let id = around.oracle.history.current(&self.entity);
        Some(match event {
            ControlEvent::AppendedOnce(_, Ok(ack)) => {
                let (start, floor) = (ack.start.sequence, self.floor);
                around.oracle.check(start.0 >= floor, || {
                    format!("acked at {start}, sent when the tail was told to be {floor}")
                });
                if let Some(id) = id {
                    around.oracle.tail(id, ack.tail, ack.end.sequence.0);
                }
                Ok(Heard::Written(ack, self.asked))
            }
            ControlEvent::Answered(_, Ok(answer)) => {
                if let (
                    Ask::Fence(Request::Fence { token, .. }),
                    Answer::Fenced { tail },
                    Some(id),
                ) = (&**what, &answer, id)
                {
                    around.oracle.tail(id, *tail, self.floor);
                    around.oracle.token(id, token.as_str(), self.asked);
                }
                Ok(Heard::Fenced)
            }
            ControlEvent::AppendedOnce(_, Err(refusal))
            | ControlEvent::Answered(_, Err(refusal)) => Err(refusal),
        })
    }

    fn tell_oracle(&self, around: &mut Surroundings<'_>, refusal: &Refusal) {
        if let Some(id) = around.oracle.history.current(&self.entity) {
            let (asked, floor) = (self.asked, self.floor);
            around.oracle.refusal(id, refusal, asked, floor);
        }
        if matches!(refusal.code, Code::StreamNotFound | Code::BucketNotFound) {
            around.oracle.gone(&self.entity, self.asked);
        }
    }
}

fn open_control(around: &mut Surroundings<'_>, core: u16, what: &Ask) -> Pipe<ControlLane> {
    let mut lane = ControlLane::new();
    match what {
        Ask::Append(head, batch) => lane.append_once(head, batch),
        Ask::Fence(request) => lane.request(request),
    };
    around.say(|| format!("asks core-{core} {what:?}"));
    Pipe::open(around, core, lane)
}
