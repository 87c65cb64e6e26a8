//! Damage on the way and lies of the peer: an error or a wait, never a panic, never much memory.

use crate::client::{AppendLane, ControlLane, ReadLane};
use crate::frame::decode::Decoder;
use crate::frame::header::HEADER_BYTES;
use crate::frame::{Frame, Kind};
use crate::places_tests::{client_lanes, server_lanes};
use crate::samples_tests::{
    append_frame, assemble, batch_of, decode, encode, frames, parts, raw, session_append, step,
};
use crate::server::Lane;
use crate::{Closes, ProtocolError};
use bytes::Bytes;
use nova_model::batch::BatchError;
use nova_model::limits::{BATCH_ENCODED_BYTES_MAX, CONTROL_FRAME_BYTES_MAX};
use proptest::prelude::*;

#[test]
fn every_cut_waits_for_more_and_every_chunking_gives_the_frame() {
    for frame in frames() {
        let bytes = Bytes::from(encode(&frame));
        for at in 0..bytes.len() {
            let cut = decode([bytes.slice(..at)]).expect("nothing is wrong yet");
            assert_eq!(cut, None, "{frame:?} cut at {at}");
            let both = decode([bytes.slice(..at), bytes.slice(at..)]);
            assert_eq!(both, Ok(Some(frame.clone())), "{frame:?} in two at {at}");
        }
        let single = (0..bytes.len()).map(|at| bytes.slice(at..at + 1));
        assert_eq!(decode(single), Ok(Some(frame.clone())), "byte by byte");
    }
}

#[test]
fn every_flipped_bit_of_header_and_head_is_found() {
    for frame in frames() {
        let bytes = encode(&frame);
        let (_, head, _) = parts(&bytes);
        for bit in 0..8 * (HEADER_BYTES + head.len()) {
            let mut damaged = bytes.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            match decode([Bytes::from(damaged)]) {
                Err(_) | Ok(None) => {}
                Ok(Some(read)) => panic!("bit {bit} of {frame:?} gave {read:?}"),
            }
        }
    }
}

#[test]
fn every_flipped_bit_of_a_batch_is_found() {
    let bytes = append_frame(&session_append(), &raw(&batch_of(40)));
    let (_, head, batch) = parts(&bytes);
    for bit in 0..8 * batch.len() {
        let mut damaged = bytes.clone();
        damaged[HEADER_BYTES + head.len() + bit / 8] ^= 1 << (bit % 8);
        let mut lane = server_lanes::appending();
        let error = lane.handle_bytes(Bytes::from(damaged)).expect_err("damage");
        let is_checksum = matches!(
            error,
            ProtocolError::Batch {
                kind: Kind::Append,
                error: BatchError::Checksum { .. }
            }
        );
        assert!(is_checksum, "{error}");
    }
}

/// A liar gets the checksums right. Whatever the head or the batch says, no lane panics.
#[test]
fn no_lie_with_a_right_checksum_panics() {
    for frame in frames() {
        let (kind, head, batch) = parts(&encode(&frame));
        for bit in 0..8 * head.len() {
            let mut lie = head.clone();
            lie[bit / 8] ^= 1 << (bit % 8);
            feed_all(&assemble(kind, &lie, &batch));
        }
        for length in 0..head.len() {
            feed_all(&assemble(kind, &head[..length], &batch));
        }
        feed_all(&assemble(kind, &[&head[..], &[0; 32]].concat(), &batch));
        feed_all(&assemble(kind, &[&[0xff; 32], &head[..]].concat(), &batch));
    }
}

/// Into every lane in every state, both ends.
fn feed_all(bytes: &[u8]) {
    let bytes = Bytes::copy_from_slice(bytes);
    for (_, mut lane) in server_lanes::all() {
        let _ = lane.handle_bytes(bytes.clone());
    }
    for (_, mut lane) in client_lanes::append() {
        let _ = lane.handle_bytes(bytes.clone());
    }
    for (_, mut lane) in client_lanes::read() {
        let _ = lane.handle_bytes(bytes.clone());
    }
    for (_, mut lane) in client_lanes::control() {
        let _ = lane.handle_bytes(bytes.clone());
    }
}

fn header(kind: Kind, head_bytes: u32, batch_bytes: u32) -> Bytes {
    let mut raw = assemble(kind, &[], &[]);
    raw[4..8].copy_from_slice(&head_bytes.to_le_bytes());
    raw[8..12].copy_from_slice(&batch_bytes.to_le_bytes());
    Bytes::from(raw)
}

#[test]
fn a_length_over_its_limit_is_refused_before_anything_is_kept() {
    for kind in Kind::ALL {
        let head = *kind.head_bytes().start() as u32;
        let batch = *kind.batch_bytes().start() as u32;
        let over_head = *kind.head_bytes().end() as u32 + 1;
        let over_batch = *kind.batch_bytes().end() as u32 + 1;
        let lies = [
            (u32::MAX, batch),
            (over_head, batch),
            (head, u32::MAX),
            (head, over_batch),
        ];
        for (head, batch) in lies {
            let mut decoder = Decoder::new();
            let result = step(&mut decoder, &mut header(kind, head, batch));
            let is_length = matches!(result, Err(ProtocolError::Length { .. }));
            assert!(is_length, "{kind}: {result:?}");
            assert_eq!(decoder.held_bytes(), 0);
        }
    }
}

#[test]
fn other_versions_kinds_and_flags_are_refused() {
    let mut bytes = encode(&Frame::Resume);
    bytes[1] = 2;
    let error = decode([Bytes::from(bytes.clone())]).expect_err("version 2");
    assert_eq!(error, ProtocolError::Version(2));
    assert_eq!(error.closes(), Closes::Connection);
    bytes[1] = 1;
    for byte in (0..=255).filter(|&byte| Kind::from_byte(byte).is_none()) {
        bytes[0] = byte;
        let error = decode([Bytes::from(bytes.clone())]).expect_err("no such kind");
        assert_eq!(error, ProtocolError::Kind(byte));
    }
    bytes[0] = Kind::Resume as u8;
    bytes[3] = 0x80;
    let error = decode([Bytes::from(bytes)]).expect_err("a flag");
    let kind = Kind::Resume;
    assert_eq!(
        error,
        ProtocolError::Flags {
            kind,
            flags: 0x8000
        }
    );
}

/// What is held is the first piece until as much has arrived, and then never more than the part.
#[test]
fn memory_grows_with_what_arrives() {
    let frame = append_frame(&session_append(), &raw(&batch_of(1_000_000)));
    let bytes = Bytes::from(frame);
    for chunk_bytes in [1_000, 1_400, 65_536, 300_000] {
        let mut lane = server_lanes::appending();
        for start in (0..bytes.len()).step_by(chunk_bytes) {
            let end = bytes.len().min(start + chunk_bytes);
            lane.handle_bytes(bytes.slice(start..end)).expect("legal");
            let is_begun = end > 64 * 1024;
            let most = if is_begun { bytes.len() } else { 66 * 1024 };
            assert!(
                lane.input_bytes() <= most,
                "{} at {end}",
                lane.input_bytes()
            );
        }
        assert!(lane.poll_input().is_some(), "the batch is whole");
        assert_eq!(lane.input_bytes(), 0);
    }
}

#[test]
fn a_large_batch_in_one_chunk_is_a_slice_of_it() {
    let chunk = Bytes::from(append_frame(&session_append(), &raw(&batch_of(10_000))));
    let mut lane = server_lanes::appending();
    lane.handle_bytes(chunk.clone()).expect("legal");
    let Some(crate::server::Input::Append(_, batch)) = lane.poll_input() else {
        panic!("a batch came");
    };
    assert!(chunk.as_ptr_range().contains(&batch.bytes().as_ptr()));
}

#[test]
fn an_end_inside_a_frame_is_an_error() {
    let bytes = Bytes::from(encode(&frames()[0]));
    for at in 1..bytes.len() {
        let mut lane = Lane::new();
        lane.handle_bytes(bytes.slice(..at)).expect("no error yet");
        let error = lane.handle_end().expect_err("cut");
        assert!(matches!(error, ProtocolError::Truncated { .. }));
        assert!(lane.is_finished() && lane.poll_input().is_none());
    }
    let mut append = AppendLane::new(crate::samples_tests::append_open());
    append.handle_bytes(bytes.slice(..0)).expect("nothing");
    append
        .handle_end()
        .expect("an end is allowed between frames");
    let mut read = ReadLane::new(crate::samples_tests::read_open());
    read.handle_end().expect_err("a reader is owed a last word");
    let mut control = ControlLane::new();
    control.handle_end().expect("nothing is owed");
}

#[test]
fn every_error_has_a_code_of_its_own_and_one_sentence() {
    let kind = Kind::Append;
    let sum = nova_model::Checksum(1);
    let errors = [
        ProtocolError::Version(9),
        ProtocolError::Kind(0),
        ProtocolError::Flags { kind, flags: 1 },
        ProtocolError::Length {
            kind,
            declared: 9,
            min: 1,
            max: BATCH_ENCODED_BYTES_MAX.max(CONTROL_FRAME_BYTES_MAX) as u32,
        },
        ProtocolError::Checksum {
            kind,
            declared: sum,
            found: sum,
        },
        ProtocolError::Head(kind),
        ProtocolError::Batch {
            kind,
            error: BatchError::Archive,
        },
        ProtocolError::Window { kind, window: 16 },
        ProtocolError::OutOfPlace { kind, lane: "new" },
        ProtocolError::RequestId {
            kind,
            id: crate::RequestId(1),
        },
        ProtocolError::Content { kind, what: "x" },
        ProtocolError::Truncated { lane: "a reader" },
    ];
    for (index, error) in errors.iter().enumerate() {
        assert_eq!(error.close_code() as usize, index + 1);
        assert_eq!(error.closes() == Closes::Connection, index == 0);
        let text = error.to_string();
        assert!(!text.contains('\n') && !text.ends_with('.'), "{text}");
    }
}

proptest! {
    #[test]
    fn random_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        feed_all(&bytes);
    }

    #[test]
    fn random_heads_with_a_right_checksum_never_panic(
        kind in proptest::sample::select(&Kind::ALL[..]),
        head in proptest::collection::vec(any::<u8>(), 0..200),
        batch in proptest::collection::vec(any::<u8>(), 0..64),
    ) {
        feed_all(&assemble(kind, &head, &batch));
    }
}
