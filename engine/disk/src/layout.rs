//! Names of the files in a data directory.
//!
//! What lies where is described in docs/FORMAT.md; this module only builds the names and reads
//! them back.
//!
//! # Invariants
//! - Each name has exactly one spelling: what [`parse`] accepts, the builders produce.
//!
//! # Not here
//! - What the files hold: `nova-core` for segments and indexes, [`crate::identity`] and
//!   [`crate::registry`] for the two at the top.

use nova_core::disk::SegmentFile;
use nova_model::{Generation, LogId, SegmentNumber};
use std::path::{Path, PathBuf};

/// Name of the identity file.
pub(crate) const STAR_NAME: &str = "star";
/// Name of the file whose lock a running star holds.
pub(crate) const LOCK_NAME: &str = "LOCK";
/// Name of the registry file.
pub(crate) const REGISTRY_NAME: &str = "registry";
/// Ending of files that are not whole yet; they may be removed at any start.
pub(crate) const DRAFT_ENDING: &str = ".draft";

const LOG_PREFIX: &str = "core-";
const SPARE_PREFIX: &str = "spare-";
const SEGMENT_ENDING: &str = ".seg";
const INDEX_ENDING: &str = ".idx";
const SEGMENT_DIGITS: usize = 20;
const SMALL_DIGITS: usize = 3;
const GENERATION_DIGITS: usize = 5;

/// The places of a data directory's files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout {
    root: PathBuf,
    /// Cores of the star: each writes the log of its number, and nobody those of others.
    cores: u16,
}

/// What a name in a log's directory stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LogEntry {
    /// A generation of a segment.
    Segment(SegmentNumber, Generation),
    /// The index of one.
    Index(SegmentNumber, Generation),
    /// A spare file, by its number.
    Spare(usize),
    /// A file that never became whole.
    Draft,
}

impl Layout {
    /// The layout below `root`, where all logs may be written.
    pub fn new(root: impl Into<PathBuf>) -> Layout {
        let (root, cores) = (root.into(), u16::MAX);
        Layout { root, cores }
    }

    /// The same for a star of so many cores. Logs of others only shrink, and need no spare files.
    pub fn of_cores(&self, cores: u16) -> Layout {
        let root = self.root.clone();
        Layout { root, cores }
    }

    /// Whether a core writes this log.
    pub(crate) fn is_written(&self, log: LogId) -> bool {
        log.0 < self.cores
    }

    /// The data directory itself.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The identity file.
    pub fn star(&self) -> PathBuf {
        self.root.join(STAR_NAME)
    }

    /// The registry file.
    pub fn registry(&self) -> PathBuf {
        self.root.join(REGISTRY_NAME)
    }

    /// The file that a running star has locked.
    pub fn lock(&self) -> PathBuf {
        self.root.join(LOCK_NAME)
    }

    /// A log's directory.
    pub fn log(&self, log: LogId) -> PathBuf {
        self.root.join(format!("{LOG_PREFIX}{:03}", log.0))
    }

    /// A segment.
    pub fn segment(&self, file: SegmentFile) -> PathBuf {
        self.root.join(file.to_string())
    }

    /// A segment's index.
    pub fn index(&self, file: SegmentFile) -> PathBuf {
        self.index_of(file, Generation(0))
    }

    /// A spare file of a log.
    pub(crate) fn spare(&self, log: LogId, number: usize) -> PathBuf {
        self.log(log)
            .join(format!("{SPARE_PREFIX}{number:03}{SEGMENT_ENDING}"))
    }

    /// A segment that is not whole yet.
    pub(crate) fn draft(&self, file: SegmentFile) -> PathBuf {
        self.draft_of(file, Generation(0))
    }

    /// A generation of a segment that is not whole yet.
    pub(crate) fn draft_of(&self, file: SegmentFile, generation: Generation) -> PathBuf {
        let name = segment_name(file.number, generation);
        self.log(file.log).join(format!("{name}{DRAFT_ENDING}"))
    }

    /// A generation of a segment.
    pub(crate) fn segment_of(&self, file: SegmentFile, generation: Generation) -> PathBuf {
        let name = segment_name(file.number, generation);
        self.log(file.log).join(name)
    }

    /// The index of a generation of a segment.
    pub(crate) fn index_of(&self, file: SegmentFile, generation: Generation) -> PathBuf {
        let name = index_name(file.number, generation);
        self.log(file.log).join(name)
    }
}

/// Name of an index in its log's directory.
pub(crate) fn index_name(number: SegmentNumber, generation: Generation) -> String {
    format!("{}{INDEX_ENDING}", stem(number, generation))
}

/// Name of a segment in its log's directory.
pub(crate) fn segment_name(number: SegmentNumber, generation: Generation) -> String {
    format!("{}{SEGMENT_ENDING}", stem(number, generation))
}

fn stem(number: SegmentNumber, generation: Generation) -> String {
    match generation {
        Generation(0) => format!("{:020}", number.0),
        Generation(generation) => format!("{:020}-{generation:05}", number.0),
    }
}

fn parse_stem(stem: &str) -> Option<(SegmentNumber, Generation)> {
    let (number, generation) = match stem.split_once('-') {
        None => (stem, 0),
        Some((number, generation)) => {
            let generation = digits(generation, GENERATION_DIGITS)?;
            (number, u16::try_from(generation).ok().filter(|g| *g > 0)?)
        }
    };
    // There is no number behind the last one, so no segment has it.
    let number = digits(number, SEGMENT_DIGITS).filter(|number| *number < u64::MAX)?;
    Some((SegmentNumber(number), Generation(generation)))
}

/// What `name` in a log's directory stands for; `None` when it is nothing of ours.
pub(crate) fn parse(name: &str) -> Option<LogEntry> {
    if name.ends_with(DRAFT_ENDING) {
        return Some(LogEntry::Draft);
    }
    if let Some(stem) = name.strip_suffix(INDEX_ENDING) {
        return parse_stem(stem).map(|(number, of)| LogEntry::Index(number, of));
    }
    let stem = name.strip_suffix(SEGMENT_ENDING)?;
    if let Some(number) = stem.strip_prefix(SPARE_PREFIX) {
        let number = digits(number, SMALL_DIGITS)?;
        return usize::try_from(number).ok().map(LogEntry::Spare);
    }
    parse_stem(stem).map(|(number, of)| LogEntry::Segment(number, of))
}

/// The log whose directory is called `name`.
pub(crate) fn parse_log(name: &str) -> Option<LogId> {
    let text = name.strip_prefix(LOG_PREFIX)?;
    let log = text.parse::<u16>().ok().map(LogId)?;
    (format!("{:03}", log.0) == text).then_some(log)
}

fn digits(text: &str, count: usize) -> Option<u64> {
    let plain = text.len() == count && text.bytes().all(|byte| byte.is_ascii_digit());
    plain.then(|| text.parse().ok()).flatten()
}

#[cfg(test)]
#[path = "layout_tests.rs"]
mod tests;
