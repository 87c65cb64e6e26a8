//! The history of a run: what clients asked and were told, one JSON object a line.
//!
//! ```text
//!   {"at":"sent","stream":"b/plain","producer":"p1","id":7}
//!   {"at":"acked","stream":"b/plain","producer":"p1","id":7,"sequence":12}
//!   {"at":"read","stream":"b/plain","reader":"r1","sequence":12,"producer":"p1","id":7}
//! ```
//!
//! # Invariants
//! - Lines are in the order in which clients saw things: what is above was seen before.
//! - A record is known by its producer and its number there; its body is [`body`] of both, so a
//!   record that nobody sent or that was damaged is recognised.
//!
//! # Not here
//! - The judgement: [`crate::checker`].

use nova_client::StreamName;
use serde::{Deserialize, Serialize};
use std::io::{self, BufRead, Write};
use std::sync::{Mutex, PoisonError};

/// One thing that a client saw.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "at", rename_all = "kebab-case")]
pub enum Event {
    /// A producer begins, and what it promises.
    Producer {
        /// Where it appends.
        stream: String,
        /// Its name, never used again.
        producer: String,
        /// What is promised for its records.
        promise: Promise,
    },
    /// A record was given to the client.
    Sent {
        /// Where it is to go.
        stream: String,
        /// By whom.
        producer: String,
        /// Its number, from 0 in the order of sending.
        id: u64,
    },
    /// It is durable.
    Acked {
        /// Where it is.
        stream: String,
        /// Whose.
        producer: String,
        /// Its number.
        id: u64,
        /// Where it is.
        sequence: u64,
    },
    /// It was refused, or nothing is known of it.
    Failed {
        /// Where it was to go.
        stream: String,
        /// Whose.
        producer: String,
        /// Its number.
        id: u64,
        /// Whether it is certain that it is in no stream.
        clean: bool,
    },
    /// A reader was given a record.
    Read {
        /// Of which stream.
        stream: String,
        /// By whom.
        reader: String,
        /// Its place.
        sequence: u64,
        /// Whose record it is.
        producer: String,
        /// Its number.
        id: u64,
    },
    /// A reader was given bytes that no producer sent.
    Unknown {
        /// Of which stream.
        stream: String,
        /// By whom.
        reader: String,
        /// Their place.
        sequence: u64,
    },
    /// Somebody was told a tail.
    Tail {
        /// Of which stream.
        stream: String,
        /// The tail.
        sequence: u64,
    },
    /// A token was installed, under which this producer alone appends from there on.
    Fenced {
        /// On which stream.
        stream: String,
        /// Who presents the token.
        producer: String,
        /// The tail that it was installed at, or a later one.
        sequence: u64,
    },
    /// A stream was handed to another core, or all of a core were.
    Moved,
    /// The star was told to end, and did.
    Stopped,
    /// The star was killed.
    Killed,
}

/// What is promised for a producer's records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Promise {
    /// In their order, each once: numbered or conditional ones.
    Once,
    /// In their order, each at least once where acked: plain ones without a writer.
    AtLeastOnce,
}

/// A history that grows.
#[derive(Debug, Default)]
pub struct History {
    events: Mutex<Vec<Event>>,
}

impl History {
    /// Adds what was seen now.
    pub fn note(&self, event: Event) {
        self.events
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(event);
    }

    /// All of it.
    pub fn into_events(self) -> Vec<Event> {
        self.events
            .into_inner()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// A copy of all of it so far.
    pub fn events(&self) -> Vec<Event> {
        self.events
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

/// Writes a history as lines.
pub fn write(events: &[Event], mut to: impl Write) -> io::Result<()> {
    for event in events {
        serde_json::to_writer(&mut to, event)?;
        to.write_all(b"\n")?;
    }
    to.flush()
}

/// Reads a history from lines.
pub fn read(from: impl BufRead) -> io::Result<Vec<Event>> {
    let parse = |line: io::Result<String>| Ok(serde_json::from_str(&line?)?);
    from.lines().map(parse).collect()
}

/// What was read at a place, by whom, and whose it is.
pub fn read_event(stream: &StreamName, reader: &str, sequence: u64, body: &[u8]) -> Event {
    let (stream, reader) = (stream.to_string(), reader.to_owned());
    match whose(body) {
        Some((producer, id)) => Event::Read {
            stream,
            reader,
            sequence,
            producer,
            id,
        },
        None => Event::Unknown {
            stream,
            reader,
            sequence,
        },
    }
}

/// The producer whose records are large.
pub const LARGE: &str = "large";

/// The body of a record.
pub fn body(producer: &str, id: u64) -> Vec<u8> {
    let scale = if producer == LARGE { 256 } else { 1 };
    let length = 16 + scale * (id.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 55) as usize;
    let mut text = format!("{producer} {id} ");
    let fill = text.clone();
    while text.len() < length {
        text.push_str(&fill);
    }
    text.into_bytes()
}

/// Whose record has this body.
pub fn whose(bytes: &[u8]) -> Option<(String, u64)> {
    let mut words = std::str::from_utf8(bytes).ok()?.split(' ');
    let producer = words.next()?;
    let id = words.next()?.parse().ok()?;
    (body(producer, id) == bytes).then(|| (producer.to_owned(), id))
}
