//! Storage, recovery: a torn end is cut and nothing else, indexes are rebuilt, old bytes of recycled
//! files never surface. On the real files of killed stars.

use crate::{SITE, all_bodies, append_each, in_time, log_folder, make_stream, numbered, producer};
use nova_client::*;
use nova_e2e::home::Home;
use nova_e2e::segments::{
    Place, bytes_at, flip_bit, groups, indexes, last_with_groups, overwrite, segments, spares, zero,
};
use std::path::Path;

const SECTOR: usize = 512;
/// Records before the last group, each in a group of its own.
const BEFORE: u64 = 5;

/// A killed star's home whose last group holds one batch over several blocks.
async fn with_last_group() -> (Home, Place) {
    let home = Home::new(SITE);
    let star = home.start();
    let client = home.client();
    let name = make_stream(&client, "torn").await;
    append_each(&client, &name, (0..BEFORE).map(numbered)).await;
    let producer = producer(&client, &name);
    let records = (0..9).map(|n| Record::new(vec![b'a' + n; 1000])).collect();
    let appended = in_time("an ack", producer.append_batch(records))
        .await
        .expect("an ack");
    assert_eq!(appended.start.sequence.0, BEFORE);
    star.kill();
    let (_, groups) = last_with_groups(&log_folder(&home, 0));
    let last = groups.last().expect("groups").clone();
    assert_eq!(last.batches, [(BEFORE, 9)]);
    (home, last)
}

/// What a crash can leave of a group that was being written over zeros or old bytes.
fn torn_forms(whole: &[u8]) -> Vec<(String, Vec<u8>)> {
    let with = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut bytes = whole.to_vec();
        change(&mut bytes);
        bytes
    };
    let garbage = |bytes: &mut [u8]| {
        (1_u32..)
            .zip(bytes)
            .for_each(|(n, byte)| *byte = (n.wrapping_mul(2_654_435_761) >> 24) as u8);
    };
    let mut forms = Vec::new();
    for sector in 0..whole.len() / SECTOR {
        let at = sector * SECTOR;
        let cut = with(&|bytes| bytes[at..].fill(0));
        forms.push((format!("zeros from sector {sector} on"), cut));
        let hole = with(&|bytes| bytes[at..at + SECTOR].fill(0));
        forms.push((format!("sector {sector} never landed"), hole));
        let old = with(&|bytes| garbage(&mut bytes[at..at + SECTOR]));
        forms.push((format!("old bytes in sector {sector}"), old));
    }
    forms.push((
        "the header alone".into(),
        with(&|bytes| bytes[128..].fill(0)),
    ));
    forms.push(("the body alone".into(), with(&|bytes| bytes[..128].fill(0))));
    forms.push(("garbage everywhere".into(), with(&|bytes| garbage(bytes))));
    forms.push((
        "half a sector".into(),
        with(&|bytes| bytes[SECTOR / 2..].fill(0)),
    ));
    forms
}

/// A torn last group is cut at every place it can be torn at; all before it is there, and numbers
/// go on from there.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_last_group_torn_anywhere_is_cut_and_nothing_else() {
    let (home, last) = with_last_group().await;
    let (path, _) = last_with_groups(&log_folder(&home, 0));
    let whole = bytes_at(&path, last.offset, last.length);
    let file = path.strip_prefix(home.data()).expect("inside").to_owned();
    for (index, (form, bytes)) in torn_forms(&whole).into_iter().enumerate() {
        let content = last.content as usize;
        let is_whole = bytes[..content] == whole[..content];
        let copy = home.copy();
        overwrite(&copy.data().join(&file), last.offset, &bytes);
        let star = copy.start();
        let client = copy.client();
        let name = crate::stream("torn");
        let kept = if is_whole { BEFORE + 9 } else { BEFORE };
        let read = all_bodies(&client, &name).await;
        assert_eq!(read.len() as u64, kept, "{form}");
        assert!(
            (0..BEFORE)
                .map(numbered)
                .eq(read.iter().take(5).map(|b| b.to_vec())),
            "{form}"
        );
        let length = copy.data().join(&file).metadata().expect("the file").len();
        let end = last.offset + if is_whole { last.length } else { 0 };
        assert_eq!(length, end, "{form}: the segment ends where its groups do");
        if index.is_multiple_of(8) {
            append_each(&client, &name, (0..2).map(numbered)).await;
            star.kill();
            let _star = copy.start();
            assert_eq!(
                all_bodies(&client, &name).await.len() as u64,
                kept + 2,
                "{form}"
            );
        }
    }
}

/// Two sealed segments and a third; the streams' records are 0..30.
async fn with_sealed_segments() -> Home {
    let home = Home::new(SITE);
    for round in 0..3 {
        let star = home.start();
        let client = home.client();
        let name = crate::stream("sealed");
        if round == 0 {
            make_stream(&client, "sealed").await;
        }
        append_each(&client, &name, (round * 10..round * 10 + 10).map(numbered)).await;
        if round == 1 {
            drop(star.stop().expect_done())
        } else {
            star.kill()
        }
    }
    home.start().stop().expect_done();
    home
}

async fn expect_records(home: &Home, what: &str) {
    let read = all_bodies(&home.client(), &crate::stream("sealed")).await;
    assert!(
        (0..30)
            .map(numbered)
            .eq(read.iter().map(|body| body.to_vec())),
        "{what}"
    );
}

/// An index is derived: removed or damaged in any way it is built again, and nothing is missing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn removed_and_damaged_indexes_are_built_again() {
    let home = with_sealed_segments().await;
    let all = indexes(&log_folder(&home, 0));
    assert!(all.len() >= 3, "{all:?}");
    type Damage = fn(&Path);
    let cut = |path: &Path, length: u64| {
        let file = std::fs::File::options()
            .write(true)
            .open(path)
            .expect("the index");
        file.set_len(length).expect("it can be cut");
    };
    let ways: [(&str, Damage); 6] = [
        ("removed", |path| {
            std::fs::remove_file(path).expect("it is there")
        }),
        ("all zeros", zero),
        ("first bit", |path| flip_bit(path, 0)),
        ("middle bit", |path| {
            flip_bit(path, path.metadata().expect("a file").len() / 2)
        }),
        ("last bit", |path| {
            flip_bit(path, path.metadata().expect("a file").len() - 1)
        }),
        ("another file", |path| {
            std::fs::write(path, b"not an index").expect("written")
        }),
    ];
    for (what, damage) in ways {
        for index in &all {
            let copy = home.copy();
            damage(
                &copy
                    .data()
                    .join(index.strip_prefix(home.data()).expect("inside")),
            );
            let star = copy.start();
            expect_records(&copy, what).await;
            if what != "middle bit" {
                let said = star.process().errors();
                assert!(said.contains("was built again"), "{what}: {said}");
            }
            star.stop().expect_done();
        }
    }
    for length in [0, 10] {
        let copy = home.copy();
        indexes(&log_folder(&copy, 0))
            .iter()
            .for_each(|index| cut(index, length));
        let star = copy.start();
        expect_records(&copy, "all cut").await;
        star.stop().expect_done();
    }
}

/// A newest segment that is all zeros or empty is one without groups.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_zeroed_newest_segment_is_an_empty_one() {
    let home = with_sealed_segments().await;
    home.start().kill();
    let newest = segments(&log_folder(&home, 0)).pop().expect("segments");
    assert!(groups(&newest).is_empty(), "nothing was appended to it");
    let ways: [(&str, fn(&Path)); 3] = [
        ("zeros", zero),
        ("no bytes", |path| {
            std::fs::write(path, b"").expect("written")
        }),
        ("half a header", |path| {
            let file = std::fs::File::options()
                .write(true)
                .open(path)
                .expect("a segment");
            file.set_len(100).expect("it can be cut");
        }),
    ];
    for (what, change) in ways {
        let copy = home.copy();
        let path = copy
            .data()
            .join(newest.strip_prefix(home.data()).expect("inside"));
        change(&path);
        let star = copy.start();
        expect_records(&copy, what).await;
        append_each(
            &copy.client(),
            &crate::stream("sealed"),
            [b"next".to_vec()].into_iter(),
        )
        .await;
        star.kill();
        let _star = copy.start();
        let read = all_bodies(&copy.client(), &crate::stream("sealed")).await;
        assert_eq!(read.len(), 31, "{what}");
    }
}

/// Starts without appends make spare files, a spare is used, and what an old file still holds
/// never comes back.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn spare_files_are_used_and_their_old_groups_never_surface() {
    let home = with_sealed_segments().await;
    let log = log_folder(&home, 0);
    home.start().kill();
    home.start().kill();
    home.start().stop().expect_done();
    let made = spares(&log);
    assert!(!made.is_empty(), "segments without groups become spares");
    // The worst spare there can be: whole groups of this very log, up to its end.
    let old = last_with_groups(&log).0;
    let mut bytes = std::fs::read(&old).expect("a segment");
    bytes.resize(16 << 20, 0xa5);
    for spare in &made {
        std::fs::write(spare, &bytes).expect("a spare");
    }
    let before = segments(&log);
    for round in 0..3 {
        let star = home.start();
        expect_at_least_30(&home, round).await;
        let more = [numbered(30 + round)].into_iter();
        append_each(&home.client(), &crate::stream("sealed"), more).await;
        star.kill();
    }
    let star = home.start();
    expect_at_least_30(&home, 3).await;
    star.stop().expect_done();
    assert!(segments(&log).len() > before.len());
    assert!(
        spares(&log).len() <= made.len() + 1,
        "spares were used: {:?}",
        spares(&log)
    );
}

async fn expect_at_least_30(home: &Home, more: u64) {
    let read = all_bodies(&home.client(), &crate::stream("sealed")).await;
    let wanted = (0..30 + more).map(numbered);
    assert!(
        wanted.eq(read.iter().map(|body| body.to_vec())),
        "{} records",
        read.len()
    );
}
