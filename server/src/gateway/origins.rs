//! Web pages of other sites: which may ask, and what their browsers are told.
//!
//! # Invariants
//! - A page of another site is refused unless its origin was allowed at the start: whoever visits
//!   it did not choose what it asks for.

use super::refuse::Refused;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use nova_model::{Code, Refusal};

/// Allows every origin.
const ANY: &str = "*";
const METHODS: &str = "GET, HEAD, PUT, POST, PATCH, DELETE";
/// Headers of requests that pages may set.
const ASKED: &str = "content-type, content-encoding, if-none-match, last-event-id, nova-match-seq, \
    nova-fence, nova-writer-id, nova-writer-seq, nova-stream-id, nova-timestamp, stream-seq, \
    stream-ttl, stream-expires-at, stream-closed, stream-forked-from, stream-fork-offset, \
    stream-fork-sub-offset, producer-id, producer-epoch, producer-seq";
/// Headers of answers that pages may read.
const SHOWN: &str = "etag, location, retry-after, stream-next-offset, stream-up-to-date, \
    stream-closed, stream-cursor, stream-ttl, stream-expires-at, stream-sse-data-encoding, \
    producer-epoch, producer-seq, producer-expected-seq, producer-received-seq";
/// How long a browser remembers what it may do, in seconds.
const REMEMBERED_S: &str = "600";

/// The origins whose pages may ask.
#[derive(Debug, Default)]
pub(crate) struct Origins(Vec<String>);

/// Who asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Asker {
    /// No page, or one of the star's own.
    Own,
    /// A page of this origin, which is allowed.
    Other(HeaderValue),
}

impl Origins {
    pub(crate) fn new(allowed: Vec<String>) -> Origins {
        Origins(allowed)
    }

    /// Refuses what a web page of another site sends through its visitor's browser.
    pub(crate) fn check(&self, headers: &HeaderMap) -> Result<Asker, Refused> {
        let Some(origin) = headers.get(header::ORIGIN) else {
            return Ok(Asker::Own);
        };
        let host = headers.get(header::HOST).map(HeaderValue::as_bytes);
        let site = origin.as_bytes().splitn(2, |&byte| byte == b'/').nth(1);
        if site.and_then(|rest| rest.strip_prefix(b"/")) == host && host.is_some() {
            return Ok(Asker::Own);
        }
        let mut allowed = self.0.iter();
        if allowed.any(|allowed| allowed == ANY || allowed.as_bytes() == origin.as_bytes()) {
            return Ok(Asker::Other(origin.clone()));
        }
        let message =
            "a page of another site may not ask; --http-allow-origin names those that may";
        Err(Refusal::new(Code::PermissionDenied, message).into())
    }
}

impl Asker {
    /// The answer to a browser that wants to know first what a page may do.
    pub(crate) fn preflight(&self, method: &Method, headers: &HeaderMap) -> Option<Response> {
        let is_asked = headers.contains_key(header::ACCESS_CONTROL_REQUEST_METHOD);
        if *self == Asker::Own || method != Method::OPTIONS || !is_asked {
            return None;
        }
        let mut response = StatusCode::NO_CONTENT.into_response();
        let told = [
            (header::ACCESS_CONTROL_ALLOW_METHODS, METHODS),
            (header::ACCESS_CONTROL_ALLOW_HEADERS, ASKED),
            (header::ACCESS_CONTROL_MAX_AGE, REMEMBERED_S),
        ];
        for (name, value) in told {
            let value = HeaderValue::from_static(value);
            response.headers_mut().insert(name, value);
        }
        Some(response)
    }

    /// Tells the browser that the page may have the answer.
    pub(crate) fn show(self, response: &mut Response) {
        let Asker::Other(origin) = self else {
            return;
        };
        let headers = response.headers_mut();
        headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
        headers.append(header::VARY, HeaderValue::from_static("origin"));
        let shown = HeaderValue::from_static(SHOWN);
        headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, shown);
    }
}

#[cfg(test)]
#[path = "origins_tests.rs"]
mod tests;
