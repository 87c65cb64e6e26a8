//! Makes the checksums of damaged bytes right, so that what lies behind them is reached.
//!
//! Written from docs/PROTOCOL.md and docs/FORMAT.md, and not with the code under test.

use nova_model::Checksum;

const FRAME_HEADER: usize = 16;
/// Behind the frame's header, in the heads of frames with a batch: where the batch's checksum is.
const APPEND: u8 = 0x02;
const APPEND_ONCE: u8 = 0x06;
const BATCH: u8 = 0x87;

const BLOCK: usize = 4096;
const GROUP_HEADER: usize = 128;
const ENTRY_HEADER: usize = 32;
const BATCH_HEADER: usize = 96;
const BATCH_ENTRY: u8 = 1;
const TRAILER: usize = 256;

/// Frames one behind the other, up to the first that is incomplete.
pub fn frames(mut bytes: &mut [u8]) {
    while let Some(length) = frame_bytes(bytes) {
        let (frame, others) = bytes.split_at_mut(length);
        frame_of(frame);
        bytes = others;
    }
}

/// Length of the frame that begins here, if all of it is there.
pub fn frame_bytes(bytes: &[u8]) -> Option<usize> {
    if bytes.len() < FRAME_HEADER {
        return None;
    }
    let length = FRAME_HEADER + number(bytes, 4) + number(bytes, 8);
    (length <= bytes.len()).then_some(length)
}

fn frame_of(frame: &mut [u8]) {
    let head = number(frame, 4);
    let (header, rest) = frame.split_at_mut(FRAME_HEADER);
    let (head, batch) = rest.split_at_mut(head);
    let place = match header[0] {
        APPEND | BATCH => 0,
        APPEND_ONCE => 8,
        _ => head.len(),
    };
    if let Some(place) = head.get_mut(place..place + 4) {
        place.copy_from_slice(&Checksum::of(batch).0.to_le_bytes());
    }
    let mut summed = header[..12].to_vec();
    summed.extend_from_slice(head);
    header[12..].copy_from_slice(&Checksum::of(&summed).0.to_le_bytes());
}

/// A segment's file: its header and its groups, up to the first that has no group's length.
pub fn segment(bytes: &mut [u8]) {
    if bytes.len() < BLOCK {
        return;
    }
    sum(bytes, 8, 12..BLOCK);
    let (mut at, mut previous) = (BLOCK, [0; 4]);
    while bytes.len() >= at + GROUP_HEADER {
        let group = &mut bytes[at..];
        let length = number(group, 20);
        if length < GROUP_HEADER || length > group.len() {
            return;
        }
        payloads(&mut group[GROUP_HEADER..length]);
        group[28..32].copy_from_slice(&previous);
        sum(group, 8, 12..length);
        previous.copy_from_slice(&group[8..12]);
        at += length.next_multiple_of(BLOCK);
    }
}

/// The payloads of a group's batches.
fn payloads(mut entries: &mut [u8]) {
    while entries.len() >= ENTRY_HEADER {
        let length = number(entries, 0);
        if length < ENTRY_HEADER || length > entries.len() {
            return;
        }
        let (entry, others) = entries.split_at_mut(length);
        if entry[4] == BATCH_ENTRY && length >= BATCH_HEADER {
            sum(entry, 44, BATCH_HEADER..length);
        }
        entries = others;
    }
}

/// The index of a sealed segment.
pub fn index(bytes: &mut [u8]) {
    let Some(body) = bytes.len().checked_sub(TRAILER) else {
        return;
    };
    let (body, trailer) = bytes.split_at_mut(body);
    trailer[20..24].copy_from_slice(&Checksum::of(body).0.to_le_bytes());
    sum(trailer, 8, 12..TRAILER);
}

/// Writes the checksum of a range at `at`.
fn sum(bytes: &mut [u8], at: usize, range: std::ops::Range<usize>) {
    let checksum = Checksum::of(&bytes[range]);
    bytes[at..at + 4].copy_from_slice(&checksum.0.to_le_bytes());
}

/// The little-endian number of 4 bytes at `at`.
fn number(bytes: &[u8], at: usize) -> usize {
    let raw = [bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]];
    u32::from_le_bytes(raw) as usize
}
