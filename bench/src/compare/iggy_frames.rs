//! The bytes of Apache Iggy's protocol, version 0.11: requests as sent, replies taken apart.
//!
//! ```text
//!   request: header (256) | body      reply: header (256) | body      all numbers little-endian
//!   offset  48 size of all   60 command   128 client   160 time   168 request   176 operation
//!          184 session      196 code of an operation that changes nothing
//!   reply   60 command      208 operation              216 status
//! ```
//! A body with messages is what the server keeps and what readers get back:
//!
//! ```text
//!   length of what follows up to the batch (4) | stream | topic | partition | count (4)
//!   batch header (256): partition, offset, time of the server, time of the producer,
//!                       length, checksum (8 each), count (4), zeros
//!   each message: checksum (8) | id (16) | number in the batch, time (4 each)
//!                 | length of headers, of the payload (4 each) | zeros (8) | payload
//! ```
//! A message's checksum covers all that follows it. That of a batch covers the fields before it,
//! the count and the messages' checksums. Both are XXH3.
//!
//! # Invariants
//! - A length that a reply announces is checked before anything is taken for it.

use super::drive::RECORD_BYTES;
use crate::error::BenchError;
use twox_hash::XxHash3_64;

pub const NAME: &str = "Apache Iggy";
pub const HEADER_BYTES: usize = 256;
/// Longest body of a reply.
const BODY_BYTES_MAX: usize = 64 * 1024 * 1024;
/// The version of the protocol: three numbers of ten bits.
const PROTOCOL: u32 = 11 << 10;

const COMMAND_REQUEST: u8 = 5;
const COMMAND_REPLY: u8 = 8;
const COMMAND_EVICTION: u8 = 13;
/// Where a request has its number.
const REQUEST_AT: usize = 168;
/// A name in front of its bytes, in identifiers and in options.
const KIND_NAME: u8 = 2;
const MESSAGE_HEADER_BYTES: usize = 48;

/// The one inner stream of each stream, which Iggy calls a topic.
pub const INNER: &str = "records";

/// What a request does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// Opens a session.
    Register = 1,
    /// Changes nothing: a poll.
    Poll = 2,
    /// Makes a stream.
    CreateStream = 128,
    /// Makes the stream in it that has the messages.
    CreateInner = 132,
    /// Appends a batch.
    SendMessages = 160,
}

/// Who asks: a client, its session once it has one, and the number of its next request.
#[derive(Debug, Clone, Copy)]
pub struct Caller {
    pub client: u128,
    pub session: u64,
    pub request: u64,
}

/// The whole request.
pub fn request(caller: Caller, operation: Operation, body: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0; HEADER_BYTES];
    let size = (HEADER_BYTES + body.len()) as u32;
    bytes[48..52].copy_from_slice(&size.to_le_bytes());
    bytes[60] = COMMAND_REQUEST;
    bytes[128..144].copy_from_slice(&caller.client.to_le_bytes());
    bytes[176] = operation as u8;
    bytes[184..192].copy_from_slice(&caller.session.to_le_bytes());
    if operation == Operation::Poll {
        const POLL_MESSAGES: u32 = 100;
        bytes[196..200].copy_from_slice(&POLL_MESSAGES.to_le_bytes());
    }
    renumber(&mut bytes, caller.request);
    bytes.extend_from_slice(body);
    bytes
}

/// Makes a request the one with another number.
pub fn renumber(request: &mut [u8], number: u64) {
    request[REQUEST_AT..REQUEST_AT + 8].copy_from_slice(&number.to_le_bytes());
}

/// The length of a reply's body, which is then given to [`payload`].
pub fn body_length(head: &[u8]) -> Result<usize, BenchError> {
    match head[60] {
        COMMAND_REPLY => {}
        COMMAND_EVICTION => {
            let why = format!("it ended the session, reason {}", head[255]);
            return Err(BenchError::system(NAME, why));
        }
        other => return Err(BenchError::system(NAME, format!("a frame of kind {other}"))),
    }
    let size = number_at(head, 48) as usize;
    let length = size.checked_sub(HEADER_BYTES);
    let length = length.filter(|length| *length <= BODY_BYTES_MAX);
    length.ok_or_else(|| BenchError::system(NAME, format!("a frame of {size} bytes")))
}

/// What was answered, or the number of the error.
pub fn payload(head: &[u8], body: Vec<u8>) -> Result<Vec<u8>, BenchError> {
    let refused = |number: u32| BenchError::system(NAME, format!("error {number}"));
    let status = number_at(head, 216);
    if status != 0 {
        return Err(refused(status));
    }
    // What is decided together begins with a list of what went wrong.
    let has_list = [
        Operation::Register as u8,
        Operation::CreateStream as u8,
        Operation::CreateInner as u8,
    ];
    if !has_list.contains(&head[208]) {
        return Ok(body);
    }
    match body.split_first_chunk::<4>() {
        Some(([0, 0, 0, 0], rest)) => Ok(rest.to_vec()),
        Some((_, rest)) if rest.len() >= 8 => Err(refused(number_at(rest, 4))),
        _ => Err(BenchError::system(NAME, "a reply without a result")),
    }
}

/// Opens a session for a user.
pub fn register(user: &str, password: &str) -> Vec<u8> {
    let mut body = PROTOCOL.to_le_bytes().to_vec();
    for text in ["nova-bench", env!("CARGO_PKG_VERSION"), user, password] {
        put_name(&mut body, text);
    }
    let context = 0_u32;
    body.extend(context.to_le_bytes());
    body
}

/// The session, from the reply to [`register`].
pub fn session(reply: &[u8]) -> Result<u64, BenchError> {
    let session = reply.get(4..12).and_then(|bytes| bytes.try_into().ok());
    let session = session.map(u64::from_le_bytes);
    session.ok_or_else(|| BenchError::system(NAME, "a reply without a session"))
}

/// A stream without options.
pub fn create_stream(stream: &str) -> Vec<u8> {
    let mut body = Vec::new();
    put_name(&mut body, stream);
    body
}

/// An inner stream of one partition, whose messages are durable when they are acked.
pub fn create_inner(stream: &str) -> Vec<u8> {
    let mut body = identifier(stream);
    let partitions = 1_u32;
    body.extend(partitions.to_le_bytes());
    put_name(&mut body, INNER);
    for text in ["durability", "persisted"] {
        body.push(KIND_NAME);
        body.extend((text.len() as u32).to_le_bytes());
        body.extend(text.as_bytes());
    }
    body
}

/// A batch to the one partition; ids count up from the first.
pub fn send_messages(stream: &str, records: usize, first_id: u128) -> Vec<u8> {
    let count = records as u32;
    let mut route = [identifier(stream), identifier(INNER)].concat();
    // A partition by its number, four bytes: the first.
    route.extend([2, 4, 0, 0, 0, 0]);
    route.extend(count.to_le_bytes());
    let messages: Vec<Vec<u8>> = (0..count).map(|at| message(first_id, at)).collect();
    let mut head = vec![0; HEADER_BYTES];
    let length = HEADER_BYTES + messages.iter().map(Vec::len).sum::<usize>();
    head[32..40].copy_from_slice(&(length as u64).to_le_bytes());
    head[48..52].copy_from_slice(&count.to_le_bytes());
    let mut covered = [&head[..40], &head[48..52]].concat();
    messages
        .iter()
        .for_each(|message| covered.extend(&message[..8]));
    let checksum = XxHash3_64::oneshot(&covered);
    head[40..48].copy_from_slice(&checksum.to_le_bytes());
    let route_length = (route.len() as u32).to_le_bytes();
    [&route_length[..], &route, &head, &messages.concat()].concat()
}

fn message(first_id: u128, at: u32) -> Vec<u8> {
    let mut bytes = first_id.wrapping_add(u128::from(at)).to_le_bytes().to_vec();
    for number in [at, 0, 0, RECORD_BYTES as u32, 0, 0] {
        bytes.extend(number.to_le_bytes());
    }
    bytes.extend([b'x'; RECORD_BYTES]);
    let checksum = XxHash3_64::oneshot(&bytes).to_le_bytes();
    [&checksum[..], &bytes].concat()
}

/// Asks for messages from an offset on.
pub fn poll(stream: &str, offset: u64, count: u32) -> Vec<u8> {
    // A consumer by its number, four bytes: the first.
    let mut body = vec![1, 1, 4, 1, 0, 0, 0];
    body.extend(identifier(stream));
    body.extend(identifier(INNER));
    // A partition is named, the first; from an offset on.
    body.extend([1, 0, 0, 0, 0, 1]);
    body.extend(offset.to_le_bytes());
    body.extend(count.to_le_bytes());
    let keep_offset = 0;
    body.push(keep_offset);
    body
}

/// Messages in the reply to [`poll`], whose payloads must be complete.
pub fn polled(reply: &[u8]) -> Result<usize, BenchError> {
    let mut batches = reply.get(16..).ok_or_else(malformed)?;
    let mut count = 0;
    while !batches.is_empty() {
        let length = batches.get(32..36).ok_or_else(malformed)?;
        let length = number_at(length, 0) as usize;
        let (batch, rest) = batches.split_at_checked(length).ok_or_else(malformed)?;
        let mut messages = batch.get(HEADER_BYTES..).ok_or_else(malformed)?;
        while !messages.is_empty() {
            let head = messages.get(..MESSAGE_HEADER_BYTES).ok_or_else(malformed)?;
            let (headers, payload) = (number_at(head, 32) as usize, number_at(head, 36) as usize);
            if payload != RECORD_BYTES {
                let why = format!("a record of {payload} bytes");
                return Err(BenchError::system(NAME, why));
            }
            let end = MESSAGE_HEADER_BYTES + payload + headers;
            messages = messages.get(end..).ok_or_else(malformed)?;
            count += 1;
        }
        batches = rest;
    }
    match count == number_at(reply, 12) as usize {
        true => Ok(count),
        false => Err(malformed()),
    }
}

fn identifier(name: &str) -> Vec<u8> {
    let mut bytes = vec![KIND_NAME];
    put_name(&mut bytes, name);
    bytes
}

fn put_name(bytes: &mut Vec<u8>, name: &str) {
    bytes.push(name.len() as u8);
    bytes.extend(name.as_bytes());
}

/// The number at an offset that is known to be there.
fn number_at(bytes: &[u8], at: usize) -> u32 {
    let number = &bytes[at..at + 4];
    u32::from_le_bytes([number[0], number[1], number[2], number[3]])
}

fn malformed() -> BenchError {
    BenchError::system(NAME, "a reply that is not what its lengths say")
}

#[cfg(test)]
#[path = "iggy_frames_tests.rs"]
mod tests;
