//! Pages of several cores become one, and no move of a stream between two answers hides it.

use super::*;
use nova_model::settings::{EffectiveSettings, StreamSettings};
use nova_model::{Epoch, FencingToken, Position, SequenceNumber, StreamId, StreamName, Timestamp};

fn info(key: &str, epoch: u64) -> StreamInfo {
    let plain = StreamSettings::default();
    StreamInfo {
        name: StreamName::parse(&format!("bucket/{key}")).expect("a legal name"),
        id: StreamId(1),
        settings: EffectiveSettings::resolve(&plain, &plain),
        fence: FencingToken::default(),
        first: SequenceNumber(0),
        tail: Position::default(),
        epoch: Epoch(epoch),
        created: Timestamp(0),
    }
}

fn arrivals(count: u64) -> Arrivals {
    let incarnation = Incarnation(1);
    Arrivals { incarnation, count }
}

fn page(items: Vec<StreamInfo>, has_more: bool, count: u64) -> Answer {
    let arrivals = arrivals(count);
    Answer::Streams {
        items,
        has_more,
        arrivals,
    }
}

fn keys_page(keys: &[&str], has_more: bool) -> Answer {
    page(keys.iter().map(|key| info(key, 1)).collect(), has_more, 0)
}

fn listing(limit: u32, cores: usize) -> Listing {
    let page = Page {
        limit,
        ..Page::default()
    };
    Listing::new(
        BucketName::parse("bucket").expect("a legal name"),
        page,
        cores,
    )
}

/// Merges pages that do not change.
fn merged(pages: Vec<Answer>, limit: u32) -> (Vec<StreamInfo>, bool) {
    let mut listing = listing(limit, pages.len());
    assert!(matches!(listing.next_round(), Round::Ask(_)));
    let cores = pages.len();
    for (core, page) in pages.into_iter().enumerate() {
        assert_eq!(listing.answered(core, page), Ok(()));
    }
    match listing.next_round() {
        Round::Done(items, has_more) => return (items, has_more),
        Round::Ask(asked) => assert_eq!(asked.len(), cores),
        Round::Restless(refusal) => panic!("{refusal}"),
    }
    for core in 0..cores {
        assert_eq!(listing.answered(core, Answer::StreamsAsBefore), Ok(()));
    }
    match listing.next_round() {
        Round::Done(items, has_more) => (items, has_more),
        other => panic!("{other:?}"),
    }
}

fn keys(items: &[StreamInfo]) -> Vec<&str> {
    items.iter().map(|info| info.name.key.as_str()).collect()
}

#[test]
fn pages_are_merged_in_key_order_and_cut_to_the_limit() {
    let pages = vec![keys_page(&["b", "d"], false), keys_page(&["a", "c"], false)];
    let (items, has_more) = merged(pages, 10);
    assert_eq!((keys(&items), has_more), (vec!["a", "b", "c", "d"], false));
    let pages = vec![keys_page(&["b", "d"], true), keys_page(&["a", "c"], false)];
    let (items, has_more) = merged(pages, 2);
    assert_eq!((keys(&items), has_more), (vec!["a", "b"], true));
    let (items, has_more) = merged(vec![keys_page(&["b"], false), keys_page(&["a"], false)], 1);
    assert_eq!((keys(&items), has_more), (vec!["a"], true), "cut off");
    let (items, _) = merged(vec![keys_page(&["a"], false)], 5);
    assert_eq!(keys(&items), ["a"], "one core is asked once");
}

#[test]
fn a_stream_that_is_told_twice_is_told_once_as_its_newest_leader_tells_it() {
    let pages = vec![
        page(vec![info("a", 3)], false, 0),
        page(vec![info("a", 4)], false, 0),
    ];
    assert_eq!(merged(pages, 10).0, [info("a", 4)]);
}

#[test]
fn an_answer_to_something_else_is_refused() {
    let mut listing = listing(5, 2);
    listing.next_round();
    assert_eq!(listing.answered(0, Answer::StreamsAsBefore), Err(Unfit));
    assert_eq!(listing.answered(0, Answer::Deleted), Err(Unfit));
    assert_eq!(listing.answered(0, keys_page(&["a"], false)), Ok(()));
    assert!(listing.is_of(Incarnation(1)) && !listing.is_of(Incarnation(2)));
}

#[test]
fn rounds_are_bounded_when_streams_come_all_the_time() {
    let mut listing = listing(5, 2);
    let mut rounds = 0;
    loop {
        match listing.next_round() {
            Round::Ask(_) => rounds += 1,
            Round::Restless(refusal) => {
                assert_eq!(refusal.code, Code::RateLimited);
                assert_eq!(rounds, LIST_ROUNDS_MAX);
                return;
            }
            Round::Done(..) => panic!("it never is at rest"),
        }
        for core in 0..2 {
            let answer = page(vec![info("a", 1)], false, rounds as u64);
            assert_eq!(listing.answered(core, answer), Ok(()));
        }
    }
}

/// A star of two cores with one stream, which goes to the other core at some of the moments between
/// two answers. Without the second round each move between the first two answers to the core that
/// had answered already hid the stream.
struct Moving {
    at: usize,
    count: [u64; 2],
}

impl Moving {
    fn go(&mut self) {
        self.at = 1 - self.at;
        self.count[self.at] += 1;
    }

    fn answer(&self, core: usize, request: &Request) -> Answer {
        let Request::ListStreams { known, .. } = request else {
            panic!("a list is asked for");
        };
        if *known == Some(arrivals(self.count[core])) {
            return Answer::StreamsAsBefore;
        }
        let here = (core == self.at).then(|| info("a", self.count.iter().sum()));
        page(here.into_iter().collect(), false, self.count[core])
    }
}

#[test]
fn whenever_a_stream_moves_it_is_listed_once() {
    const MOMENTS: u32 = 10;
    let mut hidden_at_first = 0;
    for moves in 0..1u32 << MOMENTS {
        for (begin, order) in [(0, [0, 1]), (1, [0, 1]), (0, [1, 0]), (1, [1, 0])] {
            let mut star = Moving {
                at: begin,
                count: [0; 2],
            };
            let (mut listing, mut moment, mut seen) = (listing(5, 2), 0, 0);
            let items = loop {
                let asked = match listing.next_round() {
                    Round::Ask(asked) => asked,
                    Round::Done(items, _) => break items,
                    Round::Restless(refusal) => panic!("{refusal}"),
                };
                for core in order {
                    let answer = star.answer(core, &asked[core]);
                    if let Answer::Streams { items, .. } = &answer
                        && moment < 2
                    {
                        seen += items.len();
                    }
                    assert_eq!(listing.answered(core, answer), Ok(()));
                    if moment < MOMENTS && moves >> moment & 1 == 1 {
                        star.go();
                    }
                    moment += 1;
                }
            };
            hidden_at_first += u32::from(seen == 0);
            assert_eq!(keys(&items), ["a"], "moves {moves:b} from {begin}");
        }
    }
    assert!(hidden_at_first > 0, "some moves hide it from one round");
}
