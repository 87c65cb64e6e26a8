//! Storage, forgetting: a segment in which a few records of a stream that keeps all lie among many
//! of one that keeps little is rewritten; its space is given back, and no record is lost by it,
//! also when the star is killed meanwhile.

use crate::forget::disk_bytes;
use crate::{SITE, append_once, bodies_of, in_time, log_folder, make_stream};
use bytes::Bytes;
use nova_client::*;
use nova_e2e::home::{Home, Star};
use nova_e2e::segments;
use nova_model::SequenceNumber;

const MIB: u64 = 1 << 20;
/// A segment of these tests.
const SEGMENT_BYTES: u64 = 16 * MIB;
/// Segments that are full, and a little of the next one.
const SEGMENTS: u64 = 12;
/// Records that go, of half a MiB each.
const SHORT: u64 = SEGMENTS * SEGMENT_BYTES / (MIB / 2);
/// After so many of them comes one that stays.
const EACH: u64 = 4;

fn body(n: u64, bytes: usize) -> Vec<u8> {
    let word = n.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes();
    word.repeat(bytes / 8)
}

/// Bytes of the log's segments, spare files left out.
fn segment_bytes(home: &Home) -> u64 {
    let log = log_folder(home, 0);
    let files = segments::segments(&log).into_iter();
    files
        .map(|file| std::fs::metadata(file).map_or(0, |found| found.len()))
        .sum()
}

/// Writes both streams and trims the one; what the other has then.
async fn fill(home: &Home) -> Vec<(u64, Bytes)> {
    let client = home.client();
    let short = make_stream(&client, "short").await;
    let kept = make_stream(&client, "kept").await;
    let producer = crate::producer(&client, &short);
    for n in 0..SHORT {
        let record = Record::new(body(n, MIB as usize / 2));
        let append = producer.append(record);
        in_time("an append", append).await.expect("an append");
        if n.is_multiple_of(EACH) {
            let record = Record::new(body(n, 1000));
            let appended = append_once(&client, &kept, record).await;
            appended.expect("an append");
        }
    }
    let trim = client.trim(short, SequenceNumber(SHORT - 1), Conditions::default());
    in_time("a trim", trim).await.expect("a trim");
    let there = bodies_of(&client, read_from(kept, 0)).await;
    let there = there.expect("a read");
    assert_eq!(there.len() as u64, SHORT / EACH);
    there
}

/// Waits until a segment is rewritten, by the star that runs.
fn wait_for_rewritten(star: &Star, number: u64) {
    let file = format!("{number:020}.seg");
    star.process()
        .wait_for_error_line(|line| line.contains(&file) && line.contains("is rewritten"));
}

async fn check(home: &Home, there: &[(u64, Bytes)]) {
    let client = home.client();
    let read = bodies_of(&client, read_from(crate::stream("kept"), 0)).await;
    assert_eq!(read.expect("a read"), there, "records that are kept");
    let short = crate::stream("short");
    let read = bodies_of(&client, read_from(short.clone(), SHORT - 1)).await;
    let last = (SHORT - 1, Bytes::from(body(SHORT - 1, MIB as usize / 2)));
    assert_eq!(read.expect("a read"), [last]);
    let trimmed = bodies_of(&client, read_from(short, 0)).await;
    crate::refusal(trimmed, Code::Trimmed);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn mostly_dead_segments_are_rewritten_and_what_is_kept_stays() {
    let home = Home::new(SITE);
    let star = home.start();
    let there = fill(&home).await;
    star.kill();
    let (before, on_disk) = (segment_bytes(&home), disk_bytes(&home.data()));
    assert!(before > SEGMENTS * SEGMENT_BYTES * 3 / 4, "{before} bytes");
    // A start looks at once at all that was sealed before it. It is killed in the middle of it.
    let star = home.start();
    wait_for_rewritten(&star, 2);
    star.kill();
    let star = home.start();
    check(&home, &there).await;
    wait_for_rewritten(&star, SEGMENTS - 1);
    check(&home, &there).await;
    star.stop().expect_done();
    let (after, on_disk_after) = (segment_bytes(&home), disk_bytes(&home.data()));
    println!("segments took {before} bytes and take {after}; all of it {on_disk}, {on_disk_after}");
    let rewritten = segments::segments(&log_folder(&home, 0)).into_iter();
    let rewritten = rewritten.filter(|file| {
        let name = file.file_name().and_then(|name| name.to_str());
        name.is_some_and(|name| name.ends_with("-00001.seg"))
    });
    assert!(rewritten.count() as u64 >= SEGMENTS - 2);
    // The last segments of each start are as they were.
    assert!(after < before / 3, "{before} bytes before, {after} after");
    assert!(
        on_disk_after < on_disk,
        "{on_disk} bytes before, {on_disk_after} after"
    );
    let star = home.start();
    check(&home, &there).await;
    star.kill();
}
