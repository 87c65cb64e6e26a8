//! A page of a list of streams out of the answers of all cores of a star, exact while streams move.
//!
//! Each core lists the streams that it speaks for. They answer one after the other, so a stream
//! that moves meanwhile may be in both answers, or in neither. So each answer carries the arrivals
//! of its core, and the cores are asked again until none has had one since its page:
//! ```text
//!   first round     all cores ------------------> pages, each with the arrivals so far
//!   further rounds  all cores, with arrivals ---> as before, or another page
//!   until all are as before
//! ```
//! Why nothing is left out then: take the moment between the last two rounds, and a stream that is
//! there from before the first round on. Whichever core speaks for it then, or will next, since the
//! stream is on its way there, gave its page before that moment and has had no arrival between its
//! page and its last answer, which came after it. So it spoke for the stream when it gave its page.
//! (A core refuses to list what is on its way from or to it.)
//!
//! # Invariants
//! - A page is in key order, without gaps, and names each stream once.
//! - The number of rounds is bounded.
//!
//! # Not here
//! - Who carries requests to the cores: the client's driver, the gateway, the simulator.

use nova_model::limits::LIST_ROUNDS_MAX;
use nova_model::names::BucketName;
use nova_model::request::{Answer, Arrivals, Page, Request, StreamInfo};
use nova_model::{Code, Facts, Incarnation, Refusal};

/// When to list anew after too many rounds, in microseconds.
const RESTLESS_AFTER_US: u64 = 50_000;

/// A page that is being put together.
#[derive(Debug)]
pub struct Listing {
    bucket: BucketName,
    page: Page,
    cores: Vec<Option<CorePage>>,
    rounds: usize,
    /// Whether an answer of this round was another one than before.
    has_news: bool,
}

/// What a core said last.
#[derive(Debug)]
struct CorePage {
    items: Vec<StreamInfo>,
    has_more: bool,
    arrivals: Arrivals,
}

/// What is to be done next.
#[derive(Debug)]
pub enum Round {
    /// Ask the cores, each its own, in their order; give each answer to [`Listing::answered`].
    Ask(Vec<Request>),
    /// The page is known: its streams in key order, and whether there are more behind it.
    Done(Vec<StreamInfo>, bool),
    /// Streams came and came: nothing is known.
    Restless(Refusal),
}

/// A core answered something else than a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unfit;

impl Listing {
    /// A page of the streams of a bucket, on a star of so many cores.
    pub fn new(bucket: BucketName, page: Page, cores: usize) -> Listing {
        Listing {
            bucket,
            page,
            cores: (0..cores).map(|_| None).collect(),
            rounds: 0,
            has_news: true,
        }
    }

    /// What is to be done, once all that was asked is answered.
    pub fn next_round(&mut self) -> Round {
        let is_alone = self.cores.len() == 1 && self.rounds == 1;
        if !self.has_news || is_alone {
            return self.merge();
        }
        if self.rounds == LIST_ROUNDS_MAX {
            return Round::Restless(self.restless());
        }
        self.rounds += 1;
        self.has_news = false;
        let known = |page: &Option<CorePage>| page.as_ref().map(|page| page.arrivals);
        let request = |core| Request::ListStreams {
            bucket: self.bucket.clone(),
            page: self.page.clone(),
            known: known(core),
        };
        Round::Ask(self.cores.iter().map(request).collect())
    }

    /// A core has answered.
    ///
    /// # Errors
    /// [`Unfit`] if that is no answer to what it was asked.
    pub fn answered(&mut self, core: usize, answer: Answer) -> Result<(), Unfit> {
        match answer {
            Answer::Streams {
                items,
                has_more,
                arrivals,
            } => {
                self.has_news = true;
                self.cores[core] = Some(CorePage {
                    items,
                    has_more,
                    arrivals,
                });
                Ok(())
            }
            Answer::StreamsAsBefore if self.cores[core].is_some() => Ok(()),
            _ => Err(Unfit),
        }
    }

    /// Whether all pages are of one start of the star; a star may have other cores after the next.
    pub fn is_of(&self, incarnation: Incarnation) -> bool {
        let mut pages = self.cores.iter().flatten();
        pages.all(|page| page.arrivals.incarnation == incarnation)
    }

    /// Each core gave its first streams of the page, so the first of all are among them; a core's
    /// page ends before the limit only if it has no more. A stream that moved may be in two pages:
    /// the newest leader's word counts.
    fn merge(&mut self) -> Round {
        let limit = self.page.limit as usize;
        let pages = std::mem::take(&mut self.cores);
        let mut has_more = pages.iter().flatten().any(|page| page.has_more);
        let pages = pages.into_iter().flatten();
        let mut items: Vec<StreamInfo> = pages.flat_map(|page| page.items).collect();
        items.sort_by(|a, b| a.name.key.cmp(&b.name.key).then(b.epoch.cmp(&a.epoch)));
        items.dedup_by(|later, first| later.name == first.name);
        has_more |= items.len() > limit;
        items.truncate(limit);
        Round::Done(items, has_more)
    }

    fn restless(&self) -> Refusal {
        let message = format!(
            "streams of {} went from core to core while it was listed, {LIST_ROUNDS_MAX} times",
            self.bucket
        );
        Refusal::new(Code::RateLimited, message).with(Facts::After(RESTLESS_AFTER_US))
    }
}

#[cfg(test)]
#[path = "listing_tests.rs"]
mod tests;
