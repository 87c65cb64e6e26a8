//! Cuts bytes into lines as they come, without a copy where a line lies within one chunk.
//!
//! ```text
//!   chunks:  | one\ntw | o\nthr | ee |
//!   lines:     one  two   three          "two" and "three" are put together from two chunks
//! ```
//! A line ends with `\n`, which is not part of it; everything else is, also `\r`. What stands
//! behind the last `\n` is a line of its own, if it is anything at all.
//!
//! # Invariants
//! - No more than `bytes_max` bytes of an unfinished line are kept.

use bytes::{Buf, Bytes, BytesMut};

/// A line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Line {
    /// Which, from 1.
    pub(crate) number: u64,
    /// Its bytes without the `\n`.
    pub(crate) body: Bytes,
}

/// A line that is longer than a record may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("line {number} has more than {bytes_max} bytes, the most that a record holds")]
pub(crate) struct LineTooLong {
    /// Which, from 1.
    pub(crate) number: u64,
    /// The most that a line may have.
    pub(crate) bytes_max: usize,
}

/// Cuts chunks into lines.
#[derive(Debug)]
pub(crate) struct LineSplitter {
    bytes_max: usize,
    chunk: Bytes,
    begun: BytesMut,
    number: u64,
}

impl LineSplitter {
    /// A splitter for lines of at most this many bytes.
    pub(crate) fn new(bytes_max: usize) -> LineSplitter {
        LineSplitter {
            bytes_max,
            chunk: Bytes::new(),
            begun: BytesMut::new(),
            number: 1,
        }
    }

    /// Takes the next chunk. The lines of the one before have all been taken.
    pub(crate) fn push(&mut self, chunk: Bytes) {
        assert!(self.chunk.is_empty(), "all lines of a chunk are taken");
        self.chunk = chunk;
    }

    /// The next whole line; `None` if the chunk has no more.
    pub(crate) fn next_line(&mut self) -> Result<Option<Line>, LineTooLong> {
        let end = memchr::memchr(b'\n', &self.chunk);
        let there = end.unwrap_or(self.chunk.len());
        if self.begun.len() + there > self.bytes_max {
            return Err(LineTooLong {
                number: self.number,
                bytes_max: self.bytes_max,
            });
        }
        let piece = self.chunk.split_to(there);
        if end.is_none() {
            self.begun.extend_from_slice(&piece);
            return Ok(None);
        }
        self.chunk.advance(1);
        if self.begun.is_empty() {
            return Ok(Some(self.line(piece)));
        }
        self.begun.extend_from_slice(&piece);
        let body = self.begun.split().freeze();
        Ok(Some(self.line(body)))
    }

    /// At the end of the input: the line that no `\n` ends, if there is one.
    pub(crate) fn finish(&mut self) -> Option<Line> {
        if self.begun.is_empty() {
            return None;
        }
        let body = self.begun.split().freeze();
        Some(self.line(body))
    }

    fn line(&mut self, body: Bytes) -> Line {
        let number = self.number;
        self.number += 1;
        Line { number, body }
    }
}

#[cfg(test)]
#[path = "line_splitter_tests.rs"]
mod tests;
