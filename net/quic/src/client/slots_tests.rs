//! Memory of messages is handed over, comes back, and is not kept for the sake of a few bytes.

use super::*;

/// Lets a message of so many bytes come into a slot, and takes it.
fn come(slots: &mut Slots, at: usize, length: usize, byte: u8) -> BytesMut {
    let (mut rooms, metas) = slots.rooms();
    assert!(rooms.iter().all(|room| room.len() == MESSAGE_BYTES));
    rooms[at][..length].fill(byte);
    metas[at].len = length;
    metas[at].stride = length;
    let (meta, message) = slots.take(at);
    assert_eq!((meta.len, message.len()), (length, length));
    message
}

fn addresses(slots: &Slots) -> Vec<usize> {
    slots.slots.iter().map(|slot| slot.begin).collect()
}

#[test]
fn a_large_message_is_not_copied_and_its_memory_comes_back() {
    let mut slots = Slots::new();
    let begin = addresses(&slots);
    for (turn, length) in [HANDED_OVER_MIN, 40_000, 65_507, MESSAGE_BYTES, 20_000]
        .into_iter()
        .enumerate()
    {
        let message = come(&mut slots, 0, length, turn as u8);
        assert_eq!(message.as_ptr().addr(), begin[0]);
        // It goes on in parts, as datagrams and chunks do.
        let mut rest = message;
        let first = rest.split_to(1_000).freeze();
        let last = rest.freeze().slice(10..);
        assert!(first.iter().chain(&last).all(|&byte| byte == turn as u8));
    }
    slots.rooms();
    assert_eq!(addresses(&slots), begin);
    assert!(slots.lent.is_empty());
}

#[test]
fn a_small_message_keeps_no_more_than_itself() {
    let mut slots = Slots::new();
    let begin = addresses(&slots);
    for length in [0, 1, 1_200, HANDED_OVER_MIN - 1] {
        let message = come(&mut slots, 3, length, 7);
        assert_eq!(message.capacity(), length);
        assert!(message.iter().all(|&byte| byte == 7));
    }
    assert_eq!(addresses(&slots), begin);
}

#[test]
fn what_is_held_elsewhere_is_never_written_to() {
    let mut slots = Slots::new();
    let mut kept = Vec::new();
    for turn in 0..100u8 {
        let message = come(&mut slots, usize::from(turn) % SLOTS, 30_000, turn);
        kept.push(message.freeze().slice(29_990..));
        assert!(slots.lent.len() <= LENT_MAX);
    }
    for (turn, part) in (0u8..).zip(&kept) {
        assert!(part.iter().all(|&byte| byte == turn), "part {turn}");
    }
    // The newest that were let go of come back first or last, but no others are made.
    drop(kept);
    slots.rooms();
    let mut known: Vec<usize> = slots.lent.iter().map(|slot| slot.begin).collect();
    known.extend(addresses(&slots));
    for turn in 0..100u8 {
        drop(come(&mut slots, usize::from(turn) % SLOTS, 30_000, turn));
    }
    slots.rooms();
    assert!(addresses(&slots).iter().all(|at| known.contains(at)));
}
