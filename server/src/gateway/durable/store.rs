//! A stream and its face: found, changed, deleted.
//!
//! # Invariants
//! - A change is taken only if nothing was appended since the face was read.
//! - Changes of one stream take turns here, so that they do not undo one another's tries; that
//!   they hold is the condition's work.

use super::face::{Face, Stage, control, is_message};
use super::offset::now_us;
use crate::gateway::read::{Read, Step};
use crate::gateway::refuse::Refused;
use crate::gateway::state::Gateway;
use axum::http::StatusCode;
use nova_model::names::StreamName;
use nova_model::request::{self, OneShotAppend, ReadLimits, ReadOpen, ReadStart};
use nova_model::{Code, Conditions, EncodedBatch, Record, Refusal, SequenceNumber, StreamId};
use std::hash::{DefaultHasher, Hash, Hasher};
use tokio::sync::{Mutex, MutexGuard};

/// How far back a face is looked for, in records. More than one is only needed when somebody else
/// than this face appended.
const LOOKS: [u64; 3] = [1, 64, 512];
/// How often a change is tried when others append meanwhile.
pub(super) const TRIES_MAX: u32 = 16;
/// Streams share this many turns.
const TURNS: usize = 64;

/// Whose turn it is to change a stream.
pub(crate) struct Turns([Mutex<()>; TURNS]);

impl Default for Turns {
    fn default() -> Turns {
        Turns(std::array::from_fn(|_| Mutex::new(())))
    }
}

/// A stream that is there.
#[derive(Clone)]
pub(super) struct Known {
    pub(super) id: StreamId,
    pub(super) face: Face,
    /// The tail that the face was read at.
    pub(super) tail: u64,
}

/// Waits for the turn to change a stream.
pub(super) async fn turn<'a>(gateway: &'a Gateway, name: &StreamName) -> MutexGuard<'a, ()> {
    let mut hasher = DefaultHasher::new();
    name.hash(&mut hasher);
    let at = (hasher.finish() % TURNS as u64) as usize;
    gateway.turns.0[at].lock().await
}

/// A stream as it is, whatever its stage. None: there is none.
pub(super) async fn look(gateway: &Gateway, name: &StreamName) -> Result<Option<Known>, Refused> {
    for back in LOOKS {
        let open = ReadOpen {
            stream: name.clone(),
            stream_id: None,
            start: ReadStart::TailOffset(back),
            limits: ReadLimits::default(),
            follow: false,
            clamp: false,
        };
        let mut read = match Read::open(&gateway.cores, open).await {
            Err(refusal) if refusal.code == Code::StreamNotFound => return Ok(None),
            read => read?,
        };
        let first = read.opened().start.0;
        let mut face: Option<Face> = None;
        while let Step::Records(batch, taken) = read.next().await? {
            let mut at = 0;
            batch.for_each(|position, record| {
                if taken.contains(&at) {
                    match (Face::of(record), &mut face) {
                        (Some(found), face) => *face = Some(found),
                        (None, Some(face)) if is_message(record) => {
                            face.end = position.sequence.0 + 1;
                        }
                        (None, _) => {}
                    }
                }
                at += 1;
            });
        }
        let (id, tail) = (read.opened().stream_id, read.position().0);
        match face {
            Some(face) => return Ok(Some(Known { id, face, tail })),
            // Made, and nothing came to be written.
            None if tail == 0 => return Ok(None),
            None if first + back < tail || first == 0 => break,
            None => {}
        }
    }
    let message = "the stream was not made at /v1/durable, or others appended very much since";
    Err(Refused::form_as(StatusCode::CONFLICT, "key", message))
}

/// A stream that can be read. One that has expired is deleted on the way.
pub(super) async fn find(gateway: &Gateway, name: &StreamName) -> Result<Known, Refused> {
    let known = look(gateway, name).await?;
    if known.as_ref().is_none_or(is_settled) {
        return usable(name, known);
    }
    let _turn = turn(gateway, name).await;
    find_in_turn(gateway, name).await
}

/// The same for whoever has the turn.
pub(super) async fn find_in_turn(gateway: &Gateway, name: &StreamName) -> Result<Known, Refused> {
    let known = settle(gateway, name).await?;
    usable(name, known)
}

/// Whether nothing is to be done before a stream is used.
fn is_settled(known: &Known) -> bool {
    known.face.stage != Stage::Gone && !known.face.is_expired(now_us())
}

/// A stream after what is due was done: one that has expired is deleted, and one that was deleted
/// goes with its last fork.
pub(super) async fn settle(gateway: &Gateway, name: &StreamName) -> Result<Option<Known>, Refused> {
    let Some(known) = look(gateway, name).await? else {
        return Ok(None);
    };
    if is_settled(&known) {
        return Ok(Some(known));
    }
    remove(gateway, name, known).await
}

fn usable(name: &StreamName, known: Option<Known>) -> Result<Known, Refused> {
    match known {
        Some(known) if known.face.stage == Stage::Open => Ok(known),
        Some(known) if known.face.stage == Stage::Gone => {
            let message = "it was deleted, and forks of it live";
            Err(Refused::form_as(StatusCode::GONE, "key", message))
        }
        _ => Err(Refusal::stream_not_found(name).into()),
    }
}

/// Deletes a stream for a client.
pub(super) async fn delete(gateway: &Gateway, name: &StreamName) -> Result<(), Refused> {
    let _turn = turn(gateway, name).await;
    let known = find_in_turn(gateway, name).await?;
    remove(gateway, name, known).await.map(|_left| ())
}

/// Deletes a stream, or takes it from view while forks of it live; then what it was forked from
/// goes, too, if it only stayed for this one.
pub(super) async fn remove(
    gateway: &Gateway,
    name: &StreamName,
    mut known: Known,
) -> Result<Option<Known>, Refused> {
    let mut name = name.clone();
    let mut left = None;
    for depth in 0.. {
        if has_living_forks(gateway, &known).await? {
            if known.face.stage != Stage::Gone {
                let mut face = known.face.clone();
                face.stage = Stage::Gone;
                known = change(gateway, &name, known, face).await?;
            }
            left = (depth == 0).then_some(known);
            break;
        }
        let request = request::Request::DeleteStream {
            name: name.clone(),
            stream_id: Some(known.id),
        };
        match gateway.cores.request(&name, request).await {
            Ok(_) => {}
            Err(refusal) if refusal.code == Code::StreamNotFound => {}
            Err(refusal) => return Err(refusal.into()),
        }
        let Some(origin) = known.face.origin else {
            break;
        };
        name = StreamName::parse(&origin.stream)?;
        known = match look(gateway, &name).await? {
            Some(above) if above.face.stage == Stage::Gone => above,
            _ => break,
        };
    }
    Ok(left)
}

/// Whether a stream that was forked from this one is there and has not expired.
async fn has_living_forks(gateway: &Gateway, known: &Known) -> Result<bool, Refused> {
    for fork in &known.face.forks {
        let name = StreamName::parse(fork)?;
        if let Some(fork) = look(gateway, &name).await? {
            let face = fork.face;
            if !face.is_expired(now_us()) || !face.forks.is_empty() {
                return Ok(true);
            }
        }
    }
    Ok(false)
}

/// Writes a changed face without a message.
async fn change(
    gateway: &Gateway,
    name: &StreamName,
    known: Known,
    face: Face,
) -> Result<Known, Refused> {
    match commit(gateway, name, &known, face, vec![control()]).await? {
        Some(known) => Ok(known),
        None => Err(busy()),
    }
}

/// Notes that a stream was used, if that is worth writing down.
pub(super) async fn renew(
    gateway: &Gateway,
    name: &StreamName,
    known: Known,
) -> Result<Known, Refused> {
    if !known.face.is_renewal_due(now_us()) {
        return Ok(known);
    }
    let _turn = turn(gateway, name).await;
    for _ in 0..TRIES_MAX {
        let known = find_in_turn(gateway, name).await?;
        let mut face = known.face.clone();
        face.used_us = now_us();
        if let Some(known) = commit(gateway, name, &known, face, vec![control()]).await? {
            return Ok(known);
        }
    }
    Err(busy())
}

/// Appends records with a face, if the stream still is as it was read. None: it is not.
pub(super) async fn commit(
    gateway: &Gateway,
    name: &StreamName,
    known: &Known,
    mut face: Face,
    mut records: Vec<Record>,
) -> Result<Option<Known>, Refused> {
    let is_control = |record: &Record| record.headers.first() == control().headers.first();
    if let Some(last) = records.iter().rposition(|record| !is_control(record)) {
        face.end = known.tail + last as u64 + 1;
    }
    if let Some(last) = records.pop() {
        records.push(face.on(last));
    }
    let append = OneShotAppend {
        stream: name.clone(),
        stream_id: Some(known.id),
        conditions: Conditions {
            fence: None,
            match_sequence: Some(SequenceNumber(known.tail)),
        },
        writer: None,
    };
    let batch = EncodedBatch::encode(&records)?;
    match gateway.cores.append(append, batch).await {
        Ok(ack) => Ok(Some(Known {
            id: known.id,
            face,
            tail: ack.end.sequence.0,
        })),
        Err(refusal) if refusal.code == Code::SeqMismatch => Ok(None),
        Err(refusal) => Err(refusal.into()),
    }
}

/// Others append all the time.
pub(super) fn busy() -> Refused {
    Refusal::new(
        Code::RateLimited,
        "others append to the stream all the time",
    )
    .into()
}
