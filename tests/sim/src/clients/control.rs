//! A client of control lanes: requests and one-shot appends, some of them at once.
//!
//! # Invariants
//! - Who drained a core undrains all before it is done: a closed star serves nobody.
//! - A one-shot append with a writer's number is sent again until it has its answer; one without
//!   is sent once.

use super::operations::{Append, Asked, What, draw, first_request};
use super::pipe::Pipe;
use super::{Holders, Surroundings};
use crate::network::LinkId;
use nova_model::condition::WriterStamp;
use nova_model::request::{Ack, Answer, CoreSet, Request};
use nova_model::{Code, Refusal};
use nova_proto::RequestId;
use nova_proto::client::{ControlEvent, ControlLane};
use std::collections::BTreeMap;

/// The longest pause between two requests.
const PAUSE_US_MAX: u64 = 30_000;

/// The client.
pub struct Control {
    holders: Holders,
    core: u16,
    pipe: Option<Pipe<ControlLane>>,
    asked: BTreeMap<RequestId, Asked>,
    again: Option<Box<Append>>,
    stamp: Option<WriterStamp>,
    has_bucket: bool,
    must_undrain: bool,
    requests_left: u64,
    next_at: u64,
}

impl Control {
    /// A client that asks this many things.
    pub fn new(around: &mut Surroundings<'_>, requests: u64) -> Control {
        Control {
            holders: Holders::default(),
            core: 0,
            pipe: None,
            asked: BTreeMap::new(),
            again: None,
            stamp: None,
            has_bucket: false,
            must_undrain: false,
            requests_left: requests,
            next_at: around.agenda.now(),
        }
    }

    pub(super) fn is_done(&self) -> bool {
        let is_quiet = self.asked.is_empty() && self.again.is_none();
        self.requests_left == 0 && is_quiet && !self.must_undrain
    }

    pub(super) fn state(&self) -> String {
        format!("{:?} and {:?} again", self.asked, self.again)
    }

    pub(super) fn lost(&mut self, around: &mut Surroundings<'_>, link: LinkId) {
        if self.pipe.as_ref().is_some_and(|pipe| pipe.link == link) {
            self.receive(around);
            self.drop_pipe(around);
        }
        self.step(around);
    }

    /// Without a pipe nothing that was asked has an answer any more.
    fn drop_pipe(&mut self, around: &mut Surroundings<'_>) {
        let Some(pipe) = self.pipe.take() else { return };
        pipe.leave(around);
        for asked in std::mem::take(&mut self.asked).into_values() {
            if let What::Append(append) = asked.what
                && append.head.writer.is_some()
            {
                self.again = Some(append);
            }
        }
        self.next_at = around.agenda.now() + around.rng.between(1, PAUSE_US_MAX);
    }

    pub(super) fn step(&mut self, around: &mut Surroundings<'_>) {
        self.receive(around);
        if around.is_calm {
            self.requests_left = 0;
        }
        let now = around.agenda.now();
        let undrains = around.is_calm && self.must_undrain;
        let wants = self.requests_left > 0 || self.again.is_some() || undrains;
        if wants && self.next_at <= now && self.asked.len() < 4 {
            self.next_at = now + around.rng.between(1, PAUSE_US_MAX);
            self.ask(around);
        }
        if let Some(pipe) = &mut self.pipe {
            pipe.flush(around);
        }
        if wants {
            let wait = self.next_at.saturating_sub(now);
            around.wake_after(wait.max(500));
        }
    }

    fn ask(&mut self, around: &mut Surroundings<'_>) {
        let what = match self.again.take() {
            again if around.is_calm && self.must_undrain => {
                self.again = again;
                What::Request(Request::Undrain {
                    cores: CoreSet::All,
                })
            }
            Some(append) => What::Append(append),
            None if !self.has_bucket => What::Request(first_request(around)),
            None => {
                self.requests_left -= 1;
                let is_waiting = self.stamp_is_waiting();
                let mut none = None;
                let stamp = if is_waiting {
                    &mut none
                } else {
                    &mut self.stamp
                };
                match draw(around, stamp) {
                    What::Append(mut append) if is_waiting => {
                        append.head.writer = None;
                        What::Append(append)
                    }
                    what => what,
                }
            }
        };
        let core = match what.stream() {
            Some(name) => self.holders.core(name, around),
            None if matches!(what, What::Request(Request::ListStreams { .. })) => self.core,
            None => 0,
        };
        if self.pipe.is_some() && core != self.core {
            if !self.asked.is_empty() {
                return self.put_back(around, what);
            }
            self.drop_pipe(around);
        }
        self.core = core;
        if self.pipe.is_none() {
            self.pipe = Some(Pipe::open(around, core, ControlLane::new()));
        }
        self.must_undrain |= matches!(what, What::Request(Request::Drain { .. }));
        let asked = Asked::new(around, what);
        around.say(|| format!("asks {asked:?}"));
        let lane = &mut self.pipe.as_mut().expect("just opened").lane;
        let id = match &asked.what {
            What::Request(request) => lane.request(request),
            What::Append(append) => lane.append_once(&append.head, &append.batch),
        };
        self.asked.insert(id, asked);
    }

    /// Another core has to be asked, and this one still owes answers: nothing was sent.
    fn put_back(&mut self, around: &mut Surroundings<'_>, what: What) {
        match what {
            What::Append(append) if append.head.writer.is_some() => self.again = Some(append),
            What::Append(append) => around.oracle.refused(&append.records),
            What::Request(Request::DeleteStream { name, .. }) => {
                around.oracle.history.delete_ended(&name);
            }
            What::Request(_) => {}
        }
    }

    /// One append with the writer's next number at a time.
    fn stamp_is_waiting(&self) -> bool {
        self.asked.values().any(|asked| match &asked.what {
            What::Append(append) => append.head.writer.is_some(),
            What::Request(_) => false,
        })
    }

    fn receive(&mut self, around: &mut Surroundings<'_>) {
        let Some(pipe) = &mut self.pipe else { return };
        pipe.receive(around);
        while let Some(event) = self.pipe.as_mut().and_then(|pipe| pipe.lane.poll_event()) {
            around.say(|| format!("hears {event:?}"));
            match event {
                ControlEvent::Answered(id, Ok(answer)) => {
                    let asked = self.asked.remove(&id).expect("it was asked");
                    if matches!(asked.what, What::Request(Request::CreateBucket { .. })) {
                        self.has_bucket = true;
                    }
                    let is_undrained = matches!(
                        &answer,
                        Answer::Placement { drained, .. } if drained.is_empty()
                    );
                    if is_undrained && around.is_calm && self.asked.is_empty() {
                        self.must_undrain = false;
                    }
                    asked.answered(around, &answer);
                }
                ControlEvent::AppendedOnce(id, Ok(ack)) => self.appended(around, id, &ack),
                ControlEvent::Answered(id, Err(refusal))
                | ControlEvent::AppendedOnce(id, Err(refusal)) => {
                    self.refused(around, id, &refusal);
                }
            }
        }
    }

    fn appended(&mut self, around: &mut Surroundings<'_>, id: RequestId, ack: &Ack) {
        let asked = self.asked.remove(&id).expect("it was asked");
        asked.acked(around, ack);
        if let What::Append(append) = &asked.what
            && append.head.writer.is_some()
        {
            // Numbers are of one stream each, and the next append may go to another one.
            self.stamp = None;
        }
    }

    fn refused(&mut self, around: &mut Surroundings<'_>, id: RequestId, refusal: &Refusal) {
        let asked = self.asked.remove(&id).expect("it was asked");
        asked.refused(around, refusal);
        if let Some(name) = asked.what.stream() {
            self.holders.learn(name, refusal);
        }
        let What::Append(append) = asked.what else {
            return;
        };
        if append.head.writer.is_none() {
            if refusal.clean {
                around.oracle.refused(&append.records);
            }
            return;
        }
        // An earlier sending may have been applied, unless the search for duplicates came first.
        match refusal.code {
            Code::NotOwner
            | Code::Draining
            | Code::RateLimited
            | Code::PolicyBusy
            | Code::DiskFull => {
                self.again = Some(append);
            }
            _ => {
                if refusal.code == Code::SeqMismatch {
                    around.oracle.refused(&append.records);
                }
                self.stamp = None;
            }
        }
    }
}
