//! Which path is whose, and what every request goes through first.
//!
//! # Invariants
//! - Every route stands in the OpenAPI document, since one call adds it to both; but for those of
//!   the Durable Streams protocol, which has its own.
//! - Paths are matched as they came: `%2F` in a key parts nothing.

use super::append::{HEADER_PREFIX, HEADERS};
use super::refuse::Refused;
use super::state::Gateway;
use super::{admin, append, buckets, document, durable, health, records, streams, whole};
use crate::config::nearest::nearest;
use axum::Router;
use axum::extract::{MatchedPath, Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{any, get};
use bytes::Bytes;
use nova_model::limits::{HTTP_HEADER_BYTES_MAX, HTTP_HEADERS_MAX, HTTP_TARGET_BYTES_MAX};
use std::time::Instant;
use utoipa::OpenApi as _;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// Where the document is.
const DOCUMENT: &str = "/openapi.json";
/// How requests are counted that have no route.
const NO_ROUTE: &str = "none";

/// All of it.
pub(crate) fn router(gateway: Gateway) -> Router {
    let (router, api) = open_router().split_for_parts();
    let document = Bytes::from(document::finish(&api).to_string());
    let document = move || async move { json_document(document) };
    router
        .route(DOCUMENT, get(document))
        .route(durable::ROUTE, any(durable::serve))
        .fallback(no_route)
        .method_not_allowed_fallback(no_method)
        .layer(middleware::from_fn_with_state(gateway.clone(), check))
        .layer(middleware::from_fn_with_state(gateway.clone(), note))
        .with_state(gateway)
}

#[derive(utoipa::OpenApi)]
#[openapi(components(schemas(
    document::Problem,
    document::BucketParam,
    document::KeyParam,
    whole::Whole
)))]
struct Shared;

fn open_router() -> OpenApiRouter<Gateway> {
    let mut api = document::base();
    api.merge(Shared::openapi());
    OpenApiRouter::with_openapi(api)
        .routes(routes!(append::append, records::read))
        .routes(routes!(streams::tail))
        .routes(routes!(
            streams::create_stream,
            streams::describe_stream,
            streams::change_stream,
            streams::delete_stream
        ))
        .routes(routes!(streams::list_streams))
        .routes(routes!(streams::fence))
        .routes(routes!(streams::trim))
        .routes(routes!(streams::hand_off))
        .routes(routes!(
            buckets::create_bucket,
            buckets::describe_bucket,
            buckets::change_bucket,
            buckets::delete_bucket
        ))
        .routes(routes!(buckets::list_buckets))
        .routes(routes!(admin::star))
        .routes(routes!(admin::status))
        .routes(routes!(admin::drain))
        .routes(routes!(admin::undrain))
        .routes(routes!(admin::rebalance))
        .routes(routes!(health::live))
        .routes(routes!(health::ready))
        .routes(routes!(health::writable))
        .routes(routes!(health::metrics))
}

fn json_document(document: Bytes) -> Response {
    let mut response = document.into_response();
    let json = HeaderValue::from_static("application/json");
    response.headers_mut().insert(header::CONTENT_TYPE, json);
    response
}

async fn no_route() -> Refused {
    let message = "there is nothing at this path; /openapi.json tells what is where";
    Refused::form_as(StatusCode::NOT_FOUND, "path", message)
}

async fn no_method(method: Method) -> Refused {
    let message = format!("{method} is nothing that this path takes");
    Refused::form_as(StatusCode::METHOD_NOT_ALLOWED, "method", message)
}

/// What holds for every request.
async fn check(State(gateway): State<Gateway>, request: Request, next: Next) -> Response {
    let target = request.uri().path_and_query();
    let checked = check_target(target.map_or(0, |target| target.as_str().len()))
        .and_then(|()| check_headers(request.headers()))
        .and_then(|()| gateway.origins.check(request.headers()));
    match checked {
        Ok(asker) => {
            let mut response = match asker.preflight(request.method(), request.headers()) {
                Some(response) => response,
                None => next.run(request).await,
            };
            asker.show(&mut response);
            if gateway.is_stopping() {
                let close = HeaderValue::from_static("close");
                response.headers_mut().insert(header::CONNECTION, close);
            }
            response
        }
        Err(refused) => refused.into_response(),
    }
}

fn check_target(bytes: usize) -> Result<(), Refused> {
    if bytes <= HTTP_TARGET_BYTES_MAX {
        return Ok(());
    }
    let most = HTTP_TARGET_BYTES_MAX as u64;
    let message = format!("path and query have at most {most} bytes, these have {bytes}");
    Err(Refused::form_as(StatusCode::URI_TOO_LONG, "path", message).with_limit(most))
}

fn check_headers(headers: &HeaderMap) -> Result<(), Refused> {
    let status = StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE;
    if headers.len() > HTTP_HEADERS_MAX {
        let most = HTTP_HEADERS_MAX as u64;
        let message = format!(
            "a request has at most {most} headers, not {}",
            headers.len()
        );
        return Err(Refused::form_as(status, "headers", message).with_limit(most));
    }
    let bytes =
        |(name, value): &(&axum::http::HeaderName, &HeaderValue)| name.as_str().len() + value.len();
    let all: usize = headers.iter().map(|header| bytes(&header)).sum();
    if let (true, Some((name, _))) = (
        all > HTTP_HEADER_BYTES_MAX,
        headers.iter().max_by_key(bytes),
    ) {
        let most = HTTP_HEADER_BYTES_MAX as u64;
        let message = format!("all headers have at most {most} bytes, these have {all}");
        return Err(Refused::form_as(status, name.as_str(), message).with_limit(most));
    }
    for name in headers.keys().map(|name| name.as_str()) {
        if name.starts_with(HEADER_PREFIX) && !HEADERS.contains(&name) {
            let mut message = format!("there is no header '{name}'");
            if let Some(known) = nearest(name, HEADERS) {
                message.push_str(&format!("; did you mean '{known}'?"));
            }
            return Err(Refused::form(name, message));
        }
    }
    Ok(())
}

/// Counts the request and its time.
async fn note(State(gateway): State<Gateway>, request: Request, next: Next) -> Response {
    let begun = Instant::now();
    let route = request.extensions().get::<MatchedPath>();
    let route = route.map_or(NO_ROUTE.to_owned(), |route| route.as_str().to_owned());
    let method = known_method(request.method());
    let response = next.run(request).await;
    let us = u64::try_from(begun.elapsed().as_micros()).unwrap_or(u64::MAX);
    let status = response.status().as_u16();
    gateway.metrics.http.note(method, &route, status, us);
    response
}

/// A method may be any word; only those of the API are counted by name.
fn known_method(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::HEAD => "HEAD",
        Method::POST => "POST",
        Method::PUT => "PUT",
        Method::PATCH => "PATCH",
        Method::DELETE => "DELETE",
        _ => "other",
    }
}

#[cfg(test)]
#[path = "route_tests.rs"]
mod tests;
