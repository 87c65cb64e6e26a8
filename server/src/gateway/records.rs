//! `GET /v1/streams/{bucket}/{key}/records`: a page, lines or events of a stream.
//!
//! # Invariants
//! - What is refused before the first record has its own status. Behind it, a page ends early and
//!   the next one is refused; lines and events end with the refusal.
//! - A page holds a share of the gateway's memory until it is on its way.

use super::append::stream_id_of;
use super::body::no_memory;
use super::document::{BucketParam, KeyParam, Problems};
use super::events;
use super::form;
use super::read::{Read, Step};
use super::records_out::{Page, PageSchema, lines};
use super::refuse::{Refused, as_json};
use super::state::Gateway;
use super::target::StreamTarget;
use super::whole::Whole;
use axum::body::Body;
use axum::extract::State;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_lite::stream;
use nova_model::limits::{
    HTTP_PAGE_BYTES_MAX, HTTP_PAGE_RECORDS_MAX, HTTP_PATIENCE_US, HTTP_WAIT_US_MAX,
};
use nova_model::names::StreamName;
use nova_model::request::{ReadLimits, ReadOpen, ReadStart};
use nova_model::{Code, Refusal, SequenceNumber, Timestamp};
use serde::Deserialize;
use std::convert::Infallible;
use std::time::Duration;
use tokio::time::{Instant, timeout_at};
use utoipa::IntoParams;

/// Records and metered bytes of a page when nothing is said.
const PAGE_RECORDS: u64 = 1_000;
const PAGE_BYTES: u64 = 1024 * 1024;

/// Where to read from and how much. One start at most; without one, the first record that is left.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields, default)]
#[into_params(parameter_in = Query)]
pub(crate) struct ReadQuery {
    /// Start at this sequence number.
    seq: Option<Whole>,
    /// Start at the first record whose timestamp is this or later, in microseconds since 1970.
    timestamp: Option<Whole>,
    /// Start this many records before the tail.
    tail_offset: Option<Whole>,
    /// At most this many records. A page holds 1,000 if nothing is said, and never over 10,000.
    count: Option<Whole>,
    /// At most this many metered bytes, but at least one record. A page holds 1 MiB if nothing is
    /// said, and never over 4 MiB.
    bytes: Option<Whole>,
    /// Stop before this sequence number.
    until_seq: Option<Whole>,
    /// Stop before the first record whose timestamp is this or later.
    until_timestamp: Option<Whole>,
    /// When there is nothing to read, wait this many milliseconds for it; a page only.
    #[param(value_type = Option<i64>, minimum = 0, maximum = 60000)]
    wait_ms: Option<Whole>,
    /// A start past the tail is the tail, instead of `PAST_TAIL`.
    #[param(value_type = Option<bool>)]
    clamp: bool,
    /// The incarnation that the stream must be, 32 hexadecimal digits.
    #[param(pattern = "^[0-9a-f]{32}$")]
    stream_id: Option<String>,
}

/// Read records
///
/// A page as JSON, as many records as there are as NDJSON, or a stream of events that follows the
/// stream as records become durable, by `Accept`. An event's id goes into `Last-Event-ID` to go on
/// behind it; heartbeats are comments.
#[utoipa::path(
    get,
    path = "/v1/streams/{bucket}/{key}/records",
    tag = "records",
    params(
        ("bucket" = BucketParam, Path, description = "The bucket"),
        ("key" = KeyParam, Path, description = "The key, percent-encoded as one segment"),
        ReadQuery,
        ("last-event-id" = Option<String>, Header, pattern = "^[0-9]{1,18}(@[0-9a-f]{32})?$",
            description = "The id of the last event that was seen; for events, without a start"),
    ),
    responses(
        (status = 200, description = "What there is", content(
            (PageSchema = "application/json"),
            (String = "application/x-ndjson"),
            (String = "text/event-stream"),
        )),
        Problems,
    ),
)]
pub(crate) async fn read(
    State(gateway): State<Gateway>,
    StreamTarget(stream): StreamTarget,
    parts: Parts,
) -> Result<Response, Refused> {
    let kind = Kind::of(&parts.headers)?;
    let query: ReadQuery = form::query(parts.uri.query())?;
    if kind != Kind::Page && query.wait_ms.is_some() {
        let message = "a page waits; events follow without end, lines end at the tail";
        return Err(Refused::contradiction("wait_ms", message));
    }
    let last_event = events::last_event(&parts.headers)?;
    if kind != Kind::Events && last_event.is_some() {
        let message = "it goes with Accept: text/event-stream";
        return Err(Refused::contradiction("last-event-id", message));
    }
    let mut open = query.open(stream)?;
    match kind {
        Kind::Page => page(&gateway, &query, open).await,
        Kind::Lines => as_lines(&gateway, open).await,
        Kind::Events => {
            open.follow = true;
            if let Some(last) = last_event {
                query.check_resumed()?;
                last.go_on(&mut open);
            }
            events::follow(&gateway, open).await
        }
    }
}

/// What is to be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Page,
    Lines,
    Events,
}

impl Kind {
    /// The first of the kinds that are accepted; a page if nothing is said.
    fn of(headers: &HeaderMap) -> Result<Kind, Refused> {
        let mut is_said = false;
        for value in headers.get_all(header::ACCEPT) {
            let text = String::from_utf8_lossy(value.as_bytes()).to_ascii_lowercase();
            for part in text.split(',') {
                is_said = true;
                match part.split(';').next().unwrap_or_default().trim() {
                    "application/json" | "application/*" | "*/*" => return Ok(Kind::Page),
                    "application/x-ndjson" | "application/ndjson" => return Ok(Kind::Lines),
                    "text/event-stream" => return Ok(Kind::Events),
                    _ => {}
                }
            }
        }
        if is_said {
            let message = "records go as application/json, application/x-ndjson or \
                           text/event-stream";
            return Err(Refused::form_as(
                StatusCode::NOT_ACCEPTABLE,
                "accept",
                message,
            ));
        }
        Ok(Kind::Page)
    }
}

impl ReadQuery {
    fn open(&self, stream: StreamName) -> Result<ReadOpen, Refused> {
        self.check()?;
        let start = match (self.seq, self.timestamp, self.tail_offset) {
            (Some(Whole(seq)), _, _) => ReadStart::Sequence(SequenceNumber(seq)),
            (_, Some(Whole(time)), _) => ReadStart::Timestamp(Timestamp(time)),
            (_, _, Some(Whole(back))) => ReadStart::TailOffset(back),
            // As far before the tail as there are records.
            (None, None, None) => ReadStart::TailOffset(u64::MAX),
        };
        let stream_id = self.stream_id.as_deref().map(stream_id_of).transpose()?;
        Ok(ReadOpen {
            stream,
            stream_id,
            start,
            limits: ReadLimits {
                count: self.count.map(|whole| whole.0),
                bytes: self.bytes.map(|whole| whole.0),
                until_sequence: self.until_seq.map(|whole| SequenceNumber(whole.0)),
                until_timestamp: self.until_timestamp.map(|whole| Timestamp(whole.0)),
            },
            follow: false,
            clamp: self.clamp,
        })
    }

    fn check(&self) -> Result<(), Refused> {
        let starts = [
            ("seq", self.seq),
            ("timestamp", self.timestamp),
            ("tail_offset", self.tail_offset),
        ];
        let mut said = starts.iter().filter(|(_, start)| start.is_some());
        if let (Some((first, _)), Some((second, _))) = (said.next(), said.next()) {
            let message = format!("a read has one start, and {first} is one");
            return Err(Refused::contradiction(second, message));
        }
        let ends = [
            ("until_seq", self.seq, self.until_seq),
            ("until_timestamp", self.timestamp, self.until_timestamp),
        ];
        for (field, start, end) in ends {
            if let (Some(Whole(start)), Some(Whole(end))) = (start, end)
                && end < start
            {
                let message = format!("the read ends at {end}, before its start at {start}");
                return Err(Refused::contradiction(field, message).with_limit(start));
            }
        }
        let most = HTTP_WAIT_US_MAX / 1_000;
        if self.wait_ms.is_some_and(|wait| wait.0 > most) {
            let message = format!("a read waits at most {most} ms");
            return Err(Refused::form("wait_ms", message).with_limit(most));
        }
        Ok(())
    }

    fn check_resumed(&self) -> Result<(), Refused> {
        let starts = [self.seq, self.timestamp, self.tail_offset];
        if starts.iter().all(Option::is_none) && self.stream_id.is_none() {
            return Ok(());
        }
        let message = "it says where to go on; no start and no stream_id go with it";
        Err(Refused::contradiction("last-event-id", message))
    }
}

/// A page: what is there, or what comes while it waits.
async fn page(
    gateway: &Gateway,
    query: &ReadQuery,
    mut open: ReadOpen,
) -> Result<Response, Refused> {
    let bounded =
        |said: Option<u64>, default: u64, most: u64| Some(said.unwrap_or(default).min(most));
    let limits = &mut open.limits;
    limits.count = bounded(limits.count, PAGE_RECORDS, HTTP_PAGE_RECORDS_MAX);
    limits.bytes = bounded(limits.bytes, PAGE_BYTES, HTTP_PAGE_BYTES_MAX);
    let wait = Duration::from_millis(query.wait_ms.map_or(0, |wait| wait.0));
    open.follow = !wait.is_zero();
    let bytes = limits.bytes.unwrap_or(PAGE_BYTES) as usize;
    // As text they take more than metered.
    let _memory = gateway.memory(2 * bytes).ok_or_else(no_memory)?;
    let read = Read::open(&gateway.cores, open).await?;
    let json = tokio::select! {
        filled = fill(read, wait) => filled?,
        () = stopped_waiting(gateway, wait) => {
            return Err(Refusal::new(Code::Draining, "the star is stopping").into());
        }
    };
    let mut response = Body::from(json).into_response();
    set(&mut response, "application/json");
    Ok(response)
}

/// A wait for records ends when the star stops; a page that is there does not.
async fn stopped_waiting(gateway: &Gateway, wait: Duration) {
    if wait.is_zero() {
        return std::future::pending().await;
    }
    gateway.stopping().await;
}

async fn fill(mut read: Read, wait: Duration) -> Result<Vec<u8>, Refusal> {
    let mut page = Page::new();
    let mut tail = read.opened().tail;
    let wait_until = Instant::now() + wait;
    let until = wait_until + Duration::from_micros(HTTP_PATIENCE_US);
    loop {
        let is_waiting = page.is_empty() && !wait.is_zero();
        let patience = if is_waiting { wait_until } else { until };
        let step = match timeout_at(patience, read.next()).await {
            Ok(step) => step,
            Err(_) if is_waiting => break,
            Err(_) => return Err(Refusal::new(Code::Unavailable, "the read takes too long")),
        };
        match step {
            Ok(Step::Records(batch, taken)) => page.add(&batch, taken),
            Ok(Step::CaughtUp(now)) => {
                tail = now;
                if !page.is_empty() {
                    break;
                }
            }
            Ok(Step::Heartbeat(now)) => tail = now,
            Ok(Step::Ended(now)) => {
                tail = now;
                break;
            }
            // The next page begins with it, and is refused.
            Err(_) if !page.is_empty() => break,
            Err(refusal) => return Err(refusal),
        }
    }
    let id = read.opened().stream_id.to_string();
    Ok(page.finish(Whole(read.position().0), tail.into(), &id))
}

/// All records up to the tail, a line each; what goes wrong on the way is the last line.
async fn as_lines(gateway: &Gateway, open: ReadOpen) -> Result<Response, Refused> {
    let read = Read::open(&gateway.cores, open).await?;
    let text = stream::unfold(Some(read), |read| async {
        let mut read = read?;
        match read.next().await {
            Ok(Step::Records(batch, taken)) => Some((chunk(lines(&batch, taken)), Some(read))),
            Ok(Step::CaughtUp(_) | Step::Heartbeat(_) | Step::Ended(_)) => None,
            Err(refusal) => {
                let line = serde_json::json!({ "refused": as_json(&refusal) });
                Some((chunk(format!("{line}\n")), None))
            }
        }
    });
    let mut response = Body::from_stream(text).into_response();
    set(&mut response, "application/x-ndjson");
    Ok(response)
}

/// A piece of a body that never fails.
pub(crate) fn chunk(bytes: impl Into<Bytes>) -> Result<Bytes, Infallible> {
    Ok(bytes.into())
}

/// Sets the kind of an answer, which is true at its moment only.
pub(crate) fn set(response: &mut Response, kind: &'static str) {
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
}

#[cfg(test)]
#[path = "records_tests.rs"]
mod tests;
