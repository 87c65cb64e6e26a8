//! `/health/...` and `/metrics`: for whoever watches over the star.

use super::document::Problems;
use super::refuse::Refused;
use super::state::Gateway;
use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use nova_model::{Code, Refusal};

/// The text form of Prometheus.
const METRICS_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Whether the process runs
#[utoipa::path(
    get,
    path = "/health/live",
    tag = "health",
    responses((status = 200, description = "It runs", body = String, content_type = "text/plain"),
        Problems),
)]
pub(crate) async fn live() -> &'static str {
    "live\n"
}

/// Whether the star takes requests: neither starting nor stopping
#[utoipa::path(
    get,
    path = "/health/ready",
    tag = "health",
    responses((status = 200, description = "It does", body = String, content_type = "text/plain"),
        Problems),
)]
pub(crate) async fn ready(State(gateway): State<Gateway>) -> Result<&'static str, Refused> {
    check_ready(&gateway)?;
    Ok("ready\n")
}

/// Whether the star takes appends: it is ready, and no core lacks space on its disk
#[utoipa::path(
    get,
    path = "/health/writable",
    tag = "health",
    responses((status = 200, description = "It does", body = String, content_type = "text/plain"),
        Problems),
)]
pub(crate) async fn writable(State(gateway): State<Gateway>) -> Result<&'static str, Refused> {
    check_ready(&gateway)?;
    if !gateway.metrics.are_all_writable() {
        let message = "a core has no space for appends";
        return Err(Refusal::new(Code::DiskFull, message).into());
    }
    Ok("writable\n")
}

/// Figures for Prometheus
#[utoipa::path(
    get,
    path = "/metrics",
    tag = "health",
    responses((status = 200, description = "Text", body = String, content_type = "text/plain"),
        Problems),
)]
pub(crate) async fn metrics(State(gateway): State<Gateway>) -> Response {
    let text = gateway.metrics.text(gateway.memory_used());
    ([(header::CONTENT_TYPE, METRICS_TYPE)], text).into_response()
}

fn check_ready(gateway: &Gateway) -> Result<(), Refusal> {
    if gateway.is_stopping() {
        return Err(Refusal::new(Code::Draining, "the star is stopping"));
    }
    if !gateway.cores.are_serving() {
        let mut refusal = Refusal::new(Code::Unavailable, "the star is starting");
        refusal.clean = true;
        return Err(refusal);
    }
    Ok(())
}
