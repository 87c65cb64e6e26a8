//! Frames out of chunks, as the bytes arrive.
//!
//! ```text
//!   header (16) --> may this lane carry it now? --> head --> checksum --> batch --> RawFrame
//! ```
//! A part that lies whole in one chunk becomes a slice of it; a smaller one is copied, because a
//! slice keeps the whole receive buffer alive for as long as the batch lives.
//!
//! # Invariants
//! - Memory held for a part is at most `PART_BYTES_FIRST` until as much of it has arrived.
//! - The lengths of a part are trusted to allocate for only behind the checksum, where a batch is.

use super::Kind;
use super::header::{HEADER_BYTES, Header};
use crate::error::ProtocolError;
use bytes::{Buf, Bytes};

/// What is allocated at first for a part that is at least this long.
const PART_BYTES_FIRST: usize = 64 * 1024;
/// A part shorter than this is copied out of its chunk.
const SLICE_BYTES_MIN: usize = 4 * 1024;

/// A frame with a valid header and checksum; head and batch are not looked into yet.
#[derive(Debug)]
pub(crate) struct RawFrame {
    /// What it is.
    pub(crate) kind: Kind,
    /// The part that the frame's checksum covers.
    pub(crate) head: Bytes,
    /// The batch, empty for kinds without one.
    pub(crate) batch: Bytes,
}

#[derive(Debug)]
enum Stage {
    /// Fewer than 16 bytes of the header have arrived.
    Header {
        raw: [u8; HEADER_BYTES],
        have: usize,
    },
    /// The header is legal; the head is arriving.
    Head { header: Header, part: Part },
    /// The checksum is right; the batch is arriving.
    Batch {
        header: Header,
        head: Bytes,
        part: Part,
    },
}

const START: Stage = Stage::Header {
    raw: [0; HEADER_BYTES],
    have: 0,
};

/// Takes chunks, gives frames.
#[derive(Debug)]
pub(crate) struct Decoder {
    stage: Stage,
}

impl Decoder {
    /// Waits for a header.
    pub(crate) fn new() -> Decoder {
        Decoder { stage: START }
    }

    /// Takes bytes from `input` until a frame is complete (`Some`) or the input is used up.
    /// `permit` judges each kind as soon as its header is there.
    pub(crate) fn next(
        &mut self,
        input: &mut Bytes,
        permit: impl Fn(Kind) -> Result<(), ProtocolError>,
    ) -> Result<Option<RawFrame>, ProtocolError> {
        loop {
            match &mut self.stage {
                Stage::Header { raw, have } => {
                    let take = input.len().min(HEADER_BYTES - *have);
                    input.copy_to_slice(&mut raw[*have..*have + take]);
                    *have += take;
                    if *have < HEADER_BYTES {
                        return Ok(None);
                    }
                    let header = Header::decode(*raw)?;
                    permit(header.kind)?;
                    let part = Part::new(header.head_bytes);
                    self.stage = Stage::Head { header, part };
                }
                Stage::Head { header, part } => {
                    let Some(head) = part.take(input) else {
                        return Ok(None);
                    };
                    header.check(&head)?;
                    self.stage = Stage::Batch {
                        header: *header,
                        head,
                        part: Part::new(header.batch_bytes),
                    };
                }
                Stage::Batch { header, head, part } => {
                    let Some(batch) = part.take(input) else {
                        return Ok(None);
                    };
                    let frame = RawFrame {
                        kind: header.kind,
                        head: std::mem::take(head),
                        batch,
                    };
                    self.stage = START;
                    return Ok(Some(frame));
                }
            }
        }
    }

    /// Whether the peer may end here: no frame has begun.
    pub(crate) fn is_between_frames(&self) -> bool {
        matches!(self.stage, Stage::Header { have: 0, .. })
    }

    /// Bytes allocated for the frame that is arriving.
    pub(crate) fn held_bytes(&self) -> usize {
        match &self.stage {
            Stage::Header { .. } => 0,
            Stage::Head { part, .. } => part.buffer.capacity(),
            Stage::Batch { head, part, .. } => head.len() + part.buffer.capacity(),
        }
    }
}

/// A run of bytes of known length that arrives in pieces.
#[derive(Debug)]
struct Part {
    buffer: Vec<u8>,
    length: usize,
}

impl Part {
    fn new(length: usize) -> Part {
        Part {
            buffer: Vec::new(),
            length,
        }
    }

    fn take(&mut self, input: &mut Bytes) -> Option<Bytes> {
        let missing = self.length - self.buffer.len();
        if self.buffer.is_empty() && missing <= input.len() && missing >= SLICE_BYTES_MIN {
            return Some(input.split_to(missing));
        }
        let piece = missing.min(input.len());
        self.grow(piece);
        self.buffer.extend_from_slice(&input[..piece]);
        input.advance(piece);
        (piece == missing).then(|| Bytes::from(std::mem::take(&mut self.buffer)))
    }

    /// Makes room for `piece` more: little until some has arrived, then the whole part at once,
    /// since growing step by step copies a large batch twice.
    fn grow(&mut self, piece: usize) {
        let needed = self.buffer.len() + piece;
        if needed <= self.buffer.capacity() || piece == 0 {
            return;
        }
        let capacity = match needed <= PART_BYTES_FIRST {
            true => PART_BYTES_FIRST.min(self.length),
            false => self.length,
        };
        self.buffer.reserve_exact(capacity - self.buffer.len());
    }
}
