//! Bodies of requests: read whole, within their bounds of size, time and memory.
//!
//! # Invariants
//! - No body is larger than its limit, before and after its content encoding is undone; a few bytes
//!   that swell to gigabytes are refused when they pass the limit.
//! - All bodies together stay within the gateway's memory: what does not fit is refused at once.
//!
//! # Not here
//! - What the bytes mean: [`super::records_in`] and [`super::form`].

use super::refuse::Refused;
use super::state::Gateway;
use axum::body::Body;
use axum::http::{HeaderMap, StatusCode, header};
use bytes::{Bytes, BytesMut};
use flate2::read::MultiGzDecoder;
use http_body::Body as _;
use nova_model::limits::{HTTP_BODY_BYTES_MAX, HTTP_BODY_US};
use nova_model::{Code, Facts, Refusal};
use std::future::poll_fn;
use std::io::{self, Read};
use std::pin::Pin;
use std::time::Duration;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::timeout;

/// The gateway's memory is counted in pieces of this size.
pub(crate) const PIECE_BYTES: usize = 16 * 1024;
/// Window of zstd that is undone: 8 MiB, what the format asks every decoder for.
const ZSTD_WINDOW_LOG_MAX: u32 = 23;
/// Bytes of a refused body that are taken.
const WASTE_BYTES_MAX: usize = 32 * 1024 * 1024;
/// When memory is worth another try.
const MEMORY_AFTER_US: u64 = 1_000_000;

/// A body, and its share of the gateway's memory while it is held.
pub(crate) struct Received {
    pub(crate) bytes: Bytes,
    _memory: Option<OwnedSemaphorePermit>,
}

impl Received {
    /// Bytes that are somebody else's memory.
    #[cfg(test)]
    pub(crate) fn new(bytes: Bytes) -> Received {
        let _memory = None;
        Received { bytes, _memory }
    }
}

/// Reads a body and undoes its content encoding.
pub(crate) async fn read(
    gateway: &Gateway,
    headers: &HeaderMap,
    body: Body,
) -> Result<Received, Refused> {
    let encoding = Encoding::of(headers)?;
    let hint = body.size_hint().lower();
    if hint > HTTP_BODY_BYTES_MAX as u64 {
        waste(body);
        return Err(too_large(hint));
    }
    let mut body = body;
    let patience = Duration::from_micros(HTTP_BODY_US);
    let collected = timeout(patience, collect(gateway, &mut body)).await;
    let collected = collected.map_err(|_| {
        let seconds = HTTP_BODY_US / 1_000_000;
        let message = format!("the body did not arrive within {seconds} s");
        Refused::form_as(StatusCode::REQUEST_TIMEOUT, "body", message).with_retry()
    })?;
    let (bytes, mut memory) = collected.inspect_err(|_| waste(body))?;
    let bytes = match encoding {
        Encoding::None => bytes,
        encoding => {
            let most = gateway.memory(HTTP_BODY_BYTES_MAX).ok_or_else(no_memory)?;
            let bytes = undo(encoding, &bytes)?;
            memory = Some(most);
            bytes
        }
    };
    Ok(Received {
        bytes,
        _memory: memory,
    })
}

/// Takes the rest of a body that was refused, within bounds: a client that is still sending would
/// see a broken connection instead of the answer.
fn waste(mut body: Body) {
    if body.is_end_stream() {
        return;
    }
    tokio::spawn(async move {
        let mut left = WASTE_BYTES_MAX;
        let taken = async {
            while let Some(Ok(frame)) =
                poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await
            {
                let bytes = frame.into_data().map_or(0, |data| data.len());
                left = left.saturating_sub(bytes);
                if left == 0 {
                    break;
                }
            }
        };
        // What takes longer loses its connection, as any body does.
        let _in_time = timeout(Duration::from_micros(HTTP_BODY_US), taken).await;
    });
}

async fn collect(
    gateway: &Gateway,
    body: &mut Body,
) -> Result<(Bytes, Option<OwnedSemaphorePermit>), Refused> {
    let mut bytes = BytesMut::new();
    let mut memory: Option<OwnedSemaphorePermit> = None;
    loop {
        let frame = poll_fn(|context| Pin::new(&mut *body).poll_frame(context)).await;
        let data = match frame {
            None => return Ok((bytes.freeze(), memory)),
            Some(Ok(frame)) => frame.into_data().unwrap_or_default(),
            Some(Err(error)) => {
                return Err(Refused::form("body", format!("it broke off: {error}")));
            }
        };
        if bytes.len() + data.len() > HTTP_BODY_BYTES_MAX {
            return Err(too_large((bytes.len() + data.len()) as u64));
        }
        let more = gateway.memory_beyond(bytes.len(), data.len());
        match (&mut memory, more.ok_or_else(no_memory)?) {
            (Some(memory), more) => memory.merge(more),
            (memory, more) => *memory = Some(more),
        }
        bytes.extend_from_slice(&data);
    }
}

/// A content encoding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Encoding {
    None,
    Gzip,
    Zstd,
}

impl Encoding {
    fn of(headers: &HeaderMap) -> Result<Encoding, Refused> {
        let mut said = headers.get_all(header::CONTENT_ENCODING).iter();
        let encoding = match said.next().map(|value| value.as_bytes()) {
            None | Some(b"identity") => Encoding::None,
            Some(b"gzip" | b"x-gzip") => Encoding::Gzip,
            Some(b"zstd") => Encoding::Zstd,
            Some(_) => return Err(unknown_encoding()),
        };
        match said.next() {
            None => Ok(encoding),
            Some(_) => Err(unknown_encoding()),
        }
    }
}

fn undo(encoding: Encoding, bytes: &[u8]) -> Result<Bytes, Refused> {
    let undone = match encoding {
        Encoding::None => return Ok(Bytes::copy_from_slice(bytes)),
        Encoding::Gzip => undo_from(MultiGzDecoder::new(bytes)),
        Encoding::Zstd => zstd::Decoder::with_buffer(bytes).and_then(|mut decoder| {
            decoder.window_log_max(ZSTD_WINDOW_LOG_MAX)?;
            undo_from(decoder)
        }),
    };
    let undone = undone.map_err(|error| {
        Refused::form(
            "content-encoding",
            format!("the body is not {encoding:?}: {error}"),
        )
    })?;
    if undone.len() > HTTP_BODY_BYTES_MAX {
        return Err(too_large(undone.len() as u64));
    }
    Ok(undone.into())
}

/// Reads at most one byte more than a body may have.
fn undo_from(decoder: impl Read) -> io::Result<Vec<u8>> {
    let mut undone = Vec::new();
    let most = HTTP_BODY_BYTES_MAX as u64 + 1;
    decoder.take(most).read_to_end(&mut undone)?;
    Ok(undone)
}

fn unknown_encoding() -> Refused {
    let status = StatusCode::UNSUPPORTED_MEDIA_TYPE;
    let message = "a body comes as it is, or as one of gzip and zstd";
    Refused::form_as(status, "content-encoding", message)
}

fn too_large(found: u64) -> Refused {
    Refusal::too_large("body", HTTP_BODY_BYTES_MAX as u64, found).into()
}

/// All memory for bodies and pages is in use.
pub(crate) fn no_memory() -> Refused {
    let message = "the gateway's memory for requests is in use";
    let refusal = Refusal::new(Code::RateLimited, message);
    refusal.with(Facts::After(MEMORY_AFTER_US)).into()
}

#[cfg(test)]
#[path = "body_tests.rs"]
mod tests;
