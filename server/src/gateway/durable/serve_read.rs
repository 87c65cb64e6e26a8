//! `GET`: what is there, or what comes.
//!
//! # Invariants
//! - An answer says how far it goes, and that it goes to the end only if the end was there when
//!   the stream was looked at.

use super::events;
use super::face::is_message;
use super::offset::{self, Offset, now_us};
use super::reply::{CLOSED, CURSOR, NEXT_OFFSET, UP_TO_DATE, at_end, put};
use super::store::{self, Known};
use crate::gateway::body::no_memory;
use crate::gateway::read::{Read, Step};
use crate::gateway::refuse::Refused;
use crate::gateway::state::Gateway;
use crate::gateway::target::decode;
use axum::body::Body;
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use nova_model::names::StreamName;
use nova_model::request::{ReadLimits, ReadOpen, ReadStart};
use nova_model::{Code, Refusal, SequenceNumber};
use std::time::Duration;
use tokio::time::{Instant, timeout_at};

/// Bytes of an answer.
const PAGE_BYTES: u64 = 1024 * 1024;
/// How long a reader waits for what comes: less than the 5 s that its suite gives each case.
const LONG_POLL: Duration = Duration::from_secs(4);

/// How a reader wants to read.
pub(super) struct Asked {
    pub(super) offset: Option<Offset>,
    live: Option<Live>,
    pub(super) cursor: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Live {
    LongPoll,
    Events,
}

impl Asked {
    fn of(query: Option<&str>) -> Result<Asked, Refused> {
        let mut asked = Asked {
            offset: None,
            live: None,
            cursor: None,
        };
        // Other parameters are the protocol's to ignore.
        for part in query.unwrap_or_default().split('&') {
            let (name, value) = part.split_once('=').unwrap_or((part, ""));
            let value = decode(value, "query")?;
            match name {
                "offset" if asked.offset.is_some() => {
                    return Err(Refused::form("offset", "it is there twice"));
                }
                "offset" => {
                    let offset = offset::parse(&value);
                    let wrong = || Refused::form("offset", "it is no offset of a stream");
                    asked.offset = Some(offset.ok_or_else(wrong)?);
                }
                "live" => asked.live = Some(Live::of(&value)?),
                "cursor" => asked.cursor = Some(value),
                _ => {}
            }
        }
        if asked.live.is_some() && asked.offset.is_none() {
            return Err(Refused::form("offset", "a live read says where it starts"));
        }
        Ok(asked)
    }
}

impl Live {
    fn of(text: &str) -> Result<Live, Refused> {
        match text {
            "long-poll" => Ok(Live::LongPoll),
            "sse" => Ok(Live::Events),
            _ => Err(Refused::form("live", "it is long-poll or sse")),
        }
    }
}

/// Reads.
pub(super) async fn read(
    gateway: &Gateway,
    name: StreamName,
    parts: Parts,
) -> Result<Response, Refused> {
    let asked = Asked::of(parts.uri.query())?;
    let known = store::find(gateway, &name).await?;
    let known = store::renew(gateway, &name, known).await?;
    if let Some(Offset::At(at)) = asked.offset
        && at > known.tail
    {
        let message = "the stream never was that long";
        return Err(Refused::form("offset", message));
    }
    match asked.live {
        None => catch_up(gateway, &name, known, &asked, &parts.headers).await,
        Some(Live::LongPoll) => long_poll(gateway, &name, known, &asked).await,
        Some(Live::Events) => events::follow(gateway, name, known, &asked).await,
    }
}

async fn catch_up(
    gateway: &Gateway,
    name: &StreamName,
    known: Known,
    asked: &Asked,
    headers: &HeaderMap,
) -> Result<Response, Refused> {
    let is_now = asked.offset == Some(Offset::Now);
    let page = match is_now {
        true => Page::none(&known),
        false => page(gateway, name, &known, asked.offset).await?,
    };
    let tag = page.tag(&known);
    let said = headers.get(header::IF_NONE_MATCH);
    if said.is_some_and(|said| !is_now && said.as_bytes() == tag.as_bytes()) {
        let mut response = StatusCode::NOT_MODIFIED.into_response();
        put(&mut response, "etag", &tag);
        page.mark(&mut response, &known);
        return Ok(response);
    }
    let mut response = page.response(&known);
    if !is_now {
        put(&mut response, "etag", &tag);
        // What is not the end never changes.
        let caching = match page_is_past(&response) {
            true => "private, max-age=60, stale-while-revalidate=300",
            false => "private, no-cache",
        };
        put(&mut response, "cache-control", caching);
    }
    Ok(response)
}

fn page_is_past(response: &Response) -> bool {
    !response.headers().contains_key(UP_TO_DATE)
}

async fn long_poll(
    gateway: &Gateway,
    name: &StreamName,
    mut known: Known,
    asked: &Asked,
) -> Result<Response, Refused> {
    let from = match asked.offset {
        Some(Offset::Now) => Offset::At(known.face.end),
        Some(offset) => offset,
        None => Offset::Beginning,
    };
    let until = Instant::now() + LONG_POLL;
    loop {
        let page = page(gateway, name, &known, Some(from)).await?;
        let is_over = known.face.is_closed || Instant::now() >= until;
        if page.is_empty() && !is_over && page.is_up_to_date {
            let waited = timeout_at(until, arrival(gateway, name, &known));
            tokio::select! {
                waited = waited => if let Ok(arrived) = waited { arrived? },
                () = gateway.stopping() => {
                    return Err(Refusal::new(Code::Draining, "the star is stopping").into());
                }
            }
            known = store::find(gateway, name).await?;
            continue;
        }
        let mut response = match page.is_empty() {
            true => {
                let mut response = at_end(StatusCode::NO_CONTENT, &known.face);
                page.mark(&mut response, &known);
                response
            }
            false => page.response(&known),
        };
        let cursor = offset::cursor(asked.cursor.as_deref(), now_us());
        put(&mut response, CURSOR, &cursor.to_string());
        return Ok(response);
    }
}

/// Waits for any record behind the tail.
async fn arrival(gateway: &Gateway, name: &StreamName, known: &Known) -> Result<(), Refused> {
    let open = ReadOpen {
        stream: name.clone(),
        stream_id: Some(known.id),
        start: ReadStart::Sequence(SequenceNumber(known.tail)),
        limits: ReadLimits::default(),
        follow: true,
        clamp: false,
    };
    let mut read = Read::open(&gateway.cores, open).await.map_err(refused)?;
    loop {
        match read.next().await.map_err(refused)? {
            Step::Records(..) | Step::Ended(_) => return Ok(()),
            Step::CaughtUp(_) | Step::Heartbeat(_) => {}
        }
    }
}

/// Messages of an answer.
struct Page {
    messages: Vec<Vec<u8>>,
    from: u64,
    next: u64,
    is_up_to_date: bool,
}

async fn page(
    gateway: &Gateway,
    name: &StreamName,
    known: &Known,
    offset: Option<Offset>,
) -> Result<Page, Refused> {
    let (start, from) = match offset {
        Some(Offset::At(at)) => (ReadStart::Sequence(SequenceNumber(at)), at),
        _ => (ReadStart::TailOffset(u64::MAX), 0),
    };
    if from >= known.face.end {
        return Ok(Page::none(known));
    }
    // As text and as it was read.
    let _memory = gateway
        .memory(2 * PAGE_BYTES as usize)
        .ok_or_else(no_memory)?;
    let open = ReadOpen {
        stream: name.clone(),
        stream_id: Some(known.id),
        start,
        limits: ReadLimits {
            bytes: Some(PAGE_BYTES),
            until_sequence: Some(SequenceNumber(known.face.end)),
            ..ReadLimits::default()
        },
        follow: false,
        clamp: false,
    };
    let mut read = Read::open(&gateway.cores, open).await.map_err(refused)?;
    let mut messages = Vec::new();
    while let Step::Records(batch, taken) = read.next().await.map_err(refused)? {
        let mut index = 0;
        batch.for_each(|_, record| {
            if taken.contains(&index) && is_message(record) {
                messages.push(record.body().to_vec());
            }
            index += 1;
        });
    }
    let next = read.position().0.max(from);
    Ok(Page {
        messages,
        from,
        next,
        is_up_to_date: next >= known.face.end,
    })
}

impl Page {
    /// Nothing, at the end.
    fn none(known: &Known) -> Page {
        Page {
            messages: Vec::new(),
            from: known.face.end,
            next: known.face.end,
            is_up_to_date: true,
        }
    }

    fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }

    fn tag(&self, known: &Known) -> String {
        let is_closed = self.is_up_to_date && known.face.is_closed;
        let closed = if is_closed { ":closed" } else { "" };
        format!("\"{}:{}:{}{closed}\"", known.id, self.from, self.next)
    }

    fn response(self, known: &Known) -> Response {
        let body = joined(known.face.is_json(), &self.messages);
        let mut response = Body::from(body).into_response();
        put(&mut response, "content-type", &known.face.kind);
        self.mark(&mut response, known);
        response
    }

    /// Says how far it goes.
    fn mark(&self, response: &mut Response, known: &Known) {
        put(response, NEXT_OFFSET, &offset::text(self.next));
        if self.is_up_to_date {
            put(response, UP_TO_DATE, "true");
            if known.face.is_closed {
                put(response, CLOSED, "true");
            }
        }
    }
}

/// Messages as a body: bytes behind one another, or an array of JSON.
pub(super) fn joined(is_json: bool, messages: &[Vec<u8>]) -> Vec<u8> {
    match is_json {
        false => messages.concat(),
        true => [&b"["[..], &messages.join(&b','), b"]"].concat(),
    }
}

/// A refusal as the protocol says it: what was trimmed is gone.
pub(super) fn refused(refusal: Refusal) -> Refused {
    match refusal.code {
        Code::Trimmed => Refused::form_as(StatusCode::GONE, "offset", refusal.message),
        _ => refusal.into(),
    }
}

#[cfg(test)]
#[path = "serve_read_tests.rs"]
mod tests;
