//! What a request says: headers and bodies of the protocol, checked.

use super::face::{FACE_BYTES_MAX, Producer, essence};
use super::named_by;
use super::offset::{self, Offset};
use super::reply::{
    CLOSED, EXPIRES_AT, FORK_OFFSET, FORK_PART, FORKED_FROM, PRODUCER_EPOCH, PRODUCER_ID,
    PRODUCER_SEQ, SEQ, TTL,
};
use crate::cli::time_text::When;
use crate::gateway::append::text;
use crate::gateway::refuse::Refused;
use axum::http::{HeaderMap, StatusCode, header};
use bytes::Bytes;
use nova_model::Record;
use nova_model::limits::BATCH_METERED_BYTES_MAX;
use nova_model::names::{BucketName, StreamName};
use serde_json::value::RawValue;

/// Longest id of a producer, `Stream-Seq` and media type.
const TEXT_BYTES_MAX: usize = 256;
/// A body leaves room for a face in its batch.
const BODY_BYTES_MAX: usize = BATCH_METERED_BYTES_MAX - FACE_BYTES_MAX;
/// Numbers of producers are exact as doubles.
const EXACT_MAX: u64 = (1 << 53) - 1;

/// What a `PUT` says of the stream to be made.
pub(super) struct Wanted {
    pub(super) kind: Option<String>,
    pub(super) ttl_s: Option<u64>,
    pub(super) expires_us: Option<u64>,
    pub(super) is_closed: bool,
    pub(super) fork: Option<Fork>,
}

/// What is to be forked, and where.
pub(super) struct Fork {
    pub(super) from: StreamName,
    /// None: at the end.
    pub(super) at: Option<u64>,
    pub(super) part: u64,
}

impl Wanted {
    pub(super) fn of(headers: &HeaderMap, bucket: &BucketName) -> Result<Wanted, Refused> {
        let ttl_s = match text(headers, TTL)? {
            None => None,
            Some(ttl) => Some(number(TTL, &ttl)?),
        };
        let expires_us = match text(headers, EXPIRES_AT)? {
            None => None,
            Some(time) => Some(expires(&time)?),
        };
        if ttl_s.is_some() && expires_us.is_some() {
            let message = "a stream has a time to live or a time at which it expires, not both";
            return Err(Refused::form(TTL, message));
        }
        Ok(Wanted {
            kind: kind(headers)?,
            ttl_s,
            expires_us,
            is_closed: is_closed(headers)?,
            fork: fork(headers, bucket)?,
        })
    }
}

fn expires(time: &str) -> Result<u64, Refused> {
    let is_whole = time.contains(['T', 't']);
    match When::parse(time) {
        Ok(When::At(at)) if is_whole => Ok(at.0),
        _ => Err(Refused::form(EXPIRES_AT, "it is a time of RFC 3339")),
    }
}

fn fork(headers: &HeaderMap, bucket: &BucketName) -> Result<Option<Fork>, Refused> {
    let at = match text(headers, FORK_OFFSET)? {
        None => None,
        Some(at) => match offset::parse(&at) {
            Some(Offset::Beginning) => Some(0),
            Some(Offset::At(at)) => Some(at),
            Some(Offset::Now) => None,
            None => return Err(Refused::form(FORK_OFFSET, "it is no offset")),
        },
    };
    let part = match text(headers, FORK_PART)? {
        None => None,
        Some(part) => Some(number(FORK_PART, &part)?),
    };
    let Some(from) = text(headers, FORKED_FROM)? else {
        if part.is_some() || at.is_some() {
            let message = "it goes with Stream-Forked-From";
            return Err(Refused::form(FORKED_FROM, message));
        }
        return Ok(None);
    };
    let part = part.unwrap_or(0);
    if part > 0 && at.is_none() {
        let message = "a sub-offset goes with Stream-Fork-Offset";
        return Err(Refused::form(FORK_OFFSET, message));
    }
    let from = named_by(&from, bucket)?;
    Ok(Some(Fork { from, at, part }))
}

/// What a `POST` says beside its body.
pub(super) struct Terms {
    pub(super) kind: Option<String>,
    pub(super) is_closed: bool,
    pub(super) seq: Option<String>,
    pub(super) producer: Option<Producer>,
}

impl Terms {
    pub(super) fn of(headers: &HeaderMap) -> Result<Terms, Refused> {
        let seq = text(headers, SEQ)?;
        check_length(SEQ, seq.as_deref())?;
        Ok(Terms {
            kind: kind(headers)?,
            is_closed: is_closed(headers)?,
            seq,
            producer: producer(headers)?,
        })
    }
}

fn producer(headers: &HeaderMap) -> Result<Option<Producer>, Refused> {
    let id = text(headers, PRODUCER_ID)?;
    let epoch = text(headers, PRODUCER_EPOCH)?;
    let seq = text(headers, PRODUCER_SEQ)?;
    let (id, epoch, seq) = match (id, epoch, seq) {
        (None, None, None) => return Ok(None),
        (Some(id), Some(epoch), Some(seq)) => (id, epoch, seq),
        _ => {
            let message = "Producer-Id, Producer-Epoch and Producer-Seq go together";
            return Err(Refused::form(PRODUCER_ID, message));
        }
    };
    if id.is_empty() {
        return Err(Refused::form(PRODUCER_ID, "it is not empty"));
    }
    check_length(PRODUCER_ID, Some(&id))?;
    Ok(Some(Producer {
        id,
        epoch: number(PRODUCER_EPOCH, &epoch)?,
        seq: number(PRODUCER_SEQ, &seq)?,
    }))
}

fn is_closed(headers: &HeaderMap) -> Result<bool, Refused> {
    let said = text(headers, CLOSED)?;
    Ok(said.is_some_and(|said| said.eq_ignore_ascii_case("true")))
}

fn kind(headers: &HeaderMap) -> Result<Option<String>, Refused> {
    let kind = text(headers, header::CONTENT_TYPE.as_str())?;
    check_length("content-type", kind.as_deref())?;
    Ok(kind.filter(|kind| !essence(kind).is_empty()))
}

fn check_length(field: &str, said: Option<&str>) -> Result<(), Refused> {
    if said.is_none_or(|said| said.len() <= TEXT_BYTES_MAX) {
        return Ok(());
    }
    let most = TEXT_BYTES_MAX as u64;
    Err(Refused::form(field, format!("it has at most {most} bytes")).with_limit(most))
}

/// A number as the protocol has it: no sign, no leading zero, no fraction.
fn number(field: &str, text: &str) -> Result<u64, Refused> {
    let is_plain = text.bytes().all(|b| b.is_ascii_digit()) && !text.is_empty();
    let is_short = text == "0" || !text.starts_with('0');
    match text.parse() {
        Ok(number @ 0..=EXACT_MAX) if is_plain && is_short => Ok(number),
        _ => Err(Refused::form(
            field,
            "it is a whole number from 0 to 2^53 - 1, without leading zeros",
        )),
    }
}

/// The messages of a body: one, or each element of a JSON array.
pub(super) fn messages(is_json: bool, body: &Bytes) -> Result<Vec<Record>, Refused> {
    if body.len() > BODY_BYTES_MAX {
        let most = BODY_BYTES_MAX as u64;
        let message = format!("an append has at most {most} bytes");
        let status = StatusCode::PAYLOAD_TOO_LARGE;
        return Err(Refused::form_as(status, "body", message).with_limit(most));
    }
    if !is_json {
        return Ok(match body.is_empty() {
            true => Vec::new(),
            false => vec![Record::new(body.clone())],
        });
    }
    let wrong = |error: serde_json::Error| Refused::form("body", format!("no JSON: {error}"));
    let is_array = body.trim_ascii_start().first() == Some(&b'[');
    let values: Vec<&RawValue> = match (body.is_empty(), is_array) {
        (true, _) => Vec::new(),
        (_, true) => serde_json::from_slice(body).map_err(wrong)?,
        (_, false) => vec![serde_json::from_slice(body).map_err(wrong)?],
    };
    let record = |value: &&RawValue| Record::new(body.slice_ref(value.get().as_bytes()));
    Ok(values.iter().map(record).collect())
}

#[cfg(test)]
#[path = "said_tests.rs"]
mod tests;
