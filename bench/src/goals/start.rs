//! Time to start with much sealed data, against a star that has none.
//!
//! ```text
//!   before:      full star: N GiB, then 192 MiB more, killed      empty star: started once, killed
//!   each round:  start a new star | start empty, kill | start full, append 192 MiB, kill
//! ```
//! The full star is killed with a last segment that nobody sealed, so each start of it reads most
//! of a segment: the worst case, not that after an orderly stop. Pages of its files are dropped
//! from the page cache before each start. "None" has two faces, and the faster one is the measure:
//! a new data directory has no log to look through but gets its certificates, an empty star's log
//! has one segment that was never written to.
//!
//! # Invariants
//! - The empty and the full star end in the same way, so what a start does for a crash is in both.

use super::{Bench, connect};
use crate::error::BenchError;
use crate::folder::{Folder, MIB};
use crate::goals::load::{body, ensure_bucket, pipeline, producer};
use crate::report::{Bound, Section, Verdict};
use crate::series::{Role, Series, Unit};
use crate::star::Star;
use nova_client::Client;
use nova_model::limits::SEGMENT_BYTES_DEFAULT;
use rustix::fs::{Advice, fadvise};
use std::fs::{self, File};
use std::io;
use std::path::Path;

const DIFFERENCE_MS_MAX: f64 = 1_000.0;
const RECORD_BYTES: usize = 16 * 1024;
/// What is appended behind the sealed data between two starts; less than a segment.
const TAIL_BYTES: u64 = 192 * MIB;
/// A record takes more on disk than its body.
const OVERHEAD_PERCENT: u64 = 105;

struct Measured {
    fresh: Series,
    empty: Series,
    full: Series,
}

/// Files of a data directory.
#[derive(Debug, Clone, Copy, Default)]
struct Files {
    segments: u64,
    bytes: u64,
}

/// Measures it.
pub fn run(bench: &Bench) -> Result<Section, BenchError> {
    let gib = bench.options.sealed_gib();
    let rounds = bench.options.rounds();
    let sealed = gib * 1024 * MIB;
    let written = (sealed + (rounds as u64 + 1) * TAIL_BYTES) * OVERHEAD_PERCENT / 100;
    let folder = bench.folder(
        "start",
        written + (rounds as u64 + 8) * SEGMENT_BYTES_DEFAULT,
    )?;
    bench.progress(&format!("start, filling {gib} GiB"));
    let full = folder.data("full");
    let star = bench.star(&full)?;
    append(bench, &star, sealed)?;
    append(bench, &star, TAIL_BYTES)?;
    star.kill()?;
    let measured = measure(bench, &folder, &full, rounds)?;
    let mut files = Files::default();
    visit(&full, &mut |path, length| {
        if path.extension().is_some_and(|extension| extension == "seg") {
            files.segments += 1;
            files.bytes += length;
        }
        Ok(())
    })?;
    Ok(section(measured, gib, rounds, files))
}

fn section(measured: Measured, gib: u64, rounds: usize, files: Files) -> Section {
    let Measured { fresh, empty, full } = measured;
    let difference = full.median() - empty.median().min(fresh.median());
    let what = "ms that the start with sealed data takes more than the faster one without";
    let (segments, mib) = (files.segments, files.bytes / MIB);
    let tail_mib = TAIL_BYTES / MIB;
    Section {
        name: "start",
        title: format!(
            "process to line 'ready', {rounds} rounds: {gib} GiB sealed and {tail_mib} MiB of an \
             unsealed segment, killed, against an empty star, killed"
        ),
        series: vec![fresh, empty, full],
        verdicts: vec![Verdict::new(
            what,
            difference,
            Bound::AtMost,
            DIFFERENCE_MS_MAX,
        )],
        notes: vec![format!(
            "{segments} segments of {mib} MiB together at the end"
        )],
    }
}

fn measure(
    bench: &Bench,
    folder: &Folder,
    full: &Path,
    rounds: usize,
) -> Result<Measured, BenchError> {
    let series = |role, name| Series::new(role, name, Unit::Millis);
    let mut measured = Measured {
        fresh: series(Role::Baseline, "new data directory, certificates made"),
        empty: series(Role::Baseline, "empty star"),
        full: series(Role::Star, "star with sealed data"),
    };
    let empty = folder.data("empty");
    bench.star(&empty)?.kill()?;
    for round in 1..=rounds {
        bench.progress(&format!("start, round {round}"));
        let star = bench.star(&folder.data(&format!("new-{round}")))?;
        measured.fresh.push(start_ms(&star));
        star.kill()?;
        let star = bench.star(&empty)?;
        measured.empty.push(start_ms(&star));
        star.kill()?;
        drop_cached(full)?;
        let star = bench.star(full)?;
        measured.full.push(start_ms(&star));
        if round < rounds {
            append(bench, &star, TAIL_BYTES)?;
        }
        star.kill()?;
    }
    Ok(measured)
}

fn start_ms(star: &Star) -> f64 {
    star.start_time.as_secs_f64() * 1e3
}

/// Appends so many bytes through the star.
fn append(bench: &Bench, star: &Star, bytes: u64) -> Result<(), BenchError> {
    let work = async || {
        let client: Client = connect(star)?;
        ensure_bucket(&client).await?;
        let producer = producer(&client, 0).await?;
        let count = (bytes / RECORD_BYTES as u64) as usize;
        pipeline(&producer, &body(RECORD_BYTES), count).await?;
        let closed = producer.close().await;
        closed.map_err(BenchError::client("closing the producer"))?;
        client.close().await;
        Ok(())
    };
    bench.cpus.run_client(work)
}

/// Tells the kernel that the files below a directory need not be kept in memory.
fn drop_cached(directory: &Path) -> Result<(), BenchError> {
    visit(directory, &mut |path, _| {
        let file = File::open(path)?;
        file.sync_all()?;
        Ok(fadvise(&file, 0, None, Advice::DontNeed)?)
    })
}

/// Calls `each` with every file below a directory and its length.
pub(super) fn visit(
    directory: &Path,
    each: &mut dyn FnMut(&Path, u64) -> io::Result<()>,
) -> Result<(), BenchError> {
    let failed = |source| BenchError::Io {
        operation: format!("walking {}", directory.display()),
        source,
    };
    for entry in fs::read_dir(directory).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let metadata = entry.metadata().map_err(failed)?;
        if metadata.is_dir() {
            visit(&entry.path(), each)?;
        } else if metadata.is_file() {
            each(&entry.path(), metadata.len()).map_err(failed)?;
        }
    }
    Ok(())
}
