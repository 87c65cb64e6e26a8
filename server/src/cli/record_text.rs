//! Records as they are written to stdout: the body alone, or everything as one line of JSON.
//!
//! ```text
//!   {"seq":7,"timestamp":1796001866000000,"headers":[["level","info"]],"body":"started"}
//!   {"seq":8,"timestamp":1796001866000001,"headers":[],"body_base64":"/wD+"}
//! ```
//! A body that is not UTF-8 has the name `body_base64`; a part of a header that is not is
//! `{"base64": "..."}` in place of a text.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use nova_client::Position;
use nova_model::record::RecordView;
use serde_json::{Value, json};
use std::io::Write;

/// Which of the two.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// The body and a line end.
    Body,
    /// One line of JSON.
    Json,
}

/// Writes a record.
pub(crate) fn write(form: Form, to: &mut Vec<u8>, position: Position, record: RecordView<'_>) {
    match form {
        Form::Body => {
            to.extend_from_slice(record.body());
            to.push(b'\n');
        }
        Form::Json => write_json(to, position, record),
    }
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
