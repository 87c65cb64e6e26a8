//! From batches to records as JSON: in a page, as lines, as events.
//!
//! ```text
//!   {"seq":7,"timestamp":1796001866000000,"headers":[["level","info"]],"body":"started"}
//! ```
//!
//! # Not here
//! - How one record is written: `cli::record_text`, which the command line uses too.

use super::records_in::Pair;
use super::shapes::PositionShape;
use super::whole::Whole;
use crate::cli::record_text::{self, Form};
use nova_model::StoredBatch;
use serde_json::json;
use std::ops::Range;
use utoipa::ToSchema;

/// Records of a stream, in order.
#[derive(ToSchema)]
#[schema(as = Page)]
#[expect(dead_code, reason = "it describes what Page writes")]
pub(crate) struct PageSchema {
    records: Vec<RecordOut>,
    /// The sequence number that comes next: where to read on.
    next: Whole,
    /// The committed tail.
    tail: PositionShape,
    /// The incarnation that was read, 32 hexadecimal digits.
    stream_id: String,
}

/// A record that was read: with `body` if that is text, with `body_base64` if not.
#[derive(ToSchema)]
#[schema(as = RecordRead)]
#[expect(dead_code, reason = "it describes what record_text writes")]
pub(crate) struct RecordOut {
    seq: Whole,
    /// Microseconds since 1970.
    timestamp: Whole,
    /// Pairs of name and value; one that is no text is `{"base64": "..."}`.
    headers: Vec<Pair>,
    body: Option<String>,
    body_base64: Option<String>,
}

/// A page of records while it is filled.
pub(crate) struct Page {
    json: Vec<u8>,
    records: usize,
}

impl Page {
    pub(crate) fn new() -> Page {
        Page {
            json: b"{\"records\":[".to_vec(),
            records: 0,
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.records == 0
    }

    pub(crate) fn add(&mut self, batch: &StoredBatch, taken: Range<usize>) {
        each(batch, taken, |write| {
            if self.records > 0 {
                self.json.push(b',');
            }
            self.records += 1;
            write(&mut self.json);
        });
    }

    /// The page and what stands behind its records.
    pub(crate) fn finish(mut self, next: Whole, tail: PositionShape, stream_id: &str) -> Vec<u8> {
        let rest = json!({ "next": next, "tail": tail, "stream_id": stream_id }).to_string();
        self.json.extend_from_slice(b"],");
        self.json.extend_from_slice(&rest.as_bytes()[1..]);
        self.json
    }
}

/// Records as lines.
pub(crate) fn lines(batch: &StoredBatch, taken: Range<usize>) -> Vec<u8> {
    let mut text = Vec::new();
    each(batch, taken, |write| {
        write(&mut text);
        text.push(b'\n');
    });
    text
}

/// Records as events, whose ids name the incarnation too: `7@0123...`.
pub(crate) fn events(batch: &StoredBatch, taken: Range<usize>, stream_id: &str) -> Vec<u8> {
    let mut text = Vec::new();
    let mut sequence = batch.first.0 + taken.start as u64;
    each(batch, taken, |write| {
        text.extend_from_slice(format!("id: {sequence}@{stream_id}\ndata: ").as_bytes());
        write(&mut text);
        text.extend_from_slice(b"\n\n");
        sequence += 1;
    });
    text
}

/// Calls `with` for each record that was taken, with what writes it without a line end.
fn each(
    batch: &StoredBatch,
    taken: Range<usize>,
    mut with: impl FnMut(&mut dyn FnMut(&mut Vec<u8>)),
) {
    let mut at = 0;
    batch.for_each(|position, record| {
        if taken.contains(&at) {
            with(&mut |text| {
                record_text::write(Form::Json, text, position, record);
                text.pop();
            });
        }
        at += 1;
    });
}

#[cfg(test)]
#[path = "records_out_tests.rs"]
mod tests;
