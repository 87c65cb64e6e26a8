//! `/v1/durable/{bucket}/{key}`: streams as the Durable Streams protocol has them, for its clients.
//!
//! ```text
//!   record 0      control: the stream was made                      face: {...}
//!   record 1..3   data: the messages of one append      the last:   face: {...}
//!   record 4      control: closed, renewed, forked                  face: {...}
//! ```
//! The stream is one of nova, its key all of the path behind the bucket. All that the protocol
//! keeps for a stream beyond its bytes (kind, expiry, closure, producers) is its **face**, which
//! stands in a header of the last record of each append: it is durable with that append or not at
//! all, and the last record alone says how things are. An offset is a sequence number.
//!
//! # Invariants
//! - Every change is an append on condition that the tail is where its face was read, so that no
//!   two changes are decided on the same face, whoever else appends.
//! - Nothing is kept here between requests but the order in which they take turns.
//!
//! # Not here
//! - The form of the protocol's own documents: answers that are refusals look as all ours do.
//! - The OpenAPI document: these requests are described by their own protocol.

mod append;
mod copy;
mod create;
mod events;
mod face;
mod offset;
mod reply;
mod said;
mod serve_read;
mod store;

pub(crate) use store::Turns;

use super::refuse::Refused;
use super::state::Gateway;
use super::target::decode;
use axum::extract::{Request, State};
use axum::http::{Method, StatusCode};
use axum::response::{IntoResponse, Response};
use nova_model::names::{BucketName, StreamKey, StreamName};

/// The route.
pub(crate) const ROUTE: &str = "/v1/durable/{bucket}/{*key}";
const PREFIX: &str = "/v1/durable/";

/// Serves one request.
pub(crate) async fn serve(State(gateway): State<Gateway>, request: Request) -> Response {
    let answered = match stream_of(request.uri().path()) {
        Ok(name) => dispatch(&gateway, name, request).await,
        Err(refused) => Err(refused),
    };
    let mut response = answered.unwrap_or_else(IntoResponse::into_response);
    reply::secure(&mut response);
    response
}

async fn dispatch(
    gateway: &Gateway,
    name: StreamName,
    request: Request,
) -> Result<Response, Refused> {
    match *request.method() {
        Method::PUT => create::create(gateway, name, request).await,
        Method::POST => append::append(gateway, name, request).await,
        Method::GET => {
            let (parts, _body) = request.into_parts();
            serve_read::read(gateway, name, parts).await
        }
        Method::HEAD => {
            let known = store::find(gateway, &name).await?;
            Ok(reply::head(&known))
        }
        Method::DELETE => {
            store::delete(gateway, &name).await?;
            Ok(StatusCode::NO_CONTENT.into_response())
        }
        ref method => {
            let message = format!("{method} is nothing that a stream takes");
            let status = StatusCode::METHOD_NOT_ALLOWED;
            Err(Refused::form_as(status, "method", message))
        }
    }
}

/// The stream of a path: its key may hold slashes, as they are or encoded.
fn stream_of(path: &str) -> Result<StreamName, Refused> {
    let rest = path.strip_prefix(PREFIX).unwrap_or_default();
    let (bucket, key) = rest.split_once('/').unwrap_or((rest, ""));
    let bucket = decode(bucket, "bucket")?;
    let key = decode(key, "key")?;
    Ok(StreamName {
        bucket: BucketName::parse(&bucket).map_err(as_form)?,
        key: StreamKey::parse(&key).map_err(as_form)?,
    })
}

/// The stream that another one names: by its whole path, or by its key.
fn named_by(path: &str, beside: &BucketName) -> Result<StreamName, Refused> {
    if path.starts_with(PREFIX) {
        return stream_of(path);
    }
    let key = decode(path.trim_start_matches('/'), "stream-forked-from")?;
    Ok(StreamName {
        bucket: beside.clone(),
        key: StreamKey::parse(&key).map_err(as_form)?,
    })
}

fn as_form(refusal: nova_model::Refusal) -> Refused {
    Refused::form("path", refusal.message)
}
