//! Storage, recovery; contract 6, 8: damage to what was acked is never skipped in silence. It is
//! told with its range, and all other records are served.
//!
//! What these tests have found: records behind a damaged group were refused too, also those of
//! streams that had nothing in it, with a range that ended where it began; a search by time that
//! came to damage ended the star; a segment that was gone took those before it along.

use crate::{
    SITE, append_each, batches, bodies_of, in_time, log_folder, make_stream, numbered, refusal,
    stream,
};
use nova_client::*;
use nova_e2e::home::Home;
use nova_e2e::segments::{Place, flip_bit, groups, segments};
use std::path::{Path, PathBuf};

const DAMAGED: i32 = 14;
const RECORDS: u64 = 10;

/// A killed star's home: ten records in ten groups of the last segment, another stream between.
async fn with_records() -> Home {
    let home = Home::new(SITE);
    let star = home.start();
    let client = home.client();
    let name = make_stream(&client, "victim").await;
    let other = make_stream(&client, "other").await;
    for n in 0..RECORDS {
        append_each(&client, &name, [numbered(n)].into_iter()).await;
        append_each(&client, &other, [numbered(n)].into_iter()).await;
    }
    star.kill();
    home
}

/// The file and the group that holds only this record of the stream that is damaged: groups come
/// in turns, its own first.
fn group_of(home: &Home, record: u64) -> (PathBuf, Place) {
    for path in segments(&log_folder(home, 0)) {
        let holds = |place: &Place| place.batches.iter().any(|(first, _)| *first == record);
        if let Some(place) = groups(&path).into_iter().find(holds) {
            return (path, place);
        }
    }
    panic!("no group holds record {record}");
}

/// Reading over the damage gives what is before it, then CORRUPT with exactly its range; what is
/// behind it is given from the range's end on. The other stream has everything.
async fn expect_damage_of(home: &Home, record: u64, tail: u64) {
    let client = home.client();
    let mut open = read_from(stream("victim"), 0);
    let refused = refusal(bodies_of(&client, open.clone()).await, Code::Corrupt);
    let (from, to) = match refused.facts {
        Facts::Range { from, to } => (from.0, to.0),
        facts => panic!("no range: {facts:?}"),
    };
    assert_eq!(
        (from, to),
        (record, record + 1),
        "exactly the damaged record"
    );
    assert!(!refused.retry && refused.clean);
    open.limits.until_sequence = Some(SequenceNumber(from));
    let before = bodies_of(&client, open)
        .await
        .expect("what is before the damage");
    assert!(
        (0..from)
            .map(|n| (n, numbered(n)))
            .eq(before.into_iter().map(owned))
    );
    let behind = bodies_of(&client, read_from(stream("victim"), to)).await;
    let behind = behind.expect("what is behind the damage");
    assert!(
        (to..tail)
            .map(|n| (n, numbered(n)))
            .eq(behind.into_iter().map(owned))
    );
    let inside = bodies_of(&client, read_from(stream("victim"), from)).await;
    refusal(inside, Code::Corrupt);
    // A search by time that comes to the damage before it knows the start says so as well.
    let first = if from == 0 { 0 } else { from - 1 };
    let time = in_time("a time", time_of(&client, first, from)).await;
    let mut by_time = read_from(stream("victim"), 0);
    by_time.start = ReadStart::Timestamp(time);
    refusal(bodies_of(&client, by_time).await, Code::Corrupt);
    let other = bodies_of(&client, read_from(stream("other"), 0))
        .await
        .expect("undamaged");
    assert_eq!(other.len() as u64, RECORDS);
}

/// A time behind that of record `first`; the oldest one if `first` is not before `until`.
async fn time_of(client: &Client, first: u64, until: u64) -> Timestamp {
    if first >= until {
        return Timestamp(1);
    }
    let mut open = read_from(stream("victim"), first);
    open.limits.until_sequence = Some(SequenceNumber(until));
    let batches = batches(client, open)
        .await
        .expect("what is before the damage");
    let mut last = Timestamp(1);
    batches[0].for_each(|position, _| last = position.timestamp);
    Timestamp(last.0 + 1)
}

fn owned((n, body): (u64, bytes::Bytes)) -> (u64, Vec<u8>) {
    (n, body.to_vec())
}

/// A bit that turns in a cold sealed segment is found by the read that needs it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bit_in_a_sealed_segment_costs_its_group_and_nothing_else() {
    let home = with_records().await;
    home.start().stop().expect_done();
    for (record, place_of) in [
        (
            0,
            (|group: &Place| group.offset + group.content - 3) as fn(&Place) -> u64,
        ),
        (4, |group| group.offset + group.content - 3),
        (4, |group| group.offset + 50),
        (RECORDS - 1, |group| group.offset + 200),
    ] {
        let copy = home.copy();
        let (path, group) = group_of(&copy, record);
        flip_bit(&path, place_of(&group));
        let star = copy.start();
        expect_damage_of(&copy, record, RECORDS).await;
        star.stop().expect_done();
    }
}

/// A bit in the middle of the last segment, behind which acked groups follow: the start is refused
/// in words, and nothing is touched; allowed, the rest is served and stays served.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bit_in_the_last_segment_refuses_the_start_until_it_is_allowed() {
    let mut home = with_records().await;
    let (path, group) = group_of(&home, 4);
    flip_bit(&path, group.offset + group.content - 3);
    let before = std::fs::read(&path).expect("the segment");
    let ended = home.start_refused().expect_code(DAMAGED);
    let file = short_name(&home, &path);
    for said in [
        &file,
        &group.offset.to_string(),
        "tests/victim",
        "--allow-corrupt",
    ] {
        assert!(
            ended.stderr.contains(said),
            "{said:?} is not in: {}",
            ended.stderr
        );
    }
    assert!(
        std::fs::read(&path).expect("the segment") == before,
        "the damage is kept as it is"
    );
    home.start_refused().expect_code(DAMAGED);
    home.add_flag("--allow-corrupt");
    let star = home.start();
    expect_damage_of(&home, 4, RECORDS).await;
    let client = home.client();
    append_each(&client, &stream("victim"), [numbered(RECORDS)].into_iter()).await;
    star.kill();
    home.clear_flags();
    let star = home.start();
    expect_damage_of(&home, 4, RECORDS + 1).await;
    star.stop().expect_done();
}

fn short_name(home: &Home, path: &Path) -> String {
    path.strip_prefix(home.data())
        .expect("inside")
        .display()
        .to_string()
}

/// The records of a stream with their numbers, those that are told as CORRUPT left out.
async fn what_is_served(client: &Client, tail: u64) -> Vec<(u64, Vec<u8>)> {
    let mut served = Vec::new();
    let mut from = 0;
    while from < tail {
        let mut reader = in_time("a reader", client.read(read_from(stream("victim"), from))).await;
        let refused = loop {
            let item = match &mut reader {
                Ok(reader) => in_time("a batch", reader.next_batch()).await,
                Err(error) => Err(error.clone()),
            };
            match item {
                Ok(Some(ReadItem::Batch(batch))) => {
                    batch.for_each(|at, record| {
                        served.push((at.sequence.0, record.body().to_vec()));
                    });
                }
                Ok(Some(ReadItem::CaughtUp(_))) => {}
                Ok(None) => return served,
                Err(error) => break refusal::<()>(Err(error), Code::Corrupt),
            }
        };
        match refused.facts {
            Facts::Range { to, .. } if to.0 > from => from = to.0,
            facts => panic!("no range to go on behind: {facts:?}"),
        }
    }
    served
}

/// A lost header of the last segment refuses the start; allowed, every group behind it is served.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_header_refuses_the_start_and_costs_no_record_when_it_is_allowed() {
    let mut home = with_records().await;
    let (path, _) = group_of(&home, 0);
    flip_bit(&path, 20);
    let ended = home.start_refused().expect_code(DAMAGED);
    assert!(
        ended.stderr.contains(&short_name(&home, &path)),
        "{}",
        ended.stderr
    );
    home.add_flag("--allow-corrupt");
    let star = home.start();
    let served = what_is_served(&home.client(), RECORDS).await;
    assert!((0..RECORDS).map(|n| (n, numbered(n))).eq(served));
    star.stop().expect_done();
}

/// A segment that is gone is no silent gap: its range is CORRUPT, and all others are served.
/// (Records that are forgotten on purpose are trimmed first: then nobody is sent there.)
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_segment_that_is_gone_is_told_and_the_others_are_served() {
    let home = with_records().await;
    for round in 1..3 {
        let star = home.start();
        let more = (round * RECORDS..(round + 1) * RECORDS).map(numbered);
        append_each(&home.client(), &stream("victim"), more).await;
        star.kill();
    }
    home.start().stop().expect_done();
    for number in 0..2 {
        for with_index in [true, false] {
            without_segment(&home, number, with_index).await;
        }
    }
}

/// Three segments hold ten records each; one of them is removed.
async fn without_segment(home: &Home, number: u64, with_index: bool) {
    let mut copy = home.copy();
    let path = segments(&log_folder(&copy, 0)).remove(number as usize);
    std::fs::remove_file(&path).expect("it is there");
    if with_index {
        std::fs::remove_file(path.with_extension("idx")).expect("it is there");
    }
    let what = format!("segment {number}, its index too: {with_index}");
    // A header names it, and nothing says that it was released.
    let ended = copy.start_refused().expect_code(DAMAGED);
    assert!(ended.stderr.contains("was not released"), "{what}");
    copy.add_flag("--allow-corrupt");
    let star = copy.start();
    let client = copy.client();
    let tail = in_time("a tail", client.check_tail(stream("victim"))).await;
    let tail = tail.expect("a tail").sequence.0;
    assert_eq!(tail, 3 * RECORDS, "{what}");
    let gone = number * RECORDS..(number + 1) * RECORDS;
    let served = what_is_served(&client, tail).await;
    let wanted = (0..tail).filter(|n| !gone.contains(n));
    assert!(
        wanted.map(|n| (n, numbered(n))).eq(served.clone()),
        "{what}: {served:?}"
    );
    append_each(&client, &stream("victim"), [numbered(99)].into_iter()).await;
    let next = in_time("a tail", client.check_tail(stream("victim"))).await;
    assert_eq!(next.expect("a tail").sequence.0, tail + 1, "{what}");
    star.stop().expect_done();
}

/// A segment of another star is no segment of this one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_segment_of_another_star_is_refused() {
    let (home, other) = (with_records().await, with_records().await);
    let theirs = group_of(&other, 0).0;
    let place = log_folder(&home, 0).join("00000000000000000007.seg");
    std::fs::copy(theirs, &place).expect("a copy");
    let ended = home.start_refused().expect_code(DAMAGED);
    assert!(ended.stderr.contains("another star") || ended.stderr.contains("mixes two stars"));
    std::fs::remove_file(&place).expect("it is there");
    let star = home.start();
    assert_eq!(
        what_is_served(&home.client(), RECORDS).await.len() as u64,
        RECORDS
    );
    star.stop().expect_done();
}
