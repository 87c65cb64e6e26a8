//! A client that lists the streams of a bucket over all cores, page by page, while streams move.
//!
//! # Invariants
//! - Every core is asked on a link of its own, so that they answer in any order.
//! - Pages that are not of the start whose cores were asked are thrown away, as the SDK does.

use super::Surroundings;
use super::pipe::Pipe;
use crate::history::Mark;
use crate::network::LinkId;
use nova_client::core::listing::{Listing, Round};
use nova_model::request::{Answer, Page, Request, StarInfo, StreamInfo};
use nova_model::{BucketName, Epoch, StreamId, StreamName};
use nova_proto::client::{ControlEvent, ControlLane};
use std::collections::BTreeMap;

/// The longest pause between two lists, and before a core that refused is asked again.
const PAUSE_US_MAX: u64 = 20_000;

/// The client.
pub struct Lister {
    pages_left: u64,
    next_at: u64,
    /// Where the next page begins, if it is not the first.
    goes_on: Option<(BucketName, Page)>,
    list: Option<List>,
    pipes: BTreeMap<u16, Pipe<ControlLane>>,
}

/// A page under way.
#[derive(Debug)]
struct List {
    bucket: BucketName,
    page: Page,
    asked: Mark,
    /// The streams that must be in it, with the tail and the epoch that were told of them.
    known: BTreeMap<StreamName, (StreamId, u64, Epoch)>,
    /// The star, and what its cores have said.
    cores: Option<(StarInfo, Listing)>,
    /// What is to be asked of a core, and when.
    due: BTreeMap<u16, (u64, Request)>,
    /// What a core has not answered.
    open: BTreeMap<u16, Request>,
}

impl Lister {
    /// A client that lists this many pages.
    pub fn new(around: &mut Surroundings<'_>, pages: u64) -> Lister {
        Lister {
            pages_left: pages,
            next_at: around.agenda.now(),
            goes_on: None,
            list: None,
            pipes: BTreeMap::new(),
        }
    }

    pub(super) fn is_done(&self) -> bool {
        self.pages_left == 0 && self.list.is_none()
    }

    pub(super) fn state(&self) -> String {
        format!("{:?} and {} more", self.list, self.pages_left)
    }

    pub(super) fn lost(&mut self, around: &mut Surroundings<'_>, link: LinkId) {
        if self.pipes.values().any(|pipe| pipe.link == link) {
            self.give_up(around);
        }
        self.step(around);
    }

    pub(super) fn step(&mut self, around: &mut Surroundings<'_>) {
        self.receive(around);
        if around.is_calm {
            self.pages_left = 0;
        }
        let now = around.agenda.now();
        if self.list.is_none() && self.pages_left > 0 && self.next_at <= now {
            self.begin(around);
        }
        self.send_due(around);
        for pipe in self.pipes.values_mut() {
            pipe.flush(around);
        }
        let due = self.list.as_ref().and_then(|list| {
            let times = list.due.values().map(|(at, _)| *at);
            times.min()
        });
        let next = (self.list.is_none() && self.pages_left > 0).then_some(self.next_at);
        if let Some(at) = due.or(next) {
            around.wake_after(at.saturating_sub(now).max(300));
        }
    }

    fn begin(&mut self, around: &mut Surroundings<'_>) {
        let (bucket, page) = self.goes_on.take().unwrap_or_else(|| first_page(around));
        let known = around.oracle.lasting_of(&bucket);
        let core = around.rng.below(u64::from(around.cores.max(1))) as u16;
        let now = around.agenda.now();
        self.list = Some(List {
            bucket,
            page,
            asked: around.oracle.history.mark(),
            known,
            cores: None,
            due: BTreeMap::from([(core, (now, Request::DescribeStar))]),
            open: BTreeMap::new(),
        });
    }

    fn send_due(&mut self, around: &mut Surroundings<'_>) {
        let now = around.agenda.now();
        let Some(list) = &mut self.list else { return };
        let due = list.due.iter().filter(|(_, (at, _))| *at <= now);
        let due: Vec<u16> = due.map(|(core, _)| *core).collect();
        for core in due {
            let (_, request) = list.due.remove(&core).expect("it is due");
            let pipe = self
                .pipes
                .entry(core)
                .or_insert_with(|| Pipe::open(around, core, ControlLane::new()));
            pipe.lane.request(&request);
            around.say(|| format!("asks core-{core} {request:?}"));
            list.open.insert(core, request);
        }
    }

    fn receive(&mut self, around: &mut Surroundings<'_>) {
        let cores: Vec<u16> = self.pipes.keys().copied().collect();
        for core in cores {
            while let Some(pipe) = self.pipes.get_mut(&core) {
                pipe.receive(around);
                let Some(event) = pipe.lane.poll_event() else {
                    if pipe.is_ended {
                        self.give_up(around);
                    }
                    break;
                };
                around.say(|| format!("hears of core-{core} {event:?}"));
                if let ControlEvent::Answered(_, result) = event {
                    match result {
                        Ok(answer) => self.answered(around, core, answer),
                        Err(refusal) if refusal.retry => self.ask_again(around, core),
                        Err(_) => self.give_up(around),
                    }
                }
            }
        }
    }

    fn ask_again(&mut self, around: &mut Surroundings<'_>, core: u16) {
        let at = around.agenda.now() + around.rng.between(1, PAUSE_US_MAX);
        if let Some(list) = &mut self.list
            && let Some(request) = list.open.remove(&core)
        {
            list.due.insert(core, (at, request));
        }
    }

    fn answered(&mut self, around: &mut Surroundings<'_>, core: u16, answer: Answer) {
        let Some(list) = &mut self.list else { return };
        list.open.remove(&core);
        match (&mut list.cores, answer) {
            (None, Answer::Star(star)) => {
                let cores = star.cores.len();
                let listing = Listing::new(list.bucket.clone(), list.page.clone(), cores);
                list.cores = Some((star, listing));
            }
            (Some((_, listing)), answer) => {
                if listing.answered(usize::from(core), answer).is_err() {
                    around.oracle.found("an answer to no list".to_owned());
                }
            }
            (None, other) => {
                let text = format!("the star is described as {other:?}");
                around.oracle.found(text);
            }
        }
        if list.open.is_empty() && list.due.is_empty() {
            self.next_round(around);
        }
    }

    fn next_round(&mut self, around: &mut Surroundings<'_>) {
        let Some(list) = &mut self.list else { return };
        let (star, listing) = list.cores.as_mut().expect("the star is known");
        let is_of_one_start = listing.is_of(star.incarnation);
        match listing.next_round() {
            Round::Ask(requests) => {
                let now = around.agenda.now();
                for (core, request) in (0..).zip(requests) {
                    let at = now + around.rng.below(1_000);
                    list.due.insert(core, (at, request));
                }
            }
            Round::Done(items, has_more) if is_of_one_start => {
                self.listed(around, &items, has_more);
            }
            Round::Done(..) | Round::Restless(_) => self.give_up(around),
        }
    }

    fn listed(&mut self, around: &mut Surroundings<'_>, items: &[StreamInfo], has_more: bool) {
        let list = self.list.take().expect("a list is done");
        let none = (StreamId(0), 0, Epoch(0));
        for info in items {
            let (id, floor, epoch) = list.known.get(&info.name).unwrap_or(&none);
            let is_known = *id == info.id;
            let (floor, epoch) = if is_known {
                (*floor, *epoch)
            } else {
                (0, Epoch(0))
            };
            around.oracle.described(info, list.asked, floor, epoch);
        }
        let known = list.known.keys();
        around.oracle.listed(&list.page, known, items, has_more);
        self.pages_left = self.pages_left.saturating_sub(1);
        if let (true, Some(last)) = (has_more, items.last()) {
            let page = Page {
                start_after: last.name.key.as_str().to_owned(),
                ..list.page
            };
            self.goes_on = Some((list.bucket, page));
        }
        self.pause(around);
    }

    /// The links are lost, or the pages are of no use: all begins anew.
    fn give_up(&mut self, around: &mut Surroundings<'_>) {
        self.list = None;
        self.goes_on = None;
        for pipe in std::mem::take(&mut self.pipes).into_values() {
            pipe.leave(around);
        }
        self.pause(around);
    }

    fn pause(&mut self, around: &mut Surroundings<'_>) {
        self.next_at = around.agenda.now() + around.rng.between(1, PAUSE_US_MAX);
    }
}

fn first_page(around: &mut Surroundings<'_>) -> (BucketName, Page) {
    let bucket = around.rng.pick(around.streams).bucket.clone();
    let prefix = *around.rng.pick(&["", "", "s", "e"]);
    let page = Page {
        prefix: prefix.to_owned(),
        limit: *around.rng.pick(&[1, 2, 100]),
        ..Page::default()
    };
    (bucket, page)
}
