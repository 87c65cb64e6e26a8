//! Refusals as HTTP: a status, and the refusal's code, bits and facts as JSON.
//!
//! ```text
//!   412 {"code":"SEQ_MISMATCH","message":"...","retry":false,"clean":true,
//!        "facts":{"tail":{"seq":7,"timestamp":1796001866000000}}}
//! ```
//!
//! # Invariants
//! - Every answer that is no success has this form, whoever made it.

use crate::cli::shapes;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use nova_model::{Code, Facts, Refusal};
use serde_json::json;

/// A refusal with its status.
#[derive(Debug, Clone)]
pub(crate) struct Refused {
    status: StatusCode,
    refusal: Refusal,
}

impl Refused {
    /// A mistake in the form of a request: 400 with the field named.
    pub(crate) fn form(field: &str, message: impl Into<String>) -> Refused {
        Refused::form_as(StatusCode::BAD_REQUEST, field, message)
    }

    /// The same with another status that says it better.
    pub(crate) fn form_as(status: StatusCode, field: &str, message: impl Into<String>) -> Refused {
        Refused {
            status,
            refusal: Refusal::invalid(field, None, message),
        }
    }

    /// Fields that are right by themselves and contradict each other: 422 with one of them named.
    pub(crate) fn contradiction(field: &str, message: impl Into<String>) -> Refused {
        Refused::form_as(StatusCode::UNPROCESSABLE_ENTITY, field, message)
    }

    /// The same with a limit.
    #[must_use]
    pub(crate) fn with_limit(mut self, most: u64) -> Refused {
        if let Facts::Field { limit, .. } = &mut self.refusal.facts {
            *limit = Some(most);
        }
        self
    }

    /// The same where it is known that nothing was done and another try may do it.
    #[must_use]
    pub(crate) fn with_retry(mut self) -> Refused {
        self.refusal.retry = true;
        self
    }

    /// The same, in this line of a body.
    #[must_use]
    pub(crate) fn in_line(mut self, line: usize) -> Refused {
        self.refusal.message = format!("line {line}: {}", self.refusal.message);
        self
    }

    /// The refusal itself.
    #[cfg(test)]
    pub(crate) fn refusal(&self) -> &Refusal {
        &self.refusal
    }
}

impl From<Refusal> for Refused {
    fn from(refusal: Refusal) -> Refused {
        Refused {
            status: status_of(refusal.code),
            refusal,
        }
    }
}

/// The status of each code (contract, section 8). This `INVALID` is about what was asked, a name, a
/// number, a condition; how it was written is 400.
fn status_of(code: Code) -> StatusCode {
    match code {
        Code::Invalid => StatusCode::UNPROCESSABLE_ENTITY,
        Code::Unauthenticated => StatusCode::UNAUTHORIZED,
        Code::PermissionDenied => StatusCode::FORBIDDEN,
        Code::BucketNotFound | Code::StreamNotFound => StatusCode::NOT_FOUND,
        Code::AlreadyExists
        | Code::PolicyBusy
        | Code::DuplicateMismatch
        | Code::WriterGap
        | Code::BehindRejected => StatusCode::CONFLICT,
        Code::Fenced | Code::SeqMismatch => StatusCode::PRECONDITION_FAILED,
        Code::PastTail | Code::Trimmed => StatusCode::RANGE_NOT_SATISFIABLE,
        Code::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
        Code::RateLimited => StatusCode::TOO_MANY_REQUESTS,
        Code::NotOwner | Code::Draining | Code::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
        Code::DiskFull => StatusCode::INSUFFICIENT_STORAGE,
        Code::Corrupt | Code::Internal => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

/// A refusal as JSON.
pub(crate) fn as_json(refusal: &Refusal) -> serde_json::Value {
    let mut members = shapes::refusal(refusal);
    members.insert("message".to_owned(), json!(refusal.message));
    members.into()
}

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        let body = as_json(&self.refusal).to_string();
        let mut response = (self.status, body).into_response();
        let headers = response.headers_mut();
        headers.insert(
            header::CONTENT_TYPE,
            HeaderValue::from_static("application/json"),
        );
        if let Some(seconds) = retry_after(&self.refusal) {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        response
    }
}

/// When another try is worth it, in whole seconds.
fn retry_after(refusal: &Refusal) -> Option<u64> {
    match (refusal.code, &refusal.facts) {
        (Code::RateLimited, Facts::After(us)) => Some(us.div_ceil(1_000_000)),
        (Code::RateLimited | Code::Draining | Code::Unavailable | Code::PolicyBusy, _) => Some(1),
        (Code::DiskFull, _) => Some(10),
        _ => None,
    }
}

#[cfg(test)]
#[path = "refuse_tests.rs"]
mod tests;
