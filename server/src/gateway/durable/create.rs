//! `PUT`: make a stream, alone or as a fork, or find it there as it was asked for.

use super::copy::{self, Plan};
use super::face::{Face, Stage, control, essence};
use super::offset::now_us;
use super::reply::{self, put, refused_at_end};
use super::said::{Wanted, messages};
use super::store::{self, Known};
use crate::gateway::body;
use crate::gateway::refuse::Refused;
use crate::gateway::state::Gateway;
use crate::gateway::streams::unexpected;
use axum::extract::Request;
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::Response;
use bytes::Bytes;
use nova_model::Record;
use nova_model::names::StreamName;
use nova_model::request::{self, Answer};
use nova_model::settings::StreamSettings;

/// What a stream's messages are if nobody says.
const KIND: &str = "application/octet-stream";

/// Makes a stream, or finds it.
pub(super) async fn create(
    gateway: &Gateway,
    name: StreamName,
    request: Request,
) -> Result<Response, Refused> {
    let (parts, body) = request.into_parts();
    let wanted = Wanted::of(&parts.headers, &name.bucket)?;
    let body = body::read(gateway, &parts.headers, body).await?;
    {
        let _turn = store::turn(gateway, &name).await;
        if let Some(found) = existing(gateway, &name, &wanted).await? {
            return Ok(found);
        }
        if wanted.fork.is_none() {
            let kind = wanted.kind.clone().unwrap_or_else(|| KIND.to_owned());
            let face = face(&wanted, kind);
            return make(gateway, &name, &wanted, face, None, &body.bytes, &parts).await;
        }
    }
    // Never two turns at once: the stream that is forked from may have the same one.
    let plan = copy::plan(gateway, &name, &wanted).await?;
    let _turn = store::turn(gateway, &name).await;
    if let Some(found) = existing(gateway, &name, &wanted).await? {
        return Ok(found);
    }
    let kind = wanted.kind.clone();
    let mut face = face(
        &wanted,
        kind.unwrap_or_else(|| plan.source.face.kind.clone()),
    );
    if wanted.ttl_s.is_none() && wanted.expires_us.is_none() {
        face.ttl_s = plan.source.face.ttl_s;
        face.expires_us = plan.source.face.expires_us;
    }
    face.origin = Some(plan.origin.clone());
    make(
        gateway,
        &name,
        &wanted,
        face,
        Some(plan),
        &body.bytes,
        &parts,
    )
    .await
}

fn face(wanted: &Wanted, kind: String) -> Face {
    let mut face = Face::new(kind, now_us());
    face.ttl_s = wanted.ttl_s;
    face.expires_us = wanted.expires_us;
    face
}

/// The answer if there is a stream of that name.
async fn existing(
    gateway: &Gateway,
    name: &StreamName,
    wanted: &Wanted,
) -> Result<Option<Response>, Refused> {
    let Some(known) = store::settle(gateway, name).await? else {
        return Ok(None);
    };
    match known.face.stage {
        Stage::Open => Ok(Some(compared(&known, wanted))),
        Stage::Gone => {
            let message = "it was deleted, and forks of it live";
            Err(Refused::form_as(StatusCode::CONFLICT, "key", message))
        }
        // Whoever copied is gone, since the turn is ours.
        Stage::Copying => store::remove(gateway, name, known).await.map(|_left| None),
    }
}

fn compared(known: &Known, wanted: &Wanted) -> Response {
    if is_as(&known.face, wanted) {
        return reply::head(known);
    }
    let message = "there is a stream of this name that is not as asked for";
    refused_at_end("key", message, &known.face)
}

fn is_as(face: &Face, wanted: &Wanted) -> bool {
    let is_fork = wanted.fork.is_some();
    let kind = match &wanted.kind {
        Some(kind) => essence(kind) == essence(&face.kind),
        None => is_fork || essence(&face.kind) == KIND,
    };
    let is_expiry_said = wanted.ttl_s.is_some() || wanted.expires_us.is_some();
    let expiry = wanted.ttl_s == face.ttl_s && wanted.expires_us == face.expires_us;
    let origin = match (&wanted.fork, &face.origin) {
        (None, _) => true,
        (Some(_), None) => false,
        (Some(fork), Some(origin)) => {
            fork.from.to_string() == origin.stream
                && fork.at.is_none_or(|at| at == origin.at)
                && fork.part == origin.part
        }
    };
    let is_inherited = (is_fork || face.origin.is_some()) && !is_expiry_said;
    kind && origin && (expiry || is_inherited) && face.is_closed == wanted.is_closed
}

async fn make(
    gateway: &Gateway,
    name: &StreamName,
    wanted: &Wanted,
    mut face: Face,
    plan: Option<Plan>,
    body: &Bytes,
    parts: &Parts,
) -> Result<Response, Refused> {
    let mut records = messages(face.is_json(), body)?;
    let mut known = empty(gateway, name, face.clone()).await?;
    if let Some(plan) = plan {
        face.stage = Stage::Copying;
        let first = vec![control()];
        known = written(gateway, name, &known, face.clone(), first).await?;
        known = copy::copy(gateway, name, known, &plan).await?;
        face.end = known.face.end;
        records.splice(0..0, plan.part);
    }
    face.stage = Stage::Open;
    face.is_closed = wanted.is_closed;
    if known.tail == 0 || records.is_empty() {
        records.insert(0, control());
    }
    face.end = face.end.max(1);
    let known = written(gateway, name, &known, face, records).await?;
    let mut response = reply::head(&known);
    *response.status_mut() = StatusCode::CREATED;
    put(
        &mut response,
        "location",
        &location(&parts.headers, parts.uri.path()),
    );
    Ok(response)
}

/// A stream without any record.
async fn empty(gateway: &Gateway, name: &StreamName, face: Face) -> Result<Known, Refused> {
    let request = request::Request::CreateStream {
        name: name.clone(),
        settings: StreamSettings::default(),
        exclusive: false,
    };
    match gateway.cores.request(name, request).await? {
        Answer::Stream { info, .. } => Ok(Known {
            id: info.id,
            face,
            tail: 0,
        }),
        other => Err(unexpected(&other)),
    }
}

async fn written(
    gateway: &Gateway,
    name: &StreamName,
    known: &Known,
    face: Face,
    records: Vec<Record>,
) -> Result<Known, Refused> {
    let written = store::commit(gateway, name, known, face, records).await?;
    written.ok_or_else(store::busy)
}

/// The whole address of what was asked for, if the request tells it.
fn location(headers: &HeaderMap, path: &str) -> String {
    let host = headers
        .get(header::HOST)
        .and_then(|host| host.to_str().ok());
    let scheme = headers.get("x-forwarded-proto");
    let scheme = scheme.and_then(|scheme| scheme.to_str().ok());
    match host {
        Some(host) => format!("{}://{host}{path}", scheme.unwrap_or("http")),
        None => path.to_owned(),
    }
}

#[cfg(test)]
#[path = "create_tests.rs"]
mod tests;
