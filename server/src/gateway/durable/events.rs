//! `GET ?live=sse`: a stream as server-sent events.
//!
//! ```text
//!   event: data
//!   data:[{"k":"v"}]
//!
//!   event: control
//!   data:{"streamNextOffset":"0000000000000002_0000000000000000","upToDate":true,...}
//! ```
//!
//! # Invariants
//! - Behind each event of data comes a control event that says where to go on.

use super::face::{Face, is_message};
use super::offset::{self, Offset, now_us};
use super::reply::{DATA_ENCODING, put};
use super::serve_read::{Asked, joined, refused};
use super::store::Known;
use crate::gateway::read::{Read, Step};
use crate::gateway::records::chunk;
use crate::gateway::refuse::Refused;
use crate::gateway::state::Gateway;
use axum::body::Body;
use axum::response::{IntoResponse, Response};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use futures_lite::stream;
use nova_model::names::StreamName;
use nova_model::request::{ReadLimits, ReadOpen, ReadStart};
use nova_model::{SequenceNumber, StoredBatch};
use serde_json::json;
use std::ops::Range;
use std::time::Duration;
use tokio::time::{Instant, timeout_at};

/// A reader comes again after so long, so that others can share what it gets.
const CONNECTION: Duration = Duration::from_secs(60);

/// Follows a stream.
pub(super) async fn follow(
    gateway: &Gateway,
    name: StreamName,
    known: Known,
    asked: &Asked,
) -> Result<Response, Refused> {
    let (start, from) = match asked.offset {
        Some(Offset::At(at)) => (ReadStart::Sequence(SequenceNumber(at)), at),
        Some(Offset::Now) => {
            let end = known.face.end;
            (ReadStart::Sequence(SequenceNumber(end)), end)
        }
        _ => (ReadStart::TailOffset(u64::MAX), 0),
    };
    let open = ReadOpen {
        stream: name,
        stream_id: Some(known.id),
        start,
        limits: ReadLimits::default(),
        follow: true,
        clamp: false,
    };
    let read = Read::open(&gateway.cores, open).await.map_err(refused)?;
    let is_text = known.face.is_text();
    let following = Following {
        read: Box::new(read),
        is_json: known.face.is_json(),
        is_text,
        is_closed: known.face.is_closed,
        end: known.face.end,
        next: from.max(known.face.end.min(1)),
        cursor: asked.cursor.clone(),
        until: Instant::now() + CONNECTION,
        is_first: true,
    };
    let gateway = gateway.clone();
    let text = stream::unfold(Some(following), move |following| {
        let gateway = gateway.clone();
        async move {
            let mut following = following?;
            let text = tokio::select! {
                text = following.next() => text?,
                () = gateway.stopping() => return None,
            };
            let left = (!following.is_over()).then_some(following);
            Some((chunk(text), left))
        }
    });
    let mut response = Body::from_stream(text).into_response();
    put(&mut response, "content-type", "text/event-stream");
    put(&mut response, "cache-control", "no-cache");
    if !is_text {
        put(&mut response, DATA_ENCODING, "base64");
    }
    Ok(response)
}

/// A reader that is served.
struct Following {
    read: Box<Read>,
    is_json: bool,
    is_text: bool,
    is_closed: bool,
    /// One past the last message that is known of.
    end: u64,
    /// Where the reader goes on.
    next: u64,
    cursor: Option<String>,
    until: Instant,
    is_first: bool,
}

impl Following {
    /// Nothing comes any more.
    fn is_over(&self) -> bool {
        self.is_closed && self.next >= self.end && !self.is_first
    }

    /// What is sent next. None: the reader is to come again.
    async fn next(&mut self) -> Option<String> {
        if std::mem::take(&mut self.is_first) && self.next >= self.end {
            return Some(self.control());
        }
        self.is_first = false;
        let step = timeout_at(self.until, self.read.next()).await.ok()?;
        match step.ok()? {
            Step::Records(batch, taken) => Some(self.records(&batch, taken)),
            Step::CaughtUp(_) => Some(String::new()),
            Step::Heartbeat(_) => Some(":\n\n".to_owned()),
            Step::Ended(_) => None,
        }
    }

    fn records(&mut self, batch: &StoredBatch, taken: Range<usize>) -> String {
        let mut messages = Vec::new();
        let mut index = 0;
        let was_closed = self.is_closed;
        batch.for_each(|position, record| {
            if taken.contains(&index) {
                if is_message(record) {
                    messages.push(record.body().to_vec());
                    self.next = position.sequence.0 + 1;
                }
                if let Some(face) = Face::of(record) {
                    self.is_closed |= face.is_closed;
                }
            }
            index += 1;
        });
        self.end = self.end.max(self.next);
        let mut text = String::new();
        if !messages.is_empty() {
            text = self.data(&messages);
        }
        if !messages.is_empty() || self.is_closed != was_closed {
            text.push_str(&self.control());
        }
        text
    }

    fn data(&self, messages: &[Vec<u8>]) -> String {
        let bytes = joined(self.is_json, messages);
        if !self.is_text {
            return format!("event: data\ndata:{}\n\n", STANDARD.encode(bytes));
        }
        let whole = String::from_utf8_lossy(&bytes).replace("\r\n", "\n");
        let mut text = "event: data\n".to_owned();
        for line in whole.split(['\n', '\r']) {
            // The first space behind the colon is nobody's.
            text.push_str(if line.starts_with(' ') {
                "data: "
            } else {
                "data:"
            });
            text.push_str(line);
            text.push('\n');
        }
        text.push('\n');
        text
    }

    fn control(&self) -> String {
        let mut control = json!({ "streamNextOffset": offset::text(self.next) });
        let is_up_to_date = self.next >= self.end;
        if is_up_to_date {
            control["upToDate"] = json!(true);
        }
        if is_up_to_date && self.is_closed {
            control["streamClosed"] = json!(true);
        } else {
            let cursor = offset::cursor(self.cursor.as_deref(), now_us());
            control["streamCursor"] = json!(cursor.to_string());
        }
        format!("event: control\ndata:{control}\n\n")
    }
}
