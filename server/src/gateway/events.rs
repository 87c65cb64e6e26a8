//! Follows a stream as server-sent events (HTML standard, section 9.2).
//!
//! ```text
//!   retry: 1000
//!
//!   id: 7@0123456789abcdef0123456789abcdef
//!   data: {"seq":7,"timestamp":...,"headers":[],"body":"started"}
//!
//!   event: caught-up
//!   data: {"tail":{"seq":8,"timestamp":...}}
//!
//!   : 8 is the tail                                       every few seconds
//! ```
//! The other events are `end`, when the limits of the read are reached, and `refused`.
//!
//! # Invariants
//! - What passes by itself is no other status than 200: a browser comes again.
//! - Going on behind an event's id neither repeats a record nor leaves one out, and never goes on
//!   in another incarnation of the stream.

use super::append::stream_id_of;
use super::read::{Read, Step};
use super::records::{chunk, set};
use super::records_out::events;
use super::refuse::{Refused, as_json};
use super::shapes::PositionShape;
use super::state::Gateway;
use super::whole::Whole;
use axum::body::Body;
use axum::http::HeaderMap;
use axum::response::{IntoResponse, Response};
use futures_lite::stream;
use nova_model::request::{ReadOpen, ReadStart};
use nova_model::{Code, Position, Refusal, SequenceNumber, StreamId};
use serde_json::{Value, json};

const LAST_EVENT_ID: &str = "last-event-id";
/// Digits of a sequence number: such a number and the next fit 64 bits.
const DIGITS_MAX: usize = 18;
/// How long a browser waits before it comes back, in milliseconds.
const COME_BACK_MS: u32 = 1_000;

/// The last event that a reader saw.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LastEvent {
    sequence: u64,
    stream_id: Option<StreamId>,
}

impl LastEvent {
    /// Lets a read start behind it.
    pub(crate) fn go_on(self, open: &mut ReadOpen) {
        open.start = ReadStart::Sequence(SequenceNumber(self.sequence + 1));
        open.stream_id = self.stream_id;
    }
}

/// Reads `Last-Event-ID`: `SEQ@STREAM-ID`, or the number alone.
pub(crate) fn last_event(headers: &HeaderMap) -> Result<Option<LastEvent>, Refused> {
    let Some(value) = headers.get(LAST_EVENT_ID) else {
        return Ok(None);
    };
    let wrong = || {
        let message = "it is the id of an event: a sequence number, @ and a stream id";
        Refused::form(LAST_EVENT_ID, message)
    };
    let text = value.to_str().map_err(|_| wrong())?;
    let (number, id) = match text.split_once('@') {
        Some((number, id)) => (number, Some(id)),
        None => (text, None),
    };
    let is_plain = number.bytes().all(|byte| byte.is_ascii_digit());
    let is_number = is_plain && (1..=DIGITS_MAX).contains(&number.len());
    let sequence = match number.parse() {
        Ok(sequence) if is_number => sequence,
        _ => return Err(wrong()),
    };
    let stream_id = id.map(stream_id_of).transpose().map_err(|_| wrong())?;
    Ok(Some(LastEvent {
        sequence,
        stream_id,
    }))
}

/// What is still to be sent.
enum Left {
    Opening(Box<Read>),
    Following(Box<Read>),
    Nothing,
}

/// Follows a stream.
pub(crate) async fn follow(gateway: &Gateway, open: ReadOpen) -> Result<Response, Refused> {
    let read = match Read::open(&gateway.cores, open).await {
        Err(refusal) if refusal.retry => return Ok(come_again(&refusal)),
        read => Box::new(read?),
    };
    let id = read.opened().stream_id.to_string();
    let gateway = gateway.clone();
    let text = stream::unfold(Left::Opening(read), move |left| {
        let (gateway, id) = (gateway.clone(), id.clone());
        async move {
            let mut read = match left {
                Left::Opening(read) => {
                    // Sent at once, so that the other end knows that it is connected.
                    let first = format!("retry: {COME_BACK_MS}\n\n");
                    return Some((chunk(first), Left::Following(read)));
                }
                Left::Following(read) => read,
                Left::Nothing => return None,
            };
            let step = tokio::select! {
                step = read.next() => step,
                () = gateway.stopping() => {
                    Err(Refusal::new(Code::Draining, "the star is stopping"))
                }
            };
            Some(match step {
                Ok(Step::Records(batch, taken)) => {
                    let text = events(&batch, taken, &id);
                    (chunk(text), Left::Following(read))
                }
                Ok(Step::CaughtUp(tail)) => {
                    let text = event("caught-up", &json!({ "tail": shape(tail) }));
                    (chunk(text), Left::Following(read))
                }
                Ok(Step::Heartbeat(tail)) => {
                    let text = format!(": {} is the tail\n\n", tail.sequence);
                    (chunk(text), Left::Following(read))
                }
                Ok(Step::Ended(tail)) => {
                    let next = Whole(read.position().0);
                    let text = event("end", &json!({ "next": next, "tail": shape(tail) }));
                    (chunk(text), Left::Nothing)
                }
                Err(refusal) => (chunk(event("refused", &as_json(&refusal))), Left::Nothing),
            })
        }
    });
    let mut response = Body::from_stream(text).into_response();
    set(&mut response, "text/event-stream");
    Ok(response)
}

/// A refusal that passes, as events: a browser that is answered with any other status than 200
/// never comes again, also when the star was only starting.
fn come_again(refusal: &Refusal) -> Response {
    let retry = format!("retry: {COME_BACK_MS}\n\n");
    let text = retry + &event("refused", &as_json(refusal));
    let mut response = Body::from(text).into_response();
    set(&mut response, "text/event-stream");
    response
}

fn shape(tail: Position) -> PositionShape {
    tail.into()
}

fn event(name: &str, data: &Value) -> String {
    format!("event: {name}\ndata: {data}\n\n")
}

#[cfg(test)]
#[path = "events_tests.rs"]
mod tests;
