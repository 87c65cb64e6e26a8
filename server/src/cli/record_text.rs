//! Records as they are written to stdout: the body alone, or everything as one line of JSON.
//!
//! ```text
//!   {"seq":7,"timestamp":1796001866000000,"headers":[["level","info"]],"body":"started"}
//!   {"seq":8,"timestamp":1796001866000001,"headers":[],"body_base64":"/wD+"}
//! ```
//! A body that is not UTF-8 has the name `body_base64`; a part of a header that is not is
//! `{"base64": "..."}` in place of a text. Where all is base64, it is so whatever the bytes are,
//! and headers are `["bGV2ZWw=","aW5mbw=="]`.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use nova_client::Position;
use nova_model::record::RecordView;
use serde_json::{Value, json};
use std::io::Write;

/// How a record is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Form {
    /// The body, and nothing between two of them
    Raw,
    /// The body and a line end
    Text,
    /// Everything as one line of JSON; what is no UTF-8 is base64
    Json,
    /// Everything as one line of JSON, with all bytes as base64
    JsonBase64,
}

/// Writes a record.
pub(crate) fn write(form: Form, to: &mut Vec<u8>, position: Position, record: RecordView<'_>) {
    match form {
        Form::Raw => to.extend_from_slice(record.body()),
        Form::Text => {
            to.extend_from_slice(record.body());
            to.push(b'\n');
        }
        Form::Json => write_json(to, position, record),
        Form::JsonBase64 => write_base64(to, position, record),
    }
}

fn write_base64(to: &mut Vec<u8>, position: Position, record: RecordView<'_>) {
    let (sequence, time) = (position.sequence.0, position.timestamp.0);
    let pair = |(name, value)| json!([STANDARD.encode(name), STANDARD.encode(value)]);
    let headers = Value::from(record.headers().map(pair).collect::<Vec<_>>());
    let body = STANDARD.encode(record.body());
    let written = writeln!(
        to,
        r#"{{"seq":{sequence},"timestamp":{time},"headers":{headers},"body_base64":"{body}"}}"#
    );
    written.expect("writing to memory does not fail");
}

fn write_json(to: &mut Vec<u8>, position: Position, record: RecordView<'_>) {
    let (sequence, time) = (position.sequence.0, position.timestamp.0);
    let headers: Vec<_> = record
        .headers()
        .map(|(name, value)| json!([part(name), part(value)]))
        .collect();
    let headers = Value::from(headers);
    let written = match str::from_utf8(record.body()) {
        Ok(text) => writeln!(
            to,
            r#"{{"seq":{sequence},"timestamp":{time},"headers":{headers},"body":{}}}"#,
            Value::from(text)
        ),
        Err(_) => writeln!(
            to,
            r#"{{"seq":{sequence},"timestamp":{time},"headers":{headers},"body_base64":"{}"}}"#,
            STANDARD.encode(record.body())
        ),
    };
    written.expect("writing to memory does not fail");
}

fn part(bytes: &[u8]) -> Value {
    match str::from_utf8(bytes) {
        Ok(text) => json!(text),
        Err(_) => json!({ "base64": STANDARD.encode(bytes) }),
    }
}

#[cfg(test)]
#[path = "record_text_tests.rs"]
mod tests;
