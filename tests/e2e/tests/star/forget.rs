//! Contract 7; storage, forgetting: a star under retention stays within its bound on the disk, what
//! was trimmed stays so after kills, and descriptors and memory do not grow with segments.
//!
//! `NOVA_E2E_SOAK_MIB` sets how much is written (480 by default), `NOVA_E2E_RESTARTS` how often the
//! star is killed in between (3): the long form, of 10,000 segments, is
//! 163840 and 50.

use crate::{SITE, append_once, bodies_of, in_time, make_stream};
use nova_client::*;
use nova_e2e::home::{Home, Star};
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
/// The newest batches in memory, and half as much for all else that comes and goes.
const MEMORY_SPREAD_MAX: u64 = 96 * MIB;
/// Descriptors of the star's process.
const DESCRIPTORS: u64 = 256;

fn number(variable: &str, usual: u64) -> u64 {
    let said = std::env::var(variable).ok();
    said.map_or(usual, |text| text.parse().expect("a number"))
}

/// Bytes that the files of a folder take.
fn disk_bytes(folder: &std::path::Path) -> u64 {
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

fn descriptors(star: &Star) -> u64 {
    let folder = format!("/proc/{}/fd", star.process().id());
    std::fs::read_dir(folder).expect("the star runs").count() as u64
}

fn body(n: u64) -> Vec<u8> {
    let word = n.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes();
    word.repeat(64 * 1024)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_star_under_retention_stays_within_its_bound() {
    let records = number("NOVA_E2E_SOAK_MIB", 480) * 2;
    let restarts = number("NOVA_E2E_RESTARTS", 3);
    let mut home = Home::new(SITE);
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
    let mut held = Vec::new();
    for round in 0..=restarts {
        let client = home.client();
        let producer = crate::producer(&client, &name);
        while written < records * (round + 1) / (restarts + 1) {
            let append = producer.append(Record::new(body(written)));
            let appended = in_time("an append", append).await.expect("an append");
            assert_eq!(appended.start.sequence.0, written);
            written += 1;
            if written.is_multiple_of(16) {
                most = most.max(disk_bytes(&home.data()));
                assert!(
                    most <= DISK_BYTES_MAX,
                    "{most} bytes after {written} records: {:?}",
                    files(&home.data())
                );
            }
        }
        held.push((descriptors(&star), star.memory_bytes()));
        let info = client.describe_stream(name.clone());
        let info = in_time("a description", info).await.expect("a description");
        assert!(info.first.0 >= first_before, "what was trimmed came back");
        first_before = info.first.0;
        star.kill();
        star = home.start();
    }
    let left = first_left(&home.client(), &name).await;
    assert!(left >= first_before, "what was trimmed came back");
    assert!(left > records / 4, "first is {left}");
    check_what_is_left(&home.client(), name, rest, left..records).await;
    let bound = DISK_BYTES_MAX / MIB;
    println!(
        "{} MiB written, at most {} of {bound} MiB on disk",
        records / 2,
        most / MIB
    );
    println!("descriptors and bytes of memory, before each kill: {held:?}");
    let most_descriptors = held
        .iter()
        .map(|(count, _)| *count)
        .max()
        .unwrap_or_default();
    assert!(
        most_descriptors < DESCRIPTORS / 2,
        "{most_descriptors} descriptors"
    );
    let memory = held.iter().map(|(_, bytes)| *bytes);
    let spread = memory.clone().max().unwrap_or(0) - memory.min().unwrap_or(0);
    assert!(spread <= MEMORY_SPREAD_MAX, "{spread} bytes more or less");
    drop(star);
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
