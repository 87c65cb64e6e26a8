//! The OpenAPI document: what all operations share. The rest stands at each handler.

use super::refuse;
use nova_model::limits::{BUCKET_NAME_BYTES_MAX, STREAM_KEY_BYTES_MAX};
use nova_model::{Code, Facts, Refusal};
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;
use utoipa::openapi::schema::{ObjectBuilder, Type};
use utoipa::openapi::{Content, Info, OpenApi, Ref, RefOr, Response, ResponseBuilder, Schema};
use utoipa::{IntoResponses, PartialSchema, ToSchema};

/// The document without its operations.
pub(crate) fn base() -> OpenApi {
    let mut info = Info::new("nova", env!("CARGO_PKG_VERSION"));
    info.description = Some(
        "Durable streams. A success means durable: what was appended survives power loss. Every \
         other answer has one form, `Problem`, with a code that programs can go by. Any path \
         takes the stream of any core; there is never a redirect."
            .to_owned(),
    );
    OpenApi::builder().info(info).build()
}

/// The document as it is served.
pub(crate) fn finish(api: &OpenApi) -> Value {
    let mut document = serde_json::to_value(api).expect("the document is plain data");
    let paths = document["paths"].as_object_mut().into_iter().flatten();
    for (_, path) in paths {
        for (_, operation) in path.as_object_mut().into_iter().flatten() {
            let parameters = operation.get_mut("parameters");
            for parameter in parameters
                .and_then(Value::as_array_mut)
                .into_iter()
                .flatten()
            {
                if let Some(schema) = parameter.get_mut("schema") {
                    without_null(schema);
                }
            }
        }
    }
    document
}

/// What may be left out of a query or a header is never null there.
fn without_null(schema: &mut Value) {
    let is_null = |value: &Value| value == "null" || value["type"] == "null";
    if let Some(kinds) = schema.get_mut("type").and_then(Value::as_array_mut) {
        kinds.retain(|kind| !is_null(kind));
        if let [kind] = &mut kinds[..] {
            schema["type"] = kind.take();
        }
    }
    if let Some(kinds) = schema.get_mut("oneOf").and_then(Value::as_array_mut) {
        kinds.retain(|kind| !is_null(kind));
        if let [kind] = &mut kinds[..] {
            *schema = kind.take();
        }
    }
}

/// Why a request was not done.
#[derive(Serialize, ToSchema)]
pub(crate) struct Problem {
    /// `SEQ_MISMATCH`, `STREAM_NOT_FOUND`...
    code: String,
    /// For people.
    message: String,
    /// Whether trying again can help.
    retry: bool,
    /// Whether it is certain that nothing was applied.
    clean: bool,
    /// What programs want to know: the field that is wrong and its limit, the actual tail, the
    /// token that is installed...
    #[schema(value_type = Object)]
    facts: Value,
}

/// All answers that are no success.
pub(crate) struct Problems;

impl IntoResponses for Problems {
    fn responses() -> BTreeMap<String, RefOr<Response>> {
        let said = [
            (
                "4XX",
                "The request cannot be done as it is",
                refuse_sample(),
            ),
            ("5XX", "The star cannot do it", lost_sample()),
        ];
        let problem = |description: &str, sample: Value| {
            let schema = Ref::from_schema_name("Problem");
            let content = Content::builder()
                .schema(Some(schema))
                .example(Some(sample));
            let response = ResponseBuilder::new().description(description);
            RefOr::T(
                response
                    .content("application/json", content.build())
                    .build(),
            )
        };
        said.into_iter()
            .map(|(status, description, sample)| (status.to_owned(), problem(description, sample)))
            .collect()
    }
}

fn refuse_sample() -> Value {
    let tail = nova_model::Position {
        sequence: nova_model::SequenceNumber(7),
        timestamp: nova_model::Timestamp(1_796_001_866_000_000),
    };
    let message = "the tail is at 7, the append requires 3";
    refuse::as_json(&Refusal::new(Code::SeqMismatch, message).with(Facts::Tail(tail)))
}

fn lost_sample() -> Value {
    refuse::as_json(&Refusal::new(Code::Draining, "the star is stopping"))
}

/// The name of a bucket in a path.
pub(crate) struct BucketParam;

impl PartialSchema for BucketParam {
    fn schema() -> RefOr<Schema> {
        ObjectBuilder::new()
            .schema_type(Type::String)
            .min_length(Some(1))
            .max_length(Some(BUCKET_NAME_BYTES_MAX))
            .pattern(Some("^[a-z0-9]([a-z0-9-]*[a-z0-9])?$"))
            .into()
    }
}

impl ToSchema for BucketParam {}

/// The key of a stream in a path. Its limit is one of bytes, so letters beyond ASCII count more.
pub(crate) struct KeyParam;

impl PartialSchema for KeyParam {
    fn schema() -> RefOr<Schema> {
        ObjectBuilder::new()
            .schema_type(Type::String)
            .min_length(Some(1))
            .max_length(Some(STREAM_KEY_BYTES_MAX))
            .into()
    }
}

impl ToSchema for KeyParam {}
