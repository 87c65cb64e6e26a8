//! The story of a run: a hash of all of it, and on request its lines.
//!
//! # Invariants
//! - What is hashed does not depend on whether lines are kept.

use crate::rng::mix;
use std::any::Any;

/// Lines that are kept for the end of a story.
const LINES_MAX: usize = 200_000;

/// What happened, so far.
#[derive(Debug, Default)]
pub struct Trace {
    hash: u64,
    events: u64,
    lines: Option<Vec<String>>,
}

impl Trace {
    /// A story of which only the hash is kept, or the lines too.
    pub fn new(with_lines: bool) -> Trace {
        Trace {
            hash: 0,
            events: 0,
            lines: with_lines.then(Vec::new),
        }
    }

    /// Something happened; `text` is only asked for when lines are kept.
    pub fn note(&mut self, now: u64, kind: &'static str, what: u64, text: impl FnOnce() -> String) {
        self.events += 1;
        let kind_hash = hash_bytes(kind.as_bytes());
        self.hash = mix(self.hash ^ mix(now) ^ kind_hash.rotate_left(17) ^ mix(what));
        if let Some(lines) = &mut self.lines
            && lines.len() < LINES_MAX
        {
            let (s, us) = (now / 1_000_000, now % 1_000_000);
            lines.push(format!("{s}.{us:06} {kind:9} {}", text()));
        }
    }

    /// The hash of everything so far.
    pub fn hash(&self) -> u64 {
        self.hash
    }

    /// How many things happened.
    pub fn events(&self) -> u64 {
        self.events
    }

    /// The lines, if they were kept.
    pub fn into_lines(self) -> Vec<String> {
        self.lines.unwrap_or_default()
    }
}

/// A quick hash of bytes, for traces only.
pub fn hash_bytes(bytes: &[u8]) -> u64 {
    let mut hash = bytes.len() as u64;
    let mut chunks = bytes.chunks_exact(8);
    for chunk in &mut chunks {
        let word = u64::from_le_bytes(chunk.try_into().expect("chunks of 8 bytes"));
        hash = (hash.rotate_left(5) ^ word).wrapping_mul(0x517c_c1b7_2722_0a95);
    }
    for &byte in chunks.remainder() {
        hash = (hash.rotate_left(5) ^ u64::from(byte)).wrapping_mul(0x517c_c1b7_2722_0a95);
    }
    mix(hash)
}

/// What a failed assertion said.
pub fn words_of(panic: &(dyn Any + Send)) -> String {
    let text = match (panic.downcast_ref::<String>(), panic.downcast_ref::<&str>()) {
        (Some(text), _) => text.as_str(),
        (None, Some(text)) => text,
        (None, None) => "without words",
    };
    format!("an assertion failed: {text}")
}
