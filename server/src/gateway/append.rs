//! `POST /v1/streams/{bucket}/{key}/records`: a one-shot append.
//!
//! # Invariants
//! - A condition is said once: as a field of the JSON or as a header.

use super::body::{self, Received};
use super::document::{BucketParam, KeyParam, Problems};
use super::form;
use super::records_in::{self, AppendBody};
use super::refuse::Refused;
use super::shapes::AppendedShape;
use super::state::Gateway;
use super::target::StreamTarget;
use super::whole::{WHOLE_MAX, Whole};
use axum::Json;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode};
use nova_model::names::StreamName;
use nova_model::request::OneShotAppend;
use nova_model::{
    Conditions, EncodedBatch, FencingToken, Record, SequenceNumber, StreamId, WriterId, WriterStamp,
};

/// What all our headers begin with.
pub(crate) const HEADER_PREFIX: &str = "nova-";
const MATCH_SEQ: &str = "nova-match-seq";
const FENCE: &str = "nova-fence";
const WRITER_ID: &str = "nova-writer-id";
const WRITER_SEQ: &str = "nova-writer-seq";
const STREAM_ID: &str = "nova-stream-id";
const TIMESTAMP: &str = "nova-timestamp";
/// All of them.
pub(crate) const HEADERS: [&str; 6] = [
    MATCH_SEQ, FENCE, WRITER_ID, WRITER_SEQ, STREAM_ID, TIMESTAMP,
];

/// Append records, durably
///
/// The records of one request are one batch: all are appended together, or none. The answer comes
/// when they are durable. JSON carries text or base64, NDJSON one record a line, and any octets are
/// one record. What must hold is said as fields of the JSON or as headers, not both.
#[utoipa::path(
    post,
    path = "/v1/streams/{bucket}/{key}/records",
    tag = "records",
    params(
        ("bucket" = BucketParam, Path, description = "The bucket"),
        ("key" = KeyParam, Path, description = "The key, percent-encoded as one segment"),
        ("nova-match-seq" = Option<Whole>, Header,
            description = "The sequence number that the first record must get"),
        ("nova-fence" = Option<String>, Header, max_length = 36,
            description = "The fencing token held"),
        ("nova-writer-id" = Option<String>, Header, pattern = "^[0-9a-f]{32}$",
            description = "The writer that numbers its batches, 32 hexadecimal digits"),
        ("nova-writer-seq" = Option<Whole>, Header, description = "The writer's own number"),
        ("nova-stream-id" = Option<String>, Header, pattern = "^[0-9a-f]{32}$",
            description = "The incarnation that the stream must be"),
        ("nova-timestamp" = Option<Whole>, Header,
            description = "The client's time of the one record, for octets alone"),
    ),
    request_body(content(
        (AppendBody = "application/json"),
        (String = "application/x-ndjson"),
        (String = "application/octet-stream"),
    )),
    responses((status = 200, description = "Durable", body = AppendedShape), Problems),
)]
pub(crate) async fn append(
    State(gateway): State<Gateway>,
    StreamTarget(stream): StreamTarget,
    request: Request,
) -> Result<Json<AppendedShape>, Refused> {
    let (parts, body) = request.into_parts();
    form::no_query(&parts)?;
    let kind = Kind::of(&parts.headers)?;
    let said = Terms::of_headers(&parts.headers)?;
    let body = body::read(&gateway, &parts.headers, body).await?;
    let (append, batch) = understand(stream, kind, said, &body)?;
    let ack = gateway.cores.append(append, batch).await?;
    Ok(Json(ack.into()))
}

/// What a body is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Json,
    Lines,
    Octets,
}

impl Kind {
    fn of(headers: &HeaderMap) -> Result<Kind, Refused> {
        match form::content_type(headers)?.as_deref() {
            Some("application/json") => Ok(Kind::Json),
            Some("application/x-ndjson" | "application/ndjson") => Ok(Kind::Lines),
            None | Some("application/octet-stream") => Ok(Kind::Octets),
            Some(_) => Err(Refused::form_as(
                StatusCode::UNSUPPORTED_MEDIA_TYPE,
                "content-type",
                "records come as application/json, application/x-ndjson or \
                 application/octet-stream",
            )),
        }
    }
}

/// What must hold for an append, as it was said.
#[derive(Debug, Default)]
struct Terms {
    match_seq: Option<Whole>,
    fence: Option<String>,
    writer_id: Option<String>,
    writer_seq: Option<Whole>,
    stream_id: Option<String>,
    timestamp: Option<Whole>,
}

impl Terms {
    fn of_headers(headers: &HeaderMap) -> Result<Terms, Refused> {
        Ok(Terms {
            match_seq: whole(headers, MATCH_SEQ)?,
            fence: text(headers, FENCE)?,
            writer_id: text(headers, WRITER_ID)?,
            writer_seq: whole(headers, WRITER_SEQ)?,
            stream_id: text(headers, STREAM_ID)?,
            timestamp: whole(headers, TIMESTAMP)?,
        })
    }

    /// These, and the fields of a body.
    fn and(self, body: &AppendBody) -> Result<Terms, Refused> {
        Ok(Terms {
            match_seq: one(self.match_seq, body.match_seq, "match_seq")?,
            fence: one(self.fence, body.fence.clone(), "fence")?,
            writer_id: one(self.writer_id, body.writer_id.clone(), "writer_id")?,
            writer_seq: one(self.writer_seq, body.writer_seq, "writer_seq")?,
            stream_id: one(self.stream_id, body.stream_id.clone(), "stream_id")?,
            timestamp: self.timestamp,
        })
    }

    fn append(self, stream: StreamName) -> Result<OneShotAppend, Refused> {
        let writer = match (self.writer_id, self.writer_seq) {
            (None, None) => None,
            (Some(id), Some(sequence)) => Some(WriterStamp {
                writer: WriterId(id_of(&id, "writer_id")?),
                sequence: sequence.0,
            }),
            (Some(_), None) => {
                let message = "a writer id goes with the writer's own number of the batch";
                return Err(Refused::contradiction("writer_seq", message));
            }
            (None, Some(_)) => {
                let message = "a writer's number goes with its writer id";
                return Err(Refused::contradiction("writer_id", message));
            }
        };
        let stream_id = self.stream_id.map(|id| stream_id_of(&id)).transpose()?;
        Ok(OneShotAppend {
            stream,
            stream_id,
            conditions: conditions(self.fence.as_deref(), self.match_seq)?,
            writer,
        })
    }
}

/// From a body to an append and its batch.
fn understand(
    stream: StreamName,
    kind: Kind,
    said: Terms,
    body: &Received,
) -> Result<(OneShotAppend, EncodedBatch), Refused> {
    if kind != Kind::Octets && said.timestamp.is_some() {
        let message = "the time of a record stands in the record";
        return Err(Refused::contradiction(TIMESTAMP, message));
    }
    let (said, records) = match kind {
        Kind::Json => {
            let append: AppendBody = form::json(&body.bytes, "body")?;
            let said = said.and(&append)?;
            (said, records_in::records(append.records)?)
        }
        Kind::Lines => (said, records_in::lines(&body.bytes)?),
        Kind::Octets => {
            let record = records_in::octets(body.bytes.clone(), said.timestamp);
            (said, vec![record])
        }
    };
    let append = said.append(stream)?;
    Ok((append, encode(&records)?))
}

fn encode(records: &[Record]) -> Result<EncodedBatch, Refused> {
    if records.is_empty() {
        return Err(Refused::form("records", "a batch has at least one record"));
    }
    EncodedBatch::encode(records).map_err(Refused::from)
}

/// What must hold of a stream, from its texts.
pub(crate) fn conditions(
    fence: Option<&str>,
    match_seq: Option<Whole>,
) -> Result<Conditions, Refused> {
    let fence = fence.map(FencingToken::parse).transpose();
    Ok(Conditions {
        fence: fence.map_err(Refused::from)?,
        match_sequence: match_seq.map(|whole| SequenceNumber(whole.0)),
    })
}

/// The incarnation that a header names, if one does.
pub(crate) fn incarnation(headers: &HeaderMap) -> Result<Option<StreamId>, Refused> {
    let said = text(headers, STREAM_ID)?;
    said.map(|id| stream_id_of(&id)).transpose()
}

/// The incarnation of a stream.
pub(crate) fn stream_id_of(text: &str) -> Result<StreamId, Refused> {
    Ok(StreamId(id_of(text, "stream_id")?))
}

fn id_of(text: &str, field: &str) -> Result<u128, Refused> {
    let is_id = text.len() == 32 && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
    match u128::from_str_radix(text, 16) {
        Ok(id) if is_id => Ok(id),
        _ => Err(Refused::form(
            field,
            "an id is 32 hexadecimal digits, 0-9 and a-f",
        )),
    }
}

fn one<T>(header: Option<T>, body: Option<T>, field: &str) -> Result<Option<T>, Refused> {
    match (header, body) {
        (Some(_), Some(_)) => {
            let message = format!("{field} is in the body and in a header");
            Err(Refused::contradiction(field, message))
        }
        (header, body) => Ok(header.or(body)),
    }
}

pub(crate) fn text(headers: &HeaderMap, name: &str) -> Result<Option<String>, Refused> {
    let mut all = headers.get_all(name).iter();
    let Some(value) = all.next() else {
        return Ok(None);
    };
    if all.next().is_some() {
        return Err(Refused::form(name, format!("{name} is there twice")));
    }
    match str::from_utf8(value.as_bytes()) {
        Ok(text) => Ok(Some(text.to_owned())),
        Err(_) => Err(Refused::form(name, "it is not UTF-8")),
    }
}

fn whole(headers: &HeaderMap, name: &str) -> Result<Option<Whole>, Refused> {
    let Some(text) = text(headers, name)? else {
        return Ok(None);
    };
    let is_plain = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    match text.parse() {
        Ok(number @ 0..=WHOLE_MAX) if is_plain => Ok(Some(Whole(number))),
        _ => Err(Refused::form(
            name,
            "it is not a whole number from 0 to 2^63 - 1",
        )),
    }
}

#[cfg(test)]
#[path = "append_tests.rs"]
mod tests;
