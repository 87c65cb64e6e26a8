//! Contract 7; storage, forgetting: a star under retention stays within its bound on the disk, what
//! was trimmed stays so after kills and stops, and descriptors and memory do not grow with
//! segments.
//!
//! ```text
//!   one life that writes half of all  -->  SIGTERM, a life, SIGKILL, a life, SIGTERM ... the rest
//!   looked at every 8 MiB: disk, descriptors, memory
//! ```
//! `NOVA_E2E_SOAK_MIB` sets how much is written (480 by default), `NOVA_E2E_RESTARTS` how often the
//! star is started again in between (4): the long form, of 10,000 segments, is
//! 163840 and 50.

use crate::{SITE, append_once, bodies_of, in_time, make_stream};
use nova_client::*;
use nova_e2e::home::{Home, Star};
use nova_e2e::segments::segments;
use nova_model::limits::GROUP_BYTES_MAX;
use nova_model::settings::Retention;

const MIB: u64 = 1 << 20;
/// Bytes that the stream keeps.
const KEPT_BYTES: u64 = 32 * MIB;
/// A segment of these tests.
const SEGMENT_BYTES: u64 = 16 * MIB;
/// What is kept, and six segments (docs/DURABILITY.md derives it): the one that what is kept
/// begins in, two that were sealed since forgetting had last caught up, the one that is written and
/// the one made ahead; and the one with the record of the stream at rest. Spare files are among
/// them: a file is made only when there is none. Indexes and identity come on top.
const DISK_BYTES_MAX: u64 = KEPT_BYTES + 6 * SEGMENT_BYTES + MIB;
/// Newest batches that the star keeps in memory.
const RECENT_BYTES: u64 = 8 * MIB;
/// Memory more or less, at any two looks: the newest batches; a group as it is laid and once more
/// in the device's buffer, at most; what one connection may send unread.
const MEMORY_SPREAD_MAX: u64 = RECENT_BYTES + 2 * GROUP_BYTES_MAX as u64 + 8 * MIB;
/// Descriptors of the star's process.
const DESCRIPTORS: u64 = 256;
/// Descriptors beyond those of a star that has just started, with its first segment: the next
/// segment, one that is being finished, one that is rewritten, and the two of one act in a log's
/// folder.
const DESCRIPTORS_MORE_MAX: u64 = 5;
/// Records between two looks.
const LOOK_EVERY: u64 = 16;

fn number(variable: &str, usual: u64) -> u64 {
    let said = std::env::var(variable).ok();
    said.map_or(usual, |text| text.parse().expect("a number"))
}

/// Bytes that the files of a folder take.
pub(crate) fn disk_bytes(folder: &std::path::Path) -> u64 {
    use std::os::unix::fs::MetadataExt;
    let entries = std::fs::read_dir(folder).expect("the folder is there");
    let bytes = entries.map(|entry| {
        // A file may go while it is looked at.
        let entry = entry.expect("the folder can be listed");
        match entry.metadata() {
            Ok(found) if found.is_dir() => disk_bytes(&entry.path()),
            Ok(found) => found.blocks() * 512,
            Err(_) => 0,
        }
    });
    bytes.sum()
}

/// The files of the only log.
fn files(data: &std::path::Path) -> Vec<std::ffi::OsString> {
    let entries = std::fs::read_dir(data.join("core-000")).expect("the log is there");
    let mut names: Vec<_> = entries.flatten().map(|entry| entry.file_name()).collect();
    names.sort();
    names
}

/// What was seen of a life of the star.
#[derive(Debug)]
struct Life {
    descriptors_at_start: u64,
    descriptors_most: u64,
    memory_least: u64,
    memory_most: u64,
}

impl Life {
    fn begin(star: &Star) -> Life {
        let (descriptors, memory) = (star.descriptors(), star.memory_bytes());
        Life {
            descriptors_at_start: descriptors,
            descriptors_most: descriptors,
            memory_least: memory,
            memory_most: memory,
        }
    }

    fn look(&mut self, star: &Star) {
        let memory = star.memory_bytes();
        self.descriptors_most = self.descriptors_most.max(star.descriptors());
        self.memory_least = self.memory_least.min(memory);
        self.memory_most = self.memory_most.max(memory);
    }
}

/// Lives together: no life has more of anything than a star that starts and what comes and goes.
fn check_lives(lives: &[Life]) {
    let at_start = lives.iter().map(|life| life.descriptors_at_start);
    let most = lives.iter().map(|life| life.descriptors_most).max();
    let (least, most) = (at_start.min().unwrap_or(0), most.unwrap_or(0));
    let memory_least = lives.iter().map(|life| life.memory_least).min();
    let memory_most = lives.iter().map(|life| life.memory_most).max();
    let (memory_least, memory_most) = (memory_least.unwrap_or(0), memory_most.unwrap_or(0));
    println!("descriptors {least} to {most} of {DESCRIPTORS}");
    println!(
        "memory {} to {} MiB; of the first life {} to {} MiB, of the last {} to {} MiB",
        memory_least / MIB,
        memory_most / MIB,
        lives[0].memory_least / MIB,
        lives[0].memory_most / MIB,
        lives[lives.len() - 1].memory_least / MIB,
        lives[lives.len() - 1].memory_most / MIB,
    );
    assert!(most <= least + DESCRIPTORS_MORE_MAX, "{lives:?}");
    let spread = memory_most - memory_least;
    assert!(spread <= MEMORY_SPREAD_MAX, "{spread} bytes: {lives:?}");
}

/// How many records are written when a life ends: half of all in the first one.
fn written_by(life: u64, restarts: u64, records: u64) -> u64 {
    match restarts {
        0 => records,
        _ => records / 2 + records.div_ceil(2) * life / restarts,
    }
}

fn body(n: u64) -> Vec<u8> {
    let word = n.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes();
    word.repeat(64 * 1024)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_star_under_retention_stays_within_its_bound() {
    let records = number("NOVA_E2E_SOAK_MIB", 480) * 2;
    let restarts = number("NOVA_E2E_RESTARTS", 4);
    let mut home = Home::new(SITE);
    home.add_flag(&format!("--recent-bytes={RECENT_BYTES}"));
    let limited = format!("ulimit -n {DESCRIPTORS} && exec \"$0\" \"$@\"");
    home.wrap(&["sh", "-c", &limited]);
    let mut star = home.start();
    let name = make_stream(&home.client(), "soak").await;
    let client = home.client();
    keep_bytes(&client, &name).await;
    let rest = make_stream(&client, "rest").await;
    append_once(&client, &rest, Record::new("at rest"))
        .await
        .expect("an append");
    let (mut most, mut first_before, mut written) = (0, 0, 0);
    let mut lives = Vec::new();
    for life in 0..=restarts {
        let client = home.client();
        let producer = crate::producer(&client, &name);
        let mut seen = Life::begin(&star);
        while written < written_by(life, restarts, records) {
            let append = producer.append(Record::new(body(written)));
            let appended = in_time("an append", append).await.expect("an append");
            assert_eq!(appended.start.sequence.0, written);
            written += 1;
            if written.is_multiple_of(LOOK_EVERY) {
                seen.look(&star);
                most = most.max(disk_bytes(&home.data()));
                assert!(
                    most <= DISK_BYTES_MAX,
                    "{most} bytes after {written} records: {:?}",
                    files(&home.data())
                );
            }
        }
        lives.push(seen);
        let info = client.describe_stream(name.clone());
        let info = in_time("a description", info).await.expect("a description");
        assert!(info.first.0 >= first_before, "what was trimmed came back");
        first_before = info.first.0;
        match life % 2 {
            0 => drop(star.stop().expect_done()),
            _ => star.kill(),
        }
        star = home.start();
    }
    let left = first_left(&home.client(), &name).await;
    assert!(left >= first_before, "what was trimmed came back");
    assert!(left > records / 4, "first is {left}");
    check_what_is_left(&home.client(), name, rest, left..records).await;
    println!(
        "{} MiB in {} segments and {} lives, at most {} of {} MiB on disk",
        records / 2,
        last_segment(&home),
        lives.len(),
        most / MIB,
        DISK_BYTES_MAX / MIB
    );
    check_lives(&lives);
    drop(star);
}

/// The number of the newest segment.
fn last_segment(home: &Home) -> u64 {
    let all = segments(&crate::log_folder(home, 0));
    let stem = all.last().and_then(|path| path.file_stem());
    let digits = stem.and_then(|stem| stem.to_str()).expect("a segment");
    digits.parse().expect("a number")
}

/// Sets the bound of a stream.
async fn keep_bytes(client: &Client, name: &StreamName) {
    let change = StreamSettings {
        retention: Some(Retention {
            age_s: None,
            bytes: Some(KEPT_BYTES),
        }),
        ..StreamSettings::default()
    };
    let changed = client.reconfigure_stream(name.clone(), change);
    in_time("new settings", changed)
        .await
        .expect("new settings");
}

/// The first record that is left.
async fn first_left(client: &Client, name: &StreamName) -> u64 {
    let info = client.describe_stream(name.clone());
    let info = in_time("a description", info).await;
    info.expect("a description").first.0
}

async fn check_what_is_left(
    client: &Client,
    name: StreamName,
    rest: StreamName,
    left: std::ops::Range<u64>,
) {
    let read = bodies_of(client, read_from(name.clone(), left.start)).await;
    let read = read.expect("a read");
    let numbers: Vec<u64> = read.iter().map(|(sequence, _)| *sequence).collect();
    assert_eq!(numbers, left.clone().collect::<Vec<_>>());
    assert!(read.iter().all(|(n, there)| body(*n) == there[..]));
    let error = bodies_of(client, read_from(name, left.start - 1)).await;
    crate::refusal(error, Code::Trimmed);
    let rest = bodies_of(client, read_from(rest, 0)).await;
    let rest = rest.expect("a read");
    assert_eq!(rest.len(), 1, "a stream at rest keeps its record");
}
