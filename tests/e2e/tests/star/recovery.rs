//! Storage, recovery: a torn end is cut and nothing else, indexes are rebuilt, old bytes of
//! recycled files never surface. On the real files of killed stars.

use crate::{
    SITE, all_bodies, append_each, bodies_of, in_time, log_folder, make_stream, numbered, producer,
    refusal,
};
use nova_client::*;
use nova_e2e::home::Home;
use nova_e2e::segments::{
    Place, bytes_at, flip_bit, groups, indexes, last_with_groups, overwrite, segments, spares, zero,
};
use std::path::Path;

/// A way to change a file.
type Damage = fn(&Path);

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

/// The stream holds exactly its first `count` records.
async fn expect_first(home: &Home, count: u64) {
    let read = all_bodies(&home.client(), &crate::stream("sealed")).await;
    let wanted = (0..count).map(numbered);
    assert!(
        wanted.eq(read.iter().map(|body| body.to_vec())),
        "{} records",
        read.len()
    );
}

fn cut(path: &Path, length: u64) {
    let file = std::fs::File::options().write(true).open(path);
    let file = file.expect("the file is there");
    file.set_len(length).expect("it can be cut");
}

/// An index is derived: removed or damaged where a start looks at it, it is built again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn removed_and_damaged_indexes_are_built_again() {
    let home = with_sealed_segments().await;
    let all = indexes(&log_folder(&home, 0));
    assert!(all.len() >= 3, "{all:?}");
    let ways: [(&str, Damage); 7] = [
        ("removed", |path| {
            std::fs::remove_file(path).expect("it is there");
        }),
        ("all zeros", zero),
        ("last bit", |path| {
            flip_bit(path, path.metadata().expect("a file").len() - 1);
        }),
        ("another file", |path| {
            std::fs::write(path, b"not an index").expect("written");
        }),
        ("empty", |path| cut(path, 0)),
        ("ten bytes", |path| cut(path, 10)),
        ("half", |path| {
            cut(path, path.metadata().expect("a file").len() / 2);
        }),
    ];
    for (index, (what, damage)) in ways.into_iter().enumerate() {
        let copy = home.copy();
        let indexes = indexes(&log_folder(&copy, 0));
        damage(&indexes[index % indexes.len()]);
        let star = copy.start();
        expect_first(&copy, 30).await;
        let said = star.process().errors();
        assert!(said.contains("was built again"), "{what}: {said}");
        star.stop().expect_done();
    }
    let copy = home.copy();
    for index in indexes(&log_folder(&copy, 0)) {
        std::fs::remove_file(index).expect("it is there");
    }
    let star = copy.start();
    expect_first(&copy, 30).await;
    star.stop().expect_done();
}

/// Damage inside an index, which a start does not look at, is told by the read that needs it, with
/// the file to remove; then it is built again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn damage_inside_an_index_is_told_and_cured_by_removing_it() {
    let home = with_sealed_segments().await;
    let first = indexes(&log_folder(&home, 0)).remove(0);
    let length = first.metadata().expect("a file").len();
    for offset in [0, length / 3, length / 2] {
        let copy = home.copy();
        let index = copy
            .data()
            .join(first.strip_prefix(home.data()).expect("inside"));
        flip_bit(&index, offset);
        let star = copy.start();
        let read = bodies_of(&copy.client(), read_from(crate::stream("sealed"), 0)).await;
        let Err(error) = read else {
            star.kill();
            continue;
        };
        let refused = refusal::<()>(Err(error), Code::Corrupt);
        assert!(refused.message.contains("000001.seg"), "{refused}");
        assert!(refused.message.contains("remove that .idx"), "{refused}");
        star.stop().expect_done();
        std::fs::remove_file(&index).expect("it is there");
        let star = copy.start();
        expect_first(&copy, 30).await;
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
    let ways: [(&str, Damage); 3] = [
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
        expect_first(&copy, 30).await;
        append_each(
            &copy.client(),
            &crate::stream("sealed"),
            [b"next".to_vec()].into_iter(),
        )
        .await;
        star.kill();
        let _star = copy.start();
        let read = all_bodies(&copy.client(), &crate::stream("sealed")).await;
        assert_eq!((read.len(), &read[30][..]), (31, &b"next"[..]), "{what}");
    }
}

/// Starts without appends use the file of the start before again, and what an old file still holds
/// never comes back.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn spare_files_are_used_and_their_old_groups_never_surface() {
    let home = with_sealed_segments().await;
    let log = log_folder(&home, 0);
    let count = || segments(&log).len() + spares(&log).len();
    let before = count();
    for _ in 0..3 {
        home.start().kill();
    }
    assert_eq!(
        count(),
        before,
        "a start without appends leaves no file behind"
    );
    // The worst spares there can be: whole groups of this very log, up to their ends.
    let old = last_with_groups(&log).0;
    let mut bytes = std::fs::read(&old).expect("a segment");
    bytes.resize(16 << 20, 0xa5);
    for number in 0..3 {
        let spare = log.join(format!("spare-{number:03}.seg"));
        std::fs::write(&spare, &bytes).expect("a spare");
    }
    for round in 0..4 {
        let star = home.start();
        expect_first(&home, 30 + round).await;
        let more = [numbered(30 + round)].into_iter();
        append_each(&home.client(), &crate::stream("sealed"), more).await;
        star.kill();
    }
    let star = home.start();
    expect_first(&home, 34).await;
    star.stop().expect_done();
    assert!(
        spares(&log).len() < 3,
        "spares were used: {:?}",
        spares(&log)
    );
}

/// What an interrupted start left, and what somebody else put there, harms nobody.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn drafts_are_removed_and_files_of_others_are_left_alone() {
    let home = with_sealed_segments().await;
    let log = log_folder(&home, 0);
    let draft = log.join("00000000000000000044.seg.draft");
    let theirs = log.join("notes.txt");
    std::fs::write(&draft, vec![0xa5; 10_000]).expect("written");
    std::fs::write(&theirs, "mine").expect("written");
    let star = home.start();
    expect_first(&home, 30).await;
    append_each(
        &home.client(),
        &crate::stream("sealed"),
        [numbered(30)].into_iter(),
    )
    .await;
    star.kill();
    let star = home.start();
    expect_first(&home, 31).await;
    star.stop().expect_done();
    assert!(!draft.exists());
    assert_eq!(std::fs::read(&theirs).expect("it is there"), b"mine");
}
