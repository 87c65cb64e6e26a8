//! Answers of the protocol: its headers.

use super::face::Face;
use super::offset;
use super::store::Known;
use crate::gateway::refuse::Refused;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};

pub(super) const NEXT_OFFSET: &str = "stream-next-offset";
pub(super) const UP_TO_DATE: &str = "stream-up-to-date";
pub(super) const CLOSED: &str = "stream-closed";
pub(super) const CURSOR: &str = "stream-cursor";
pub(super) const TTL: &str = "stream-ttl";
pub(super) const EXPIRES_AT: &str = "stream-expires-at";
pub(super) const SEQ: &str = "stream-seq";
pub(super) const DATA_ENCODING: &str = "stream-sse-data-encoding";
pub(super) const FORKED_FROM: &str = "stream-forked-from";
pub(super) const FORK_OFFSET: &str = "stream-fork-offset";
pub(super) const FORK_PART: &str = "stream-fork-sub-offset";
pub(super) const PRODUCER_ID: &str = "producer-id";
pub(super) const PRODUCER_EPOCH: &str = "producer-epoch";
pub(super) const PRODUCER_SEQ: &str = "producer-seq";
pub(super) const EXPECTED_SEQ: &str = "producer-expected-seq";
pub(super) const RECEIVED_SEQ: &str = "producer-received-seq";

/// Sets a header; what cannot stand in one is left out.
pub(super) fn put(response: &mut Response, name: &'static str, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        response.headers_mut().insert(name, value);
    }
}

/// What every answer has for browsers.
pub(super) fn secure(response: &mut Response) {
    put(response, "x-content-type-options", "nosniff");
    put(response, "cross-origin-resource-policy", "cross-origin");
    if !response.headers().contains_key(header::CACHE_CONTROL) {
        put(response, "cache-control", "no-store");
    }
}

/// An answer without a body that says where the stream ends.
pub(super) fn at_end(status: StatusCode, face: &Face) -> Response {
    let mut response = status.into_response();
    put(&mut response, NEXT_OFFSET, &offset::text(face.end));
    if face.is_closed {
        put(&mut response, CLOSED, "true");
    }
    response
}

/// The answer to `HEAD`, and what `PUT` says.
pub(super) fn head(known: &Known) -> Response {
    let face = &known.face;
    let mut response = at_end(StatusCode::OK, face);
    put(&mut response, "content-type", &face.kind);
    if let Some(ttl) = face.ttl_s {
        put(&mut response, TTL, &ttl.to_string());
    }
    if let Some(expires) = face.expires_us {
        let expires = crate::cli::time_text::show_time(nova_model::Timestamp(expires));
        put(&mut response, EXPIRES_AT, &expires);
    }
    response
}

/// A refusal that says where the stream ends.
pub(super) fn refused_at_end(field: &str, message: &str, face: &Face) -> Response {
    let refused = Refused::form_as(StatusCode::CONFLICT, field, message);
    let mut response = refused.into_response();
    put(&mut response, NEXT_OFFSET, &offset::text(face.end));
    if face.is_closed {
        put(&mut response, CLOSED, "true");
    }
    response
}
