//! From the body of an append to a batch: JSON, NDJSON with a record a line, or octets.
//!
//! ```text
//!   {"records":[{"body":"text"},{"body_base64":"/wD+","headers":[["k","v"]]}],"match_seq":7}
//! ```
//!
//! # Not here
//! - Which stream, and what must hold: [`super::append`].

use super::form;
use super::object::Object;
use super::refuse::Refused;
use super::whole::Whole;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use nova_model::limits::BATCH_METERED_BYTES_MAX;
use nova_model::limits::RECORD_METERED_BYTES_MIN;
use nova_model::{Record, Refusal, Timestamp};
use serde::Deserialize;
use utoipa::openapi::schema::{ArrayBuilder, ObjectBuilder, Type};
use utoipa::openapi::{Ref, RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

/// Records that a batch can hold: each is metered with at least 8 bytes.
const RECORDS_MAX: usize = BATCH_METERED_BYTES_MAX / RECORD_METERED_BYTES_MIN;

/// Records to append, and what must hold for it.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Append)]
pub(crate) struct AppendBody {
    /// They are appended together, all or none: 1 MiB metered at most.
    #[schema(min_items = 1, value_type = Vec<RecordSchema>)]
    pub(crate) records: Vec<Object<RecordIn>>,
    /// The sequence number that the first record must get.
    pub(crate) match_seq: Option<Whole>,
    /// The fencing token that the writer holds.
    #[schema(max_length = 36)]
    pub(crate) fence: Option<String>,
    /// The writer that numbers its batches, 32 hexadecimal digits.
    #[schema(pattern = "^[0-9a-f]{32}$")]
    pub(crate) writer_id: Option<String>,
    /// The writer's own number of this batch, from 0, dense.
    pub(crate) writer_seq: Option<Whole>,
    /// The incarnation that the stream must be, 32 hexadecimal digits.
    #[schema(pattern = "^[0-9a-f]{32}$")]
    pub(crate) stream_id: Option<String>,
}

/// A record to append: `body` or `body_base64`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RecordIn {
    body: Option<String>,
    body_base64: Option<String>,
    headers: Option<Vec<(Part, Part)>>,
    timestamp: Option<Whole>,
}

/// A record to append.
#[derive(ToSchema)]
#[schema(as = Record)]
#[serde(untagged)]
#[expect(dead_code, reason = "it describes what RecordIn reads")]
pub(crate) enum RecordSchema {
    Text(TextRecord),
    Base64(Base64Record),
}

/// A record whose body is text.
#[derive(ToSchema)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "it describes what RecordIn reads")]
pub(crate) struct TextRecord {
    body: String,
    /// Pairs of name and value, in order; names may repeat.
    #[schema(value_type = Option<Vec<Pair>>)]
    headers: Option<Vec<(Part, Part)>>,
    /// The client's time, in microseconds since 1970.
    timestamp: Option<Whole>,
}

/// A record whose body is any bytes.
#[derive(ToSchema)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "it describes what RecordIn reads")]
pub(crate) struct Base64Record {
    #[schema(value_type = Base64Text)]
    body_base64: String,
    /// Pairs of name and value, in order; names may repeat.
    #[schema(value_type = Option<Vec<Pair>>)]
    headers: Option<Vec<(Part, Part)>>,
    /// The client's time, in microseconds since 1970.
    timestamp: Option<Whole>,
}

/// The name or value of a header: text, or any bytes as `{"base64": "..."}`.
#[derive(Debug, Deserialize)]
#[serde(untagged, expecting = "a text or {\"base64\": \"...\"}")]
pub(crate) enum Part {
    Text(String),
    Base64(Object<Base64Part>),
}

/// The name or value of a header: text, or any bytes.
#[derive(ToSchema)]
#[schema(as = Part)]
#[serde(untagged)]
#[expect(dead_code, reason = "it describes what Part reads")]
pub(crate) enum PartSchema {
    Text(String),
    Base64(Base64Part),
}

/// A header: its name and its value.
pub(crate) struct Pair;

impl PartialSchema for Pair {
    fn schema() -> RefOr<Schema> {
        ArrayBuilder::new()
            .items(Ref::from_schema_name("Part"))
            .min_items(Some(2))
            .max_items(Some(2))
            .into()
    }
}

impl ToSchema for Pair {
    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        schemas.push((PartSchema::name().into_owned(), PartSchema::schema()));
        PartSchema::schemas(schemas);
    }
}

/// Any bytes.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Base64Part {
    #[schema(value_type = Base64Text)]
    base64: String,
}

/// Any bytes as text.
struct Base64Text;

impl PartialSchema for Base64Text {
    fn schema() -> RefOr<Schema> {
        // The last of the letters in front of `=` leave their spare bits 0.
        const PATTERN: &str = "^([A-Za-z0-9+/]{4})*\
            ([A-Za-z0-9+/][AQgw]==|[A-Za-z0-9+/]{2}[AEIMQUYcgkosw048]=)?$";
        ObjectBuilder::new()
            .schema_type(Type::String)
            .content_encoding("base64")
            .pattern(Some(PATTERN))
            .into()
    }
}

impl ToSchema for Base64Text {}

/// The records of an append's JSON.
pub(crate) fn records(found: Vec<Object<RecordIn>>) -> Result<Vec<Record>, Refused> {
    check_count(found.len())?;
    let numbered = found.into_iter().enumerate();
    numbered
        .map(|(n, Object(record))| record.record(&format!("records[{n}].")))
        .collect()
}

/// The records of NDJSON; empty lines are none.
pub(crate) fn lines(bytes: &Bytes) -> Result<Vec<Record>, Refused> {
    let mut records = Vec::new();
    for (n, line) in (1..).zip(bytes.split(|&byte| byte == b'\n')) {
        if line.trim_ascii().is_empty() {
            continue;
        }
        check_count(records.len() + 1)?;
        let record = form::json::<RecordIn>(line, "body").and_then(|record| record.record(""));
        records.push(record.map_err(|refused| refused.in_line(n))?);
    }
    Ok(records)
}

/// The one record of octets.
pub(crate) fn octets(bytes: Bytes, timestamp: Option<Whole>) -> Record {
    timed(Record::new(bytes), timestamp)
}

fn check_count(count: usize) -> Result<(), Refused> {
    if count <= RECORDS_MAX {
        return Ok(());
    }
    let limit = RECORDS_MAX as u64;
    let message = format!("a batch has at most {limit} records");
    Err(Refused::from(Refusal::invalid(
        "records",
        Some(limit),
        message,
    )))
}

impl RecordIn {
    /// The record; `at` is what stands before the names of its fields.
    fn record(self, at: &str) -> Result<Record, Refused> {
        let body = match (self.body, self.body_base64) {
            (Some(text), None) => Bytes::from(text),
            (None, Some(encoded)) => decode(&encoded, &format!("{at}body_base64"))?,
            (Some(_), Some(_)) => {
                let message = "a record has body or body_base64, not both";
                return Err(Refused::form(&format!("{at}body_base64"), message));
            }
            (None, None) => {
                let message = "a record has body, a text, or body_base64";
                return Err(Refused::form(&format!("{at}body"), message));
            }
        };
        let mut record = timed(Record::new(body), self.timestamp);
        for (n, (name, value)) in self.headers.into_iter().flatten().enumerate() {
            let at = format!("{at}headers[{n}]");
            record = record.with_header(name.bytes(&at)?, value.bytes(&at)?);
        }
        Ok(record)
    }
}

impl Part {
    fn bytes(self, field: &str) -> Result<Bytes, Refused> {
        match self {
            Part::Text(text) => Ok(text.into()),
            Part::Base64(Object(part)) => decode(&part.base64, field),
        }
    }
}

fn decode(encoded: &str, field: &str) -> Result<Bytes, Refused> {
    let decoded = STANDARD.decode(encoded);
    let refuse = |error| Refused::form(field, format!("it is not base64: {error}"));
    decoded.map(Bytes::from).map_err(refuse)
}

fn timed(record: Record, timestamp: Option<Whole>) -> Record {
    match timestamp {
        Some(time) => record.with_timestamp(Timestamp(time.0)),
        None => record,
    }
}

#[cfg(test)]
#[path = "records_in_tests.rs"]
mod tests;
