//! `POST`: append messages, close, or both.
//!
//! # Invariants
//! - A producer's number is noted in the append that it numbers: both are durable, or neither.

use super::face::{Face, Producer, control, essence};
use super::offset::now_us;
use super::reply::{
    CLOSED, EXPECTED_SEQ, PRODUCER_EPOCH, PRODUCER_SEQ, RECEIVED_SEQ, at_end, put, refused_at_end,
};
use super::said::{Terms, messages};
use super::store::{self, TRIES_MAX};
use crate::gateway::body;
use crate::gateway::refuse::Refused;
use crate::gateway::state::Gateway;
use axum::extract::Request;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use nova_model::names::StreamName;

/// Appends.
pub(super) async fn append(
    gateway: &Gateway,
    name: StreamName,
    request: Request,
) -> Result<Response, Refused> {
    let (parts, body) = request.into_parts();
    let terms = Terms::of(&parts.headers)?;
    let body = body::read(gateway, &parts.headers, body).await?;
    let _turn = store::turn(gateway, &name).await;
    for _ in 0..TRIES_MAX {
        let known = store::find_in_turn(gateway, &name).await?;
        let (mut face, records) = match decide(&known.face, &terms, &body.bytes)? {
            Decided::Answer(response) => return Ok(*response),
            Decided::Append(face, records) => (*face, records),
        };
        face.used_us = now_us();
        if let Some(known) = store::commit(gateway, &name, &known, face, records).await? {
            let status = match (&terms.producer, body.bytes.is_empty()) {
                // The protocol tells a new append of a producer from a repeat by it.
                (Some(_), false) => StatusCode::OK,
                _ => StatusCode::NO_CONTENT,
            };
            return Ok(done(status, &known.face, terms.producer.as_ref()));
        }
    }
    Err(store::busy())
}

/// What comes of an append.
enum Decided {
    Answer(Box<Response>),
    Append(Box<Face>, Vec<nova_model::Record>),
}

fn decide(face: &Face, terms: &Terms, body: &Bytes) -> Result<Decided, Refused> {
    let answer = |response| Ok(Decided::Answer(Box::new(response)));
    if body.is_empty() && !terms.is_closed {
        return Err(Refused::form("body", "an append has at least one byte"));
    }
    if !body.is_empty() {
        let Some(kind) = &terms.kind else {
            return Err(Refused::form(
                "content-type",
                "an append says its media type",
            ));
        };
        if essence(kind) != essence(&face.kind) {
            let message = format!("the stream is {}, not {kind}", face.kind);
            return answer(refused_at_end("content-type", &message, face));
        }
    }
    if let Some(response) = judge(face, terms)? {
        return answer(response);
    }
    if face.is_closed {
        return answer(match (body.is_empty(), &terms.producer) {
            (true, None) => at_end(StatusCode::NO_CONTENT, face),
            _ => refused_at_end(CLOSED, "the stream is closed", face),
        });
    }
    if let (Some(said), Some(last)) = (&terms.seq, &face.seq)
        && said <= last
    {
        let message = format!("'{said}' is not behind '{last}', the last one");
        return answer(refused_at_end("stream-seq", &message, face));
    }
    let mut records = messages(face.is_json(), body)?;
    if records.is_empty() {
        if !body.is_empty() {
            return Err(Refused::form("body", "an append has at least one message"));
        }
        records.push(control());
    }
    let mut next = face.clone();
    if let Some(seq) = &terms.seq {
        next.seq = Some(seq.clone());
    }
    if let Some(producer) = &terms.producer {
        next.note(producer.clone());
    }
    if terms.is_closed {
        next.is_closed = true;
    }
    Ok(Decided::Append(Box::new(next), records))
}

/// What a producer's numbers say: an answer, or that the append is the next one.
fn judge(face: &Face, terms: &Terms) -> Result<Option<Response>, Refused> {
    let Some(said) = &terms.producer else {
        return Ok(None);
    };
    let expected = match face.producer(&said.id) {
        None => 0,
        Some(known) if said.epoch < known.epoch => {
            let message = format!("epoch {} has begun", known.epoch);
            let refused = Refused::form_as(StatusCode::FORBIDDEN, PRODUCER_EPOCH, message);
            let mut response = refused.into_response();
            put(&mut response, PRODUCER_EPOCH, &known.epoch.to_string());
            return Ok(Some(response));
        }
        Some(known) if said.epoch > known.epoch && said.seq != 0 => {
            let message = "an epoch begins with the number 0";
            return Err(Refused::form(PRODUCER_SEQ, message));
        }
        Some(known) if said.epoch > known.epoch => 0,
        Some(known) if said.seq <= known.seq => return Ok(Some(repeat(face, said, known))),
        Some(known) => known.seq + 1,
    };
    if said.seq == expected || face.is_closed {
        return Ok(None);
    }
    let message = format!("{expected} comes next, not {}", said.seq);
    let mut response = refused_at_end(PRODUCER_SEQ, &message, face);
    put(&mut response, EXPECTED_SEQ, &expected.to_string());
    put(&mut response, RECEIVED_SEQ, &said.seq.to_string());
    Ok(Some(response))
}

/// The answer to an append that was there before.
fn repeat(face: &Face, said: &Producer, known: &Producer) -> Response {
    let mut response = at_end(StatusCode::NO_CONTENT, face);
    put(&mut response, PRODUCER_EPOCH, &said.epoch.to_string());
    put(&mut response, PRODUCER_SEQ, &known.seq.to_string());
    response
}

fn done(status: StatusCode, face: &Face, producer: Option<&Producer>) -> Response {
    let mut response = at_end(status, face);
    if let Some(producer) = producer {
        put(&mut response, PRODUCER_EPOCH, &producer.epoch.to_string());
        put(&mut response, PRODUCER_SEQ, &producer.seq.to_string());
    }
    response
}

#[cfg(test)]
#[path = "append_tests.rs"]
mod tests;
