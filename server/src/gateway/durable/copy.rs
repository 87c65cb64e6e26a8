//! Forks: a stream that begins with the records of another one, at the same positions.
//!
//! The records are copied, so that a fork never depends on what becomes of its origin.
//!
//! # Invariants
//! - A fork whose copy is not whole is not seen: its stage says so until the last append.
//! - The origin knows its forks before they are there; one that never came to be counts for
//!   nothing.

use super::face::{FORKS_MAX, Origin, Stage, control, copied, essence, is_end, is_message};
use super::said::{Fork, Wanted};
use super::store::{self, Known, TRIES_MAX};
use crate::gateway::read::{Read, Step};
use crate::gateway::refuse::Refused;
use crate::gateway::state::Gateway;
use axum::http::StatusCode;
use nova_model::names::StreamName;
use nova_model::request::{ReadLimits, ReadOpen, ReadStart};
use nova_model::{Record, SequenceNumber};

/// A copied batch has at most so many bytes, so that a face fits in with it.
const COPY_BYTES_MAX: usize = 896 * 1024;
const COPY_RECORDS_MAX: usize = 4_096;

/// What a fork begins with.
pub(super) struct Plan {
    pub(super) source: Known,
    pub(super) origin: Origin,
    /// Records of the source before this one are copied.
    until: u64,
    /// What comes of the rest of an append.
    pub(super) part: Vec<Record>,
}

/// Checks that the fork can be, and lets its origin know of it.
pub(super) async fn plan(
    gateway: &Gateway,
    name: &StreamName,
    wanted: &Wanted,
) -> Result<Plan, Refused> {
    let fork = wanted.fork.as_ref().ok_or_else(store::busy)?;
    let _turn = store::turn(gateway, &fork.from).await;
    for _ in 0..TRIES_MAX {
        let plan = plan_once(gateway, fork, wanted).await?;
        let mut face = plan.source.face.clone();
        let own = name.to_string();
        if face.forks.contains(&own) {
            return Ok(plan);
        }
        if face.forks.len() == FORKS_MAX {
            face.forks = living(gateway, &face.forks).await?;
        }
        if face.forks.len() == FORKS_MAX {
            let message = format!("a stream has at most {FORKS_MAX} forks");
            let status = StatusCode::CONFLICT;
            return Err(Refused::form_as(status, "stream-forked-from", message));
        }
        face.forks.push(own);
        let records = vec![control()];
        if store::commit(gateway, &fork.from, &plan.source, face, records)
            .await?
            .is_some()
        {
            return Ok(plan);
        }
    }
    Err(store::busy())
}

async fn living(gateway: &Gateway, forks: &[String]) -> Result<Vec<String>, Refused> {
    let mut living = Vec::new();
    for fork in forks {
        let name = StreamName::parse(fork)?;
        if store::look(gateway, &name).await?.is_some() {
            living.push(fork.clone());
        }
    }
    Ok(living)
}

async fn plan_once(gateway: &Gateway, fork: &Fork, wanted: &Wanted) -> Result<Plan, Refused> {
    let conflict =
        |message: String| Refused::form_as(StatusCode::CONFLICT, "stream-forked-from", message);
    let source = match store::settle(gateway, &fork.from).await? {
        Some(source) if source.face.stage == Stage::Open => source,
        Some(source) if source.face.stage == Stage::Gone => {
            return Err(conflict(format!("{} was deleted", fork.from)));
        }
        _ => return Err(nova_model::Refusal::stream_not_found(&fork.from).into()),
    };
    if let Some(kind) = &wanted.kind
        && essence(kind) != essence(&source.face.kind)
    {
        return Err(conflict(format!("{} is {}", fork.from, source.face.kind)));
    }
    let at = fork.at.unwrap_or(source.face.end);
    if at > source.face.end {
        let message = "it is behind the end of the stream that is forked from";
        return Err(Refused::form("stream-fork-offset", message));
    }
    let part = part(gateway, fork, &source, at).await?;
    Ok(Plan {
        origin: Origin {
            stream: fork.from.to_string(),
            at,
            part: fork.part,
        },
        source,
        until: at,
        part,
    })
}

/// As much as was asked for of the append that begins there.
async fn part(
    gateway: &Gateway,
    fork: &Fork,
    source: &Known,
    at: u64,
) -> Result<Vec<Record>, Refused> {
    if fork.part == 0 {
        return Ok(Vec::new());
    }
    let overshot = || {
        let message = "it goes past the end of the append";
        Refused::form("stream-fork-sub-offset", message)
    };
    let is_json = source.face.is_json();
    let mut messages: Vec<Record> = Vec::new();
    let mut is_whole = false;
    let mut read = open(gateway, &fork.from, source, at, source.tail).await?;
    while let (Step::Records(batch, taken), false) = (read.next().await?, is_whole) {
        let mut index = 0;
        batch.for_each(|_, record| {
            if taken.contains(&index) && !is_whole {
                if is_message(record) {
                    messages.push(Record::new(record.body().to_vec()));
                }
                is_whole = !messages.is_empty() && (is_end(record) || !is_json);
            }
            index += 1;
        });
    }
    let asked = usize::try_from(fork.part).map_err(|_| overshot())?;
    if is_json {
        if asked > messages.len() {
            return Err(overshot());
        }
        messages.truncate(asked);
        return Ok(messages);
    }
    match messages.first() {
        Some(message) if asked <= message.body.len() => {
            Ok(vec![Record::new(message.body.slice(..asked))])
        }
        _ => Err(overshot()),
    }
}

async fn open(
    gateway: &Gateway,
    name: &StreamName,
    source: &Known,
    from: u64,
    until: u64,
) -> Result<Read, Refused> {
    let open = ReadOpen {
        stream: name.clone(),
        stream_id: Some(source.id),
        start: ReadStart::Sequence(SequenceNumber(from)),
        limits: ReadLimits {
            until_sequence: Some(SequenceNumber(until)),
            ..ReadLimits::default()
        },
        follow: false,
        clamp: false,
    };
    Read::open(&gateway.cores, open)
        .await
        .map_err(super::serve_read::refused)
}

/// Copies what stands before the fork, but for the first record, which each stream has itself.
pub(super) async fn copy(
    gateway: &Gateway,
    name: &StreamName,
    mut known: Known,
    plan: &Plan,
) -> Result<Known, Refused> {
    if plan.until <= known.tail {
        return Ok(known);
    }
    let from = StreamName::parse(&plan.origin.stream)?;
    let mut read = open(gateway, &from, &plan.source, known.tail, plan.until).await?;
    let (mut pending, mut bytes) = (Vec::new(), 0);
    while let Step::Records(batch, taken) = read.next().await? {
        let mut records = Vec::new();
        let mut index = 0;
        batch.for_each(|_, record| {
            if taken.contains(&index) {
                records.push(copied(record));
            }
            index += 1;
        });
        for record in records {
            let more = record.metered_bytes();
            if bytes + more > COPY_BYTES_MAX || pending.len() == COPY_RECORDS_MAX {
                known = flush(gateway, name, &known, std::mem::take(&mut pending)).await?;
                bytes = 0;
            }
            bytes += more;
            pending.push(record);
        }
    }
    match pending.is_empty() {
        true => Ok(known),
        false => flush(gateway, name, &known, pending).await,
    }
}

async fn flush(
    gateway: &Gateway,
    name: &StreamName,
    known: &Known,
    records: Vec<Record>,
) -> Result<Known, Refused> {
    if records.is_empty() {
        return Ok(known.clone());
    }
    let face = known.face.clone();
    let written = store::commit(gateway, name, known, face, records).await?;
    written.ok_or_else(store::busy)
}
