//! Where the lines of a trial come from: a file, stdin, or they are made up.
//!
//! | FILE | stdin | lines |
//! | --- | --- | --- |
//! | a path | any | of the file |
//! | `-` | any | of stdin |
//! | none | file or pipe in which something comes | of stdin |
//! | none | terminal, `/dev/null`, or a pipe in which nothing comes | made up |

use crate::cli::failure::{Exit, Failure};
use crate::cli::input::{self, Chunks};
use crate::cli::line_splitter::{Line, LineSplitter};
use crate::cli::time_text::wall;
use crate::cli::trial::made_up;
use nova_model::limits::{RECORD_METERED_BYTES_MAX, RECORD_METERED_BYTES_MIN};
use rustix::fs::FileType;
use std::io;
use std::path::Path;

/// Made-up lines when no number is asked for.
const MADE_UP_LINES: u64 = 100_000;
/// How long something may take to come through a pipe that nobody named.
const PIPE_WAIT_S: u32 = 2;
const LINE_BYTES_MAX: usize = RECORD_METERED_BYTES_MAX - RECORD_METERED_BYTES_MIN;

/// A source of lines.
#[derive(Debug)]
pub(super) struct Source {
    chunks: Chunks,
    splitter: LineSplitter,
    origin: String,
    /// Lines that may still come.
    left: u64,
    total: Option<u64>,
    is_over: bool,
}

impl Source {
    /// Opens what was named, or chooses.
    pub(super) fn open(file: Option<&Path>, records: Option<u64>) -> Result<Source, Failure> {
        match file {
            Some(path) if path == Path::new("-") => Source::stdin(records),
            Some(path) => {
                let what = || format!("{} can't be read", path.display());
                let file = std::fs::File::open(path);
                let file = file.map_err(|error| Failure::local(what(), &error))?;
                let chunks = input::chunks(file.into())?;
                Ok(Source::new(
                    chunks,
                    path.display().to_string(),
                    records,
                    None,
                ))
            }
            None if has_stdin()
                .map_err(|error| Failure::local("stdin can't be read", &error))? =>
            {
                Source::stdin(records)
            }
            None => {
                let lines = records.unwrap_or(MADE_UP_LINES);
                let chunks = made_up::chunks(lines, wall());
                let chunks =
                    chunks.map_err(|error| Failure::local("a thread can't be started", &error))?;
                let origin = "made-up log lines".to_owned();
                Ok(Source::new(chunks, origin, Some(lines), Some(lines)))
            }
        }
    }

    fn stdin(records: Option<u64>) -> Result<Source, Failure> {
        let chunks = input::stdin_chunks()?;
        Ok(Source::new(chunks, "stdin".to_owned(), records, None))
    }

    fn new(chunks: Chunks, origin: String, most: Option<u64>, total: Option<u64>) -> Source {
        Source {
            chunks,
            splitter: LineSplitter::new(LINE_BYTES_MAX),
            origin,
            left: most.unwrap_or(u64::MAX),
            total,
            is_over: false,
        }
    }

    /// How many lines there are, if that is known.
    pub(super) fn total(&self) -> Option<u64> {
        self.total
    }

    /// Where the lines come from.
    pub(super) fn origin(&self) -> String {
        self.origin.clone()
    }

    /// The next line.
    pub(super) async fn next(&mut self) -> Result<Option<Line>, Failure> {
        if self.left == 0 {
            return Ok(None);
        }
        let line = loop {
            let line = self.splitter.next_line().map_err(|error| {
                let next = "cut it, or name another file";
                Failure::new(Exit::Usage, "a line is too long", error.to_string(), next)
            })?;
            if line.is_some() || self.is_over {
                break line;
            }
            match self.chunks.recv().await {
                Some(Ok(chunk)) => self.splitter.push(chunk),
                Some(Err(error)) => {
                    let what = format!("{} can't be read on", self.origin);
                    return Err(Failure::local(what, &error));
                }
                None => {
                    self.is_over = true;
                    break self.splitter.finish();
                }
            }
        };
        self.left -= u64::from(line.is_some());
        Ok(line)
    }
}

/// Whether stdin is a file or a pipe in which something comes.
fn has_stdin() -> io::Result<bool> {
    let status = rustix::fs::fstat(io::stdin())?;
    match FileType::from_raw_mode(status.st_mode) {
        FileType::RegularFile => Ok(status.st_size > 0),
        FileType::Fifo | FileType::Socket => {
            if !input::is_readable_within(io::stdin(), PIPE_WAIT_S)? {
                eprintln!("nova: nothing comes on stdin, lines are made up (say - to wait for it)");
                return Ok(false);
            }
            let there = rustix::io::ioctl_fionread(io::stdin())?;
            Ok(there > 0)
        }
        _ => Ok(false),
    }
}

#[cfg(test)]
#[path = "source_tests.rs"]
mod tests;
